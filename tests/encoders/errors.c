/* What encodings lose of gradients: the table of `make encoders`.
 *
 *     errors FILE...
 *
 * A file has a gradient as f32 of this machine's byte order (tests/encoders/gradients.py writes some). A row each
 * encoding: the bytes that travel for each byte of f32, and the relative error ||g - decode(encode(g))|| / ||g|| over
 * all files together and over that file where it is largest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "strategy/encoder.h"
#include "trial-runner/worker/mpi/blocks.h"
#include "trial-runner/worker/mpi/convert.h"
#include "trial-runner/worker/mpi/largest.h"

struct gradient {
    const char *name;
    size_t n;
    float *values;
};

/* Fills what the name does not say; false where there is no such file. */
static bool read_gradient(struct gradient *g) {
    FILE *file = fopen(g->name, "rb");
    const bool sized = file && fseek(file, 0, SEEK_END) == 0;
    const long bytes = sized ? ftell(file) : 0;
    g->n = bytes > 0 ? (size_t)bytes / sizeof *g->values : 0;
    g->values = calloc(g->n + 1, sizeof *g->values);
    const bool read = sized && g->n && (size_t)bytes == g->n * sizeof *g->values && g->values &&
                      fseek(file, 0, SEEK_SET) == 0 && fread(g->values, sizeof *g->values, g->n, file) == g->n;
    if (file)
        fclose(file);
    return read;
}

/* What is left of n values, in `out`; returns the bytes that travel. */
typedef size_t lossy_fn(const float *values, size_t n, double figure, float *out);

static size_t cast(const float *values, size_t n, enum dtype dtype, float *out) {
    uint16_t *encoded = calloc(n, sizeof *encoded);
    if (!encoded)
        return 0;
    convert_encode(encoded, dtype, values, DTYPE_f32, n);
    convert_decode(out, DTYPE_f32, encoded, dtype, n);
    free(encoded);
    return n * sizeof *encoded;
}

static size_t by_f16(const float *values, size_t n, double figure, float *out) {
    (void)figure;
    return cast(values, n, DTYPE_f16, out);
}

static size_t by_bf16(const float *values, size_t n, double figure, float *out) {
    (void)figure;
    return cast(values, n, DTYPE_bf16, out);
}

static size_t by_int8(const float *values, size_t n, double figure, float *out) {
    const size_t bytes = encoder_bytes(ENCODING_int8, figure, n);
    char *encoded = malloc(bytes);
    if (!encoded)
        return 0;
    blocks_encode(encoded, values, n, (size_t)figure);
    blocks_decode(out, encoded, n, (size_t)figure);
    free(encoded);
    return bytes;
}

/* In one iteration; what is lost in it travels later. */
static size_t by_topk(const float *values, size_t n, double figure, float *out) {
    const size_t k = encoder_kept(figure, n);
    struct largest *taken = calloc(k, sizeof *taken);
    if (!taken)
        return 0;
    memcpy(out, values, n * sizeof *out);
    largest_take(taken, out, n, k);
    memset(out, 0, n * sizeof *out);
    largest_add(out, taken, k);
    free(taken);
    return encoder_bytes(ENCODING_topk, figure, n);
}

static const struct {
    enum encoding encoding;
    lossy_fn *lossy;
    double figure;
} rows[] = {
    {ENCODING_f16, by_f16, 0},      {ENCODING_bf16, by_bf16, 0},     {ENCODING_int8, by_int8, 64},
    {ENCODING_int8, by_int8, 256},  {ENCODING_int8, by_int8, 65536}, {ENCODING_topk, by_topk, 0.1},
    {ENCODING_topk, by_topk, 0.01}, {ENCODING_topk, by_topk, 0.001},
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
        const size_t sent = left ? rows[row].lossy(gradients[i].values, gradients[i].n, rows[row].figure, left) : 0;
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
    table_cell(table, "%s", encoder_text(rows[row].encoding, rows[row].figure, name, sizeof name));
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
            return fail(argv[i + 1], "no file of whole elements of f32");
    }
    table_init(&table, (const char *const[]){"ENCODING", ">BYTES", ">ERROR", ">LARGEST", "OF", NULL});
    for (size_t row = 0; row < ROWS; row++)
        if (!add_row(&table, row, n, gradients))
            return fail("memory", "out of it");
    table_print(&table, stdout);
    table_release(&table);
    for (size_t i = 0; i < n; i++)
        free(gradients[i].values);
    free(gradients);
    return 0;
}
