/* How well do curves tell sizes that were not measured? The tables of `make curves`: every size of a table is left out
 * in turn and told from the others.
 *
 *     curves [DATASET]
 *
 * Ways to interpolate against each other, then the model (strategy/cost/curve.h) table by table, on public tables of
 * NCCL; then other numbers of GPUs; then the curves of the clusters in a dataset and what their simulated iterations
 * are off from the measured ones. Public tables that are not there are left out with a word. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "tests/curves/methods.h"
#include "tests/support/strategy/measured_tables.h"
#include "tuner/learn/examples.h"

static const double LIMIT = 0.15;

enum { MOST = MEASURED_TABLES * MEASURED_POINTS };

static void print_and_release(struct table *table) {
    table_print(table, stdout);
    table_release(table);
}

/* ---- ways to interpolate ---- */

/* Errors of one way over all tables of a file, the first and the last point of each aside. */
static struct error_summary errors_of(const struct measured_file *file, const struct guess *guess, bool with_family) {
    static double off[MOST];
    const struct measured_table *family[MEASURED_TABLES];
    uint32_t n = 0;
    for (uint32_t t = 0; t < file->n; t++) {
        uint32_t n_family = with_family ? measured_family(file, &file->tables[t], family) : 0;
        leave_each_out(&file->tables[t], n_family, family, guess, false, off + n);
        n += file->tables[t].n;
    }
    return summarize_errors(n, off, LIMIT);
}

static void print_ways(const char *title, const struct measured_file *file, bool families) {
    struct table table;
    printf("\n%s\n", title);
    table_init(&table, (const char *[]){"WAY", ">POINTS", ">MEDIAN", ">MEAN", ">WORST", ">ABOVE 15%", NULL});
    for (int w = 0; w < N_METHODS + families; w++) {
        const bool family = w == N_METHODS;
        struct error_summary e = errors_of(file, family ? &guess_curve : &methods[w].guess, family);
        table_cell(&table, "%s", family ? "the model, with the shape of the other type" : methods[w].name);
        table_cell(&table, "%u", e.n);
        table_cell(&table, "%.1f%%", 100 * e.median);
        table_cell(&table, "%.1f%%", 100 * e.mean);
        table_cell(&table, "%.1f%%", 100 * e.worst);
        table_cell(&table, "%u", e.above);
    }
    print_and_release(&table);
}

/* ---- the model, table by table ---- */

static void print_tables(const char *gpu, const struct measured_file *file, bool families, struct table *to) {
    static double alone[MEASURED_POINTS], shaped[MEASURED_POINTS], ends[MEASURED_POINTS];
    const struct measured_table *family[MEASURED_TABLES];
    for (uint32_t t = 0; t < file->n; t++) {
        const struct measured_table *table = &file->tables[t];
        uint32_t n_family = families ? measured_family(file, table, family) : 0;
        leave_each_out(table, 0, NULL, &guess_curve, false, alone);
        leave_each_out(table, n_family, family, &guess_curve, false, shaped);
        leave_each_out(table, 0, NULL, &guess_curve, true, ends);
        struct error_summary a = summarize_errors(table->n, alone, LIMIT);
        struct error_summary s = summarize_errors(table->n, shaped, LIMIT);
        table_cell(to, "%s, %s", gpu, table->name);
        table_cell(to, "%u", a.n);
        table_cell(to, "%.1f%%", 100 * a.median);
        table_cell(to, "%.1f%%", 100 * a.worst);
        table_cell(to, "%u", a.above);
        table_cell(to, n_family ? "%.1f%%" : "-", 100 * s.median);
        table_cell(to, n_family ? "%.1f%%" : "-", 100 * s.worst);
        table_cell(to, "%+.1f%%", 100 * ends[table->n - 1]);
    }
}

/* What the model misses by more than LIMIT alone, with how far apart repeated runs of that size were. */
static void print_misses(const char *gpu, const struct measured_file *file, struct table *to) {
    static double alone[MEASURED_POINTS], shaped[MEASURED_POINTS];
    const struct measured_table *family[MEASURED_TABLES];
    for (uint32_t t = 0; t < file->n; t++) {
        const struct measured_table *table = &file->tables[t];
        leave_each_out(table, 0, NULL, &guess_curve, false, alone);
        leave_each_out(table, measured_family(file, table, family), family, &guess_curve, false, shaped);
        for (uint32_t i = 0; i < table->n; i++) {
            const struct measured_point *p = &table->points[i];
            if (isnan(alone[i]) || fabs(alone[i]) <= LIMIT)
                continue;
            table_cell(to, "%s, %s", gpu, table->name);
            table_cell(to, "%.0f", p->bytes);
            table_cell(to, "%.2f", table->points[i - 1].time_us);
            table_cell(to, "%.2f", p->time_us);
            table_cell(to, "%.2f", table->points[i + 1].time_us);
            table_cell(to, p->times > 1 ? "%.0f%%" : "-", 100 * (p->high_us / p->low_us - 1));
            table_cell(to, "%+.1f%%", 100 * alone[i]);
            table_cell(to, "%+.1f%%", 100 * shaped[i]);
        }
    }
}

