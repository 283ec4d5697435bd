/* What an exported form can fail to say of a strategy: each loss has a word. An enum says who decides which
 * parts devices keep. */
#ifndef INTEROP_EXPORT_LOSS_H
#define INTEROP_EXPORT_LOSS_H

/* X(name, word for people and programs) */
#define EXPORT_LOSS_TABLE(X)                                                                                           \
    X(GROUPS, "groups")                                                                                                \
    X(ALL_REDUCE, "all-reduce")                                                                                        \
    X(PARAMETER_SERVER, "parameter-server")                                                                            \
    X(SHARDS, "shards")                                                                                                \
    X(PARTITION, "partition")                                                                                          \
    X(PLACEMENT, "placement")                                                                                          \
    X(LOCAL_REDUCTION, "local-reduction")                                                                              \
    X(ORDER, "order")                                                                                                  \
    X(PREEMPTION, "preemption")                                                                                        \
    X(CREDIT, "credit")                                                                                                \
    X(CROSS_ITERATION, "cross-iteration")                                                                              \
    X(ALGORITHM, "algorithm")                                                                                          \
    X(ENCODING, "encoding")                                                                                            \
    X(SHARDED, "sharded")                                                                                              \
    X(RESHARD, "reshard")                                                                                              \
    X(REPLICAS, "replicas")                                                                                            \
    X(PREFETCH, "prefetch")                                                                                            \
    X(ACCUMULATION, "accumulation")                                                                                    \
    X(MEMORY, "memory")

enum export_loss {
#define X(name, word) EXPORT_LOSS_##name,
    EXPORT_LOSS_TABLE(X)
#undef X
        EXPORT_LOSS_COUNT
};

const char *export_loss_word(enum export_loss loss); /* "parameter-server" */

/* Who says what devices keep in parts ("sharded", "shard_ranks"). */
enum export_parts {
    EXPORT_PARTS_by_form,    /* the files; what they do not say is whole */
    EXPORT_PARTS_always,     /* nobody: the parameters of all variables are (fully_shard) */
    EXPORT_PARTS_by_program, /* the program that the files go to (JAX) */
    EXPORT_PARTS_beside,     /* another form, which this one goes beside: it says algorithms alone (NCCL) */
};

#endif
