/* What all_reduce_perf of nccl-tests prints, as it stands in a log: rows of
 *
 *     size count type redop [root] | time algbw busbw [errors] | time algbw busbw [errors]
 *
 * out of place and in place. Up to 2.11 a row has 12 columns, without the root; from 2.13 it has 13; with times of each
 * iteration 21, four more after either part; and a time stamp may end it. mpirun may put "[1,0]<stdout>:" before a
 * line, and NCCL's own lines stand between or inside. A row is recognised by its type, the third column. The in-place
 * time is kept, since frameworks reduce gradients in place; without it, the other one.
 *
 * The lines "# Rank 0 Pid 43 on HOST device 0 [..] NAME" tell the nodes. One pass.
 *
 * Such a line, or the heading of a table, begins another run if rows came before it. Runs of one log must be of the
 * same cluster: as many ranks on the same nodes, and times that agree. A run is refused if a quarter of the sizes that
 * it shares with the first run took over 1.25 times as long in one of the two. Then something differed that the log
 * does not tell, such as NCCL_ALGO, and the median would be the time of neither. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interop/import/cluster_kinds.h"
#include "interop/import/nccl_rows.h"

static const double MAX_US = 1e12, MAX_RATE = 1e6;
static const uint64_t MAX_BYTES = UINT64_C(1) << 48, MAX_RANK = (1 << 20) - 1;
static const double APART = 1.25;
enum { OLD_COLUMNS = 12, COLUMNS = 13, ITERATION_COLUMNS = 21, PARTS_APART = 4 };

struct log {
    struct lines lines;
    struct nccl_rows rows; /* `ranks` and `met` are those of the first run that lists them */
    size_t n_broken;
    size_t run, listed, begins; /* the current run, the first that lists its ranks, the current one's first line */
    bool row_seen;              /* in the current run */
    uint64_t ranks;             /* of the current run; 0: not listed */
    struct cluster_draft other; /* the nodes of the current run, if another listed its ranks before */
};

/* "1048576 262144 float ...": so many bytes are so many elements of a type. */
static bool is_row(const char *line) {
    char *end, type[16];
    const uint64_t bytes = strtoull(line, &end, 10), count = strtoull(end, &end, 10);
    end += strspn(end, " \t");
    const size_t n = strcspn(end, " \t\r\n");
    if (!bytes || n >= sizeof type)
        return false;
    memcpy(type, end, n);
    type[n] = 0;
    return nccl_type_bytes(type) && bytes == count * nccl_type_bytes(type);
}

/* A heading, or rows without one. */
bool nccl_tests_is(const struct source *source) {
    if (strstr(source->text, "algbw") && strstr(source->text, "busbw"))
        return true;
    for (const char *line = source->text; *line; line += line[0] == '\n') {
        if (is_row(line))
            return true;
        line += strcspn(line, "\n");
    }
    return false;
}

static bool is_stamp(const char *word) { /* 2025-01-31 or 23:59:59 */
    return *word && !word[strspn(word, "0123456789:-")] && strpbrk(word + 1, ":-");
}

/* ---- runs ---- */

static bool same_nodes(const struct cluster_draft *first, const struct cluster_draft *other) {
    bool same = first->nodes.n == other->nodes.n;
    for (size_t i = 0; i < other->nodes.n && same; i++) {
        const struct draft_node *b = &other->nodes.items[i], *a = NULL;
        for (size_t k = 0; k < first->nodes.n && !a; k++) /* mostly in the same order */
            if (!strcmp(first->nodes.items[(i + k) % first->nodes.n].name, b->name))
                a = &first->nodes.items[(i + k) % first->nodes.n];
        same = a && a->devices == b->devices;
    }
    return same;
}

/* Hold the ranks of a run that ends here against those of the first one. */
static enum status end_run(struct log *log, struct error *err) {
    struct lines begin = log->lines;
    begin.line = log->begins;
    if (!log->ranks || log->run == log->listed)
        return ST_OK;
    if (log->ranks != log->rows.ranks)
        return lines_fail(&begin, err, "a run of %lu ranks behind one of %lu; give each as a log of its own",
                          (unsigned long)log->ranks, (unsigned long)log->rows.ranks);
    return same_nodes(&log->rows.met, &log->other)
               ? ST_OK
               : lines_fail(&begin, err, "a run on other nodes than one before; give each as a log of its own");
}

