/* Trials end in every way that they can, with the right reason, and leave nothing; sums are checked; a lab's links
 * bound what a trial can measure. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "tests/support/check.h"
#include "tests/unit/trial-runner/left_behind.h"
#include "tests/unit/trial-runner/subject.h"
#include "trial-runner/bench.h"
#include "trial-runner/lab.h"
#include "trial-runner/scratch.h"
#include "trial-runner/trial.h"

#define WORKER "syncopate-worker-mpi"

/* Two layers, 1 ms forward and 2 ms backward each; 256 KiB, of which 103,200 bytes are touched, and two small tensors.
 */
static const char model_text[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["
    "{\"name\":\"a\",\"shape\":[256,256],\"dtype\":\"f32\",\"sparse_rows\":100},{\"name\":\"b\",\"shape\":[7],"
    "\"dtype\":\"f32\"},"
    "{\"name\":\"c\",\"shape\":[33],\"dtype\":\"f32\"}],\"layers\":["
    "{\"name\":\"1\",\"forward_us\":1000,\"backward_us\":2000,\"variables\":[\"a\"]},"
    "{\"name\":\"2\",\"forward_us\":1000,\"backward_us\":2000,\"variables\":[\"b\",\"c\"]}]}";
enum { COMPUTE_US = 6000 };

#define CLUSTER(count, devices)                                                                                        \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":" count                   \
    ",\"devices\":" devices ",\"device\":\"cpu\",\"nic_gbit_per_s\":0.2,\"nic_latency_us\":50,"                        \
    "\"device_link_gbyte_per_s\":10}]}"

#define STRATEGY(schedule, algorithm, a, b, c)                                                                         \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule                                      \
    "},\"groups\":[{\"id\":0,\"algorithm\":\"" algorithm "\",\"partition_bytes\":65536}],\"variables\":["              \
    "{\"name\":\"a\",\"sync\":" a "},{\"name\":\"b\",\"sync\":" b "},{\"name\":\"c\",\"sync\":" c "}]}"
#define REDUCED "{\"kind\":\"all_reduce\",\"group\":0}"
#define SERVED(local)                                                                                                  \
    "{\"kind\":\"parameter_server\",\"servers\":[\"n2\"],\"partition_bytes\":100000,\"local_reduction\":" local "}"
#define SHARED(local)                                                                                                  \
    "{\"kind\":\"parameter_server\",\"servers\":[\"n2\"],\"partition_bytes\":100000,\"local_reduction\":" local        \
    ",\"push\":1}"
#define FIFO     "\"policy\":\"fifo\",\"credit_bytes\":0,\"cross_iteration\":false"
#define PULLS    PRIORITY ",\"pulls\":\"priority\""
#define PRIORITY "\"policy\":\"priority\",\"credit_bytes\":150000,\"cross_iteration\":true"

/* a is group 0, 65536 elements; b and c are group 1, 7 and 33. */
#define SLICED(credit, algorithm, slices)                                                                              \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{\"policy\":\"preemptive\"," credit              \
    "\"cross_iteration\":true,\"slices\":[" slices "]},\"groups\":[{\"id\":0,\"algorithm\":\"" algorithm               \
    "\"},{\"id\":1,\"algorithm\":\"" algorithm "\"}],\"variables\":[{\"name\":\"a\",\"sync\":" REDUCED                 \
    "},{\"name\":\"b\",\"sync\":" REDUCED_IN_1 "},{\"name\":\"c\",\"sync\":" REDUCED_IN_1 "}]}"
#define REDUCED_IN_1        "{\"kind\":\"all_reduce\",\"group\":1}"
#define SLICE(group, bytes) "{\"group\":" group ",\"bytes\":" bytes "}"

/* Layers of a chain, each with a variable that is served: the last by s1, the others by s2. */
#define SIX(X)          X("0", "2") "," X("1", "2") "," X("2", "2") "," X("3", "2") "," X("4", "2") "," X("5", "1")
#define VARIABLE(i, s)  "{\"name\":\"v" i "\",\"shape\":[250000],\"dtype\":\"f32\"}"
#define LAYER(i, s)     "{\"name\":\"" i "\",\"forward_us\":500,\"backward_us\":20000,\"variables\":[\"v" i "\"]}"
#define SERVER_OF(i, s) "{\"name\":\"v" i "\",\"sync\":{\"kind\":\"parameter_server\",\"servers\":[\"s" s "\"]}}"

static const char plain[] = STRATEGY(FIFO, "ring", REDUCED, REDUCED, REDUCED);

static void subject_init(struct subject *subject, const char *cluster, const char *strategy) {
    subject_init_of(subject, model_text, cluster, strategy);
}

static char worker[4096]; /* the program */

static struct trial_request request_for(const struct subject *subject) {
    return (struct trial_request){.model = &subject->model,
                                  .cluster = &subject->cluster,
                                  .strategy = &subject->strategy,
                                  .launcher = {.kind = LAUNCHER_LOCAL, .program = worker},
                                  .iterations = 5,
                                  .warmup = 1,
                                  .time_limit_s = 60};
}

/* Run one trial of `change`d defaults and see that nothing is left. */
static void run_of(const char *model, const char *cluster, const char *strategy, void (*change)(struct trial_request *),
                   struct trial_result *out) {
    struct subject subject;
    struct error err = {0};
    subject_init_of(&subject, model, cluster, strategy);
    struct trial_request request = request_for(&subject);
    if (change)
        change(&request);
    assert_ok(trial_run(&request, out, &err));
    assert_true(no_descendants());
    assert_int_equal(entries_with(getenv("TMPDIR"), "syncopate-"), 0);
    subject_release(&subject);
}

static void run(const char *cluster, const char *strategy, void (*change)(struct trial_request *),
                struct trial_result *out) {
    run_of(model_text, cluster, strategy, change, out);
}

static void check_complete(const char *cluster, const char *strategy, unsigned devices) {
    struct trial_result result;
    run(cluster, strategy, NULL, &result);
    assert_string_equal(result.reason, "");
    assert_int_equal(result.ending, TRIAL_COMPLETE);
    assert_int_equal(result.n, 5);
    /* Polling may make one iteration's end late and so the next shorter, by far less than half of it. */
    for (unsigned i = 0; i < result.n; i++)
        assert_true(result.time_us[i] > COMPUTE_US / 2);
    assert_true(result.median_us >= COMPUTE_US * 0.99);
    /* Six iterations, at least the 7 elements of b and 16 samples of a on each device. */
    assert_true(result.checked >= 6 * 23 * devices);
    assert_contains(result.environment, "\"mpi\":");
    trial_result_release(&result);
}

static bool worker_is_there(void **state) {
    return *(bool *)*state;
}

#define NEED_WORKER(state)                                                                                             \
    if (!worker_is_there(state))                                                                                       \
    skip()

static void an_all_reduce_plan_completes_with_every_sum_right(void **state) {
    NEED_WORKER(state);
    check_complete(CLUSTER("3", "1"), plain, 3);
}

static void every_algorithm_sums(void **state) {
    NEED_WORKER(state);
    check_complete(CLUSTER("2", "2"), STRATEGY(PRIORITY, "hierarchical", REDUCED, REDUCED, REDUCED), 4);
    check_complete(CLUSTER("3", "1"), STRATEGY(PRIORITY, "tree", REDUCED, REDUCED, REDUCED), 3);
    check_complete(CLUSTER("4", "1"), STRATEGY(FIFO, "halving_doubling", REDUCED, REDUCED, REDUCED), 4);
    check_complete(CLUSTER("3", "1"), STRATEGY(FIFO, "recursive_doubling", REDUCED, REDUCED, REDUCED), 3);
}

/* Of one size and cut, alone and beside an all-reduce, and as 16-bit floats. */
static void gathered_rows_sum(void **state) {
    NEED_WORKER(state);
    static const char gathered[] =
        "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{%s},\"groups\":["
        "{\"id\":0,\"algorithm\":\"all_gather\"%s},{\"id\":1}],\"variables\":["
        "{\"name\":\"a\",\"encoding\":\"%s\",\"sync\":" REDUCED "},{\"name\":\"b\",\"sync\":" REDUCED_IN_1
        "},{\"name\":\"c\",\"sync\":" REDUCED_IN_1 "}]}";
    char strategy[sizeof gathered + 256];
    snprintf(strategy, sizeof strategy, gathered, FIFO, "", "none");
    check_complete(CLUSTER("3", "1"), strategy, 3);
    snprintf(strategy, sizeof strategy, gathered, PRIORITY, ",\"partition_bytes\":65536", "bf16");
    check_complete(CLUSTER("2", "2"), strategy, 4);
}

static void servers_and_mixed_plans_sum(void **state) {
    NEED_WORKER(state);
    check_complete(CLUSTER("3", "1"), STRATEGY(PRIORITY, "ring", SERVED("false"), SERVED("false"), SERVED("false")), 3);
    check_complete(CLUSTER("2", "2"), STRATEGY(FIFO, "ring", SERVED("true"), REDUCED, SERVED("false")), 4);
    check_complete(CLUSTER("2", "2"), STRATEGY(PRIORITY, "ring", REDUCED, SERVED("true"), REDUCED), 4);
}

/* a in two parts, one of which MPI sends unasked; with stop-and-wait; from all devices, and from one a node. */
static void pulls_by_priority_sum(void **state) {
    NEED_WORKER(state);
    check_complete(CLUSTER("3", "1"), STRATEGY(PULLS, "ring", SERVED("false"), SERVED("false"), SERVED("false")), 3);
    check_complete(CLUSTER("2", "2"), STRATEGY(PULLS, "ring", SERVED("true"), REDUCED, SERVED("false")), 4);
    check_complete(CLUSTER("2", "2"),
                   STRATEGY("\"policy\":\"priority\",\"credit_bytes\":0,\"pulls\":\"priority\"", "ring", SERVED("true"),
                            SERVED("false"), SERVED("true")),
                   4);
}

/* a, b and c share a push that is cut inside of a: of all devices, and of one a node, which sums first. */
static void shared_pushes_sum(void **state) {
    NEED_WORKER(state);
    check_complete(CLUSTER("3", "1"), STRATEGY(PRIORITY, "ring", SHARED("false"), SHARED("false"), SHARED("false")), 3);
    check_complete(CLUSTER("2", "2"), STRATEGY(FIFO, "ring", SHARED("true"), SHARED("true"), SHARED("true")), 4);
    check_complete(CLUSTER("2", "2"), STRATEGY(PRIORITY, "ring", REDUCED, SHARED("true"), SHARED("true")), 4);
}

/* Slices that end inside a variable and reach over two, in orders that overlap and in one that makes b and c, which are
 * ready first, wait for a. */
/* Sums of integers with the bits of floats would be wrong. */
static void sums_of_16_bit_floats_are_those_of_floats(void **state) {
    NEED_WORKER(state);
    static const char encoded[] =
        "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" FIFO
        "},\"groups\":[{\"id\":0,\"algorithm\":\"hierarchical\"},{\"id\":1,\"algorithm\":\"tree\"}],\"variables\":["
        "{\"name\":\"a\",\"encoding\":\"f16\",\"sync\":" REDUCED
        "},{\"name\":\"b\",\"encoding\":\"bf16\",\"sync\":" REDUCED_IN_1
        "},{\"name\":\"c\",\"encoding\":\"%s\",\"sync\":" SERVED("true") "}]}";
    static const char *const words[] = {"f16", "bf16"};
    for (int i = 0; i < 2; i++) {
        char strategy[sizeof encoded + 8];
        snprintf(strategy, sizeof strategy, encoded, words[i]);
        check_complete(CLUSTER("2", "2"), strategy, 4);
    }
}

static void slices_sum_in_any_order(void **state) {
    NEED_WORKER(state);
    check_complete(CLUSTER("3", "1"),
                   SLICED("\"credit_bytes\":0,", "ring",
                          SLICE("1", "20") "," SLICE("1", "40") "," SLICE("0", "100000") "," SLICE(
                              "1", "100") "," SLICE("0", "162140") "," SLICE("0", "4")),
                   3);
    check_complete(CLUSTER("2", "2"),
                   SLICED("", "hierarchical", SLICE("0", "262140") "," SLICE("1", "160") "," SLICE("0", "4")), 4);
    check_complete(CLUSTER("4", "1"),
                   SLICED("\"credit_bytes\":100000,", "tree",
                          SLICE("0", "65536") "," SLICE("1", "60") "," SLICE("0", "131072") "," SLICE(
                              "1", "100") "," SLICE("0", "65536")),
                   4);
}

/* Leader and other device may start pushes in different orders; with a credit for one at a time they once waited for
 * each other for ever. */
static void local_reduction_under_stop_and_wait_priority_does_not_deadlock(void **state) {
    NEED_WORKER(state);
    check_complete(CLUSTER("2", "2"),
                   STRATEGY("\"policy\":\"priority\",\"credit_bytes\":0,\"cross_iteration\":true", "ring",
                            SERVED("true"), SERVED("true"), SERVED("true")),
                   4);
}

static void fault_sum(struct trial_request *request) {
    request->fault = "sum";
}

static void a_wrong_sum_fails_the_trial(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(CLUSTER("3", "1"), plain, fault_sum, &result);
    assert_int_equal(result.ending, TRIAL_FAILED);
    assert_contains(result.reason, "wrong sum");
    trial_result_release(&result);
}

static void fault_kill(struct trial_request *request) {
    request->fault = "kill";
}

static void a_killed_rank_fails_the_trial_with_a_reason(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(CLUSTER("3", "1"), plain, fault_kill, &result);
    assert_int_equal(result.ending, TRIAL_FAILED);
    assert_contains(result.reason, "signal 9");
    trial_result_release(&result);
}

static void fault_hang(struct trial_request *request) {
    request->fault = "hang";
    request->time_limit_s = 4;
}

static void a_hung_rank_fails_the_trial_when_its_time_is_up(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(CLUSTER("3", "1"), plain, fault_hang, &result);
    assert_int_equal(result.ending, TRIAL_FAILED);
    assert_true(result.reason[0] != '\0');
    assert_true(result.wall_s >= 4 && result.wall_s < 20);
    trial_result_release(&result);
}

static void ask_for_the_impossible(struct trial_request *request) {
    request->stop_if_slower_than_us = COMPUTE_US / 2;
    request->iterations = 2000;
}

static void a_hopeless_trial_stops_after_three_iterations(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(CLUSTER("2", "1"), plain, ask_for_the_impossible, &result);
    assert_int_equal(result.ending, TRIAL_STOPPED_EARLY);
    assert_int_equal(result.n, TRIAL_HOPELESS_AFTER);
    trial_result_release(&result);
}

/* What was seen of a trace. */
static struct {
    unsigned steps, messages, out_of_order;
    double last_step_us;
    uint32_t iterations;
} traced;

static void take_interval(void *context, const struct trial_interval *interval) {
    (void)context;
    traced.iterations = interval->iteration + 1 > traced.iterations ? interval->iteration + 1 : traced.iterations;
    traced.out_of_order += interval->end_us < interval->start_us;
    if (interval->message) {
        traced.messages++;
        return;
    }
    traced.steps++;
    traced.out_of_order += interval->start_us < traced.last_step_us;
    traced.last_step_us = interval->end_us;
}

static void ask_for_a_trace(struct trial_request *request) {
    request->on_interval = take_interval;
}

static void a_traced_trial_tells_every_step_and_message_of_measured_iterations(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    struct subject subject;
    struct plan plan;
    struct error err = {0};
    subject_init(&subject, CLUSTER("2", "1"), plain);
    assert_ok(plan_lower(&subject.model, &subject.cluster, &subject.strategy, &plan, &err));
    run(CLUSTER("2", "1"), plain, ask_for_a_trace, &result);
    assert_int_equal(result.ending, TRIAL_COMPLETE);
    assert_int_equal(traced.iterations, result.n);
    assert_int_equal(traced.steps, result.n * plan.n_steps);
    assert_int_equal(traced.messages, result.n * plan.n_messages);
    assert_int_equal(traced.out_of_order, 0);
    trial_result_release(&result);
    plan_release(&plan);
    subject_release(&subject);
}

static atomic_int cancelled;

static void cancel_at_second(void *context, uint32_t index, double time_us) {
    (void)context, (void)time_us;
    if (index == 1)
        cancelled = 1;
}

static void cancel_soon(struct trial_request *request) {
    cancelled = 0;
    request->cancel = &cancelled;
    request->on_iteration = cancel_at_second;
    request->iterations = 2000;
}

static void a_cancelled_trial_ends_at_once(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(CLUSTER("2", "1"), plain, cancel_soon, &result);
    assert_int_equal(result.ending, TRIAL_CANCELLED);
    assert_true(result.n >= 2 && result.n < 2000);
    trial_result_release(&result);
}

static void an_algorithm_that_mpi_lacks_is_infeasible(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(CLUSTER("2", "1"), STRATEGY(FIFO, "double_tree", REDUCED, REDUCED, REDUCED), NULL, &result);
    assert_int_equal(result.ending, TRIAL_INFEASIBLE);
    assert_contains(result.reason, "double_tree");
    trial_result_release(&result);
}

static void use_lab(struct trial_request *request) {
    request->launcher.kind = LAUNCHER_LAB;
}

/* 0.2 Gbit/s moves 25 bytes a us; a ring over 3 nodes sends 4/3 of 256 KiB from each. A burst of 256 KB (the shaper's
 * bucket) may pass unshaped in each iteration at most once, and it refills only as fast as the link. */
static void a_lab_takes_as_long_as_its_links_must(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    if (!test_lab_possible())
        skip();
    run(CLUSTER("3", "1"), plain, use_lab, &result);
    assert_string_equal(result.reason, "");
    double least_us = 256 * 1024 * 4.0 / 3 / 25;
    double sum_us = 0;
    for (unsigned i = 0; i < result.n; i++)
        sum_us += result.time_us[i];
    assert_true(sum_us > result.n * least_us - 256000 / 25.0);
    assert_contains(result.environment, "\"host\":\"n1\"");
    trial_result_release(&result);
}

/* Six layers of 1 MB, a gradient every 20 ms, the last layer's first. The pull of the last layer's takes 200 ms,
 * because the link from its server to n1 is slow. Meanwhile the sums of the others wait. */
static const char six_layers[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":[" SIX(
        VARIABLE) "],"
                  "\"layers\":[" SIX(LAYER) "]}";
static const char slow_way_back[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":2,\"devices\":1,"
    "\"device\":\"cpu\",\"nic_gbit_per_s\":1},{\"name\":\"s\",\"count\":2,\"devices\":0,\"nic_gbit_per_s\":1}],"
    "\"links\":[{\"from\":\"s1\",\"to\":\"n1\",\"gbit_per_s\":0.04}]}";
static const char six_pulls[] =
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{\"policy\":\"priority\",\"credit_bytes\":0,"
    "\"cross_iteration\":true,\"pulls\":\"priority\"},\"variables\":[" SIX(SERVER_OF) "]}";

enum { PULLED_ITERATIONS = 5, PULLED_MESSAGES = 6 };
static struct trial_interval pulls[PULLED_ITERATIONS][PULLED_MESSAGES];

static void take_pull(void *context, const struct trial_interval *interval) {
    (void)context;
    if (interval->message)
        pulls[interval->iteration][interval->index] = *interval;
}

static void trace_pulls_in_lab(struct trial_request *request) {
    use_lab(request);
    request->iterations = PULLED_ITERATIONS;
    request->on_interval = take_pull;
}

/* No pull starts while another is in flight, nor before one of a lower number whose sum waits. Returns how often a sum
 * that came later was pulled before one that waited. */
static unsigned check_pulls(const struct trial_interval *of_iteration) {
    unsigned overtaken = 0;
    for (int m = 0; m < PULLED_MESSAGES; m++) {
        const struct trial_interval *pull = &of_iteration[m];
        assert_true(pull->start_us < pull->sum_us && pull->sum_us <= pull->pull_us && pull->pull_us < pull->end_us);
        for (int k = 0; k < PULLED_MESSAGES; k++) {
            const struct trial_interval *other = &of_iteration[k];
            assert_true(k == m || pull->end_us <= other->pull_us || other->end_us <= pull->pull_us);
            bool waits = other->sum_us < pull->pull_us && other->pull_us > pull->pull_us;
            assert_true(!waits || k > m);
            overtaken += waits && other->sum_us < pull->sum_us;
        }
    }
    return overtaken;
}

static void pulls_by_priority_go_one_by_one_first_needed_first(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    unsigned overtaken = 0;
    if (!test_lab_possible())
        skip();
    run_of(six_layers, slow_way_back, six_pulls, trace_pulls_in_lab, &result);
    assert_string_equal(result.reason, "");
    for (int i = 0; i < PULLED_ITERATIONS; i++)
        overtaken += check_pulls(pulls[i]);
    assert_true(overtaken >= PULLED_MESSAGES);
    trial_result_release(&result);
}

/* Builds that are not for release, as those under sanitizers, take so long for its rates that little is left for
 * points. */
#ifdef NDEBUG
enum { BENCH_S = 20 };
#else
enum { BENCH_S = 240 };
#endif

static uint32_t points_of(const struct cluster *cluster, enum operation operation) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < cluster->n_measurements; i++)
        n += cluster->measurements[i].operation == operation;
    return n;
}

static void a_measured_cluster_keeps_what_its_owner_wrote(void **state) {
    NEED_WORKER(state);
    const char *text = CLUSTER("2", "1");
    struct error err = {0};
    struct bench_findings findings;
    cJSON *json, *measured;
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    struct bench_options options = {
        .launcher = {.kind = LAUNCHER_LOCAL, .program = worker}, .max_bytes = 65536, .time_limit_s = BENCH_S};
    assert_ok(bench_run(json, "cluster", &options, &measured, &findings, &err));
    struct cluster cluster;
    assert_ok(cluster_read(measured, "measured", &cluster, &err));
    assert_int_equal(cluster.n_nodes, 2);
    assert_true(cluster.n_measurements >= 8); /* of 36: a slow machine leaves out the largest */
    assert_true(points_of(&cluster, OPERATION_reduce_scatter) > 0 && points_of(&cluster, OPERATION_all_gather) > 0);
    assert_true(cluster.runtime.copy_gbyte_per_s > 0 && cluster.runtime.sum_gbyte_per_s > 0);
    assert_true(cluster.runtime.push_us > 0 && cluster.runtime.encode_gbyte_per_s > 0);
    assert_true(cluster.runtime.way_us > 0 && cluster.runtime.powersgd_gbyte_per_s > 0);
    assert_int_equal(findings.agreement.points, cluster.n_measurements);
    const struct interference *const written[SHARES_PARTS] = {&cluster.in_startup, &cluster.in_transfer};
    for (int part = 0; part < SHARES_PARTS; part++) {
        assert_int_equal(findings.shares.parts[part].compute.kept, written[part]->compute > 0);
        assert_int_equal(findings.shares.parts[part].traffic.kept, written[part]->traffic > 0);
    }
    assert_true(cJSON_Compare(cJSON_GetObjectItem(json, "nodes"), cJSON_GetObjectItem(measured, "nodes"), true));
    cluster_release(&cluster);
    cJSON_Delete(measured);
    cJSON_Delete(json);
}

static void a_missing_worker_program_is_named(void **state) {
    (void)state;
    struct subject subject;
    struct trial_result result;
    struct error err = {0};
    subject_init(&subject, CLUSTER("2", "1"), plain);
    struct trial_request request = request_for(&subject);
    request.launcher.program = "/nowhere/worker";
    assert_fails(trial_run(&request, &result, &err), ST_NOT_FOUND, "/nowhere/worker");
    subject_release(&subject);
}

static void files_vanish_when_their_owner_is_killed(void **state) {
    (void)state;
    char path[SCRATCH_FILE];
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct scratch scratch;
        if (scratch_init(&scratch, NULL, NULL) == ST_OK &&
            scratch_write(&scratch, "a", cJSON_CreateObject(), path, NULL) == ST_OK)
            (void)!write(ready[1], "y", 1);
        for (;;)
            pause();
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(entries_with(getenv("TMPDIR"), "syncopate-"), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(descendants_vanish());
    assert_int_equal(entries_with(getenv("TMPDIR"), "syncopate-"), 0);
    close(ready[0]);
    close(ready[1]);
}

/* The worker lies in bin/ beside tests/: OUT/tests/unit/trial-runner/test_trial; SYNCOPATE_WORKER names another. */
static int setup(void **state) {
    static bool possible;
    assert_int_equal(adopt_orphans(state), 0);
    const char *other = getenv("SYNCOPATE_WORKER");
    ssize_t n = readlink("/proc/self/exe", worker, sizeof worker - 64);
    for (int i = 0; i < 4 && n > 0; i++)
        *strrchr(worker, '/') = '\0';
    strcat(worker, "/bin/" WORKER);
    if (other)
        snprintf(worker, sizeof worker, "%s", other);
    possible = access(worker, X_OK) == 0 && system("command -v mpirun >/dev/null") == 0;
    if (!possible)
        print_message("# no worker program or no mpirun\n");
    setenv("TMPDIR", test_dir(), 1);
    *state = &possible;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_all_reduce_plan_completes_with_every_sum_right),
        cmocka_unit_test(every_algorithm_sums),
        cmocka_unit_test(gathered_rows_sum),
        cmocka_unit_test(servers_and_mixed_plans_sum),
        cmocka_unit_test(pulls_by_priority_sum),
        cmocka_unit_test(shared_pushes_sum),
        cmocka_unit_test(sums_of_16_bit_floats_are_those_of_floats),
        cmocka_unit_test(slices_sum_in_any_order),
        cmocka_unit_test(local_reduction_under_stop_and_wait_priority_does_not_deadlock),
        cmocka_unit_test(a_wrong_sum_fails_the_trial),
        cmocka_unit_test(a_killed_rank_fails_the_trial_with_a_reason),
        cmocka_unit_test(a_hung_rank_fails_the_trial_when_its_time_is_up),
        cmocka_unit_test(a_hopeless_trial_stops_after_three_iterations),
        cmocka_unit_test(a_traced_trial_tells_every_step_and_message_of_measured_iterations),
        cmocka_unit_test(a_cancelled_trial_ends_at_once),
        cmocka_unit_test(an_algorithm_that_mpi_lacks_is_infeasible),
        cmocka_unit_test(a_lab_takes_as_long_as_its_links_must),
        cmocka_unit_test(pulls_by_priority_go_one_by_one_first_needed_first),
        cmocka_unit_test(a_measured_cluster_keeps_what_its_owner_wrote),
        cmocka_unit_test(a_missing_worker_program_is_named),
        cmocka_unit_test(files_vanish_when_their_owner_is_killed),
    };
    return cmocka_run_group_tests_name("trial", tests, setup, NULL);
}
