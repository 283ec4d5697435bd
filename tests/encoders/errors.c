/* What encodings lose of gradients: the table of `make encoders`.
 *
 *     errors FILE...
 *
 * A file has a gradient, of some steps of training one after another, as f32 of this machine's byte order
 * (tests/encoders/gradients.py writes some); its name ends in the shape, as in weight.64x32.f32. The last step's is
 * encoded. powersgd begins with a Q that is drawn, or with that of the steps before; as in proposals, a matrix that has
 * not four times as many elements travels as it is. A row each encoding: the bytes that travel for each byte of f32,
 * and the relative error ||g - decode(encode(g))|| / ||g|| over all files together and over that file where it is
 * largest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "strategy/encoder.h"
#include "trial-runner/worker/mpi/blocks.h"
#include "trial-runner/worker/mpi/convert.h"
#include "trial-runner/worker/mpi/largest.h"
#include "trial-runner/worker/mpi/low_rank.h"

struct gradient {
    const char *name;
    size_t n, rows, steps;
    const float *values; /* of the last step; those of the steps before lie before them */
    float *all;
};

/* Elements by the shape at the end of the name, and *rows, those of its first axis; 0: the name has no shape. */
static size_t elements_by_name(const char *name, size_t *rows) {
    const char *end = strrchr(name, '.'), *at = end;
    size_t elements = 1;
    while (at && at > name && at[-1] != '.')
        at--;
    for (*rows = 0; at && at < end; at++) {
        char *after;
        const size_t size = strtoul(at, &after, 10);
        if (after == at || (*after != 'x' && after != end))
            return 0;
        *rows = *rows ? *rows : size;
        elements *= size;
        at = after;
    }
    return *rows ? elements : 0;
}

/* Fills what the name does not say; false where there is no such file. */
static bool read_gradient(struct gradient *g) {
    FILE *file = fopen(g->name, "rb");
    const bool sized = file && fseek(file, 0, SEEK_END) == 0;
    const long bytes = sized ? ftell(file) : 0;
    const size_t all = bytes > 0 ? (size_t)bytes / sizeof *g->all : 0;
    g->n = elements_by_name(g->name, &g->rows);
    g->steps = g->n ? all / g->n : 0;
    g->all = calloc(all + 1, sizeof *g->all);
    const bool read = sized && g->steps && (size_t)bytes == g->steps * g->n * sizeof *g->all && g->all &&
                      fseek(file, 0, SEEK_SET) == 0 && fread(g->all, sizeof *g->all, all, file) == all;
    g->values = read ? g->all + (g->steps - 1) * g->n : NULL;
    if (file)
        fclose(file);
    return read;
}

/* What is left of the gradient, in `out`; returns the bytes that travel. */
typedef size_t lossy_fn(const struct gradient *g, double figure, float *out);

static size_t cast(const struct gradient *g, enum dtype dtype, float *out) {
    uint16_t *encoded = calloc(g->n, sizeof *encoded);
    if (!encoded)
        return 0;
    convert_encode(encoded, dtype, g->values, DTYPE_f32, g->n);
    convert_decode(out, DTYPE_f32, encoded, dtype, g->n);
    free(encoded);
    return g->n * sizeof *encoded;
}

static size_t by_f16(const struct gradient *g, double figure, float *out) {
    (void)figure;
    return cast(g, DTYPE_f16, out);
}

static size_t by_bf16(const struct gradient *g, double figure, float *out) {
    (void)figure;
    return cast(g, DTYPE_bf16, out);
}

static size_t by_int8(const struct gradient *g, double figure, float *out) {
    const size_t bytes = encoder_bytes(ENCODING_int8, figure, g->n);
    char *encoded = malloc(bytes);
    if (!encoded)
        return 0;
    blocks_encode(encoded, g->values, g->n, (size_t)figure);
    blocks_decode(out, encoded, g->n, (size_t)figure);
    free(encoded);
    return bytes;
}

/* In one iteration; what is lost in it travels later. */
static size_t by_topk(const struct gradient *g, double figure, float *out) {
    const size_t n = g->n, k = encoder_kept(figure, n);
    struct largest *taken = calloc(k, sizeof *taken);
    if (!taken)
        return 0;
    memcpy(out, g->values, n * sizeof *out);
    largest_take(taken, out, n, k);
    memset(out, 0, n * sizeof *out);
    largest_add(out, taken, k);
    free(taken);
    return encoder_bytes(ENCODING_topk, figure, n);
}

