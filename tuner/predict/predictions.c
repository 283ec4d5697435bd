/* A hash table with open addressing: an id is a hash already, and the two factors are mixed in. */
#include "tuner/predict/predictions.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024 };

struct known_prediction {
    struct id strategy; /* hex "" where the slot is free */
    double factors[2], us;
};

static uint64_t mix(uint64_t hash, const void *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static bool same(const struct known_prediction *slot, const struct id *strategy, const double factors[2]) {
    return !memcmp(slot->factors, factors, sizeof slot->factors) && !strcmp(slot->strategy.hex, strategy->hex);
}

/* The slot of this prediction, or the free slot where it belongs. */
static size_t place_of(const struct predictions *p, const struct id *strategy, const double factors[2]) {
    uint64_t hash = mix(mix(mix(mix(1, strategy->hex), strategy->hex + 8), &factors[0]), &factors[1]);
    size_t i = hash & (p->room - 1);
    while (*p->slots[i].strategy.hex && !same(&p->slots[i], strategy, factors))
        i = (i + 1) & (p->room - 1);
    return i;
}

void predictions_release(struct predictions *p) {
    free(p->slots);
    *p = (struct predictions){0};
}

bool predictions_find(const struct predictions *p, const struct id *strategy, const double factors[2], double *us) {
    if (!p->room)
        return false;
    const struct known_prediction *slot = &p->slots[place_of(p, strategy, factors)];
    if (!*slot->strategy.hex)
        return false;
    *us = slot->us;
    return true;
}

static bool grow(struct predictions *p) {
    struct predictions wider = {.n = p->n, .room = p->room ? 2 * p->room : FIRST_ROOM};
    wider.slots = calloc(wider.room, sizeof *wider.slots);
    if (!wider.slots)
        return false;
    for (size_t i = 0; i < p->room; i++)
        if (*p->slots[i].strategy.hex)
            wider.slots[place_of(&wider, &p->slots[i].strategy, p->slots[i].factors)] = p->slots[i];
    free(p->slots);
    *p = wider;
    return true;
}

void predictions_keep(struct predictions *p, const struct id *strategy, const double factors[2], double us) {
    if (!*strategy->hex || (2 * (p->n + 1) > p->room && !grow(p)))
        return;
    p->slots[place_of(p, strategy, factors)] = (struct known_prediction){*strategy, {factors[0], factors[1]}, us};
    p->n++;
}
