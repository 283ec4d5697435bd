/* A table with open addressing, at most half full. The hash is FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv). */
#include "interop/import/text_set.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* The slot that has this text, or the free one where it belongs. */
static const char **slot_of(const char **slots, size_t room, const char *text) {
    size_t at = hash_of(text) & (room - 1);
    while (slots[at] && strcmp(slots[at], text) != 0)
        at = (at + 1) & (room - 1);
    return &slots[at];
}

static bool widen(struct text_set *set) {
    const size_t room = set->room ? 2 * set->room : 64;
    const char **slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < set->room; i++)
        if (set->slots[i])
            *slot_of(slots, room, set->slots[i]) = set->slots[i];
    free(set->slots);
    set->slots = slots;
    set->room = room;
    return true;
}

const char *text_set_add(struct text_set *set, const char *text) {
    if (2 * set->n >= set->room && !widen(set))
        return NULL;
    const char **slot = slot_of(set->slots, set->room, text);
    if (!*slot && (*slot = arena_strdup(set->arena, text)))
        set->n++;
    return *slot;
}

void text_set_release(struct text_set *set) {
    free(set->slots);
    *set = (struct text_set){0};
}
