/* Which layers a group of sharded parameters holds (FSDP's wrapping), and which groups keep what they gathered from the
 * forward to the backward pass, exactly.
 *
 * Units stand in the order of the forward pass; a group is a run of them. The rules are those of a plan whose groups
 * all have sharded parameters, with prefetch 1 in both passes and one message at a time (strategy/plan.h). Let group j,
 * of G, compute for f and b, take a to gather, u to unpack and s to sum.
 *
 * The forward pass, where K is the end of a gather and E that of a computation (E_0 = head_us, K_0 = 0):
 * - K_j = max(K_j-1, E_j-2) + a_j
 * - E_j = max(E_j-1, K_j + u_j) + f_j
 *
 * The backward pass goes the other way, from its own time 0; let j count from its first group. Messages go in the order
 * gather 1, gather 2, sum 1, gather 3, sum 2, ..., gather G, sum G-1, sum G. P is the end of the message before gather
 * j+1, and B that of a computation (P_1 = a_1, B_1 = a_1 + u_1 + b_1):
 * - B_j+1 = max(B_j, P_j + a_j+1 + u_j+1) + b_j+1
 * - P_j+1 = max(P_j + a_j+1, B_j) + s_j
 *
 * Here a and u are 0 for a group that keeps what it gathered, and a is another where fewer devices, as those of a node,
 * keep the parts of it that they gather again. The pass ends at max(P_G, B_G) + max(s_G, tail_us), and a
 * cut's value is the sum of both.
 *
 * Memory. While group j computes backward, what it needs itself (own_bytes: parameters, gradients, buffers) is there,
 * and the parameters of the next group that computes backward and of all groups before it that keep them, or their part
 * of them (1 / parts), what is being summed of the last one (summed_bytes), and what the forward pass has kept for all
 * units up to its last. The peak is the most over all groups.
 *
 * Units: bytes, microseconds. Threads: no state. */
#ifndef STRATEGY_EXACT_WRAPPING_H
#define STRATEGY_EXACT_WRAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cost/line.h"

struct wrapping_unit {
    double forward_us, backward_us;
    uint64_t bytes;    /* of its parameters, and of its gradients */
    uint64_t kept;     /* bytes that its forward pass leaves for its backward pass */
    uint32_t n_pieces; /* variables */
};

/* Costs of one message, and memory. None falls as bytes or pieces rise. */
struct wrapping_cost {
    double (*gather_us)(const void *context, uint64_t bytes, uint32_t parts); /* among `parts` devices; 0: among all */
    double (*unpack_us)(const void *context, uint64_t bytes, uint32_t n_pieces); /* after a gather */
    double (*sum_us)(const void *context, uint64_t bytes, uint32_t n_pieces);
    uint64_t (*own_bytes)(const void *context, uint64_t bytes,
                          uint32_t n_pieces); /* rises by `bytes` or more, from twice `bytes` */
    uint64_t (*summed_bytes)(const void *context, uint64_t bytes, uint32_t n_pieces);
    uint32_t parts; /* devices that keep a part each and gather them again; 0: none do */
    const void *context;
    struct cost_line gather_floor, sum_floor; /* no gather or sum of any size costs less; zeros will do */
};

struct wrapping_chain {
    uint32_t n;
    const struct wrapping_unit *units;
    double head_us, tail_us; /* computed before the first unit's forward pass, and after its backward pass */
    uint64_t budget;         /* the largest peak that is allowed; UINT64_MAX: any */
};

/* What is there of what a group gathered, from its forward to its backward pass. */
enum { WRAPPING_FREES, WRAPPING_KEEPS, WRAPPING_KEEPS_PARTS };

struct wrapping {
    uint32_t n_groups;
    const uint32_t *ends; /* group g is units ends[g - 1] (or 0) to ends[g] - 1; in the caller's arena, both */
    const uint8_t *keeps; /* by group: one of the above */
    double value_us;
    double least_us; /* no cut within the budget has a smaller value; value_us less 1e-9 of it where that is proved */
    uint64_t peak;
};

/* The peak of a cut. O(n). */
uint64_t wrapping_peak(const struct wrapping_chain *chain, const struct wrapping_cost *cost, uint32_t n_groups,
                       const uint32_t *ends, const uint8_t *keeps);

/* The smallest peak of any cut, if it is that of every unit alone, of which none keeps anything. */
uint64_t wrapping_least_peak(const struct wrapping_chain *chain, const struct wrapping_cost *cost);

/* The best cut; n >= 1 and labels >= 1. It is the best of all as long as at most `labels` partial cuts that end at one
 * unit must be kept (WRAPPING_LABELS for a proof of up to about 60 layers). Where they are more, the least promising
 * are dropped, and least_us says how far from the best the cut can be at most; a budget that wrapping_least_peak fits
 * into always has one. With more than WRAPPING_FEW_LABELS and a budget, labels are ranked in several ways, in a round
 * each, until the cut is proved. Fails: ST_INFEASIBLE (nothing fits the budget; the message has the smallest peak),
 * ST_NO_MEMORY. O(n² · labels · labels). */
enum { WRAPPING_LABELS = 4096, WRAPPING_FEW_LABELS = 8 };
enum status wrapping_best(const struct wrapping_chain *chain, const struct wrapping_cost *cost, uint32_t labels,
                          struct arena *arena, struct wrapping *out, struct error *err);

#endif
