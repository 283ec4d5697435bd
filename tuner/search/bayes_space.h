/* A box of knobs as Bayesian optimization sees it: numbers scaled to [0, 1], categories as one-hot columns.
 *
 * A point is written in two ways: as its values x [dimensions], which callers know, and as a row [columns], which the
 * Gaussian process knows. A category takes a column a choice, of which one holds sqrt(1/2), so that two choices are as
 * far apart as the two ends of an interval. Threads: a const struct bayes_space may be shared. */
#ifndef TUNER_SEARCH_BAYES_SPACE_H
#define TUNER_SEARCH_BAYES_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"

enum bayes_kind {
    BAYES_LINEAR,      /* any number from low to high */
    BAYES_LOG2,        /* the same, in even steps of its logarithm; low > 0: sizes, rates, times */
    BAYES_INTEGER,     /* whole numbers low .. high; for powers of two, take the exponent */
    BAYES_CATEGORICAL, /* 0 .. high without an order; low = 0 */
};

struct bayes_dimension {
    enum bayes_kind kind;
    double low, high; /* low < high */
};

struct bayes_space {
    size_t dimensions, columns, continuous; /* continuous: columns of linear and log2 dimensions */
    const struct bayes_dimension *dimension;
    const size_t *first;    /* dimensions + 1: columns of dimension i are first[i] .. first[i + 1] - 1 */
    const size_t *input_of; /* columns: the dimension of each */
};

/* Check the dimensions and copy them into `arena`. Fails: ST_INVALID, ST_TOO_LARGE (more than BAYES_COLUMNS columns),
 * ST_NO_MEMORY. */
enum { BAYES_COLUMNS = 256 };
enum status bayes_space_init(struct bayes_space *space, size_t n, const struct bayes_dimension *dimension,
                             struct arena *arena, struct error *err);

/* How many points a space without continuous dimensions has; INFINITY with them. */
double bayes_space_size(const struct bayes_space *space);

/* Values to row. Numbers outside low .. high are taken as they are: a default may lie outside the box that is searched.
 * Fails: ST_INVALID (not finite, not positive under log2, not whole, no such category); `row` may then be half
 * written. */
enum status bayes_space_encode(const struct bayes_space *space, const double *x, double *row, struct error *err);

/* Turn a row into values: the nearest that the space allows. */
void bayes_space_decode(const struct bayes_space *space, const double *row, double *x);

/* Point number `index` of a space without continuous dimensions, index < bayes_space_size. */
void bayes_space_at(const struct bayes_space *space, size_t index, double *row);

/* n points of an evenly spread sequence, from its item `from` on, shifted as `seed` says. With the positive root g of
 * g^(d+1) = g + 1, coordinate k of item i is the fraction of shift_k + i g^-(k+1): the golden ratio's sequence for d
 * dimensions (M. Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018). */
void bayes_space_spread(const struct bayes_space *space, uint64_t seed, size_t from, size_t n, double *rows);

/* A point near `row`: each dimension moves with probability at least 1/2 in numbers by a normal step of `size`, whole
 * numbers by at least 1, categories to any. */
void bayes_space_perturb(const struct bayes_space *space, struct rng *rng, double size, const double *row, double *out);

/* Every point that differs from `row` in one discrete dimension: whole numbers by 1 or an eighth of the range up or
 * down, categories in any way. At most bayes_space_most_neighbours; returns how many. */
size_t bayes_space_neighbours(const struct bayes_space *space, const double *row, double *rows);
size_t bayes_space_most_neighbours(const struct bayes_space *space);

#endif
