/* The examples of one training run: sorted by domain, split into those that train and those that decide when to stop.
 *
 * With SAMPLE_DOMAINS domains or more, whole domains decide, drawn by the seed. A ranker of many domains is meant for
 * one more, and on examples of the domains that train it looks better than it will be there. With fewer domains, or
 * where each is larger than the share that decides, each is split by itself. Then every domain with two or more
 * examples has at least two that train, and a domain that is large enough also has some that decide. Examples of one
 * domain are a group and lie together. Both folds give a domain the same group number; a group may be empty in one
 * fold. Threads: a struct sample belongs to one thread at a time. */
#ifndef SIMULATOR_LEARNED_SAMPLE_H
#define SIMULATOR_LEARNED_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "simulator/learned/loss.h"
#include "simulator/learned/ranker_options.h"

enum { SAMPLE_DOMAINS = 5 };

struct fold {
    size_t n, n_groups;
    size_t *first;                    /* [n_groups + 1] where each group begins */
    const struct features **features; /* [n], as all below; borrowed from the examples */
    uint32_t *group;
    uint32_t *example; /* place among the caller's examples */
    double *us;
    uint64_t *partitions;
    double *base; /* what the score starts from, before what is being trained */
    double *score, *slope, *curve;
};

struct sample {
    struct arena arena;
    struct fold training, validation;
    double *offset; /* [n_groups] each domain's own bias, see sample_set_offsets */
};

/* Fails: ST_INVALID (no domain has two examples; a time that is not positive and finite), ST_NO_MEMORY. Release with
 * sample_release. O(n log n). */
enum status sample_init(struct sample *sample, size_t n, const struct ranker_example *examples, double validation,
                        uint64_t seed, struct error *err);
void sample_release(struct sample *sample);

/* How far scores lie above log(us): the mean of every domain, averaged over domains. That is the error of the timeline
 * that all domains share. */
double fold_bias(const struct fold *fold);

/* From the scores of the training examples: how far each domain's bias departs from the mean of all. The Huber term
 * leaves these offsets out. */
void sample_set_offsets(struct sample *sample);

/* Some examples of one group. */
struct chunk {
    uint32_t group;
    size_t first, n; /* in struct chunks.member */
};
struct chunks {
    size_t n;
    struct chunk *chunk;
    uint32_t *member; /* places in the fold */
};

/* Every example of the fold once, in chunks of at most `most` of one group and of nearly equal size. With an rng the
 * members of a group and the order of the chunks are shuffled. Memory from `arena`. Fails: ST_NO_MEMORY. */
enum status chunks_draw(const struct fold *fold, size_t most, struct rng *rng, struct arena *arena, struct chunks *out,
                        struct error *err);

/* The loss over chunks [from, to), each weighing as its share of `total` examples; adds to slope and curve. */
double chunks_loss(const struct chunks *chunks, size_t from, size_t to, double total, const struct loss *loss,
                   const struct fold *fold, const double *offset);

/* How wrong the scores of the validation examples are: the share of pairs out of order, plus, when scores are
 * logarithms of times, the mean of how far they are off. NaN when there is nothing to judge by. */
double sample_error(const struct sample *sample, bool timed);

#endif
