/* See measured_tables.h. Rows are sorted in as they come; a curve is built anew for each size that is left out, so a
 * table of n sizes costs O(n² log n). */
#include "tests/support/strategy/measured_tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char measured_folder[] = "../shared/data/all-reduce";

enum { FIELDS = 16, LINE = 512, LEAST_BYTES = 1024 };

static void give_up(const char *path, const char *what) {
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

bool measured_tables_exist(void) {
    return access(measured_folder, R_OK) == 0;
}

/* ---- reading ---- */

/* Cuts the line at commas; how many fields. */
static int cut(char *line, char *fields[FIELDS]) {
    int n = 0;
    line[strcspn(line, "\r\n")] = 0;
    for (char *at = line; at && n < FIELDS;) {
        fields[n++] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = 0;
    }
    return n;
}

static struct measured_table *table_called(struct measured_file *file, const char *path, const char *name) {
    for (uint32_t i = 0; i < file->n; i++)
        if (strcmp(file->tables[i].name, name) == 0)
            return &file->tables[i];
    if (file->n == MEASURED_TABLES)
        give_up(path, "more tables than there is room for");
    struct measured_table *table = &file->tables[file->n++];
    snprintf(table->name, sizeof table->name, "%s", name);
    return table;
}

static void add_point(struct measured_table *table, const char *path, double bytes, double time_us) {
    uint32_t at = table->n;
    while (at > 0 && table->points[at - 1].bytes >= bytes)
        at--;
    struct measured_point *p = &table->points[at];
    if (at < table->n && p->bytes <= bytes) {
        p->time_us = (p->time_us * p->times + time_us) / (p->times + 1);
        p->low_us = fmin(p->low_us, time_us);
        p->high_us = fmax(p->high_us, time_us);
        p->times++;
        return;
    }
    if (table->n == MEASURED_POINTS || !(bytes > 0 && time_us > 0))
        give_up(path, "a size or a time that is not positive, or too many sizes");
    memmove(p + 1, p, (table->n - at) * sizeof *p);
    *p = (struct measured_point){bytes, time_us, time_us, time_us, 1};
    table->n++;
}

/* framework, version, device, op_name, kernel_source, nccl_dtype, num_gpus, message_size, latency (ms) */
static void read_nccl_row(struct measured_file *file, const char *path, int n, char *fields[FIELDS]) {
    char name[48];
    if (n != 9)
        give_up(path, "a row without nine fields");
    if (strcmp(fields[3], "all_reduce") != 0)
        return;
    snprintf(name, sizeof name, "%.16s, %.8s GPUs", fields[5], fields[6]);
    struct measured_table *table = table_called(file, path, name);
    table->ranks = (uint32_t)atoi(fields[6]);
    table->nodes = 1;
    add_point(table, path, atof(fields[7]) * (strcmp(fields[5], "half") == 0 ? 2 : 1), 1e3 * atof(fields[8]));
}

/* number, min, max, mean, median, std (ms), rank, num_workers, size, collective, devices_per_node, max_devices */
static void read_vidur_row(struct measured_file *file, const char *path, int n, char *fields[FIELDS]) {
    char name[48];
    if (n != 12)
        give_up(path, "a row without twelve fields");
    uint32_t ranks = (uint32_t)atoi(fields[7]), per_node = (uint32_t)atoi(fields[10]);
    snprintf(name, sizeof name, "%u GPUs, %u a node", ranks, per_node);
    struct measured_table *table = table_called(file, path, name);
    table->ranks = ranks;
    table->nodes = per_node ? ranks / per_node : 0;
    double bytes = atof(fields[8]);
    add_point(table, path, bytes, 1e3 * atof(fields[4]));
    for (uint32_t i = table->n; i-- > 0 && table->points[i].bytes >= bytes;) {
        table->points[i].low_us = fmin(table->points[i].low_us, 1e3 * atof(fields[1]));
        table->points[i].high_us = fmax(table->points[i].high_us, 1e3 * atof(fields[2]));
    }
}

static struct measured_file *read_file(const char *gpu, const char *form,
                                       void (*read_row)(struct measured_file *, const char *, int, char *[FIELDS])) {
    char path[256], line[LINE], *fields[FIELDS];
    snprintf(path, sizeof path, form, measured_folder, gpu);
    FILE *from = fopen(path, "r");
    struct measured_file *file = calloc(1, sizeof *file);
    if (!from || !file || !fgets(line, sizeof line, from))
        give_up(path, "cannot be read");
    while (fgets(line, sizeof line, from))
        read_row(file, path, cut(line, fields), fields);
    fclose(from);
    return file;
}

struct measured_file *measured_nccl(const char *gpu) {
    return read_file(gpu, "%s/%s_nccl_2.27.3.csv", read_nccl_row);
}

struct measured_file *measured_vidur(const char *gpu) {
    return read_file(gpu, "%s/vidur-%s-dgx.csv", read_vidur_row);
}

uint32_t measured_family(const struct measured_file *file, const struct measured_table *of,
                         const struct measured_table *family[MEASURED_TABLES]) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < file->n; i++)
        if (&file->tables[i] != of && file->tables[i].ranks == of->ranks && file->tables[i].nodes == of->nodes)
            family[n++] = &file->tables[i];
    return n;
}

