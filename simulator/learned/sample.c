/* Sorting, splitting, and drawing chunks.
 *
 * One pass over the examples looks only at pairs within a chunk. Each epoch draws other chunks, so over the epochs all
 * pairs of a domain meet. A step then costs O(chunk^2) pairs instead of O(domain^2), and each example is scored once.
 */
#include "simulator/learned/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/learned/pairwise_accuracy.h"

enum { SPLIT_STREAM = 0x5711 };

struct key {
    uint32_t domain, example;
};

static int compare_keys(const void *a, const void *b) {
    const struct key *x = a, *y = b;
    if (x->domain != y->domain)
        return x->domain < y->domain ? -1 : 1;
    return (x->example > y->example) - (x->example < y->example);
}

static enum status check_examples(size_t n, const struct ranker_example *examples, struct error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!(examples[i].us > 0) || !isfinite(examples[i].us))
            return error_set(err, ST_INVALID, "example %zu took %g us; times must be positive and finite", i,
                             examples[i].us);
        for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
            if (!isfinite(examples[i].features->global[k]))
                return error_set(err, ST_INVALID, "example %zu: feature %s is not finite", i, feature_global_name(k));
    }
    return ST_OK;
}

/* The examples by domain; *n_groups domains, *largest examples in one. */
static struct key *sort_examples(size_t n, const struct ranker_example *examples, struct arena *arena, size_t *n_groups,
                                 size_t *largest) {
    struct key *keys = arena_alloc(arena, n, sizeof *keys);
    if (!keys)
        return NULL;
    for (size_t i = 0; i < n; i++)
        keys[i] = (struct key){examples[i].domain, (uint32_t)i};
    if (n > 0)
        qsort(keys, n, sizeof *keys, compare_keys);
    *n_groups = *largest = 0;
    for (size_t i = 0, run = 0; i < n; i++) {
        const bool begins = i == 0 || keys[i].domain != keys[i - 1].domain;
        *n_groups += begins;
        run = begins ? 1 : run + 1;
        *largest = run > *largest ? run : *largest;
    }
    return keys;
}

static bool fold_reserve(struct fold *fold, size_t n, size_t n_groups, struct arena *arena) {
    fold->n_groups = n_groups;
    fold->first = arena_alloc(arena, n_groups + 1, sizeof *fold->first);
    fold->features = arena_alloc(arena, n, sizeof(void *));
    fold->group = arena_alloc(arena, n, sizeof *fold->group);
    fold->example = arena_alloc(arena, n, sizeof *fold->example);
    fold->us = arena_alloc(arena, n, sizeof *fold->us);
    fold->partitions = arena_alloc(arena, n, sizeof *fold->partitions);
    fold->base = arena_alloc(arena, n, sizeof *fold->base);
    fold->score = arena_alloc(arena, n, sizeof *fold->score);
    fold->slope = arena_alloc(arena, n, sizeof *fold->slope);
    fold->curve = arena_alloc(arena, n, sizeof *fold->curve);
    return fold->first && fold->features && fold->group && fold->example && fold->us && fold->partitions &&
           fold->base && fold->score && fold->slope && fold->curve;
}

static void fold_add(struct fold *fold, uint32_t group, const struct key *key, const struct ranker_example *examples) {
    const struct ranker_example *example = &examples[key->example];
    fold->group[fold->n] = group;
    fold->example[fold->n] = key->example;
    fold->features[fold->n] = example->features;
    fold->us[fold->n] = example->us;
    fold->partitions[fold->n] = example->features->partitions;
    fold->n++;
}

static size_t judges_of(size_t n, double share) {
    const size_t wanted = (size_t)floor((double)n * share + 0.5);
    return n < 2 || wanted > n - 2 ? (n < 2 ? 0 : n - 2) : wanted;
}

/* Where to begin each domain in keys[0..n), [n_groups + 1]; NULL without memory. */
static size_t *list_groups(size_t n, const struct key *keys, size_t n_groups, struct arena *arena) {
    size_t *first = arena_alloc(arena, n_groups + 1, sizeof *first), group = 0;
    if (!first)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || keys[i].domain != keys[i - 1].domain)
            first[group++] = i;
    first[n_groups] = n;
    return first;
}

/* Into judge[]: domains that decide, drawn as long as all of them have at most `most` examples. False: there is none,
 * or no pair would be left to train. `order` is scratch, [n_groups]. */
static bool draw_domains(size_t n_groups, const size_t *first, double most, struct rng *rng, uint32_t *order,
                         bool *judge) {
    size_t taken = 0, pairs = 0;
    for (size_t g = 0; g < n_groups; g++)
        order[g] = (uint32_t)g;
    rng_shuffle(rng, n_groups, order);
    for (size_t k = 0; k < n_groups; k++) {
        const size_t g = order[k], size = first[g + 1] - first[g];
        judge[g] = (double)(taken + size) <= most;
        taken += judge[g] ? size : 0;
        pairs += !judge[g] && size > 1;
    }
    return taken > 0 && pairs > 0;
}

/* One domain, keys[0..n): `judges` to validation, the rest to training, each in the caller's order. */
static void split_group(struct sample *sample, uint32_t group, size_t n, const struct key *keys,
                        const struct ranker_example *examples, size_t judges, struct rng *rng, uint32_t *turn) {
    for (size_t i = 0; i < n; i++)
        turn[i] = i < judges;
    rng_shuffle(rng, n, turn);
    for (size_t i = 0; i < n; i++)
        fold_add(turn[i] ? &sample->validation : &sample->training, group, &keys[i], examples);
    sample->training.first[group + 1] = sample->training.n;
    sample->validation.first[group + 1] = sample->validation.n;
}

