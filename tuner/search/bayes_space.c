/* See bayes_space.h. Discrete dimensions are always at a value that they can have: whatever makes a row puts it there.
 */
#include "tuner/search/bayes_space.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define MOST_WHOLE 9007199254740992.0 /* 2^53 */

static bool is_discrete(const struct bayes_dimension *d) {
    return d->kind == BAYES_INTEGER || d->kind == BAYES_CATEGORICAL;
}

static double choices_of(const struct bayes_dimension *d) {
    return d->high - d->low + 1;
}

static size_t columns_of(const struct bayes_dimension *d) {
    return d->kind == BAYES_CATEGORICAL ? (size_t)d->high + 1 : 1;
}

static enum status check(size_t i, const struct bayes_dimension *d, struct error *err) {
    if (!isfinite(d->low) || !isfinite(d->high) || !isfinite(d->high - d->low) || !(d->low < d->high))
        return error_set(err, ST_INVALID, "dimension %zu: %g to %g is no interval", i, d->low, d->high);
    if (d->kind == BAYES_LOG2 && d->low <= 0)
        return error_set(err, ST_INVALID, "dimension %zu: %g has no logarithm; begin above 0 or make it linear", i,
                         d->low);
    if (is_discrete(d) && (d->low != floor(d->low) || d->high != floor(d->high) || choices_of(d) > MOST_WHOLE))
        return error_set(err, ST_INVALID, "dimension %zu: %g to %g are not whole numbers", i, d->low, d->high);
    if (d->kind == BAYES_CATEGORICAL && d->low != 0)
        return error_set(err, ST_INVALID, "dimension %zu: categories are counted from 0, not %g", i, d->low);
    if (d->kind == BAYES_CATEGORICAL && d->high >= BAYES_COLUMNS)
        return error_set(err, ST_TOO_LARGE, "dimension %zu: %g categories; at most %d", i, d->high + 1, BAYES_COLUMNS);
    return ST_OK;
}

enum status bayes_space_init(struct bayes_space *space, size_t n, const struct bayes_dimension *dimension,
                             struct arena *arena, struct error *err) {
    struct bayes_space s = {.dimensions = n};
    if (!n)
        return error_set(err, ST_INVALID, "a space to search needs a dimension");
    for (size_t i = 0; i < n; i++) {
        enum status st = check(i, &dimension[i], err);
        if (st)
            return st;
        s.columns += columns_of(&dimension[i]);
        s.continuous += !is_discrete(&dimension[i]);
        if (s.columns > BAYES_COLUMNS)
            return error_set(err, ST_TOO_LARGE, "a space to search has at most %d columns", BAYES_COLUMNS);
    }
    struct bayes_dimension *copy = arena_alloc(arena, n, sizeof *copy);
    size_t *first = arena_alloc(arena, n + 1, sizeof *first), *input_of = arena_alloc(arena, s.columns, sizeof *first);
    if (!copy || !first || !input_of)
        return error_no_memory(err);
    memcpy(copy, dimension, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        first[i + 1] = first[i] + columns_of(&copy[i]);
        for (size_t c = first[i]; c < first[i + 1]; c++)
            input_of[c] = i;
    }
    s.dimension = copy;
    s.first = first;
    s.input_of = input_of;
    *space = s;
    return ST_OK;
}

double bayes_space_size(const struct bayes_space *space) {
    double size = 1;
    for (size_t i = 0; i < space->dimensions; i++)
        size *= is_discrete(&space->dimension[i]) ? choices_of(&space->dimension[i]) : INFINITY;
    return size;
}

static void put_category(const struct bayes_space *space, size_t i, size_t choice, double *row) {
    for (size_t c = space->first[i]; c < space->first[i + 1]; c++)
        row[c] = c - space->first[i] == choice ? M_SQRT1_2 : 0;
}

/* Choice `index` of discrete dimension i. */
static void put_choice(const struct bayes_space *space, size_t i, double index, double *row) {
    const struct bayes_dimension *d = &space->dimension[i];
    if (d->kind == BAYES_CATEGORICAL)
        put_category(space, i, (size_t)index, row);
    else
        row[space->first[i]] = index / (d->high - d->low);
}

static double choice_at(const struct bayes_space *space, size_t i, const double *row) {
    const struct bayes_dimension *d = &space->dimension[i];
    if (d->kind == BAYES_INTEGER)
        return round(row[space->first[i]] * (d->high - d->low));
    size_t choice = 0;
    for (size_t c = space->first[i]; c < space->first[i + 1]; c++)
        if (row[c] > row[space->first[i] + choice])
            choice = c - space->first[i];
    return (double)choice;
}

enum status bayes_space_encode(const struct bayes_space *space, const double *x, double *row, struct error *err) {
    for (size_t i = 0; i < space->dimensions; i++) {
        const struct bayes_dimension *d = &space->dimension[i];
        if (!isfinite(x[i]))
            return error_set(err, ST_INVALID, "dimension %zu: %g is no number", i, x[i]);
        if (d->kind == BAYES_LOG2 && x[i] <= 0)
            return error_set(err, ST_INVALID, "dimension %zu: %g has no logarithm", i, x[i]);
        if (is_discrete(d) && x[i] != floor(x[i]))
            return error_set(err, ST_INVALID, "dimension %zu: %g is not whole", i, x[i]);
        if (d->kind == BAYES_CATEGORICAL && (x[i] < 0 || x[i] > d->high))
            return error_set(err, ST_INVALID, "dimension %zu: there is no category %g", i, x[i]);
        if (d->kind == BAYES_CATEGORICAL)
            put_category(space, i, (size_t)x[i], row);
        else if (d->kind == BAYES_LOG2)
            row[space->first[i]] = log2(x[i] / d->low) / log2(d->high / d->low);
        else
            row[space->first[i]] = (x[i] - d->low) / (d->high - d->low);
    }
    return ST_OK;
}