/* ---- leaving out ---- */

/* A table without one point, or whole when `without` is none of its places. */
struct columns {
    double bytes[MEASURED_POINTS], time_us[MEASURED_POINTS];
};

static struct curve_table columns_of(const struct measured_table *table, uint32_t without, struct columns *room) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        if (i == without)
            continue;
        room->bytes[n] = table->points[i].bytes;
        room->time_us[n++] = table->points[i].time_us;
    }
    return (struct curve_table){n, room->bytes, room->time_us};
}

void leave_each_out(const struct measured_table *table, uint32_t n_family, const struct measured_table *const *family,
                    const struct guess *guess, bool ends, double *off) {
    struct curve_table tables[MEASURED_TABLES + 1];
    struct columns *rooms = calloc(n_family + 1, sizeof *rooms);
    if (!rooms)
        give_up(table->name, "out of memory");
    for (uint32_t f = 0; f < n_family; f++)
        tables[f + 1] = columns_of(family[f], UINT32_MAX, &rooms[f + 1]);
    for (uint32_t i = 0; i < table->n; i++) {
        const struct measured_point *p = &table->points[i];
        bool end = i == 0 || i == table->n - 1;
        off[i] = NAN;
        if (p->bytes <= LEAST_BYTES || table->n < 3 || (end && !ends))
            continue;
        tables[0] = columns_of(table, i, &rooms[0]);
        off[i] = guess->us(guess->context, n_family + 1, tables, 0, p->bytes) / p->time_us - 1;
    }
    free(rooms);
}

double guess_curve_us(const void *context, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                      double bytes) {
    struct arena arena = {0};
    struct error err;
    struct curve curve;
    (void)context;
    if (curve_init(&curve, n_tables, tables, which, &arena, &err))
        give_up("a curve", ERROR_TEXT(&err));
    double time_us = curve_us(&curve, bytes);
    arena_release(&arena);
    return time_us;
}

const struct guess guess_curve = {guess_curve_us, NULL};

static int compare_numbers(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct error_summary summarize_errors(uint32_t n, const double *off, double limit) {
    struct error_summary out = {.n = 0};
    double *sizes = calloc(n ? n : 1, sizeof *sizes);
    if (!sizes)
        give_up("errors", "out of memory");
    for (uint32_t i = 0; i < n; i++)
        if (!isnan(off[i]))
            sizes[out.n++] = fabs(off[i]);
    qsort(sizes, out.n, sizeof *sizes, compare_numbers);
    for (uint32_t i = 0; i < out.n; i++) {
        out.mean += sizes[i] / out.n;
        out.above += sizes[i] > limit;
    }
    out.median = out.n ? (sizes[(out.n - 1) / 2] + sizes[out.n / 2]) / 2 : NAN;
    out.worst = out.n ? sizes[out.n - 1] : NAN;
    free(sizes);
    return out;
}