/* ---- noise ---- */

/* Points that were told worse than LIMIT: how many differ by as much among their own runs, and how many of the others
 * took so much less than a smaller size. */
static void print_noise(const struct measured_file *file) {
    static double off[MEASURED_POINTS];
    uint32_t above = 0, apart = 0, falls = 0;
    for (uint32_t t = 0; t < file->n; t++) {
        const struct measured_table *table = &file->tables[t];
        double most = 0;
        leave_each_out(table, 0, NULL, &guess_curve, false, off);
        for (uint32_t i = 0; i < table->n; i++) {
            const struct measured_point *p = &table->points[i];
            bool missed = !isnan(off[i]) && fabs(off[i]) > LIMIT, noisy = p->high_us > (1 + LIMIT) * p->low_us;
            above += missed;
            apart += missed && noisy;
            falls += missed && !noisy && p->time_us < (1 - LIMIT) * most;
            most = fmax(most, p->time_us);
        }
    }
    printf("Of %u points that the model told worse than 15%%, %u differ by more than that among their own three runs;\n"
           "%u of the others took less, by more than that, than some smaller size.\n",
           above, apart, falls);
}

/* ---- other numbers of GPUs ---- */

static const struct measured_table *table_of(const struct measured_file *file, const char *type, uint32_t ranks) {
    for (uint32_t t = 0; t < file->n; t++)
        if (file->tables[t].ranks == ranks && strncmp(file->tables[t].name, type, strlen(type)) == 0)
            return &file->tables[t];
    return NULL;
}

/* 4 GPUs from 2 and 8, size by size: a * N^b, straight in N, and 8 GPUs' time as it is. */
static void print_ranks(const char *gpu, const struct measured_file *file, struct table *to) {
    static const char *const ways[] = {"a power of N", "straight in N", "as 8 GPUs"};
    static double off[3][2 * MEASURED_POINTS];
    uint32_t n = 0;
    for (int type = 0; type < 2; type++) {
        const char *word = type ? "int8" : "half";
        const struct measured_table *two = table_of(file, word, 2), *four = table_of(file, word, 4),
                                    *eight = table_of(file, word, 8);
        for (uint32_t i = 0; two && four && eight && i < four->n && i < two->n && i < eight->n; i++) {
            if (four->points[i].bytes <= 1024)
                continue;
            double a = two->points[i].time_us, b = eight->points[i].time_us, real = four->points[i].time_us;
            off[0][n] = sqrt(a * b) / real - 1;
            off[1][n] = (2 * a + b) / 3 / real - 1;
            off[2][n++] = b / real - 1;
        }
    }
    for (int w = 0; w < 3; w++) {
        struct error_summary e = summarize_errors(n, off[w], LIMIT);
        table_cell(to, "%s", gpu);
        table_cell(to, "%s", ways[w]);
        table_cell(to, "%u", e.n);
        table_cell(to, "%.1f%%", 100 * e.median);
        table_cell(to, "%.1f%%", 100 * e.mean);
        table_cell(to, "%.1f%%", 100 * e.worst);
    }
}

/* ---- clusters of a dataset ---- */

/* Each algorithm's curve of a cluster as a table, all of one family. */
static struct measured_file *tables_of(const struct cluster *cluster) {
    struct measured_file *file = calloc(1, sizeof *file);
    for (uint32_t i = 0; file && i < cluster->n_measurements; i++) {
        const struct measurement *m = &cluster->measurements[i];
        if (m->operation != OPERATION_all_reduce || m->devices != cluster->n_devices)
            continue;
        const char *name = algorithm_name(m->algorithm);
        if (file->n == 0 || strcmp(file->tables[file->n - 1].name, name) != 0)
            snprintf(file->tables[file->n++].name, sizeof file->tables->name, "%s", name);
        struct measured_table *table = &file->tables[file->n - 1];
        table->points[table->n++] = (struct measured_point){(double)m->bytes, m->time_us, m->time_us, m->time_us, 1};
    }
    return file;
}

static void print_cluster(const struct cluster *cluster, struct table *to) {
    struct measured_file *file = tables_of(cluster);
    if (!file)
        return;
    for (int w = 0; w < N_METHODS + 1; w++) {
        const bool family = w == N_METHODS;
        if (!family && !methods[w].in_short)
            continue;
        struct error_summary e = errors_of(file, family ? &guess_curve : &methods[w].guess, family);
        table_cell(to, "%s", cluster->name);
        table_cell(to, "%s", family ? "the model, with the shape of other algorithms" : methods[w].name);
        table_cell(to, "%u", e.n);
        table_cell(to, "%.1f%%", 100 * e.median);
        table_cell(to, "%.1f%%", 100 * e.mean);
        table_cell(to, "%.1f%%", 100 * e.worst);
    }
    free(file);
}

