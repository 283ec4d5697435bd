/* Tables of the OSU micro-benchmarks: osu_allreduce, osu_latency and osu_bw. A line "# OSU MPI Allreduce Latency Test
 * v7.3" begins a table, then rows of a size in bytes and a time in us (of an all-reduce the average comes first) or a
 * rate in MB/s (10^6 bytes).
 *
 * All-reduces become the measured curve. The table does not say how many processes took part, so --devices must. The
 * least latency and the largest rate become those of the NICs: the two processes must have run on different nodes. */
#include <ctype.h>
#include <string.h>

#include "interop/import/cluster_kinds.h"

static const double MAX_VALUE = 1e12;

enum test { TEST_NONE, TEST_ALL_REDUCE, TEST_LATENCY, TEST_BANDWIDTH };

struct tables {
    struct lines lines;
    enum test test;
    size_t rows;
    uint64_t least_bytes; /* of the latencies so far */
};

bool osu_is(const struct source *source) {
    return strstr(source->text, "# OSU ");
}

static enum status read_title(struct tables *tables, const char *title, struct error *err) {
    const char *end = strstr(title, " Test");
    const size_t n = end ? (size_t)(end - title) : 0;
    const char *first = strchr(title, ' '); /* behind "MPI" or "MPI-CUDA" */
    const size_t skip = first ? (size_t)(first - title) + 1 : 0;
    static const struct {
        const char *name;
        enum test test;
    } tests[] = {{"Allreduce Latency", TEST_ALL_REDUCE}, {"Latency", TEST_LATENCY}, {"Bandwidth", TEST_BANDWIDTH}};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (n > skip && n - skip == strlen(tests[i].name) && !strncmp(title + skip, tests[i].name, n - skip)) {
            tables->test = tests[i].test;
            tables->least_bytes = UINT64_MAX;
            return ST_OK;
        }
    return lines_fail(&tables->lines, err, "\"%.60s\": known are osu_allreduce, osu_latency and osu_bw", title);
}

static enum status use_row(struct tables *tables, uint64_t bytes, double value, const struct import_settings *settings,
                           struct cluster_draft *draft, struct error *err) {
    const double gbit_per_s = value * 8 / 1e3;
    tables->rows++;
    if (tables->test == TEST_LATENCY && bytes < tables->least_bytes) {
        tables->least_bytes = bytes;
        draft->nic_latency_us = value;
    } else if (tables->test == TEST_BANDWIDTH && gbit_per_s > draft->nic_gbit_per_s) {
        draft->nic_gbit_per_s = gbit_per_s;
    } else if (tables->test == TEST_ALL_REDUCE && !settings->devices) {
        return error_at(err, ST_USAGE, tables->lines.name,
                        "osu_allreduce does not tell how many processes it had; give --devices");
    } else if (tables->test == TEST_ALL_REDUCE && bytes && value > 0 &&
               !cluster_draft_all_reduce(draft, settings->devices, bytes, value)) {
        return error_no_memory(err);
    }
    return ST_OK;
}

static enum status read_row(struct tables *tables, char *line, const struct import_settings *settings,
                            struct cluster_draft *draft, struct error *err) {
    char *words[SOURCE_MAX_WORDS];
    uint64_t bytes;
    double value;
    const size_t n = words_split(line, words);
    if (!n || !word_integer(words[0], &bytes))
        return ST_OK; /* other output between */
    if (n < 2)
        return lines_fail(&tables->lines, err, "a row of one column");
    enum status st = lines_integer(&tables->lines, "size", words[0], 0, UINT64_C(1) << 48, &bytes, err);
    if (!st)
        st = lines_number(&tables->lines, "value", words[1], 0, MAX_VALUE, &value, err);
    return st ? st : use_row(tables, bytes, value, settings, draft, err);
}

enum status osu_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                     struct cluster_draft *draft, struct error *err) {
    (void)notes;
    struct tables tables = {.test = TEST_NONE};
    enum status st = ST_OK;
    if (!lines_init(&tables.lines, source, draft->arena))
        return error_no_memory(err);
    for (char *line; !st && (line = lines_next(&tables.lines));) {
        line = line_skip_prefix(line);
        line += strspn(line, " \t");
        if (!strncmp(line, "# OSU ", 6))
            st = read_title(&tables, line + 6, err);
        else if (*line != '#' && tables.test)
            st = read_row(&tables, line, settings, draft, err);
    }
    if (!st && !tables.rows)
        st = error_at(err, ST_INVALID, source->name, "a title without rows; give all that the benchmark printed");
    return st;
}
