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

static const char *time_text(double us, char out[TIME_ROOM]) {
    return units_format_time(us, out, TIME_ROOM);
}

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

static enum status print_picture(const struct explanation *e, struct error *err) {
    const size_t n = picture_width() - LABEL - 2;
    enum time_kind *cells = calloc(n, sizeof *cells);
    size_t *steps = calloc(e->n, sizeof *steps);
    enum status st = cells && steps ? explained_steps(e, steps, err) : error_no_memory(err);
    if (!st)
        text_print(stdout, "\nIteration %ld:\n", (long)e->traces[0].steps[steps[0]].number);
    for (size_t t = 0; t < e->n && !st; t++)
        st = print_row(e, t, steps[t], n, cells, err);
    if (!st)
        print_legend();
    free(cells);
    free(steps);
    return st;
}

/* ---- tables ---- */

static void print_ranks(const struct explanation *e) {
    static const char *const heads[] = {">RANK",   ">ITERATION", ">COMPUTE", ">EXPOSED",        ">WAITING", ">IDLE",
                                        ">HIDDEN", ">LAST",      ">BY",      ">HELD UP OTHERS", NULL};
    struct table table;
    char time[TIME_ROOM];
    table_init(&table, heads);
    for (size_t i = 0; i < e->n; i++) {
        const struct rank_account *a = &e->accounts[i];
        table_cell(&table, "%ld", (long)e->traces[i].rank);
        table_cell(&table, "%s", time_text(a->iteration_us, time));
        for (int k = 0; k < TIME_COUNT; k++)
            table_cell(&table, "%s", time_text(a->us[k], time));
        table_cell(&table, "%s", time_text(a->hidden_us, time));
        table_cell(&table, "%zu of %zu", a->n_last, a->n_met);
        table_cell(&table, "%s", a->n_last ? time_text(a->gap_us, time) : "-");
        table_cell(&table, "%s", time_text(a->held_up_us, time));
    }
    text_print(stdout, "\n");
    table_print(&table, stdout);
    table_release(&table);
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
        table_cell(&table, "%s", time_text(p->time_us.median_us, time));
        table_cell(&table, "%s..%s", time_text(p->time_us.low_us, low), time_text(p->time_us.high_us, high));
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
    enum status st = print_picture(e, err);
    if (st)
        return st;
    print_ranks(e);
    print_costs(e);
    return ST_OK;
}

/* ---- JSON ---- */

static cJSON *rank_json(const struct explanation *e, size_t i, bool *ok) {
    static const char *const keys[TIME_COUNT] = {"compute_us", "exposed_us", "waiting_us", "idle_us"};
    const struct rank_account *a = &e->accounts[i];
    cJSON *json = cJSON_CreateObject();
    *ok = *ok && json && cJSON_AddNumberToObject(json, "rank", (double)e->traces[i].rank) &&
          cJSON_AddStringToObject(json, "file", e->traces[i].file) &&
          cJSON_AddNumberToObject(json, "iterations", (double)e->traces[i].n_steps) &&
          cJSON_AddNumberToObject(json, "iteration_us", a->iteration_us);
    for (int k = 0; k < TIME_COUNT; k++)
        *ok = *ok && cJSON_AddNumberToObject(json, keys[k], a->us[k]);
    *ok = *ok && cJSON_AddNumberToObject(json, "hidden_us", a->hidden_us) &&
          cJSON_AddNumberToObject(json, "collectives", (double)a->n_met) &&
          cJSON_AddNumberToObject(json, "last", (double)a->n_last) &&
          cJSON_AddNumberToObject(json, "last_by_us", a->gap_us) &&
          cJSON_AddNumberToObject(json, "held_up_us", a->held_up_us);
    return json;
}

static cJSON *cost_json(const struct cost_point *p, bool *ok) {
    cJSON *json = cJSON_CreateObject();
    *ok = *ok && json && cJSON_AddStringToObject(json, "operation", p->operation) &&
          cJSON_AddNumberToObject(json, "devices", p->devices) &&
          cJSON_AddNumberToObject(json, "bytes", (double)p->bytes) &&
          cJSON_AddNumberToObject(json, "time_us", p->time_us.median_us) &&
          cJSON_AddNumberToObject(json, "low_us", p->time_us.low_us) &&
          cJSON_AddNumberToObject(json, "high_us", p->time_us.high_us) &&
          cJSON_AddNumberToObject(json, "times", (double)p->time_us.n) &&
          cJSON_AddBoolToObject(json, "alone", p->alone) && cJSON_AddNumberToObject(json, "beside_compute", p->beside);
    return json;
}

enum status explain_print_json(const struct explanation *e, const struct explained_floor *floor, struct error *err) {
    cJSON *json = cJSON_CreateObject();
    bool ok = json && cJSON_AddStringToObject(json, "schema", "syncopate.explanation/1") &&
              cJSON_AddNumberToObject(json, "iteration_us", e->iteration_us) &&
              cJSON_AddNumberToObject(json, "most_won_us", e->most_won_us) &&
              (!floor->known || cJSON_AddNumberToObject(json, "cannot_hide_us", floor->exposed_us)) &&
              (e->late < e->n ? cJSON_AddNumberToObject(json, "late_rank", (double)e->traces[e->late].rank)
                              : cJSON_AddNullToObject(json, "late_rank")) &&
              cJSON_AddNumberToObject(json, "clock_us", e->meetings.clock_us) &&
              cJSON_AddNumberToObject(json, "collectives", (double)e->meetings.n) &&
              cJSON_AddNumberToObject(json, "unmatched", (double)e->meetings.n_unmatched) &&
              cJSON_AddNumberToObject(json, "partial", (double)e->meetings.n_partial);
    cJSON *ranks = ok ? cJSON_AddArrayToObject(json, "ranks") : NULL;
    cJSON *costs = ok ? cJSON_AddArrayToObject(json, "costs") : NULL;
    ok = ok && ranks && costs;
    for (size_t i = 0; i < e->n && ok; i++)
        ok = cJSON_AddItemToArray(ranks, rank_json(e, i, &ok)) && ok;
    for (size_t i = 0; i < e->meetings.n_points && ok; i++)
        ok = cJSON_AddItemToArray(costs, cost_json(&e->meetings.points[i], &ok)) && ok;
    return output_line(json, ok, err);
}