static bool was_before(const struct examples *examples, size_t domain) {
    for (size_t d = 0; d < domain; d++)
        if (strcmp(examples->domains[d].cluster.id.hex, examples->domains[domain].cluster.id.hex) == 0)
            return true;
    return false;
}

/* What simulated iterations are off, where iterations use the curves that are used in the whole. */
static void print_iterations(const struct examples *examples) {
    double *off = calloc(examples->n, sizeof *off);
    if (!off)
        return;
    for (size_t i = 0; i < examples->n; i++)
        off[i] = examples->features[i].timeline_us / examples->examples[i].us - 1;
    struct error_summary e = summarize_errors((uint32_t)examples->n, off, LIMIT);
    printf("\nSimulated against measured iterations of %zu strategies on them: median error %.2f%%, mean %.2f%%.\n",
           examples->n, 100 * e.median, 100 * e.mean);
    free(off);
}

static int print_dataset(const char *path) {
    struct error err;
    struct store *store;
    struct examples examples;
    struct table table;
    enum status status = store_open(path, STORE_READ_ONLY, &store, &err);
    if (status == ST_OK) {
        status = examples_load(store, &(struct query){0}, &examples, NULL, &err);
        store_close(store);
    }
    if (status != ST_OK) {
        fprintf(stderr, "curves: %s\n", ERROR_TEXT(&err));
        return 1;
    }
    printf("\nClusters as `syncopate bench` measured them, sizes four times apart\n");
    table_init(&table, (const char *[]){"CLUSTER", "WAY", ">POINTS", ">MEDIAN", ">MEAN", ">WORST", NULL});
    for (size_t d = 0; d < examples.n_domains; d++)
        if (!was_before(&examples, d))
            print_cluster(&examples.domains[d].cluster, &table);
    print_and_release(&table);
    print_iterations(&examples);
    examples_release(&examples);
    return 0;
}

/* ---- all of it ---- */

enum { FILES = 3 };

static void print_public(void) {
    static const char *const files[FILES] = {"a100_sxm", "h100_sxm", "l40s"}, *const gpus[FILES] = {"A100", "H100",
                                                                                                    "L40S"};
    static const char *const vidur[2] = {"a100", "h100"};
    struct measured_file *nccl[FILES];
    struct table models, misses, ranks;
    table_init(&models, (const char *[]){"TABLE", ">POINTS", ">MEDIAN", ">WORST", ">ABOVE 15%", ">SHAPED: MEDIAN",
                                         ">WORST", ">LARGEST SIZE", NULL});
    table_init(&misses, (const char *[]){"TABLE", ">BYTES", ">BEFORE", ">US", ">AFTER", ">RUNS APART", ">ALONE",
                                         ">SHAPED", NULL});
    table_init(&ranks, (const char *[]){"GPU", "4 GPUS FROM 2 AND 8", ">POINTS", ">MEDIAN", ">MEAN", ">WORST", NULL});
    printf("Every size above 1 KiB of a table left out in turn, and told from the others; the first and the last "
           "aside.\n");
    for (int f = 0; f < FILES; f++) {
        char title[96];
        nccl[f] = measured_nccl(files[f]);
        snprintf(title, sizeof title, "%s, NCCL on 2, 4 and 8 GPUs of one node, half and int8, sizes doubling",
                 gpus[f]);
        print_ways(title, nccl[f], true);
        print_tables(gpus[f], nccl[f], true, &models);
        print_misses(gpus[f], nccl[f], &misses);
        print_ranks(gpus[f], nccl[f], &ranks);
        free(nccl[f]);
    }
    for (int f = 0; f < 2; f++) {
        char title[96];
        struct measured_file *file = measured_vidur(vidur[f]);
        snprintf(title, sizeof title, "%s, Vidur's tables: 993 sizes up to 64 MiB, median of three runs", gpus[f]);
        print_ways(title, file, false);
        print_noise(file);
        free(file);
    }
    printf("\nThe model by table; LARGEST SIZE: left out as well, told by what lies below it\n");
    print_and_release(&models);
    printf("\nWhat the model misses by more than 15%% alone: before, at and after the size\n");
    print_and_release(&misses);
    printf("\nOther numbers of GPUs (no part of the model: a curve counts for the devices that it was measured on)\n");
    print_and_release(&ranks);
}

int main(int argc, char **argv) {
    if (measured_tables_exist())
        print_public();
    else
        printf("no public tables in %s\n", measured_folder);
    return argc > 1 ? print_dataset(argv[1]) : 0;
}
