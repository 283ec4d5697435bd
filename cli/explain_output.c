/* The picture shows one iteration: the one whose length is typical of the first rank. Each rank has its own line and
 * its own clock. Everything else is about all iterations. */
#include "cli/explain_output.h"

#include <stdlib.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/picture.h"
#include "cli/table.h"

enum { LABEL = 12, TIME_ROOM = 32 };

static unsigned shade_of(enum time_kind kind) {
    static const unsigned shades[TIME_COUNT] = {
        [TIME_compute] = 3, [TIME_exposed] = 2, [TIME_waiting] = 1, [TIME_idle] = 0};
    return shades[kind];
}

/* ---- the picture ---- */

static void print_legend(void) {
    text_print(stdout, "%*s", LABEL, "");
    for (int k = 0; k < TIME_COUNT; k++)
        text_print(stdout, "%s%s %s", k ? "   " : "",
                   k == TIME_idle ? "blank" : picture_shade(shade_of((enum time_kind)k)),
                   time_kind_words((enum time_kind)k));
    text_print(stdout, "\n");
}

static enum status print_row(const struct explanation *e, size_t trace, size_t step, size_t n, enum time_kind *cells,
                             struct error *err) {
    enum status st = explanation_picture(e, trace, step, n, cells, err);
    if (st)
        return st;
    text_print(stdout, "rank %-*ld|", LABEL - 6, (long)e->traces[trace].rank);
    for (size_t i = 0; i < n; i++)
        text_print(stdout, "%s", picture_shade(shade_of(cells[i])));
    text_print(stdout, "|\n");
    return ST_OK;
}

static enum status print_picture(const struct explanation *e, size_t rows, const struct explained_row *row,
                                 struct error *err) {
    const size_t n = picture_width() - LABEL - 2;
    enum time_kind *cells = calloc(n, sizeof *cells);
    size_t *steps = calloc(e->n, sizeof *steps);
    enum status st = cells && steps ? explained_steps(e, steps, err) : error_no_memory(err);
    if (!st)
        text_print(stdout, "\nIteration %ld:\n", (long)e->traces[0].steps[steps[0]].number);
    for (size_t i = 0; i < rows && !st; i++)
        st = print_row(e, row[i].trace, steps[row[i].trace], n, cells, err);
    if (!st)
        print_legend();
    free(cells);
    free(steps);
    return st;
}

/* ---- tables ---- */

static void print_ranks(const struct explanation *e, size_t rows, const struct explained_row *row) {
    const char *heads[] = {">RANK",   ">ITERATION", ">COMPUTE", ">EXPOSED",        ">WAITING", ">IDLE",
                           ">HIDDEN", ">LAST",      ">BY",      ">HELD UP OTHERS", NULL,       NULL};
    struct table table;
    char time[TIME_ROOM];
    if (row[0].why)
        heads[10] = "SHOWN AS";
    table_init(&table, heads);
    for (size_t i = 0; i < rows; i++) {
        const struct rank_account *a = &e->accounts[row[i].trace];
        table_cell(&table, "%ld", (long)e->traces[row[i].trace].rank);
        table_cell(&table, "%s", units_format_time(a->iteration_us, time, sizeof time));
        for (int k = 0; k < TIME_COUNT; k++)
            table_cell(&table, "%s", units_format_time(a->us[k], time, sizeof time));
        table_cell(&table, "%s", units_format_time(a->hidden_us, time, sizeof time));
        table_cell(&table, "%zu of %zu", a->n_last, a->n_met);
        table_cell(&table, "%s", a->n_last ? units_format_time(a->gap_us, time, sizeof time) : "-");
        table_cell(&table, "%s", units_format_time(a->held_up_us, time, sizeof time));
        if (row[i].why)
            table_cell(&table, "%s", row[i].why);
    }
    text_print(stdout, "\n");
    table_print(&table, stdout);
    table_release(&table);
    if (rows < e->n)
        text_print(stdout, "%zu of %zu ranks are shown; --json has them all.\n", rows, e->n);
}

static void print_costs(const struct explanation *e) {
    static const char *const heads[] = {"COLLECTIVE", ">RANKS",          ">BYTES", ">TIME", ">95% WITHIN",
                                        ">TIMES",     ">BESIDE COMPUTE", "MOVED",  NULL};
    struct table table;
    char time[TIME_ROOM], low[TIME_ROOM], high[TIME_ROOM];
    if (!e->meetings.n_points)
        return;
    table_init(&table, heads);
    for (size_t i = 0; i < e->meetings.n_points; i++) {
        const struct cost_point *p = &e->meetings.points[i];
        table_cell(&table, "%s", p->operation);
        table_cell(&table, "%u", p->devices);
        table_cell(&table, "%lu", (unsigned long)p->bytes);
        table_cell(&table, "%s", units_format_time(p->time_us.median_us, time, sizeof time));
        table_cell(&table, "%s..%s", units_format_time(p->time_us.low_us, low, sizeof low),
                   units_format_time(p->time_us.high_us, high, sizeof high));
        table_cell(&table, "%zu", p->time_us.n);
        table_cell(&table, "%.0f%%", 100 * p->beside);
        table_cell(&table, "%s", p->alone ? "alone" : "beside others");
    }
    text_print(stdout, "\nWhat collectives cost, from the coming of the last rank on:\n");
    table_print(&table, stdout);
    table_release(&table);
}

enum status explain_print(const struct explanation *e, const struct explained_floor *floor, struct error *err) {
    char sentences[EXPLAINED_SENTENCES][EXPLAINED_ROOM];
    const size_t n = explained_sentences(e, floor, sentences);
    for (size_t i = 0; i < n; i++)
        text_print(stdout, "%s\n", sentences[i]);
    struct explained_row row[EXPLAINED_ROWS];
    const size_t rows = explained_rows(e, row);
    enum status st = print_picture(e, rows, row, err);
    if (st)
        return st;
    print_ranks(e, rows, row);
    print_costs(e);
    return ST_OK;
}

enum status explain_print_json(const struct explanation *e, const struct explained_floor *floor, struct error *err) {
    bool whole;
    cJSON *json = explained_json(e, floor, &whole);
    return output_line(json, whole, err);
}
