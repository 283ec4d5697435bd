/* How many strategies a space has, so that tests of drawing and stepping know what there is to reach. */
#ifndef TESTS_SUPPORT_STRATEGY_SPACE_SIZE_H
#define TESTS_SUPPORT_STRATEGY_SPACE_SIZE_H

#include "strategy/space/space.h"

/* log10 of how many distinct strategies there are, sizes and credits being counted in factors of two. The formula is in
 * space_size.c. */
enum status space_log10_size(const struct space *space, double *out, struct error *err);

#endif
