/* Domains, subsets of examples, and how many pairs of them a score orders as their times are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/evaluate/evaluate.h"

const double MARGIN[MARGINS] = {0, 0.02, 0.05};

void fail(const struct error *err) {
    fprintf(stderr, "evaluate: %s\n", ERROR_TEXT(err));
    exit(1);
}

void check(enum status status, const struct error *err) {
    if (status)
        fail(err);
}

void *allocate(struct arena *arena, size_t n, size_t size) {
    struct error err;
    void *memory = arena_alloc(arena, n, size);
    if (!memory) {
        error_no_memory(&err);
        fail(&err);
    }
    return memory;
}

void *allocate_heap(size_t n, size_t size) {
    struct error err;
    void *memory = calloc(n, size);
    if (!memory) {
        error_no_memory(&err);
        fail(&err);
    }
    return memory;
}

const struct domain *corpus_domain(const struct corpus *corpus, size_t i) {
    return &corpus->examples.domains[i];
}

bool domain_is_large(const struct corpus *corpus, size_t i) {
    return corpus_domain(corpus, i)->n >= corpus->training + corpus->training / 5;
}

bool domain_is_enough(const struct corpus *corpus, size_t i) {
    return corpus_domain(corpus, i)->n >= LEAST_TRIALS;
}

const char *domain_words(const struct corpus *corpus, size_t i, struct arena *arena) {
    const struct domain *d = corpus_domain(corpus, i);
    const size_t most = strlen(d->model.name) + strlen(d->cluster.name) + sizeof " on ";
    char *words = allocate(arena, most, 1);
    snprintf(words, most, "%s on %s", d->model.name, d->cluster.name);
    return words;
}

struct places domain_shuffled(const struct corpus *corpus, size_t domain, uint64_t seed, struct arena *arena) {
    const struct domain *d = corpus_domain(corpus, domain);
    struct places out = {.n = d->n, .place = allocate(arena, d->n, sizeof *out.place)};
    struct rng rng;
    for (size_t i = 0; i < d->n; i++)
        out.place[i] = (uint32_t)(d->first + i);
    rng_split(&rng, seed, domain);
    rng_shuffle(&rng, out.n, out.place);
    return out;
}

struct places places_head(struct places places, size_t n) {
    return (struct places){.n = n < places.n ? n : places.n, .place = places.place};
}

struct places places_tail(struct places places, size_t n) {
    const size_t head = n < places.n ? n : places.n;
    return (struct places){.n = places.n - head, .place = places.place + head};
}

struct places places_join(struct places places, struct places more, struct arena *arena) {
    struct places out = {.n = places.n + more.n, .place = allocate(arena, places.n + more.n, sizeof *out.place)};
    if (places.n)
        memcpy(out.place, places.place, places.n * sizeof *out.place);
    if (more.n)
        memcpy(out.place + places.n, more.place, more.n * sizeof *out.place);
    return out;
}

struct accuracy accuracy_of(const struct corpus *corpus, struct places places, const double *score) {
    double right[MARGINS] = {0}, pairs[MARGINS] = {0};
    struct accuracy out;
    for (size_t i = 0; i < places.n; i++) {
        for (size_t j = 0; j < places.n; j++) {
            const double fast = corpus->examples.examples[places.place[i]].us;
            const double slow = corpus->examples.examples[places.place[j]].us;
            for (size_t m = 0; m < MARGINS && slow > fast * (1 + MARGIN[m]); m++) {
                pairs[m]++;
                right[m] += score[i] < score[j] ? 1 : score[i] > score[j] ? 0 : 0.5;
            }
        }
    }
    for (size_t m = 0; m < MARGINS; m++)
        out.of[m] = pairs[m] > 0 ? right[m] / pairs[m] : NAN;
    return out;
}