/* A line that stands before a table: does it begin another run? */
static enum status begin_run(struct log *log, struct error *err) {
    if (!log->row_seen)
        return ST_OK;
    enum status st = end_run(log, err);
    cluster_draft_release(&log->other);
    cluster_draft_init(&log->other, log->rows.met.arena);
    log->begins = log->lines.line;
    log->run++;
    log->ranks = 0;
    log->row_seen = false;
    return st;
}

static int compare_sizes(const void *a, const void *b) {
    const struct nccl_tests_row *x = *(const struct nccl_tests_row *const *)a;
    const struct nccl_tests_row *y = *(const struct nccl_tests_row *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static double ratio(const struct nccl_tests_row *a, const struct nccl_tests_row *b) {
    return fmax(a->time_us / b->time_us, b->time_us / a->time_us);
}

/* firsts[i] becomes the first run's row of as many bytes as row i has; NULL: there is none. */
static bool find_firsts(const struct nccl_rows *rows, struct arena *arena, const struct nccl_tests_row **firsts) {
    const struct nccl_tests_row **by_size = arena_alloc(arena, rows->n, sizeof *by_size), *first = NULL;
    if (!by_size)
        return false;
    for (size_t i = 0; i < rows->n; i++)
        by_size[i] = &rows->items[i];
    qsort(by_size, rows->n, sizeof *by_size, compare_sizes);
    for (size_t i = 0; i < rows->n; i++) {
        if (!i || by_size[i]->bytes != by_size[i - 1]->bytes)
            first = by_size[i]->run == rows->items[0].run ? by_size[i] : NULL;
        firsts[by_size[i] - rows->items] = first;
    }
    return true;
}

/* The rows of the run that begins with row i, against those of the first: how many sizes they share, at how many of
 * them their times are apart, and the row where they are furthest. Returns the end of the run. */
static size_t compare_run(const struct nccl_rows *rows, const struct nccl_tests_row *const *firsts, size_t i,
                          size_t *shared, size_t *apart, size_t *worst) {
    double furthest = 0;
    const size_t run = rows->items[i].run;
    *shared = *apart = 0;
    for (*worst = i; i < rows->n && rows->items[i].run == run; i++) {
        if (!firsts[i])
            continue;
        const double now = ratio(&rows->items[i], firsts[i]);
        ++*shared;
        *apart += now > APART;
        *worst = now > furthest ? i : *worst;
        furthest = fmax(furthest, now);
    }
    return i;
}

/* Do the times of each run agree with those of the first? */
static enum status check_times(const struct log *log, const struct nccl_tests_row *const *firsts, size_t *n_runs,
                               struct error *err) {
    const struct nccl_rows *rows = &log->rows;
    size_t shared, apart, worst;
    *n_runs = 0;
    for (size_t i = 0; i < rows->n; ++*n_runs) {
        i = compare_run(rows, firsts, i, &shared, &apart, &worst);
        if (!*n_runs || !apart || PARTS_APART * apart < shared)
            continue;
        const struct nccl_tests_row *row = &rows->items[worst];
        struct lines at = log->lines;
        at.line = row->place;
        return lines_fail(
            &at, err,
            "%lu bytes took %g us, and %g us in the run before (line %zu): runs that differ; give the log "
            "of one, or each as a log of its own for their median",
            (unsigned long)row->bytes, row->time_us, firsts[worst]->time_us, firsts[worst]->place);
    }
    return ST_OK;
}

static enum status check_runs(struct log *log, struct notes *notes, struct error *err) {
    const struct nccl_tests_row **firsts = arena_alloc(notes->arena, log->rows.n, sizeof *firsts);
    size_t n_runs;
    if (!firsts || !find_firsts(&log->rows, notes->arena, firsts))
        return error_no_memory(err);
    enum status st = check_times(log, firsts, &n_runs, err);
    if (!st && n_runs > 1 &&
        !notes_add(notes, "%s: %zu runs, whose times agree: the median of each size", log->lines.name, n_runs))
        st = error_no_memory(err);
    return st;
}

/* ---- lines ---- */

/* Where among the words a row begins; n: nowhere. */
static size_t find_row(size_t n, char **words) {
    uint64_t number;
    for (size_t i = 0; i + 3 < n; i++)
        if (word_integer(words[i], &number) && word_integer(words[i + 1], &number) && nccl_type_bytes(words[i + 2]))
            return i;
    return n;
}

/* One part: time, rates, and whether results were wrong. A part that was not run is all N/A. */
static enum status read_part(const struct lines *lines, char **words, bool counted, struct nccl_tests_row *row,
                             bool *there, struct error *err) {
    double wrong = 0;
    *there = strcmp(words[0], "N/A") != 0;
    if (!*there)
        return ST_OK;
    enum status st = lines_number(lines, "time", words[0], 0, MAX_US, &row->time_us, err);
    if (!st)
        st = lines_number(lines, "algbw", words[1], 0, MAX_RATE, &row->alg, err);
    if (!st)
        st = lines_number(lines, "busbw", words[2], 0, MAX_RATE, &row->bus, err);
    if (!st && strcmp(words[3], "N/A") != 0)
        st = lines_number(lines, counted ? "#wrong" : "error", words[3], 0, INFINITY, &wrong, err);
    if (!st && counted && wrong > 0)
        st = lines_fail(lines, err, "%s wrong sums: times of a broken all-reduce; run it again", words[3]);
    return st;
}

static enum status read_parts(const struct lines *lines, size_t n, char **words, struct nccl_tests_row *row,
                              struct error *err) {
    const size_t first = n == OLD_COLUMNS ? 4 : 5, width = n == ITERATION_COLUMNS ? 8 : 4;
    struct nccl_tests_row out_of_place = *row, in_place = *row;
    bool there, there_in_place;
    enum status st = read_part(lines, words + first, n != OLD_COLUMNS, &out_of_place, &there, err);
    if (!st)
        st = read_part(lines, words + first + width, n != OLD_COLUMNS, &in_place, &there_in_place, err);
    if (!st && !there && !there_in_place)
        st = lines_fail(lines, err, "a row without a time");
    if (!st)
        *row = there_in_place ? in_place : out_of_place;
    return st;
}

/* The n words of a row; a size of 0 tells nothing. */
static enum status read_row(struct log *log, size_t n, char **words, bool interrupted, struct error *err) {
    const struct lines *lines = &log->lines;
    struct nccl_tests_row row = {.place = lines->line, .run = log->run};
    uint64_t count;
    log->row_seen = true;
    while (n && is_stamp(words[n - 1]))
        n--;
    const bool old = n == OLD_COLUMNS && strcmp(words[4], "-1") != 0; /* there a time stands, not a root */
    if (!old && n != COLUMNS && n != ITERATION_COLUMNS) {
        if (!interrupted)
            return lines_fail(lines, err, "a row of %zu columns; all_reduce_perf prints 12, 13 or 21", n);
        log->n_broken++;
        return ST_OK;
    }
    enum status st = lines_integer(lines, "size", words[0], 0, MAX_BYTES, &row.bytes, err);
    if (!st)
        st = lines_integer(lines, "count", words[1], 0, MAX_BYTES, &count, err);
    if (!st && row.bytes != count * nccl_type_bytes(words[2]))
        st = lines_fail(lines, err, "%s bytes are not %s elements of %s: this is no all-reduce", words[0], words[1],
                        words[2]);
    if (!st)
        st = read_parts(lines, n, words, &row, err);
    if (!st && row.bytes && row.time_us > 0 && nccl_is_sum(words[3]))
        log->rows.items[log->rows.n++] = row;
    return st;
}

/* Words from `first` on, with a blank between. */
static const char *join_words(struct arena *arena, size_t first, size_t n, char **words) {
    char text[128] = "";
    for (size_t i = first; i < n && strlen(text) + strlen(words[i]) + 2 < sizeof text; i++)
        strcat(strcat(text, i > first ? " " : ""), words[i]);
    return arena_strdup(arena, text);
}

/* "Rank 0 [Group 0] Pid 43 on HOST device 0 [0x0f] NAME OF THE DEVICE" */
static enum status read_rank(struct log *log, size_t n, char **words, struct error *err) {
    size_t rank = 0, on = 0, device = 0;
    uint64_t number;
    for (size_t i = 0; i + 1 < n; i++) {
        rank = !rank && !strcmp(words[i], "Rank") ? i + 1 : rank;
        on = rank && !on && !strcmp(words[i], "on") ? i + 1 : on;
        device = on && !device && !strcmp(words[i], "device") ? i + 1 : device;
    }
    if (!rank || !on || !device)
        return ST_OK;
    enum status st = begin_run(log, err);
    if (!st)
        st = lines_integer(&log->lines, "rank", words[rank], 0, MAX_RANK, &number, err);
    if (st)
        return st;
    if (!log->rows.ranks)
        log->listed = log->run;
    struct cluster_draft *met = log->run == log->listed ? &log->rows.met : &log->other;
    struct draft_node *node = cluster_draft_node(met, words[on], strlen(words[on]));
    if (!node)
        return error_no_memory(err);
    const size_t name = device + 1 < n && *words[device + 1] == '[' ? device + 2 : device + 1;
    if (name < n && !node->device && !(node->device = join_words(met->arena, name, n, words)))
        return error_no_memory(err);
    node->devices++;
    log->ranks = number + 1 > log->ranks ? number + 1 : log->ranks;
    if (log->run == log->listed)
        log->rows.ranks = log->ranks;
    return ST_OK;
}

static enum status read_line(struct log *log, char *line, struct error *err) {
    char *words[SOURCE_MAX_WORDS];
    line = line_skip_prefix(line);
    const bool interrupted = strstr(line, "NCCL ") != NULL;
    if (strstr(line, "cputime") && strstr(line, "algbw"))
        return lines_fail(&log->lines, err, "times of the processor; run all_reduce_perf without -C");
    if (strstr(line, "algbw") && strstr(line, "busbw"))
        return begin_run(log, err);
    const size_t n = words_split(line, words), row = find_row(n, words);
    return row < n ? read_row(log, n - row, words + row, interrupted, err) : read_rank(log, n, words, err);
}

static enum status read_log(struct log *log, const struct import_settings *settings, struct notes *notes,
                            struct cluster_draft *draft, struct error *err) {
    const struct nccl_tests_row *best;
    uint64_t ranks;
    enum status st = ST_OK;
    for (char *line; !st && (line = lines_next(&log->lines));)
        st = read_line(log, line, err);
    if (!st)
        st = end_run(log, err);
    if (!st)
        st = check_runs(log, notes, err);
    if (st)
        return st;
    st = nccl_rows_check(&log->rows, settings->devices, &best, &ranks, err);
    if (st) {
        error_prefix(err, st, "%s", log->lines.name);
        return st;
    }
    if (log->n_broken &&
        !notes_add(notes, "%s: %zu rows that other output interrupts are left out", log->lines.name, log->n_broken))
        return error_no_memory(err);
    return nccl_rows_use(&log->rows, best, ranks, draft) ? ST_OK : error_no_memory(err);
}

enum status nccl_tests_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                            struct cluster_draft *draft, struct error *err) {
    struct log log = {.n_broken = 0};
    cluster_draft_init(&log.rows.met, draft->arena);
    cluster_draft_init(&log.other, draft->arena);
    log.rows.items = arena_alloc(draft->arena, source_count_lines(source), sizeof *log.rows.items);
    if (!log.rows.items || !lines_init(&log.lines, source, draft->arena))
        return error_no_memory(err);
    enum status st = read_log(&log, settings, notes, draft, err);
    cluster_draft_release(&log.rows.met);
    cluster_draft_release(&log.other);
    return st;
}
