/* Trials with the NCCL worker, on stand-ins for CUDA and NCCL (tests/support/nccl/double.h): plans of every kind sum
 * right, compute takes its time, and whatever goes wrong is said and ends every rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"
#include "strategy/cost/transport.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "tests/unit/trial-runner/subject.h"
#include "trial-runner/bench.h"
#include "trial-runner/trial.h"

/* Two layers, 2 ms forward and 4 ms backward each; every type of element, and lengths that are no round numbers. */
static const char model_text[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["
    "{\"name\":\"a\",\"shape\":[255,65],\"dtype\":\"f32\",\"sparse_rows\":101},{\"name\":\"b\",\"shape\":[7],\"dtype\":"
    "\"f32\"},"
    "{\"name\":\"c\",\"shape\":[33333],\"dtype\":\"f16\"},{\"name\":\"d\",\"shape\":[555],\"dtype\":\"bf16\"},"
    "{\"name\":\"e\",\"shape\":[129],\"dtype\":\"f64\"},{\"name\":\"f\",\"shape\":[77],\"dtype\":\"u8\"},"
    "{\"name\":\"g\",\"shape\":[5],\"dtype\":\"i64\"},{\"name\":\"h\",\"shape\":[1001],\"dtype\":\"f32\"}],\"layers\":["
    "{\"name\":\"1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\",\"b\",\"c\",\"e\"]},"
    "{\"name\":\"2\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"d\",\"f\",\"g\",\"h\"]}]}";
enum { COMPUTE_US = 12000, ITERATIONS = 5, WARMUP = 1 };

#define CLUSTER(count, devices)                                                                                        \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":" count                   \
    ",\"devices\":" devices ",\"device\":\"gpu\",\"nic_gbit_per_s\":10,\"nic_latency_us\":5,"                          \
    "\"device_link_gbyte_per_s\":10}]}"

/* a, b and h share a group and so a message where they are not cut; the others have one each. */
#define STRATEGY(schedule, algorithm, partition, a, c, d)                                                              \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule                                      \
    "},\"groups\":[{\"id\":0,\"algorithm\":\"" algorithm "\"" partition "},{\"id\":1,\"algorithm\":\"" algorithm       \
    "\"},{\"id\":2,\"algorithm\":\"" algorithm "\"},{\"id\":3,\"algorithm\":\"" algorithm                              \
    "\"},{\"id\":4,\"algorithm\":\"" algorithm "\"},{\"id\":5,\"algorithm\":\"" algorithm "\"}],\"variables\":["       \
    "{\"name\":\"a\",\"sync\":" a "},{\"name\":\"b\",\"sync\":" IN(                                                    \
        "0") "},{\"name\":\"c\",\"sync\":" c "},{\"name\":\"d\",\"sync\":" d                                           \
             "},{\"name\":\"e\",\"sync\":" IN("3") "},{\"name\":\"f\",\"sync\":" IN(                                   \
                 "4") "},{\"name\":\"g\",\"sync\":" IN("5") "},{\"name\":\"h\",\"sync\":" IN("0") "}]}"
#define IN(group) "{\"kind\":\"all_reduce\",\"group\":" group "}"
#define SERVED(servers, local)                                                                                         \
    "{\"kind\":\"parameter_server\",\"servers\":[" servers "],\"partition_bytes\":10000,\"local_reduction\":" local "}"
#define FIFO      "\"policy\":\"fifo\",\"credit_bytes\":0,\"cross_iteration\":false"
#define PRIORITY  "\"policy\":\"priority\",\"credit_bytes\":50000,\"cross_iteration\":true"
#define STOP_WAIT "\"policy\":\"priority\",\"credit_bytes\":0,\"cross_iteration\":true"
#define UNLIMITED "\"policy\":\"fifo\",\"cross_iteration\":true"

#define FUSED(schedule, algorithm) STRATEGY(schedule, algorithm, "", IN("0"), IN("1"), IN("2"))

static void read_model(struct model *out) {
    struct error err = {0};
    cJSON *json;
    assert_ok(json_parse(model_text, strlen(model_text), "model", &json, &err));
    assert_ok(model_read(json, "model", out, &err));
    cJSON_Delete(json);
}

static void read_cluster(const char *text, struct cluster *out) {
    struct error err = {0};
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", out, &err));
    cJSON_Delete(json);
}

static void subject_init(struct subject *s, const char *cluster, const char *strategy) {
    subject_init_of(s, model_text, cluster, strategy);
}

static char worker[4096]; /* the program */

/* One trial, after which nothing is left. */
static void run_subject(const struct subject *s, const char *fault, struct trial_result *out) {
    struct error err = {0};
    const struct trial_request request = {
        .model = &s->model,
        .cluster = &s->cluster,
        .strategy = &s->strategy,
        .launcher = {.kind = LAUNCHER_LOCAL, .worker = TRIAL_WORKER_NCCL, .program = worker},
        .iterations = ITERATIONS,
        .warmup = WARMUP,
        .time_limit_s = fault && strcmp(fault, "hang") == 0 ? 3 : 100,
        .fault = fault};
    assert_ok(trial_run(&request, out, &err));
    assert_true(no_descendants());
    assert_int_equal(entries_with(getenv("TMPDIR"), "syncopate-"), 0);
    assert_int_equal(entries_with(getenv("TMPDIR"), "nccl-double-"), 0);
}

static void run(const char *cluster, const char *strategy, const char *fault, struct trial_result *out) {
    struct subject subject;
    subject_init(&subject, cluster, strategy);
    run_subject(&subject, fault, out);
    subject_release(&subject);
}

static void assert_complete(const struct trial_result *result) {
    assert_string_equal(result->reason, "");
    assert_int_equal(result->ending, TRIAL_COMPLETE);
    assert_int_equal(result->n, ITERATIONS);
    assert_true(result->median_us >= COMPUTE_US * 0.99);
    assert_contains(result->environment, "\"nccl\":");
    assert_contains(result->environment, "\"gpu\":\"double of a GPU\"");
}

/* Every sample of every message on every device in every iteration: n_samples where each variable is one message. */
static void check_sums(const char *cluster, const char *strategy, unsigned devices, unsigned samples) {
    struct trial_result result;
    run(cluster, strategy, NULL, &result);
    assert_complete(&result);
    assert_int_equal(result.checked, (ITERATIONS + WARMUP) * devices * samples);
    trial_result_release(&result);
}

static void check_complete(const char *cluster, const char *strategy) {
    struct trial_result result;
    run(cluster, strategy, NULL, &result);
    assert_complete(&result);
    trial_result_release(&result);
}

static bool is_possible(void **state) {
    return *(bool *)*state;
}

#define NEED_DOUBLE(state)                                                                                             \
    if (!is_possible(state))                                                                                           \
    skip()

/* Messages: a, b and h; c; d; e; f; g. */
static void a_fused_plan_sums_every_type_of_element(void **state) {
    NEED_DOUBLE(state);
    check_sums(CLUSTER("3", "1"), FUSED(FIFO, "ring"), 3, 5 * 16 + 5);
}

static void partitions_and_credits_keep_one_order_on_all_ranks(void **state) {
    NEED_DOUBLE(state);
    check_complete(CLUSTER("4", "1"),
                   STRATEGY(PRIORITY, "ring", ",\"partition_bytes\":4096", IN("0"), IN("1"), IN("2")));
    check_complete(CLUSTER("3", "1"),
                   STRATEGY(UNLIMITED, "auto", ",\"partition_bytes\":8192", IN("0"), IN("1"), IN("2")));
}

static void trees_and_two_levels_sum(void **state) {
    NEED_DOUBLE(state);
    check_sums(CLUSTER("3", "1"), FUSED(STOP_WAIT, "double_tree"), 3, 5 * 16 + 5);
    check_sums(CLUSTER("2", "2"), FUSED(PRIORITY, "hierarchical"), 4, 5 * 16 + 5);
}

#define MEMBER(name, group) ",{\"name\":\"" name "\",\"sync\":" IN(group) "}"

/* a by itself, whole and cut; the others in groups as ever. */
static void gathered_rows_sum(void **state) {
    NEED_DOUBLE(state);
    static const char gathered[] =
        "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{%s},"
        "\"groups\":[{\"id\":0},{\"id\":1},{\"id\":2},{\"id\":3},{\"id\":4},{\"id\":5},"
        "{\"id\":6,\"algorithm\":\"all_gather\"%s}],"
        "\"variables\":[{\"name\":\"a\",\"encoding\":\"%s\",\"sync\":" IN("6") "}" MEMBER("b", "0") MEMBER("c", "1")
            MEMBER("d", "2") MEMBER("e", "3") MEMBER("f", "4") MEMBER("g", "5") MEMBER("h", "0") "]}";
    char strategy[sizeof gathered + 256];
    snprintf(strategy, sizeof strategy, gathered, FIFO, "", "none");
    check_sums(CLUSTER("3", "1"), strategy, 3, 6 * 16 + 5);
    snprintf(strategy, sizeof strategy, gathered, PRIORITY, ",\"partition_bytes\":4096", "f16");
    check_complete(CLUSTER("2", "2"), strategy);
}

/* Groups as in STRATEGY, all sharded. */
#define SHARDED(schedule, kind, partition)                                                                             \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule "},\"groups\":["                     \
    "{\"id\":0,\"sharded\":\"" kind "\"" partition "},{\"id\":1,\"sharded\":\"" kind                                   \
    "\"},{\"id\":2,\"sharded\":\"" kind "\"},{\"id\":3,\"sharded\":\"" kind "\"},{\"id\":4,\"sharded\":\"" kind        \
    "\"},{\"id\":5,\"sharded\":\"" kind "\"}],\"variables\":["                                                         \
    "{\"name\":\"a\",\"sync\":" IN("0") "}" MEMBER("b", "0") MEMBER("c", "1") MEMBER("d", "2") MEMBER("e", "3")        \
        MEMBER("f", "4") MEMBER("g", "5") MEMBER("h", "0") "]}"

/* Most elements of the six messages are not divided by the devices. */
static void halves_sum_and_reach_all(void **state) {
    NEED_DOUBLE(state);
    check_sums(CLUSTER("4", "1"), SHARDED(FIFO, "optimizer", ""), 4, 5 * 16 + 5);
    check_complete(CLUSTER("2", "2"), SHARDED(PRIORITY, "gradients", ",\"partition_bytes\":4096"));
}

/* Every device gathers for both passes, and each sum is on one of them. After the last update the groups of layer 1 and
 * the one after are gathered once more: all but f and g. */
static void sharded_parameters_are_gathered_and_summed(void **state) {
    NEED_DOUBLE(state);
    struct trial_result result;
    run(CLUSTER("4", "1"), SHARDED(FIFO, "parameters", ""), NULL, &result);
    assert_complete(&result);
    const unsigned samples = 5 * 16 + 5;
    assert_int_equal(result.checked, (ITERATIONS + WARMUP) * samples * (4 + 4 + 1) + 4 * (samples - 16 - 5));
    assert_true(result.buffers_bytes > 255 * 65 * 4 && result.grown_bytes >= result.buffers_bytes);
    trial_result_release(&result);
}

/* How many samples all devices find right in a run. A part of a sum is with one device of each group, or with all
 * replicas of it. What is gathered after the update is gathered once more, before the first iteration. */
static uint64_t samples_of(const struct subject *s) {
    struct error err = {0};
    struct plan plan;
    uint64_t samples = 0;
    assert_ok(plan_lower(&s->model, &s->cluster, &s->strategy, &plan, &err));
    for (uint32_t m = 0; m < plan.n_messages; m++) {
        const struct message *message = &plan.messages[m];
        const uint64_t elements = message_elements(message), devices = s->cluster.n_devices;
        const uint64_t holders = message->half == HALF_replicas                    ? message->ranks
                                 : message->half == HALF_scatter && message->ranks ? devices / message->ranks
                                 : message->half == HALF_scatter                   ? 1
                                                                                   : devices;
        if (!message_is_first_half(message))
            samples += (ITERATIONS + WARMUP + (uint64_t)plan_is_update(&plan, message->ready)) * holders *
                       (elements < 16 ? elements : 16);
    }
    plan_release(&plan);
    return samples;
}

static void check_all_samples(const char *cluster, const char *strategy) {
    struct subject s;
    struct trial_result result;
    subject_init(&s, cluster, strategy);
    run_subject(&s, NULL, &result);
    assert_string_equal(result.reason, "");
    assert_int_equal(result.ending, TRIAL_COMPLETE);
    assert_true(result.median_us >= COMPUTE_US * s.strategy.micro_batches * 0.99);
    assert_int_equal(result.checked, samples_of(&s));
    trial_result_release(&result);
    subject_release(&s);
}

#define BATCHES(how) FIFO ",\"accumulation\":{\"micro_batches\":3,\"synchronize\":\"" how "\"}"

/* In each, or added up and summed in the last: whole, in halves, sharded, and at a server. */
static void micro_batches_add_up(void **state) {
    NEED_DOUBLE(state);
    check_all_samples(CLUSTER("3", "1"), FUSED(BATCHES("last"), "ring"));
    check_all_samples(CLUSTER("2", "1"), SHARDED(BATCHES("each"), "optimizer", ",\"partition_bytes\":4096"));
    check_all_samples(CLUSTER("3", "1"), SHARDED(BATCHES("last"), "parameters", ""));
    check_all_samples(CLUSTER("2", "1"), SHARDED(BATCHES("each"), "parameters", ""));
    check_all_samples(CLUSTER("2", "1"),
                      STRATEGY(BATCHES("each"), "ring", "", SERVED("\"n1\"", "false"), IN("1"), IN("2")));
}

/* Shard groups of two, in a node or over two, and what each pair keeps for the backward pass. Parts of layers that no
 * number divides are padded. */
static void replicas_and_parts_among_fewer_devices_are_right(void **state) {
    NEED_DOUBLE(state);
    check_all_samples(CLUSTER("4", "1"), SHARDED(FIFO ",\"shard_ranks\":2", "parameters", ",\"partition_bytes\":4096"));
    check_all_samples(CLUSTER("2", "2"),
                      SHARDED(BATCHES("each_all_reduce_last") ",\"shard_ranks\":2", "parameters", ""));
    check_all_samples(CLUSTER("4", "1"), SHARDED(FIFO, "parameters", ",\"reshard_after_forward\":2"));
}

static void check_failure(const char *cluster, const char *strategy, const char *fault, const char *reason) {
    struct trial_result result;
    run(cluster, strategy, fault, &result);
    assert_int_equal(result.ending, TRIAL_FAILED);
    assert_contains(result.reason, reason);
    assert_true(result.wall_s < 20);
    trial_result_release(&result);
}

#define TYPED(id, gathered, summed)                                                                                    \
    "{\"id\":" id ",\"sharded\":\"parameters\",\"gathered_as\":\"" gathered "\",\"summed_as\":\"" summed "\"}"

/* a, b and h are f32, c is f16, d bf16 and e f64; f and g are no floats. */
#define TYPES(schedule)                                                                                                \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule                                      \
    "},\"groups\":[" TYPED("0", "bf16", "f32") "," TYPED("1", "f32", "bf16") "," TYPED("2", "f16", "f32") "," TYPED(   \
        "3", "f32",                                                                                                    \
        "f16") ",{\"id\":4,\"sharded\":\"parameters\"},{\"id\":5,\"sharded\":\"parameters\"}],\"variables\":[{"        \
               "\"name\":\"a\",\"sync\":" IN("0") "}" MEMBER("b", "0") MEMBER("c", "1") MEMBER("d", "2")               \
                   MEMBER("e", "3") MEMBER("f", "4") MEMBER("g", "5") MEMBER("h", "0") "]}"

/* Of each group what is gathered, summed and kept differs in type. */
static void types_of_their_own_are_gathered_and_summed(void **state) {
    NEED_DOUBLE(state);
    check_all_samples(CLUSTER("3", "1"), TYPES(BATCHES("last")));
    check_all_samples(CLUSTER("2", "2"), TYPES(FIFO ",\"shard_ranks\":2"));
    check_failure(CLUSTER("2", "1"), TYPES(FIFO), "sum", "message");
}

/* a, b and h are encoded together, e as f64 and b's seven elements by themselves; the others travel as they are. The
 * last piece of e is one element, whose int8 takes less than the f64. */
#define ENCODED(schedule, encoding, partition, group_of_b)                                                             \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule "},\"groups\":[{\"id\":0" partition  \
    "},{\"id\":1},{\"id\":2},{\"id\":3,\"partition_bytes\":1024},{\"id\":4},{\"id\":5},{\"id\":6}],\"variables\":["    \
    "{\"name\":\"a\",\"encoding\":" encoding                                                                           \
    ",\"sync\":" IN("0") "},{\"name\":\"b\",\"encoding\":" encoding                                                    \
                         ",\"sync\":" IN(group_of_b) "},{\"name\":\"h\",\"encoding\":" encoding                        \
                                                     ",\"sync\":" IN("0") "}" MEMBER("c", "1")                         \
                                                         MEMBER("d", "2") ",{\"name\":\"e\",\"encoding\":" encoding    \
                                                                          ",\"sync\":" IN("3") "}" MEMBER("f", "4")    \
                                                                              MEMBER("g", "5") "]}"
#define INT8(block) "{\"kind\":\"int8\",\"block_size\":" block "}"

/* Blocks of odd sizes, across gradients and in parts; messages of fewer blocks than devices, which are those of one. */
static void encoded_blocks_sum_beside_what_is_not_encoded(void **state) {
    NEED_DOUBLE(state);
    check_sums(CLUSTER("2", "1"), ENCODED(FIFO, INT8("256"), "", "0"), 2, 5 * 16 + 1 + 5);
    check_sums(CLUSTER("4", "1"), ENCODED(UNLIMITED, INT8("67"), "", "6"), 4, 5 * 16 + 7 + 1 + 5);
    check_complete(CLUSTER("2", "2"), ENCODED(PRIORITY, INT8("8"), ",\"partition_bytes\":4096", "0"));
    check_all_samples(CLUSTER("3", "1"), ENCODED(BATCHES("last"), INT8("65536"), "", "0"));
    check_all_samples(CLUSTER("2", "1"), ENCODED(BATCHES("each"), INT8("100"), "", "6"));
    check_sums(CLUSTER("1", "1"), ENCODED(FIFO, INT8("256"), "", "0"), 1, 5 * 16 + 1 + 5);
}

/* Buffers are those that strategy/memory.h predicts for one message at a time. */
static void encoded_blocks_take_the_memory_that_is_predicted(void **state) {
    NEED_DOUBLE(state);
    struct trial_result result;
    const uint64_t elements = 255 * 65 + 7 + 1001, blocks = (elements + 255) / 256, part = (blocks + 3) / 4 * (256 + 4);
    run(CLUSTER("4", "1"), ENCODED(STOP_WAIT, INT8("256"), "", "0"), NULL, &result);
    assert_complete(&result);
    assert_in_range(result.buffers_bytes, elements * 4 + 2 * 4 * part, elements * 4 + 2 * 4 * part + 255);
    trial_result_release(&result);
}

#define TOPK(part) "{\"kind\":\"topk\",\"part\":" part "}"

/* Fewer elements than samples, so that some samples wait; all that are not zero; and one. */
static void the_largest_elements_sum_and_what_is_left_comes_later(void **state) {
    NEED_DOUBLE(state);
    check_sums(CLUSTER("2", "1"), ENCODED(FIFO, TOPK("0.0005"), "", "0"), 2, 5 * 16 + 1 + 5);
    check_sums(CLUSTER("4", "1"), ENCODED(UNLIMITED, TOPK("0.5"), "", "6"), 4, 5 * 16 + 7 + 1 + 5);
    check_complete(CLUSTER("2", "2"), ENCODED(PRIORITY, TOPK("0.003"), ",\"partition_bytes\":4096", "0"));
    check_all_samples(CLUSTER("3", "1"), ENCODED(BATCHES("last"), TOPK("1e-6"), "", "0"));
    check_all_samples(CLUSTER("2", "1"), ENCODED(BATCHES("last"), TOPK("0.0003"), "", "6"));
    check_sums(CLUSTER("1", "1"), ENCODED(FIFO, TOPK("0.0002"), "", "0"), 1, 5 * 16 + 1 + 5);
}

/* As predicted, and 41 KiB of counts. Every message has what it did not send. */
static void the_largest_elements_take_the_memory_that_is_predicted(void **state) {
    NEED_DOUBLE(state);
    struct trial_result result;
    const uint64_t elements = 255 * 65 + 7 + 1001, taken = (elements * 3 + 9) / 10, left = elements + 129;
    run(CLUSTER("4", "1"), ENCODED(STOP_WAIT, TOPK("0.3"), "", "0"), NULL, &result);
    assert_complete(&result);
    const uint64_t wanted = elements * 4 + 4 * 8 * taken + 4 * left;
    assert_in_range(result.buffers_bytes, wanted, wanted + 41 * 1024 + 255);
    trial_result_release(&result);
}

/* Matrices of f32 and f64 and vectors, one of them alone in its message or with matrices. */
static const char thin_model_text[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["
    "{\"name\":\"a\",\"shape\":[255,65],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[7],\"dtype\":\"f32\"},"
    "{\"name\":\"c\",\"shape\":[33,9,3],\"dtype\":\"f64\"},{\"name\":\"h\",\"shape\":[20,3000],\"dtype\":\"f32\"}],"
    "\"layers\":[{\"name\":\"1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\",\"b\"]},"
    "{\"name\":\"2\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"c\",\"h\"]}]}";
#define THIN_MEMBER(name, rank, group)                                                                                 \
    "{\"name\":\"" name "\",\"encoding\":{\"kind\":\"powersgd\",\"rank\":" rank "},\"sync\":" IN(group) "}"
#define THIN(schedule, rank, group_of_b)                                                                               \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule                                      \
    "},\"groups\":[{\"id\":0},{\"id\":1},{\"id\":2}],\"variables\":[" THIN_MEMBER("a", rank, "0") "," THIN_MEMBER(     \
        "b", rank, group_of_b) "," THIN_MEMBER("c", rank, "1") "," THIN_MEMBER("h", rank, "0") "]}"

static void check_thin_samples(const char *cluster, const char *strategy) {
    struct subject s;
    struct trial_result result;
    subject_init_of(&s, thin_model_text, cluster, strategy);
    run_subject(&s, NULL, &result);
    assert_complete(&result);
    assert_int_equal(result.checked, samples_of(&s));
    trial_result_release(&result);
    subject_release(&s);
}

/* Of rank 1 to 20, which is that of the smallest matrix: then all of it comes back. Ranks by fours and not; several
 * matrices in a message, and vectors beside them or alone. */
static void thin_matrices_sum_and_what_is_left_comes_later(void **state) {
    NEED_DOUBLE(state);
    check_thin_samples(CLUSTER("2", "1"), THIN(FIFO, "1", "0"));
    check_thin_samples(CLUSTER("4", "1"), THIN(UNLIMITED, "3", "2"));
    check_thin_samples(CLUSTER("2", "2"), THIN(PRIORITY, "20", "0"));
    check_thin_samples(CLUSTER("3", "1"), THIN(BATCHES("last"), "6", "2"));
    check_thin_samples(CLUSTER("1", "1"), THIN(STOP_WAIT, "4", "0"));
}

/* The message of a, b and h is gathered in a run; Q of the iteration before stays, and what did not travel. */
static void thin_matrices_take_the_memory_that_is_predicted(void **state) {
    NEED_DOUBLE(state);
    struct subject s;
    struct trial_result result;
    const uint64_t elements = 255 * 65 + 7 + 20 * 3000, first = 2 * (255 + 20) + 7, second = 2 * (65 + 3000);
    const uint64_t of_c = 33 * 27 + 2 * 27;
    subject_init_of(&s, thin_model_text, CLUSTER("4", "1"), THIN(STOP_WAIT, "2", "0"));
    run_subject(&s, NULL, &result);
    assert_complete(&result);
    const uint64_t wanted = 4 * (elements + first + second + elements + second + of_c);
    assert_in_range(result.buffers_bytes, wanted, wanted + 15 + 255);
    trial_result_release(&result);
    subject_release(&s);
}

static void servers_sum_on_their_gpus(void **state) {
    NEED_DOUBLE(state);
    check_complete(CLUSTER("3", "1"), STRATEGY(PRIORITY, "ring", "", SERVED("\"n1\"", "false"),
                                               SERVED("\"n1\"", "false"), SERVED("\"n2\"", "false")));
    check_complete(CLUSTER("2", "2"),
                   STRATEGY(UNLIMITED, "ring", "", SERVED("\"n1\"", "false"), IN("1"), SERVED("\"n2\"", "true")));
    check_complete(CLUSTER("3", "1"),
                   STRATEGY(STOP_WAIT ",\"pulls\":\"priority\"", "ring", "", SERVED("\"n1\"", "false"),
                            SERVED("\"n1\"", "false"), SERVED("\"n2\"", "false")));
}

#define SHARED(name, local)                                                                                            \
    "{\"name\":\"" name "\",\"sync\":{\"kind\":\"parameter_server\",\"servers\":[\"n2\"],\"partition_bytes\":10000,"   \
    "\"local_reduction\":" local ",\"push\":1}}"
#define SHARED_PUSH(schedule, local)                                                                                   \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule                                      \
    "},\"groups\":[{\"id\":1},{\"id\":2},{\"id\":3},{\"id\":4},{\"id\":5}],\"variables\":[" SHARED(                    \
        "a", local) "," SHARED("b", local) "," SHARED("h", local) MEMBER("c", "1") MEMBER("d", "2") MEMBER("e", "3")   \
        MEMBER("f", "4") MEMBER("g", "5") "]}"

/* a, b and h share a push that is cut inside of a. */
static void shared_pushes_sum(void **state) {
    NEED_DOUBLE(state);
    check_complete(CLUSTER("3", "1"), SHARED_PUSH(PRIORITY, "false"));
    check_complete(CLUSTER("2", "2"), SHARED_PUSH(UNLIMITED, "false"));
    check_complete(CLUSTER("2", "2"), SHARED_PUSH(STOP_WAIT, "true"));
}

/* Devices of a node could start such pushes in different orders, and their sums inside the node are collectives. */
static void local_reduction_under_stop_and_wait_priority_does_not_deadlock(void **state) {
    NEED_DOUBLE(state);
    check_complete(CLUSTER("2", "2"), STRATEGY(STOP_WAIT, "ring", "", SERVED("\"n2\"", "true"),
                                               SERVED("\"n1\"", "true"), SERVED("\"n2\"", "true")));
}

static void slices_sum_in_an_order_of_their_own(void **state) {
    NEED_DOUBLE(state);
    check_complete(CLUSTER("3", "1"),
                   STRATEGY("\"policy\":\"preemptive\",\"credit_bytes\":0,\"cross_iteration\":true,\"slices\":["
                            "{\"group\":0,\"bytes\":2000},{\"group\":2,\"bytes\":1110},{\"group\":0,\"bytes\":68232},"
                            "{\"group\":4,\"bytes\":77},{\"group\":1,\"bytes\":66666},{\"group\":5,\"bytes\":40},"
                            "{\"group\":0,\"bytes\":100},{\"group\":3,\"bytes\":1032}]",
                            "ring", "", IN("0"), IN("1"), IN("2")));
}

/* Random strategies of the whole space that the worker has. */
static void random_plans_sum(void **state) {
    NEED_DOUBLE(state);
    struct rng rng;
    struct error err = {0};
    struct subject s;
    struct space space;
    rng_seed(&rng, test_seed());
    read_model(&s.model);
    read_cluster(CLUSTER("2", "2"), &s.cluster);
    struct space_options options = space_default_options();
    options.algorithms =
        1u << ALGORITHM_ring | 1u << ALGORITHM_all_gather | 1u << ALGORITHM_double_tree | 1u << ALGORITHM_hierarchical;
    options.encodings = transport_encodings(&s.cluster);
    options.min_partition_bytes = options.min_credit_bytes = SPACE_MIN_BYTES;
    assert_ok(space_init(&space, &s.model, &s.cluster, &options, &err));
    for (int i = 0; i < 2; i++) {
        struct trial_result result;
        assert_ok(space_sample_uniform(&space, &rng, &s.strategy, &err));
        run_subject(&s, NULL, &result);
        assert_complete(&result);
        trial_result_release(&result);
        strategy_release(&s.strategy);
    }
    space_release(&space);
    cluster_release(&s.cluster);
    model_release(&s.model);
}

static void a_wrong_sum_fails_the_trial(void **state) {
    NEED_DOUBLE(state);
    check_failure(CLUSTER("3", "1"), FUSED(FIFO, "ring"), "sum", "wrong sum: message 0");
    check_failure(CLUSTER("2", "1"),
                  STRATEGY(FIFO, "ring", "", SERVED("\"n1\"", "false"), SERVED("\"n1\"", "false"), IN("2")), "sum",
                  "wrong sum: message");
}

/* What a rank brings to the collective gets lost in the double. */
static void check_loss(const char *collective, const char *cluster, const char *strategy, const char *reason) {
    setenv("SYNCOPATE_DOUBLE_WRONG", collective, 1);
    check_failure(cluster, strategy, NULL, reason);
    unsetenv("SYNCOPATE_DOUBLE_WRONG");
}

static void check_thin_failure(const char *cluster, const char *fault) {
    struct subject s;
    struct trial_result result;
    subject_init_of(&s, thin_model_text, cluster, THIN(FIFO, "2", "0"));
    run_subject(&s, fault, &result);
    assert_int_equal(result.ending, TRIAL_FAILED);
    assert_contains(result.reason, "wrong sum: message");
    trial_result_release(&result);
    subject_release(&s);
}

static void wrong_and_lost_parts_of_thin_matrices_fail_the_trial(void **state) {
    NEED_DOUBLE(state);
    check_thin_failure(CLUSTER("2", "1"), "sum");
    setenv("SYNCOPATE_DOUBLE_WRONG", "all-reduce", 1);
    check_thin_failure(CLUSTER("4", "1"), NULL);
    unsetenv("SYNCOPATE_DOUBLE_WRONG");
}

static void a_lost_part_fails_the_trial(void **state) {
    NEED_DOUBLE(state);
    check_loss("reduce-scatter", CLUSTER("2", "1"), SHARDED(FIFO, "parameters", ""), "wrong sum: message");
    check_loss("all-gather", CLUSTER("2", "1"), SHARDED(FIFO, "parameters", ""), "not gathered: message");
    check_loss("all-gather", CLUSTER("2", "1"), SHARDED(FIFO, "optimizer", ""), "wrong sum: message");
    check_loss("all-reduce", CLUSTER("4", "1"), SHARDED(FIFO ",\"shard_ranks\":2", "parameters", ""),
               "wrong sum: message");
    check_loss("all-gather", CLUSTER("2", "1"), ENCODED(FIFO, INT8("256"), "", "0"), "wrong sum: message");
    check_loss("send", CLUSTER("4", "1"), ENCODED(FIFO, INT8("256"), "", "0"), "wrong sum: message");
    check_loss("all-gather", CLUSTER("4", "1"), ENCODED(FIFO, TOPK("0.0005"), "", "0"), "wrong sum: message");
    check_failure(CLUSTER("2", "1"), FUSED(BATCHES("last"), "ring"), "sum", "wrong sum: message");
    check_failure(CLUSTER("2", "1"), ENCODED(FIFO, INT8("256"), "", "0"), "sum", "wrong sum: message");
    check_failure(CLUSTER("2", "1"), ENCODED(FIFO, TOPK("0.0005"), "", "0"), "sum", "wrong sum: message");
    check_failure(CLUSTER("2", "1"), SHARDED(FIFO, "parameters", ""), "sum", "message");
}

static void a_killed_rank_fails_the_trial_with_a_reason(void **state) {
    NEED_DOUBLE(state);
    check_failure(CLUSTER("3", "1"), FUSED(FIFO, "ring"), "kill", "signal 9");
}

static void a_hung_rank_fails_the_trial_when_its_time_is_up(void **state) {
    NEED_DOUBLE(state);
    check_failure(CLUSTER("2", "1"), FUSED(FIFO, "ring"), "hang", "");
}

/* Of rank 1's all-reduces number 30 is past the first uses of the communicator. */
static void an_asynchronous_error_of_nccl_is_reported_and_ends_every_rank(void **state) {
    NEED_DOUBLE(state);
    setenv("SYNCOPATE_DOUBLE_ASYNC", "1:30", 1);
    check_failure(CLUSTER("3", "1"), FUSED(FIFO, "ring"), NULL, "NCCL, a message: remote process exited");
    unsetenv("SYNCOPATE_DOUBLE_ASYNC");
}

static void an_algorithm_that_nccl_lacks_is_infeasible(void **state) {
    NEED_DOUBLE(state);
    struct trial_result result;
    run(CLUSTER("2", "1"), FUSED(FIFO, "halving_doubling"), NULL, &result);
    assert_int_equal(result.ending, TRIAL_INFEASIBLE);
    assert_contains(result.reason, "halving_doubling is not in NCCL");
    trial_result_release(&result);
}

/* Both would take one stream. */
static void replicas_beside_sums_within_nodes_are_infeasible(void **state) {
    NEED_DOUBLE(state);
    static const char strategy[] =
        "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" FIFO ",\"shard_ranks\":2},\"groups\":["
        "{\"id\":0,\"sharded\":\"parameters\"},{\"id\":2},{\"id\":3},{\"id\":4},{\"id\":5}],\"variables\":["
        "{\"name\":\"a\",\"sync\":" IN("0") "}" MEMBER("b", "0") ",{\"name\":\"c\",\"sync\":" SERVED(
            "\"n1\"", "true") "}" MEMBER("d", "2") MEMBER("e", "3") MEMBER("f", "4") MEMBER("g", "5")
            MEMBER("h", "0") "]}";
    struct trial_result result;
    run(CLUSTER("2", "2"), strategy, NULL, &result);
    assert_int_equal(result.ending, TRIAL_INFEASIBLE);
    assert_contains(result.reason, "is pushed once a node, and beside replicas this worker does not do that");
    trial_result_release(&result);
}

static void workers_need_a_gpu_each_unless_they_are_to_share(void **state) {
    NEED_DOUBLE(state);
    setenv("SYNCOPATE_DOUBLE_GPUS", "2", 1);
    check_failure(CLUSTER("3", "1"), FUSED(FIFO, "ring"), NULL, "--share-gpu");
    check_complete(CLUSTER("2", "1"), STRATEGY(FIFO, "ring", "", SERVED("\"n1\"", "false"), IN("1"), IN("2")));
    setenv("SYNCOPATE_SHARE_GPU", "1", 1);
    struct trial_result result;
    run(CLUSTER("3", "1"), FUSED(FIFO, "ring"), NULL, &result);
    assert_complete(&result);
    assert_contains(result.environment, "\"shared_gpu\":true");
    trial_result_release(&result);
    unsetenv("SYNCOPATE_SHARE_GPU");
    unsetenv("SYNCOPATE_DOUBLE_GPUS");
}

static void no_gpu_is_one_clear_line(void **state) {
    NEED_DOUBLE(state);
    setenv("SYNCOPATE_DOUBLE_GPUS", "0", 1);
    check_failure(CLUSTER("2", "1"), FUSED(FIFO, "ring"), NULL, "no GPU can be used on ");
    unsetenv("SYNCOPATE_DOUBLE_GPUS");
}

static void a_measured_cluster_has_nccl_s_algorithms(void **state) {
    NEED_DOUBLE(state);
    const char *text = CLUSTER("2", "1");
    struct error err = {0};
    struct cluster cluster;
    struct bench_findings findings;
    cJSON *json, *measured;
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    const struct bench_options options = {
        .launcher = {.kind = LAUNCHER_LOCAL, .worker = TRIAL_WORKER_NCCL, .program = worker},
        .max_bytes = 16384,
        .time_limit_s = 90}; /* it ends when all is measured; starved, in none of its points */
    assert_ok(bench_run(json, "cluster", &options, &measured, &findings, &err));
    assert_ok(cluster_read(measured, "measured", &cluster, &err));
    unsigned seen[ALGORITHM_COUNT] = {0}, pushes = 0;
    for (uint32_t i = 0; i < cluster.n_measurements; i++)
        if (cluster.measurements[i].operation == OPERATION_all_reduce)
            seen[cluster.measurements[i].algorithm]++;
        else
            pushes++;
    assert_int_equal(seen[ALGORITHM_auto], 3); /* 1, 4 and 16 KiB */
    assert_int_equal(seen[ALGORITHM_ring], 3);
    assert_int_equal(seen[ALGORITHM_double_tree], 3);
    assert_int_equal(pushes, 6);
    assert_true(cluster.runtime.copy_gbyte_per_s > 0 && cluster.runtime.sum_gbyte_per_s > 0);
    assert_true(cluster.runtime.int8_gbyte_per_s > 0 && cluster.runtime.topk_gbyte_per_s > 0);
    assert_true(cluster.runtime.powersgd_gbyte_per_s > 0 && cluster.runtime.way_us > 0);
    assert_int_equal(findings.agreement.points, cluster.n_measurements);
    assert_int_equal(findings.shares.parts[SHARES_STARTUP].traffic.kept, cluster.in_startup.traffic > 0);
    cluster_release(&cluster);
    cJSON_Delete(measured);
    cJSON_Delete(json);
}

/* The worker lies beside the unit tests: OUT/tests/unit/trial-runner/test_trial_nccl, OUT/tests/support/. */
static int setup(void **state) {
    static bool possible;
    assert_int_equal(adopt_orphans(state), 0);
    ssize_t n = readlink("/proc/self/exe", worker, sizeof worker - 64);
    for (int i = 0; i < 3 && n > 0; i++)
        *strrchr(worker, '/') = '\0';
    strcat(worker, "/support/syncopate-worker-nccl");
    possible = access(worker, X_OK) == 0 && system("command -v mpirun >/dev/null") == 0;
    if (!possible)
        print_message("# no NCCL worker on doubles (it needs CUDA's and NCCL's headers), or no mpirun\n");
    setenv("TMPDIR", test_dir(), 1);
    *state = &possible;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fused_plan_sums_every_type_of_element),
        cmocka_unit_test(partitions_and_credits_keep_one_order_on_all_ranks),
        cmocka_unit_test(trees_and_two_levels_sum),
        cmocka_unit_test(gathered_rows_sum),
        cmocka_unit_test(halves_sum_and_reach_all),
        cmocka_unit_test(sharded_parameters_are_gathered_and_summed),
        cmocka_unit_test(micro_batches_add_up),
        cmocka_unit_test(replicas_and_parts_among_fewer_devices_are_right),
        cmocka_unit_test(types_of_their_own_are_gathered_and_summed),
        cmocka_unit_test(encoded_blocks_sum_beside_what_is_not_encoded),
        cmocka_unit_test(encoded_blocks_take_the_memory_that_is_predicted),
        cmocka_unit_test(the_largest_elements_sum_and_what_is_left_comes_later),
        cmocka_unit_test(the_largest_elements_take_the_memory_that_is_predicted),
        cmocka_unit_test(thin_matrices_sum_and_what_is_left_comes_later),
        cmocka_unit_test(thin_matrices_take_the_memory_that_is_predicted),
        cmocka_unit_test(servers_sum_on_their_gpus),
        cmocka_unit_test(shared_pushes_sum),
        cmocka_unit_test(local_reduction_under_stop_and_wait_priority_does_not_deadlock),
        cmocka_unit_test(slices_sum_in_an_order_of_their_own),
        cmocka_unit_test(random_plans_sum),
        cmocka_unit_test(a_wrong_sum_fails_the_trial),
        cmocka_unit_test(a_lost_part_fails_the_trial),
        cmocka_unit_test(wrong_and_lost_parts_of_thin_matrices_fail_the_trial),
        cmocka_unit_test(a_killed_rank_fails_the_trial_with_a_reason),
        cmocka_unit_test(a_hung_rank_fails_the_trial_when_its_time_is_up),
        cmocka_unit_test(an_asynchronous_error_of_nccl_is_reported_and_ends_every_rank),
        cmocka_unit_test(an_algorithm_that_nccl_lacks_is_infeasible),
        cmocka_unit_test(replicas_beside_sums_within_nodes_are_infeasible),
        cmocka_unit_test(workers_need_a_gpu_each_unless_they_are_to_share),
        cmocka_unit_test(no_gpu_is_one_clear_line),
        cmocka_unit_test(a_measured_cluster_has_nccl_s_algorithms),
    };
    return cmocka_run_group_tests_name("trial_nccl", tests, setup, NULL);
}