void bayes_space_decode(const struct bayes_space *space, const double *row, double *x) {
    for (size_t i = 0; i < space->dimensions; i++) {
        const struct bayes_dimension *d = &space->dimension[i];
        double u = row[space->first[i]];
        if (d->kind == BAYES_LINEAR)
            x[i] = d->low + u * (d->high - d->low);
        else if (d->kind == BAYES_LOG2)
            x[i] = d->low * exp2(u * log2(d->high / d->low));
        else
            x[i] = d->low + choice_at(space, i, row);
        x[i] = fmin(fmax(x[i], d->low), d->high);
    }
}

void bayes_space_at(const struct bayes_space *space, size_t index, double *row) {
    for (size_t i = 0; i < space->dimensions; i++) {
        size_t choices = (size_t)choices_of(&space->dimension[i]);
        put_choice(space, i, (double)(index % choices), row);
        index /= choices;
    }
}

/* The positive root of g^(d+1) = g + 1, by the iteration g <- (1 + g)^(1/(d+1)), which contracts. */
static double golden_ratio(size_t d) {
    double g = 1.5;
    for (int i = 0; i < 64; i++)
        g = pow(1 + g, 1 / ((double)d + 1));
    return g;
}

void bayes_space_spread(const struct bayes_space *space, uint64_t seed, size_t from, size_t n, double *rows) {
    struct rng rng;
    rng_seed(&rng, seed);
    double step = 1, g = golden_ratio(space->dimensions);
    for (size_t k = 0; k < space->dimensions; k++) {
        const struct bayes_dimension *d = &space->dimension[k];
        double shift = rng_uniform(&rng);
        step /= g;
        for (size_t i = 0; i < n; i++) {
            double *row = rows + i * space->columns, u = shift + (double)(from + i) * step;
            u -= floor(u);
            if (is_discrete(d))
                put_choice(space, k, floor(u * choices_of(d)), row);
            else
                row[space->first[k]] = u;
        }
    }
}

static void perturb_one(const struct bayes_space *space, size_t i, struct rng *rng, double size, double *row) {
    const struct bayes_dimension *d = &space->dimension[i];
    double *u = &row[space->first[i]], move = size * rng_normal(rng);
    if (d->kind == BAYES_CATEGORICAL) {
        put_category(space, i, (size_t)rng_below(rng, (uint64_t)choices_of(d)), row);
    } else if (d->kind == BAYES_INTEGER) {
        double steps = copysign(fmax(1, round(fabs(move) * (d->high - d->low))), move);
        put_choice(space, i, fmin(fmax(choice_at(space, i, row) + steps, 0), d->high - d->low), row);
    } else {
        *u = fmin(fmax(*u + move, 0), 1);
    }
}

void bayes_space_perturb(const struct bayes_space *space, struct rng *rng, double size, const double *row,
                         double *out) {
    size_t must = (size_t)rng_below(rng, space->dimensions);
    memcpy(out, row, space->columns * sizeof *out);
    for (size_t i = 0; i < space->dimensions; i++)
        if (i == must || rng_below(rng, 2))
            perturb_one(space, i, rng, size, out);
}

size_t bayes_space_most_neighbours(const struct bayes_space *space) {
    size_t most = 0;
    for (size_t i = 0; i < space->dimensions; i++)
        most += space->dimension[i].kind == BAYES_CATEGORICAL ? columns_of(&space->dimension[i]) : 4;
    return most;
}

static size_t put_neighbour(const struct bayes_space *space, size_t i, double choice, const double *row, double *rows,
                            size_t n) {
    double *out = rows + n * space->columns;
    const struct bayes_dimension *d = &space->dimension[i];
    if (choice < 0 || choice > d->high - d->low || choice == choice_at(space, i, row))
        return n;
    memcpy(out, row, space->columns * sizeof *out);
    put_choice(space, i, choice, out);
    return n + 1;
}

size_t bayes_space_neighbours(const struct bayes_space *space, const double *row, double *rows) {
    size_t n = 0;
    for (size_t i = 0; i < space->dimensions; i++) {
        const struct bayes_dimension *d = &space->dimension[i];
        double here = choice_at(space, i, row), far = floor((d->high - d->low) / 8);
        for (size_t c = 0; d->kind == BAYES_CATEGORICAL && c < columns_of(d); c++)
            n = put_neighbour(space, i, (double)c, row, rows, n);
        for (int sign = -1; d->kind == BAYES_INTEGER && sign <= 1; sign += 2) {
            n = put_neighbour(space, i, here + sign, row, rows, n);
            if (far > 1)
                n = put_neighbour(space, i, here + sign * far, row, rows, n);
        }
    }
    return n;
}