/* Over the last `steps` steps, each without what the one before left. */
static size_t thin_steps(const struct gradient *g, size_t rank, size_t steps, float *out) {
    const size_t m = g->rows, n = g->n / g->rows;
    struct low_rank a = {.m = m, .n = n, .r = rank, .left = calloc(m * n, sizeof(float))};
    a.p = calloc(m * rank, sizeof *a.p);
    a.q = calloc(n * rank, sizeof *a.q);
    const bool room = a.left && a.p && a.q;
    for (size_t step = g->steps - steps; step < g->steps && room; step++) {
        memset(a.left, 0, m * n * sizeof *a.left);
        low_rank_draw(&a, 0);
        low_rank_run(LOW_RANK_multiply, &a, g->all + step * g->n, NULL, 0);
        low_rank_orthogonalise(&a);
        low_rank_run(LOW_RANK_multiply_back, &a, NULL, NULL, 0);
        low_rank_run(LOW_RANK_restore, &a, NULL, out, 1);
    }
    free(a.q);
    free(a.p);
    free(a.left);
    return room ? (m + n) * rank * sizeof(float) : 0;
}

static size_t by_thin(const struct gradient *g, double rank, size_t steps, float *out) {
    const double m = (double)g->rows, n = (double)g->n / m;
    if ((m + n) * rank < m * n / 4)
        return thin_steps(g, (size_t)rank, steps, out);
    memcpy(out, g->values, g->n * sizeof *out);
    return g->n * sizeof *out;
}

static size_t by_powersgd(const struct gradient *g, double figure, float *out) {
    return by_thin(g, figure, 1, out);
}

static size_t by_warm_powersgd(const struct gradient *g, double figure, float *out) {
    return by_thin(g, figure, g->steps, out);
}

static const struct {
    enum encoding encoding;
    lossy_fn *lossy;
    double figure;
} rows[] = {
    {ENCODING_f16, by_f16, 0},
    {ENCODING_bf16, by_bf16, 0},
    {ENCODING_int8, by_int8, 64},
    {ENCODING_int8, by_int8, 256},
    {ENCODING_int8, by_int8, 65536},
    {ENCODING_topk, by_topk, 0.1},
    {ENCODING_topk, by_topk, 0.01},
    {ENCODING_topk, by_topk, 0.001},
    {ENCODING_powersgd, by_powersgd, 1},
    {ENCODING_powersgd, by_powersgd, 2},
    {ENCODING_powersgd, by_powersgd, 4},
    {ENCODING_powersgd, by_warm_powersgd, 1},
    {ENCODING_powersgd, by_warm_powersgd, 2},
    {ENCODING_powersgd, by_warm_powersgd, 4},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The squares of what is lost of a gradient, and of the gradient. */
struct squares {
    double lost, all;
};

static double relative(const struct squares *s) {
    return s->all > 0 ? sqrt(s->lost / s->all) : 0;
}

static struct squares squares_of(const struct gradient *g, const float *left) {
    struct squares s = {0};
    for (size_t i = 0; i < g->n; i++) {
        const double value = (double)g->values[i], off = value - (double)left[i];
        s.lost += off * off;
        s.all += value * value;
    }
    return s;
}

static bool add_row(struct table *table, size_t row, size_t n, const struct gradient *gradients) {
    struct squares all = {0};
    double worst = 0, bytes = 0, before = 0;
    const char *where = "";
    char name[64];
    for (size_t i = 0; i < n; i++) {
        float *left = calloc(gradients[i].n + 1, sizeof *left);
        const size_t sent = left ? rows[row].lossy(&gradients[i], rows[row].figure, left) : 0;
        const struct squares s = left ? squares_of(&gradients[i], left) : all;
        free(left);
        if (!sent)
            return false;
        if (relative(&s) >= worst) {
            worst = relative(&s);
            where = gradients[i].name;
        }
        all = (struct squares){all.lost + s.lost, all.all + s.all};
        bytes += (double)sent;
        before += (double)gradients[i].n * sizeof(float);
    }
    table_cell(table, "%s%s", encoder_text(rows[row].encoding, rows[row].figure, name, sizeof name),
               rows[row].lossy == by_warm_powersgd ? ", Q of the steps before" : "");
    table_cell(table, "%.1f%%", 100 * bytes / before);
    table_cell(table, "%.3g", relative(&all));
    table_cell(table, "%.3g", worst);
    table_cell(table, "%s", where);
    return true;
}

static int fail(const char *name, const char *why) {
    fprintf(stderr, "errors: %s: %s\n", name, why);
    return 2;
}

int main(int argc, char **argv) {
    const size_t n = (size_t)argc - 1;
    struct gradient *gradients = calloc(n + 1, sizeof *gradients);
    struct table table;
    if (!n || !gradients)
        return fail("FILE...", "name files of f32");
    for (size_t i = 0; i < n; i++) {
        gradients[i].name = argv[i + 1];
        if (!read_gradient(&gradients[i]))
            return fail(argv[i + 1], "no file of f32 for each element of the shape in its name");
    }
    table_init(&table, (const char *const[]){"ENCODING", ">BYTES", ">ERROR", ">LARGEST", "OF", NULL});
    for (size_t row = 0; row < ROWS; row++)
        if (!add_row(&table, row, n, gradients))
            return fail("memory", "out of it");
    table_print(&table, stdout);
    table_release(&table);
    for (size_t i = 0; i < n; i++)
        free(gradients[i].all);
    free(gradients);
    return 0;
}
