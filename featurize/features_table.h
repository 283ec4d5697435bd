/* The features. Their order is their place in the vectors; docs/features.md is these tables for people.
 *
 * X(name, unit, kind, words) for the global vector, X(name, unit, words) for the rows of shards. Units:
 *   "log2 u"       the value is log2(1 + x), with x in u
 *   "log2 ratio"   log2((1 + a) / (1 + b)), which may be negative
 *   "share"        in [0, 1]
 *   "flag"         0 or 1
 * In the words, "of bytes" weighs variables by their gradients' bytes before encoding and compaction, and "of bytes
 * sent" weighs messages by their bytes. A feature of something that the strategy does not have is 0. */
#ifndef FEATURIZE_FEATURES_TABLE_H
#define FEATURIZE_FEATURES_TABLE_H

/* X(name, words): what a global feature says something about. */
#define FEATURE_KIND_TABLE(X)                                                                                          \
    X(timeline, "what the timeline says of the plan")                                                                  \
    X(predefined, "AutoSync's predefined terms (equation 2), over shards, and its closed form")                        \
    X(plan, "what the plan sends")                                                                                     \
    X(knob, "what the strategy chooses")                                                                               \
    X(domain, "what model and cluster are; the same for every strategy")

/* ps: over shards under a parameter server, cc: over all-reduced ones. */
#define FEATURE_GLOBAL_TABLE(X)                                                                                        \
    X(log2_timeline_us, "log2 us", timeline, "the timeline's iteration time")                                          \
    X(log2_compute_us, "log2 us", timeline, "computation of the slowest device")                                       \
    X(log2_exposed_us, "log2 us", timeline, "iteration time beyond computation")                                       \
    X(log2_busy_us, "log2 us", timeline, "time in which some message is on its way")                                   \
    X(log2_queue_us, "log2 us", timeline, "sum over messages of waiting while ready")                                  \
    X(compute_share, "share", timeline, "computation of the iteration")                                                \
    X(exposed_share, "share", timeline, "exposed communication of the iteration")                                      \
    X(busy_share, "share", timeline, "busy network of the iteration")                                                  \
    X(log2_queue_share, "log2 iterations", timeline, "mean waiting of a message, in iterations")                       \
    X(log2_timeline_over_closed, "log2 ratio", timeline, "iteration time over the closed form's")                      \
    X(log2_ps_transfer_max_us, "log2 us", predefined, "ps: largest network transfer")                                  \
    X(log2_ps_transfer_mean_us, "log2 us", predefined, "ps: mean network transfer")                                    \
    X(log2_ps_overheads_max, "log2 count", predefined, "ps: largest coefficient of phi")                               \
    X(log2_ps_overheads_mean, "log2 count", predefined, "ps: mean coefficient of phi")                                 \
    X(log2_ps_constants_max, "log2 count", predefined, "ps: largest coefficient of delta")                             \
    X(log2_ps_constants_mean, "log2 count", predefined, "ps: mean coefficient of delta")                               \
    X(log2_cc_startup_max_us, "log2 us", predefined, "cc: largest share of start-up")                                  \
    X(log2_cc_startup_mean_us, "log2 us", predefined, "cc: mean share of start-up")                                    \
    X(log2_cc_transfer_max_us, "log2 us", predefined, "cc: largest share of transfer")                                 \
    X(log2_cc_transfer_mean_us, "log2 us", predefined, "cc: mean share of transfer")                                   \
    X(log2_cc_messages_max, "log2 count", predefined, "cc: largest number of messages, divided by bytes")              \
    X(log2_cc_messages_mean, "log2 count", predefined, "cc: mean number of messages, divided by bytes")                \
    X(log2_closed_sync_us, "log2 us", predefined, "the closed form's synchronization time")                            \
    X(log2_closed_form_us, "log2 us", predefined, "the closed form: the larger of that and computation")               \
    X(log2_sync_over_compute, "log2 ratio", predefined, "the closed form's synchronization over computation")          \
    X(log2_messages, "log2 count", plan, "messages an iteration")                                                      \
    X(log2_all_reduces, "log2 count", plan, "all-reduces an iteration")                                                \
    X(log2_gathers, "log2 count", plan, "all-gathers of halves and of sharded parameters an iteration")                \
    X(log2_pushes, "log2 count", plan, "pushes between nodes an iteration")                                            \
    X(log2_messages_1k, "log2 count", plan, "messages below 1 kB")                                                     \
    X(log2_messages_10k, "log2 count", plan, "messages from 1 kB to below 10 kB")                                      \
    X(log2_messages_100k, "log2 count", plan, "messages from 10 kB to below 100 kB")                                   \
    X(log2_messages_1m, "log2 count", plan, "messages from 100 kB to below 1 MB")                                      \
    X(log2_messages_10m, "log2 count", plan, "messages from 1 MB to below 10 MB")                                      \
    X(log2_messages_100m, "log2 count", plan, "messages from 10 MB to below 100 MB")                                   \
    X(log2_messages_larger, "log2 count", plan, "messages of 100 MB and more")                                         \
    X(log2_startup_us, "log2 us", plan, "start-up of all all-reduces")                                                 \
    X(log2_transfer_us, "log2 us", plan, "transfer of all all-reduces")                                                \
    X(log2_launch_us, "log2 us", plan, "launching all messages, coordination included")                                \
    X(log2_copy_us, "log2 us", plan, "gathering gradients into messages of several")                                   \
    X(log2_sum_us, "log2 us", plan, "adding pushes on the busiest server")                                             \
    X(log2_startup_over_compute, "log2 ratio", plan, "start-up of all all-reduces over computation")                   \
    X(log2_transfer_over_compute, "log2 ratio", plan, "their transfer over computation")                               \
    X(log2_launch_over_compute, "log2 ratio", plan, "launching over computation")                                      \
    X(log2_window, "log2 count", plan, "messages of mean size that fit in the credit, beside one")                     \
    X(log2_nic_bytes_max, "log2 B", plan, "bytes through one NIC, each direction: the most")                           \
    X(log2_nic_bytes_mean, "log2 B", plan, "bytes through one NIC, each direction: the mean")                          \
    X(log2_nic_imbalance, "log2 ratio", plan, "the most over the mean")                                                \
    X(log2_nic_us, "log2 us", plan, "the longest that a NIC takes for its bytes at its rate")                          \
    X(log2_nic_over_compute, "log2 ratio", plan, "that time over computation")                                         \
    X(ready_share, "share", plan, "part of the backward pass before messages are ready, mean of bytes sent")           \
    X(first_ready_share, "share", plan, "part of the backward pass before any message is ready")                       \
    X(wait_share, "share", plan,                                                                                       \
      "part of the backward pass that gradients wait for others of their message, mean of bytes sent")                 \
    X(gate_share, "share", plan, "part of the forward pass before messages are needed, mean of bytes sent")            \
    X(log2_last_bytes, "log2 B", plan, "messages that only the last step makes ready")                                 \
    X(server_share, "share", knob, "under a parameter server, of bytes")                                               \
    X(all_reduce_share, "share", knob, "all-reduced, of bytes")                                                        \
    X(encoded_share, "share", knob, "encoded, of bytes")                                                               \
    X(int8_share, "share", knob, "encoded as int8 in blocks, of bytes")                                                \
    X(topk_share, "share", knob, "encoded as their largest elements, of bytes")                                        \
    X(powersgd_share, "share", knob, "encoded as products of thin matrices, of bytes")                                 \
    X(sharded_optimizer_share, "share", knob, "all-reduced in halves, the optimizer sharded, of bytes")                \
    X(sharded_gradients_share, "share", knob, "the same, gradients sharded too, of bytes")                             \
    X(sharded_parameters_share, "share", knob, "parameters sharded, of bytes")                                         \
    X(kept_share, "share", knob, "parameters sharded, and kept from one pass to the other, of bytes")                  \
    X(log2_forward_prefetch, "log2 count", knob,                                                                       \
      "groups gathered ahead in the forward pass; 0 without sharded parameters")                                       \
    X(log2_backward_prefetch, "log2 count", knob, "the same in the backward pass")                                     \
    X(log2_shard_group, "log2 count", knob, "devices that share sharded parameters; 0 without such")                   \
    X(log2_micro_batches, "log2 count", knob, "micro-batches an iteration")                                            \
    X(sums_each, "flag", knob, "gradients are summed in each of several micro-batches")                                \
    X(log2_groups, "log2 count", knob, "merge groups")                                                                 \
    X(log2_group_bytes, "log2 B", knob, "merge group, mean of all-reduced bytes")                                      \
    X(log2_message_bytes, "log2 B", knob, "message, mean of bytes sent")                                               \
    X(log2_largest_message, "log2 B", knob, "largest message")                                                         \
    X(log2_partition, "log2 B", knob, "partition size, mean of bytes; the model's size if none or larger")             \
    X(log2_credit, "log2 B", knob, "credit; the model's size if without limit or larger")                              \
    X(stop_and_wait, "flag", knob, "credit 0")                                                                         \
    X(unlimited, "flag", knob, "credit without limit")                                                                 \
    X(fifo, "flag", knob, "policy fifo")                                                                               \
    X(priority, "flag", knob, "policy priority")                                                                       \
    X(preemptive, "flag", knob, "policy preemptive")                                                                   \
    X(log2_slices, "log2 count", knob, "slices of a preemptive schedule")                                              \
    X(cross_iteration, "flag", knob, "no barrier between iterations")                                                  \
    X(share_auto, "share", knob, "all-reduced by auto, of bytes")                                                      \
    X(share_ring, "share", knob, "all-reduced by ring, of bytes")                                                      \
    X(share_tree, "share", knob, "all-reduced by tree, of bytes")                                                      \
    X(share_double_tree, "share", knob, "all-reduced by double_tree, of bytes")                                        \
    X(share_recursive_doubling, "share", knob, "all-reduced by recursive_doubling, of bytes")                          \
    X(share_halving_doubling, "share", knob, "all-reduced by halving_doubling, of bytes")                              \
    X(share_hierarchical, "share", knob, "all-reduced by hierarchical, of bytes")                                      \
    X(log2_servers, "log2 count", knob, "nodes that serve")                                                            \
    X(log2_server_imbalance, "log2", knob,                                                                             \
      "log2 of the largest over the mean load; a node's load: bytes that it serves / its NIC rate")                    \
    X(local_reduction_share, "share", knob, "under a server with local reduction, of bytes")                           \
    X(sparse_served_share, "share", knob, "sparse and under a server, of bytes")                                       \
    X(cut_share, "share", knob, "variables that are cut")                                                              \
    X(log2_shards, "log2", knob, "log2 of a variable's shards, mean over variables")                                   \
    X(scattered_share, "share", knob, "in messages of gradients that are not ready in a row, of bytes sent")           \
    X(log2_devices, "log2 count", domain, "devices")                                                                   \
    X(log2_nodes, "log2 count", domain, "nodes with devices")                                                          \
    X(log2_devices_per_node, "log2 count", domain, "most devices of a node")                                           \
    X(log2_variables, "log2 count", domain, "variables")                                                               \
    X(log2_model_bytes, "log2 B", domain, "bytes of all variables")                                                    \
    X(largest_variable_share, "share", domain, "the largest variable, of bytes")                                       \
    X(sparse_share, "share", domain, "sparse variables, of bytes")                                                     \
    X(forward_share, "share", domain, "forward pass of computation")                                                   \
    X(log2_compute_over_network, "log2 ratio", domain, "computation over all bytes once through the narrowest link")   \
    X(log2_compute_scale, "log2", domain, "log2 of the slowest node's compute_scale")                                  \
    X(log2_nic_ratio, "log2", domain, "log2 of the fastest over the slowest NIC")                                      \
    X(log2_nic_rate, "log2 B/us", domain, "rate of the slowest NIC")                                                   \
    X(log2_nic_latency_us, "log2 us", domain, "largest NIC latency")                                                   \
    X(log2_message_us, "log2 us", domain, "launching a message")                                                       \
    X(log2_coordination_us, "log2 us", domain, "agreeing on the next message")                                         \
    X(log2_push_us, "log2 us", domain, "a push between nodes, bytes aside")

