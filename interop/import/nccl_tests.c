/* What all_reduce_perf of nccl-tests prints, as it stands in a log: rows of
 *
 *     size count type redop [root] | time algbw busbw [errors] | time algbw busbw [errors]
 *
 * out of place and in place. Up to 2.11 a row has 12 columns, without the root; from 2.13 it has 13; with times of each
 * iteration 21, four more after either part; and a time stamp may end it. mpirun may put "[1,0]<stdout>:" before a
 * line, and NCCL's own lines stand between or inside. A row is recognised by its type, the third column. The in-place
 * time is kept, since frameworks reduce gradients in place; without it, the other one.
 *
 * The lines "# Rank 0 Pid 43 on HOST device 0 [..] NAME" tell the nodes. One pass. */
#include <math.h>
#include <string.h>

#include "interop/import/cluster_kinds.h"
#include "interop/import/nccl_rows.h"

static const double MAX_US = 1e12, MAX_RATE = 1e6;
static const uint64_t MAX_BYTES = UINT64_C(1) << 48, MAX_RANK = (1 << 20) - 1;
enum { OLD_COLUMNS = 12, COLUMNS = 13, ITERATION_COLUMNS = 21 };

struct log {
    struct lines lines;
    struct nccl_rows rows;
    size_t n_broken;
};

bool nccl_tests_is(const struct source *source) {
    return strstr(source->text, "algbw") && strstr(source->text, "busbw");
}

static bool is_stamp(const char *word) { /* 2025-01-31 or 23:59:59 */
    return *word && !word[strspn(word, "0123456789:-")] && strpbrk(word + 1, ":-");
}

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
    struct nccl_tests_row row = {.place = lines->line};
    uint64_t count;
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
    enum status st = lines_integer(&log->lines, "rank", words[rank], 0, MAX_RANK, &number, err);
    if (st)
        return st;
    struct draft_node *node = cluster_draft_node(&log->rows.met, words[on], strlen(words[on]));
    if (!node)
        return error_no_memory(err);
    const size_t name = device + 1 < n && *words[device + 1] == '[' ? device + 2 : device + 1;
    if (name < n && !node->device && !(node->device = join_words(log->rows.met.arena, name, n, words)))
        return error_no_memory(err);
    node->devices++;
    log->rows.ranks = number + 1 > log->rows.ranks ? number + 1 : log->rows.ranks;
    return ST_OK;
}

static enum status read_line(struct log *log, char *line, struct error *err) {
    char *words[SOURCE_MAX_WORDS];
    line = line_skip_prefix(line);
    const bool interrupted = strstr(line, "NCCL ") != NULL;
    if (strstr(line, "cputime") && strstr(line, "algbw"))
        return lines_fail(&log->lines, err, "times of the processor; run all_reduce_perf without -C");
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
    log.rows.items = arena_alloc(draft->arena, source_count_lines(source), sizeof *log.rows.items);
    if (!log.rows.items || !lines_init(&log.lines, source, draft->arena))
        return error_no_memory(err);
    enum status st = read_log(&log, settings, notes, draft, err);
    cluster_draft_release(&log.rows.met);
    return st;
}
