/* A set of small numbers with "smallest member" in a few instructions: a bitmap, bitmaps of its non-zero words above
 * it, up to one word (64^4 members at most, more than PLAN_MAX_MESSAGES). Messages are stored in the order they go, so
 * the smallest ready message is the one whose turn it is. */
#ifndef SIMULATOR_READY_SET_H
#define SIMULATOR_READY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { READY_LEVELS = 4 };

struct ready_set {
    uint64_t *level[READY_LEVELS]; /* level[0] is the set; level[n_levels - 1] is one word */
    uint32_t n_levels;
};

/* Words of memory for members 0 .. n - 1. */
static inline size_t ready_set_words(size_t n) {
    size_t words = 0;
    do {
        n = (n + 63) / 64;
        n += n == 0;
        words += n;
    } while (n > 1);
    return words;
}

/* An empty set in ready_set_words(n) words of the caller's memory. */
static inline void ready_set_init(struct ready_set *set, size_t n, uint64_t *words) {
    memset(words, 0, ready_set_words(n) * sizeof *words);
    set->n_levels = 0;
    do {
        n = (n + 63) / 64;
        n += n == 0;
        set->level[set->n_levels++] = words;
        words += n;
    } while (n > 1);
}

static inline void ready_set_add(struct ready_set *set, uint32_t member) {
    for (uint32_t l = 0; l < set->n_levels; l++, member /= 64)
        set->level[l][member / 64] |= UINT64_C(1) << member % 64;
}

static inline void ready_set_remove(struct ready_set *set, uint32_t member) {
    for (uint32_t l = 0; l < set->n_levels; l++, member /= 64) {
        set->level[l][member / 64] &= ~(UINT64_C(1) << member % 64);
        if (set->level[l][member / 64])
            return;
    }
}

static inline bool ready_set_has(const struct ready_set *set, uint32_t member) {
    return set->level[0][member / 64] >> member % 64 & 1;
}

/* UINT32_MAX when the set is empty. */
static inline uint32_t ready_set_first(const struct ready_set *set) {
    uint32_t at = 0;
    for (uint32_t l = set->n_levels; l-- > 0;) {
        if (!set->level[l][at])
            return UINT32_MAX;
        at = at * 64 + (uint32_t)__builtin_ctzll(set->level[l][at]);
    }
    return at;
}

#endif