#define FEATURE_SHARD_TABLE(X)                                                                                         \
    X(log2_bytes, "log2 B", "bytes of the shard as it travels")                                                        \
    X(log2_ps_transfer_us, "log2 us", "ps: network transfer of equation 2")                                            \
    X(log2_ps_overheads, "log2 count", "ps: coefficient of phi: pushes to the server from other nodes")                \
    X(log2_ps_constants, "log2 count", "ps: coefficient of delta: messages that the server handles")                   \
    X(log2_cc_startup_us, "log2 us", "cc: start-up of its messages, by its share of their bytes")                      \
    X(log2_cc_transfer_us, "log2 us", "cc: transfer of its messages, by its share of their bytes")                     \
    X(log2_cc_messages, "log2 count", "cc: its messages, divided by bytes")                                            \
    X(log2_messages, "log2 count", "messages that carry some of it")                                                   \
    X(log2_message_bytes, "log2 B", "message that carries it, mean of its bytes")                                      \
    X(wait_share, "share", "wait for others of its message, of the backward pass, mean of its bytes")                  \
    X(server, "flag", "under a parameter server")                                                                      \
    X(log2_group_bytes, "log2 B", "cc: its merge group")                                                               \
    X(log2_group_members, "log2 count", "cc: variables of its merge group")                                            \
    X(group_place, "share", "cc: bytes of its group that are ready before it")                                         \
    X(encoding_none, "flag", "travels as it is")                                                                       \
    X(encoding_f16, "flag", "travels as f16")                                                                          \
    X(encoding_bf16, "flag", "travels as bf16")                                                                        \
    X(encoding_int8, "flag", "travels as int8 in blocks")                                                              \
    X(encoding_topk, "flag", "its largest elements travel")                                                            \
    X(encoding_powersgd, "flag", "a product of thin matrices travels")                                                 \
    X(sharded_optimizer, "flag", "cc: in halves, the optimizer sharded")                                               \
    X(sharded_gradients, "flag", "cc: the same, gradients sharded too")                                                \
    X(sharded_parameters, "flag", "cc: parameters sharded")                                                            \
    X(kept, "flag", "cc: parameters sharded, and kept from one pass to the other")                                     \
    X(algorithm_auto, "flag", "cc: by auto")                                                                           \
    X(algorithm_ring, "flag", "cc: by ring")                                                                           \
    X(algorithm_tree, "flag", "cc: by tree")                                                                           \
    X(algorithm_double_tree, "flag", "cc: by double_tree")                                                             \
    X(algorithm_recursive_doubling, "flag", "cc: by recursive_doubling")                                               \
    X(algorithm_halving_doubling, "flag", "cc: by halving_doubling")                                                   \
    X(algorithm_hierarchical, "flag", "cc: by hierarchical")                                                           \
    X(log2_partition, "log2 B", "partition size; the model's size if none or larger")                                  \
    X(log2_shards, "log2", "log2 of the shards of its variable")                                                       \
    X(cut_axis, "count", "axis that is cut, counted from 1; 0 = not cut")                                              \
    X(log2_variable_bytes, "log2 B", "its variable")                                                                   \
    X(rank, "count", "axes of its variable")                                                                           \
    X(log2_rows, "log2 count", "size of the first axis")                                                               \
    X(log2_columns, "log2 count", "size of the second axis")                                                           \
    X(touched_share, "share", "rows that an iteration touches; 1 = dense")                                             \
    X(dtype_bytes, "B", "an element of its variable")                                                                  \
    X(log2_server_rate, "log2", "ps: log2 of its server's NIC rate over the mean of nodes")                            \
    X(log2_server_load, "log2 means", "ps: its server's bytes served / NIC rate, over the mean of nodes")              \
    X(log2_server_devices, "log2 count", "ps: devices beside its server")                                              \
    X(log2_devices, "log2 count", "replicas: devices of the cluster")                                                  \
    X(local_reduction, "flag", "ps: summed inside nodes first")                                                        \
    X(ready_share, "share", "part of the backward pass before its gradient is ready")                                  \
    X(gate_share, "share",                                                                                             \
      "part of the forward pass before it is needed; 0 behind the barrier, but for sharded parameters")                \
    X(slack_share, "share", "computation between the two moments above, of an iteration's")

enum feature_kind {
#define X(name, words) FEATURE_KIND_##name,
    FEATURE_KIND_TABLE(X)
#undef X
        FEATURE_KIND_COUNT
};

enum feature_global {
#define X(name, unit, kind, words) FEATURE_GLOBAL_##name,
    FEATURE_GLOBAL_TABLE(X)
#undef X
        FEATURE_GLOBAL_COUNT
};

enum feature_shard {
#define X(name, unit, words) FEATURE_SHARD_##name,
    FEATURE_SHARD_TABLE(X)
#undef X
        FEATURE_SHARD_COUNT
};

#endif
