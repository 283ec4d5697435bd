/* A strategy in a few words that can stand beside another's: who waits for whom, and how messages are ordered, cut,
 * merged and served, and what devices keep in parts. */
#ifndef REPORT_TRAITS_H
#define REPORT_TRAITS_H

#include <stdbool.h>
#include <stddef.h>

#include "strategy/plan.h"
#include "strategy/strategy.h"

/* X(constant, what people call it, what is said of plain data parallel training). Where all strategies that stand side
 * by side say the last, the row is left out. NULL: the row is always there. */
#define TRAIT_TABLE(X)                                                                                                 \
    X(CONSISTENCY, "who waits for whom", NULL)                                                                         \
    X(ORDER, "order of messages", NULL)                                                                                \
    X(CREDIT, "in flight at once", NULL)                                                                               \
    X(BARRIER, "between iterations", NULL)                                                                             \
    X(MICRO_BATCHES, "micro-batches an iteration", "one")                                                              \
    X(MESSAGES, "messages an iteration", NULL)                                                                         \
    X(LARGEST, "largest message", NULL)                                                                                \
    X(GROUPS, "merge groups", NULL)                                                                                    \
    X(ALGORITHMS, "all-reduce algorithms", NULL)                                                                       \
    X(PARTITIONS, "messages cut at", NULL)                                                                             \
    X(KEPT_ALONE, "each device keeps a part alone of", "nothing")                                                      \
    X(SHARDS, "such parts are among", "none")                                                                          \
    X(GATHERED, "gathered for the forward pass", "none")                                                               \
    X(AHEAD, "groups gathered ahead", "none")                                                                          \
    X(TYPES, "types of parts that travel", "none")                                                                     \
    X(SERVED, "served by parameter servers", NULL)                                                                     \
    X(SERVERS, "parameter servers", NULL)                                                                              \
    X(CUT, "variables cut", NULL)                                                                                      \
    X(ENCODING, "gradients on the wire", NULL)

enum trait {
#define X(constant, words, plain) TRAIT_##constant,
    TRAIT_TABLE(X)
#undef X
        TRAITS
};

enum { TRAIT_ROOM = 160 };

const char *trait_label(enum trait trait);

/* Whether the row has something to say of n strategies side by side. */
bool trait_is_shown(enum trait trait, size_t n, char traits[][TRAITS][TRAIT_ROOM]);

/* `plan` is the strategy lowered. What does not apply is "none". */
void traits_of(const struct strategy *strategy, const struct plan *plan, char out[TRAITS][TRAIT_ROOM]);

#endif
