/* A strategy's consistency in words. */
#ifndef STRATEGY_CONSISTENCY_TEXT_H
#define STRATEGY_CONSISTENCY_TEXT_H

#include "strategy/cluster.h"
#include "strategy/consistency.h"

/* As "asynchronous, delay at most 16; batches of 100 ms in MLfabric's order, ...", and "synchronous" where it is plain.
 * malloc'd; NULL when memory is out. */
char *consistency_text(const struct consistency *consistency, const struct cluster *cluster);

#endif
