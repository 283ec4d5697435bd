/* A strategy in a dozen words that can stand beside another's: who waits for whom, and how messages are ordered, cut,
 * merged and served. */
#ifndef REPORT_TRAITS_H
#define REPORT_TRAITS_H

#include "strategy/plan.h"
#include "strategy/strategy.h"

/* X(constant, what people call it) */
#define TRAIT_TABLE(X)                                                                                                 \
    X(CONSISTENCY, "who waits for whom")                                                                               \
    X(ORDER, "order of messages")                                                                                      \
    X(CREDIT, "in flight at once")                                                                                     \
    X(BARRIER, "between iterations")                                                                                   \
    X(MESSAGES, "messages an iteration")                                                                               \
    X(LARGEST, "largest message")                                                                                      \
    X(GROUPS, "merge groups")                                                                                          \
    X(ALGORITHMS, "all-reduce algorithms")                                                                             \
    X(PARTITIONS, "messages cut at")                                                                                   \
    X(SERVED, "served by parameter servers")                                                                           \
    X(SERVERS, "parameter servers")                                                                                    \
    X(SHARDED, "variables in shards")                                                                                  \
    X(ENCODING, "on the wire")

enum trait {
#define X(constant, words) TRAIT_##constant,
    TRAIT_TABLE(X)
#undef X
        TRAITS
};

enum { TRAIT_ROOM = 160 };

const char *trait_label(enum trait trait);

/* `plan` is the strategy lowered. What does not apply is "none". */
void traits_of(const struct strategy *strategy, const struct plan *plan, char out[TRAITS][TRAIT_ROOM]);

#endif
