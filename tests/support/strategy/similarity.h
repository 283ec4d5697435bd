/* How alike two strategies are. */
#ifndef TESTS_SUPPORT_STRATEGY_SIMILARITY_H
#define TESTS_SUPPORT_STRATEGY_SIMILARITY_H

#include "strategy/space/space.h"

/* How alike two strategies of this space are, in [0, 1]; symmetric, 1 for a strategy and itself. Three quarters are the
 * mean over variables (same architecture, cut, servers; how much of the merge group is shared), one quarter is the
 * schedule (two preemptive ones are as alike as their numbers of slices; another order of pulls is half another
 * policy). O(variables log variables). */
enum status space_similarity(const struct space *space, const struct strategy *a, const struct strategy *b, double *out,
                             struct error *err);

#endif
