/* The blocks of a model, as people wrap them one by one: transformer blocks, residual blocks.
 *
 * The name of a variable is a path of modules, "model.layers.3.mlp.up_proj.weight". The path up to its first module
 * that is a number names the block, "model.layers.3": lists and sequences of modules number them. A variable without a
 * number in its path is the root's: embeddings, the last norm, the head. A model that names its blocks in another way,
 * as DenseNet does, has none. */
#ifndef STRATEGY_BASELINES_BLOCKS_H
#define STRATEGY_BASELINES_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "strategy/model.h"

/* Bytes of the name that name the block; 0: the root's. */
size_t block_length(const char *name);

/* Fill block[n_variables] with the number of each variable's block, from 1 up; 0: the root's. Returns how many there
 * are. O(bytes of names). */
uint32_t blocks_find(const struct model *model, uint32_t *block);

#endif
