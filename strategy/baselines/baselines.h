/* What published systems and framework defaults would do, each as a strategy: what a search starts from and is compared
 * with. One file a system; each says which paper or default it encodes.
 *
 * All leave the all-reduce algorithm to the library (auto), as the systems do, and none encodes gradients. A merge
 * group has one dtype; where a system does not say what it does with several, each dtype gets its own groups. */
#ifndef STRATEGY_BASELINES_BASELINES_H
#define STRATEGY_BASELINES_BASELINES_H

#include <stddef.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/cost/cost.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Build the baseline for this model and cluster; *out is sealed and named after it. Fails: ST_NO_MEMORY. */
typedef enum status baseline_build(const struct model *model, const struct cost *cost, struct strategy *out,
                                   struct error *err);

/* Where it is from: a paper's system, what a framework does when nobody chooses, a system with its own knobs searched,
 * or a problem that we solve exactly. */
enum baseline_kind { BASELINE_PUBLISHED, BASELINE_DEFAULT, BASELINE_TUNED, BASELINE_EXACT };

/* The settings of a system's knobs that are tried: setting 0 is the default. build() makes one of them, sealed, and
 * names it after the system. Fails: ST_NO_MEMORY. */
struct baseline_grid {
    size_t n;
    enum status (*build)(const struct model *model, const struct cluster *cluster, size_t setting, struct strategy *out,
                         struct error *err);
};

struct baseline {
    const char *name;    /* "mg-wfbp": what --baseline takes */
    const char *summary; /* one line for people */
    const char *source;  /* the paper or default */
    enum baseline_kind kind;
    baseline_build *build;            /* NULL where there is a grid */
    const struct baseline_grid *grid; /* BASELINE_TUNED alone */
};

const struct baseline *baselines_list(size_t *n);        /* in the order in which they are shown */
const struct baseline *baselines_find(const char *name); /* of both lists; or NULL */

/* Those that are built only where they are named: with a consistency (strategy/consistency.h), a tree, all-reduces in
 * halves, or sharded parameters. */
const struct baseline *baselines_by_name(size_t *n);

/* Build a row that is not tuned for this model and cluster (simulator/tuned.h builds every row). Fails: as
 * baseline_build; ST_INVALID (the cluster has no device). */
enum status baselines_build(const struct baseline *row, const struct model *model, const struct cluster *cluster,
                            struct strategy *out, struct error *err);

baseline_build baseline_wfbp, baseline_single, baseline_mg_wfbp, baseline_merge_optimal, baseline_pace,
    baseline_pace_makespan, baseline_pytorch_ddp, baseline_horovod, baseline_ps, baseline_ps_load_balanced,
    baseline_all_reduce, baseline_bytescheduler_all_reduce, baseline_bytescheduler_ps, baseline_p3, baseline_tictac,
    baseline_ps_partitioned, baseline_ps_uneven, baseline_partitioned_all_reduce,
    baseline_random_axis_partition_all_reduce, baseline_parallax, baseline_byteps, baseline_async_ps, baseline_ssp,
    baseline_mlfabric_a, baseline_mlfabric_s, baseline_tree_reduce, baseline_dear, baseline_megatron,
    baseline_fsdp_per_block, baseline_fsdp_whole, baseline_torchtitan, baseline_zero_1, baseline_zero_2,
    baseline_zero_3, baseline_fsdp_optimal, baseline_hsdp;

extern const struct baseline_grid baseline_horovod_grid, baseline_byteps_grid;

#endif