static enum status fill(struct sample *sample, size_t n, const struct ranker_example *examples, double validation,
                        uint64_t seed, struct error *err) {
    size_t n_groups = 0, largest = 0;
    struct rng rng;
    const struct key *keys = sort_examples(n, examples, &sample->arena, &n_groups, &largest);
    const size_t *first = keys ? list_groups(n, keys, n_groups, &sample->arena) : NULL;
    uint32_t *turn = arena_alloc(&sample->arena, largest, sizeof *turn);
    uint32_t *order = arena_alloc(&sample->arena, n_groups, sizeof *order);
    bool *judge = arena_alloc(&sample->arena, n_groups, sizeof *judge);
    sample->offset = arena_alloc(&sample->arena, n_groups, sizeof *sample->offset);
    if (!first || !turn || !order || !judge || !sample->offset ||
        !fold_reserve(&sample->training, n, n_groups, &sample->arena) ||
        !fold_reserve(&sample->validation, n, n_groups, &sample->arena))
        return error_no_memory(err);
    if (largest < 2)
        return error_set(err, ST_INVALID, "no domain has two examples; a ranker learns from pairs of one domain");
    rng_split(&rng, seed, SPLIT_STREAM);
    const bool whole = validation > 0 && n_groups >= SAMPLE_DOMAINS &&
                       draw_domains(n_groups, first, validation * (double)n, &rng, order, judge);
    for (size_t g = 0; g < n_groups; g++) {
        const size_t size = first[g + 1] - first[g];
        const size_t judges = !whole ? judges_of(size, validation) : judge[g] ? size : 0;
        split_group(sample, (uint32_t)g, size, keys + first[g], examples, judges, &rng, turn);
    }
    return ST_OK;
}

enum status sample_init(struct sample *sample, size_t n, const struct ranker_example *examples, double validation,
                        uint64_t seed, struct error *err) {
    *sample = (struct sample){0};
    enum status status = check_examples(n, examples, err);
    if (!status)
        status = fill(sample, n, examples, validation, seed, err);
    if (status)
        sample_release(sample);
    return status;
}

void sample_release(struct sample *sample) {
    arena_release(&sample->arena);
    *sample = (struct sample){0};
}

static bool group_bias(const struct fold *fold, size_t group, double *out) {
    const size_t from = fold->first[group], to = fold->first[group + 1];
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += fold->score[i] - log(fold->us[i]);
    *out = to > from ? sum / (double)(to - from) : 0;
    return to > from;
}

double fold_bias(const struct fold *fold) {
    double sum = 0, bias;
    size_t groups = 0;
    for (size_t g = 0; g < fold->n_groups; g++) {
        groups += group_bias(fold, g, &bias);
        sum += bias;
    }
    return groups ? sum / (double)groups : 0;
}

void sample_set_offsets(struct sample *sample) {
    const double all = fold_bias(&sample->training);
    for (size_t g = 0; g < sample->training.n_groups; g++) {
        double bias;
        sample->offset[g] = group_bias(&sample->training, g, &bias) ? bias - all : 0;
    }
}

static void shuffle_chunks(struct chunks *chunks, struct rng *rng) {
    for (size_t i = chunks->n; i > 1; i--) {
        const size_t j = (size_t)rng_below(rng, i);
        const struct chunk chunk = chunks->chunk[i - 1];
        chunks->chunk[i - 1] = chunks->chunk[j];
        chunks->chunk[j] = chunk;
    }
}

enum status chunks_draw(const struct fold *fold, size_t most, struct rng *rng, struct arena *arena, struct chunks *out,
                        struct error *err) {
    struct chunks chunks = {0, arena_alloc(arena, fold->n, sizeof *chunks.chunk),
                            arena_alloc(arena, fold->n, sizeof *chunks.member)};
    if (!chunks.chunk || !chunks.member)
        return error_no_memory(err);
    for (size_t i = 0; i < fold->n; i++)
        chunks.member[i] = (uint32_t)i;
    for (uint32_t g = 0; g < fold->n_groups; g++) {
        const size_t first = fold->first[g], n = fold->first[g + 1] - first;
        const size_t parts = n / most + (n % most != 0);
        if (rng && n > 1)
            rng_shuffle(rng, n, chunks.member + first);
        for (size_t p = 0; p < parts; p++) {
            const size_t from = n * p / parts, to = n * (p + 1) / parts;
            chunks.chunk[chunks.n++] = (struct chunk){g, first + from, to - from};
        }
    }
    if (rng)
        shuffle_chunks(&chunks, rng);
    *out = chunks;
    return ST_OK;
}

double chunks_loss(const struct chunks *chunks, size_t from, size_t to, double total, const struct loss *loss,
                   const struct fold *fold, const double *offset) {
    const struct loss_view view = {fold->us, fold->partitions, fold->score, fold->slope, fold->curve};
    double sum = 0;
    for (size_t c = from; c < to; c++) {
        const struct chunk *chunk = &chunks->chunk[c];
        sum += loss_group(loss, &view, chunk->n, chunks->member + chunk->first, offset[chunk->group],
                          (double)chunk->n / total);
    }
    return sum;
}

double sample_error(const struct sample *sample, bool timed) {
    const struct fold *fold = &sample->validation;
    const double accuracy = pairwise_accuracy(fold->n, fold->us, fold->score, fold->group);
    double off = 0;
    if (!timed || fold->n == 0)
        return 1 - accuracy;
    for (size_t i = 0; i < fold->n; i++)
        off += fabs(fold->score[i] - log(fold->us[i]) - sample->offset[fold->group[i]]);
    return (isnan(accuracy) ? 0 : 1 - accuracy) + off / (double)fold->n;
}
