/* The groups of fully_shard (FSDP2) that a strategy makes, for both forms that carry them: a file that `apply` of
 * syncopate_torch reads (fsdp2.c), and PyTorch code (fsdp2_code.c). */
#ifndef INTEROP_EXPORT_FSDP2_H
#define INTEROP_EXPORT_FSDP2_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

struct form; /* interop/export/export_internal.h */

/* The groups as {"reshard_after_forward", "variables": [NAME, ...]}, in the order in which the forward pass first reads
 * them; sets *n. Notes what of the strategy is lost, but for what the form `can` say (enum ability) of the rest. The
 * caller deletes them; NULL (remembered) when memory is out. */
cJSON *fsdp2_groups(struct form *f, unsigned can, uint32_t *n);

/* How many groups ahead, of n, where a strategy says `depth`. */
uint32_t fsdp2_prefetch(uint32_t depth, uint32_t n);

/* How much of a variable's name is that of its module. */
size_t fsdp2_module_length(struct form *f, const char *name);

#endif
