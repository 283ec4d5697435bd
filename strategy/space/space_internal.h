/* What the files of the space share: one strategy under construction, and the draws that build it. */
#ifndef STRATEGY_SPACE_SPACE_INTERNAL_H
#define STRATEGY_SPACE_SPACE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/strategy.h"

struct space; /* both: strategy/space/space.h */
struct space_options;

/* A strategy being built. Functions that need memory set no_memory and go on; draft_finish looks at it. */
struct draft {
    const struct space *space;
    struct rng *rng;
    struct strategy strategy;
    uint32_t *nodes;     /* a permutation of the cluster's nodes */
    double *weight;      /* scratch, one a node */
    double *load;        /* scratch, one a node */
    bool *allowed;       /* nodes that servers are drawn from */
    uint32_t group_room; /* groups that fit strategy.groups; 0 until it was grown here */
    bool no_memory;
};

enum status draft_open(struct draft *d, const struct space *space, struct rng *rng, struct error *err);
void draft_close(struct draft *d); /* scratch only, not the strategy */

/* Settle groups and pushes, and seal; on success the strategy moves to *out, otherwise it is released. */
enum status draft_finish(struct draft *d, struct strategy *out, struct error *err);

/* Draws. */
bool draw_chance(struct rng *rng, double p);
uint32_t draw_bit(struct rng *rng, uint32_t set);                /* uniform over the members of a set */
uint64_t draw_size(struct rng *rng, uint64_t min, uint64_t max); /* log-uniform, whole 4 KiB where they fit */
uint64_t draw_partition(const struct draft *d, double whole);    /* 0 with probability `whole` */
uint64_t draw_credit(const struct draft *d, double none, double unlimited);
bool draw_may_order_pulls(const struct draft *d);       /* its options, policy and credit let pulls go by priority */
uint32_t draw_log_count(struct rng *rng, uint32_t max); /* 1..max, log-uniform */
enum encoding draw_encoding(const struct draft *d, uint32_t variable);
void draw_new_figure(struct variable_sync *part, enum encoding encoding); /* when it settles */
bool space_may_encode(const struct variable *variable);

/* Whether the options allow the types in which a group carries its variable. */
bool space_may_carry(const struct space_options *options, const struct group *group, const struct variable *variable);

/* Whether the options allow how this strategy synchronizes variable v (its group's settings included), and its
 * schedule. */
bool space_allows_variable(const struct space *space, const struct strategy *strategy, uint32_t v);
bool space_allows_schedule(const struct space *space, const struct strategy *strategy);

/* The policy of a preemptive strategy that lost its slices. */
enum policy space_policy_without_slices(const struct space_options *options);

/* The most shards that `axis` of a variable may have in this space. */
uint32_t space_max_shards(const struct space *space, const struct variable *variable, uint32_t axis);

/* A random cut of the variable, or none with probability `whole`. */
void draw_cut(const struct draft *d, uint32_t variable, double whole);

/* Give variable v an entry for each shard, all as it is now. False, and no_memory, when there is none. */
bool shards_part(struct draft *d, uint32_t v);

/* Entries that break a rule are taken back, so that the rule of strategy_check holds. */
void shards_settle(struct draft *d);

/* Servers: k distinct nodes, k uniform in 1..min(most, nodes), whatever the load. */
void servers_draw_uniform(struct draft *d, struct variable_sync *sync, uint32_t most);

/* c_lb for one shard: a server, counting what all others load. O(variables + nodes). */
void servers_draw_one(struct draft *d, struct variable_sync *sync);

/* c_lb: give servers to every variable under a parameter server that has none (n_servers 0), out of the allowed nodes,
 * largest first, counting what the others already load. Those that share a push are placed as one. */
void servers_balance(struct draft *d);
/* The same without c_lb: each variable gets as many servers as by c_lb, but drawn without regard to their load. */
void servers_scatter(struct draft *d);
void servers_allow_all(struct draft *d);
void servers_allow_some(struct draft *d); /* a random subset, its size log-uniform */

/* Pushes of several variables (strategy/space/pushes.c). Draw some whatever the servers, each variable with a chance of
 * a half; or, before servers are drawn, merge runs of `order` up to a size that is drawn, or none. */
void pushes_draw_uniform(struct draft *d);
void pushes_merge(struct draft *d, const uint32_t *order);

/* Variables that differ from the first one of their push go alone, so that the rule of strategy_check holds. */
void pushes_settle(struct draft *d);

/* A number for a new push of a draft that was sealed before. */
uint32_t push_add(const struct draft *d);

/* The variables of v's push take its server and settings; or lose their servers, as v does. */
void push_follow(struct draft *d, uint32_t v);
void push_unplace(struct draft *d, uint32_t v);

/* Groups. A new group like `like`; its position, or 0 and no_memory. */
uint32_t group_add(struct draft *d, struct group like);

/* The element type that a gradient has on the wire; its own under an encoder. */
enum dtype space_wire_type(const struct variable *variable, enum encoding encoding);

/* Encoders that break a rule are taken back, before groups are settled; afterwards their groups lose "algorithm". */
void encoders_settle(struct draft *d);
void encoders_settle_groups(struct draft *d);

/* Split each group that mixes types on the wire or encoders, and encoded gradients off sharded groups, so that the
 * rules of strategy_check hold. */
void groups_settle(struct draft *d);

/* What is sharded (strategy/space/sharded.c). The algorithms of the options whose halves those of a sharded group are.
 */
uint32_t space_rings(const struct space_options *options);

/* Shard groups of a draft that is all there, or none: in one way all, or each in its own. Nothing is drawn where the
 * options allow nothing. Sharded parameters take policy fifo and the barrier. */
void sharded_draw(struct draft *d, bool each_its_own);

/* Whether sharded parameters may be gathered or summed in types that round. */
bool sharded_may_round(const struct space *space);

/* Make the rules about sharded groups, and about sums of micro-batches, hold. False when memory is out. */
bool sharded_settle(const struct space *space, struct strategy *strategy);

#endif
