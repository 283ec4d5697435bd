/* Trials whose workers send whole updates: who waits for whom, which delays can be, what is dropped, and how they end.
 *
 * With n workers and staleness K, an update's delay is at most (2K + 1)(n - 1): while a worker has its model, each
 * other begins at most 2K + 1 iterations. With K = 0 a round has each of the delays 0 to n - 1 once.
 *
 * One worker that learns is plain gradient descent with momentum, so its losses are known; so are those of several
 * workers with K = 0 and without momentum, since their order does not matter then, and those of all synchronous plans,
 * also without a "consistency". */
#include <math.h>
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
#include "trial-runner/lab.h"
#include "trial-runner/trial.h"

/* 4 ms, and every kind of element; `a` moves the rows that are touched. */
#define MODEL(rows)                                                                                                    \
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["                          \
    "{\"name\":\"a\",\"shape\":[256,64],\"dtype\":\"f32\"" rows "},"                                                   \
    "{\"name\":\"b\",\"shape\":[7],\"dtype\":\"f32\"},{\"name\":\"c\",\"shape\":[33],\"dtype\":\"bf16\"},"             \
    "{\"name\":\"d\",\"shape\":[1],\"dtype\":\"u8\"}],\"layers\":["                                                    \
    "{\"name\":\"1\",\"forward_us\":1000,\"backward_us\":1000,\"variables\":[\"a\",\"b\"]},"                           \
    "{\"name\":\"2\",\"forward_us\":1000,\"backward_us\":1000,\"variables\":[\"c\",\"d\"]}]}"
static const char model_text[] = MODEL(",\"sparse_rows\":100"), dense_text[] = MODEL("");
enum { COMPUTE_US = 4000, WORKERS = 3, ROUNDS = 30, SLOW = 10 };

/* The last of three nodes is SLOW times as slow. */
#define CLUSTER(nic)                                                                                                   \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":2,\"devices\":1,"         \
    "\"device\":\"cpu\",\"nic_gbit_per_s\":" nic "},{\"name\":\"slow\",\"devices\":1,\"device\":\"cpu\","              \
    "\"nic_gbit_per_s\":" nic ",\"compute_scale\":10}]}"
/* The server's NIC is the slowest, so that sums pay off. */
static const char narrow[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":["
    "{\"name\":\"n1\",\"devices\":1,\"device\":\"cpu\",\"nic_gbit_per_s\":0.1},"
    "{\"name\":\"n2\",\"devices\":1,\"device\":\"cpu\",\"nic_gbit_per_s\":1},"
    "{\"name\":\"slow\",\"devices\":1,\"device\":\"cpu\",\"nic_gbit_per_s\":1,\"compute_scale\":10}]}";
#define SERVED(name, server, push)                                                                                     \
    "{\"name\":\"" name "\",\"sync\":{\"kind\":\"parameter_server\",\"servers\":[\"" server                            \
    "\"],\"local_reduction\":false" push "}}"
#define SHARED ",\"push\":1"
/* c and d are pushed to n1. */
#define ON(server, member)                                                                                             \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{\"policy\":\"fifo\",\"cross_iteration\":false}" \
    ",\"consistency\":{" member "},\"groups\":[],\"variables\":[" SERVED("a", server, SHARED) "," SERVED(              \
        "b", server, SHARED) "," SERVED("c", "n1", "") "," SERVED("d", "n1", "") "]}"
#define ASYNCHRONOUS      "\"kind\":\"asynchronous\""
#define BOUNDED           ASYNCHRONOUS ",\"delay_bound\":1"
#define SCHEDULED         ",\"scheduler\":{\"batch_us\":2000}"
#define AGGREGATED(us)    GROUPED(us, "")
#define GROUPED(us, more) ",\"scheduler\":{\"batch_us\":" us ",\"aggregators\":[\"n2\",\"slow\"]" more "}"
#define SYNCHRONOUS       "\"kind\":\"synchronous\""
#define STALE(k)          "\"kind\":\"stale_synchronous\",\"staleness\":" k

static void subject_init(struct subject *s, const char *cluster, const char *strategy) {
    subject_init_of(s, model_text, cluster, strategy);
}

static char worker[4096]; /* the program */

static struct trial_request request_for(const struct subject *s) {
    return (struct trial_request){.model = &s->model,
                                  .cluster = &s->cluster,
                                  .strategy = &s->strategy,
                                  .launcher = {.kind = LAUNCHER_LOCAL, .program = worker},
                                  .iterations = ROUNDS,
                                  .warmup = 2,
                                  .time_limit_s = 60};
}

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

static void run_on(const char *cluster, const char *strategy, void (*change)(struct trial_request *),
                   struct trial_result *out) {
    run_of(model_text, cluster, strategy, change, out);
}

static void run(const char *strategy, void (*change)(struct trial_request *), struct trial_result *out) {
    run_on(CLUSTER("1"), strategy, change, out);
}

static double sum_of_delays(const struct trial_updates *u) {
    double sum = 0;
    for (int d = 0; d < TRIAL_DELAYS; d++)
        sum += u->of_delay[d];
    return sum;
}

/* The environment, which is recorded, tells of the same updates as the result. */
static void expect_recorded(const struct trial_result *result) {
    struct trial_updates *read = trial_updates_new(0);
    cJSON *json = cJSON_Parse(result->environment);
    assert_non_null(cJSON_GetObjectItem(json, "host"));
    trial_updates_take(read, "updates", cJSON_GetObjectItem(json, "updates"));
    assert_true(read->useful > 0 && read->useful == result->updates->useful);
    assert_true(read->dropped == result->updates->dropped && read->late == result->updates->late);
    assert_true(read->window_us == result->updates->window_us && read->delay_mean == result->updates->delay_mean);
    assert_memory_equal(read->of_delay, result->updates->of_delay, sizeof read->of_delay);
    cJSON_Delete(json);
    trial_updates_free(read);
}

/* What holds of every trial that is complete; the caller releases the result. */
static void complete_of(const char *model, const char *cluster, const char *strategy, struct trial_result *out) {
    run_of(model, cluster, strategy, NULL, out);
    assert_string_equal(out->reason, "");
    assert_int_equal(out->ending, TRIAL_COMPLETE);
    assert_int_equal(out->n, ROUNDS);
    const struct trial_updates *u = out->updates;
    assert_non_null(u);
    assert_int_equal(u->n_workers, WORKERS);
    assert_true(u->window_us > 0);
    double window_us = 0;
    for (uint32_t i = 0; i < out->n; i++)
        window_us += out->time_us[i];
    assert_close(u->window_us, window_us, 1e-3);
    assert_close(trial_updates_each_us(u) * trial_updates_rate(u), 1e6, 1e-9);
    /* 16 samples of a, 16 of c and 1 of d with every model that a worker got. */
    uint32_t iterations = 0;
    for (uint32_t w = 0; w < WORKERS; w++) {
        iterations += u->workers[w].iterations;
        assert_true(u->workers[w].mean_us >= COMPUTE_US * (w + 1 == WORKERS ? SLOW : 1));
    }
    assert_int_equal(out->checked, iterations * 33);
    expect_recorded(out);
}

static void complete(const char *strategy, struct trial_result *out) {
    complete_of(model_text, CLUSTER("1"), strategy, out);
}

static bool worker_is_there(void **state) {
    return *(bool *)*state;
}

#define NEED_WORKER(state)                                                                                             \
    if (!worker_is_there(state))                                                                                       \
    skip()

static void fast_workers_do_not_wait_for_a_slow_one(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    complete(ON("n1", ASYNCHRONOUS), &result);
    const struct trial_updates *u = result.updates;
    assert_true(u->workers[0].iterations > 2 * u->workers[2].iterations);
    assert_int_equal(u->dropped, 0);
    assert_close(u->useful, ROUNDS * WORKERS, 1e-9);
    assert_close(sum_of_delays(u), 3 * ROUNDS * WORKERS, 1e-9); /* each of three messages has a delay */
    assert_true(u->delay_largest > WORKERS - 1);                /* of the slow one: two others go on meanwhile */
    trial_result_release(&result);
}

static void an_update_over_the_bound_is_dropped(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    complete(ON("n1", BOUNDED), &result);
    const struct trial_updates *u = result.updates;
    assert_true(u->late > 0);
    assert_int_equal(u->dropped, 0);
    assert_true(u->delay_largest <= 1);
    assert_close(u->of_delay[0] + u->of_delay[1], sum_of_delays(u), 1e-9);
    assert_close(trial_updates_dropped(u), u->late / (u->late + u->useful), 1e-9);
    trial_result_release(&result);
}

static void staleness_0_is_a_round_of_all_workers(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    complete(ON("n1", STALE("0")), &result);
    const struct trial_updates *u = result.updates;
    for (int d = 0; d < WORKERS; d++)
        assert_close(u->of_delay[d] / sum_of_delays(u), 1.0 / WORKERS, 1e-9);
    assert_true(u->delay_largest == WORKERS - 1);
    for (uint32_t w = 0; w < WORKERS; w++)
        assert_int_equal(u->workers[w].iterations, ROUNDS + 2);
    assert_true(result.median_us >= COMPUTE_US * SLOW * 0.99);
    trial_result_release(&result);
}

/* The slow worker sets the pace; none gets further ahead than K, nor its updates older than that allows. */
static void staleness_bounds_the_lead_and_the_delay(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    enum { K = 2 };
    complete(ON("n1", STALE("2")), &result);
    const struct trial_updates *u = result.updates;
    for (uint32_t w = 0; w + 1 < WORKERS; w++) {
        assert_true(u->workers[w].iterations <= u->workers[WORKERS - 1].iterations + K + 1);
        assert_true(u->workers[w].iterations >= u->workers[WORKERS - 1].iterations);
    }
    assert_true(u->delay_largest <= (2 * K + 1) * (WORKERS - 1));
    assert_int_equal(u->dropped, 0);
    trial_result_release(&result);
}

/* The slow worker's update is always over the bound, which the scheduler knows before it is sent. Nobody is overtaken
 * beyond the bound, so nothing comes late. */
static void a_scheduler_drops_at_the_worker_what_cannot_keep_the_bound(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    complete(ON("n1", ASYNCHRONOUS ",\"delay_bound\":2" SCHEDULED), &result);
    const struct trial_updates *u = result.updates;
    assert_true(u->dropped > 0);
    assert_int_equal(u->late, 0);
    assert_true(u->delay_largest <= 2);
    assert_close(u->useful, ROUNDS * WORKERS, 1e-9);
    assert_close(trial_updates_dropped(u), u->dropped / (u->dropped + u->useful), 1e-9);
    assert_true(u->workers[0].iterations > 2 * u->workers[2].iterations);
    trial_result_release(&result);
}

static void without_a_bound_a_scheduler_drops_nothing(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    complete(ON("n1", ASYNCHRONOUS ",\"scheduler\":{\"batch_us\":2000,\"order\":\"slots\"}"), &result);
    const struct trial_updates *u = result.updates;
    assert_close(u->dropped + u->late, 0, 0);
    assert_true(u->delay_largest > WORKERS - 1);
    assert_close(sum_of_delays(u), 3 * ROUNDS * WORKERS, 1e-9);
    trial_result_release(&result);
}

/* All updates of an iteration are computed from one version and make the next one. A batch is ordered when the slow
 * worker's update is there, for then nobody is left to come: with batches of a second the run would take half a minute.
 */
static void synchronous_updates_of_an_iteration_make_one_version(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    complete(ON("n1", SYNCHRONOUS ",\"scheduler\":{\"batch_us\":1000000}"), &result);
    const struct trial_updates *u = result.updates;
    assert_close(u->of_delay[0], 3 * ROUNDS * WORKERS, 1e-9);
    assert_close(u->dropped + u->late, 0, 0);
    for (uint32_t w = 0; w < WORKERS; w++)
        assert_int_equal(u->workers[w].iterations, ROUNDS + 2);
    assert_true(result.median_us >= COMPUTE_US * SLOW * 0.99);
    assert_true(u->window_us < ROUNDS * 1e6 / 2);
    trial_result_release(&result);
}

/* A sum has all numbers of its updates, or the server ends the run. */
static void sums_of_aggregators_keep_the_bound_and_the_numbers(void **state) {
    NEED_WORKER(state);
    static const char *const members[] = {ON("n1", ASYNCHRONOUS ",\"delay_bound\":30" AGGREGATED("20000")),
                                          ON("n1", ASYNCHRONOUS ",\"delay_bound\":4" AGGREGATED("20000")),
                                          ON("n1", SYNCHRONOUS AGGREGATED("1000000"))};
    static const int most[] = {30, 4, 0};
    for (int i = 0; i < 3; i++) {
        struct trial_result result;
        complete_of(dense_text, narrow, members[i], &result);
        assert_true(result.updates->delay_largest <= most[i]);
        assert_true(most[i] == 4 || result.updates->summed > 0);
        assert_close(sum_of_delays(result.updates), 3 * ROUNDS * WORKERS, 1e-9);
        trial_result_release(&result);
    }
}

static void many_rounds(struct trial_request *request) {
    request->iterations = 300;
}

/* By node: a worker beside the server, two of another node's that get the model through their relay, and two more to
 * whose relay that one passes it on. Every model is checked, and that it is the version that is due. In many rounds
 * some model goes out when an update has come in part, so that its parts have different versions. */
static void models_are_passed_on_by_nodes_of_workers(void **state) {
    NEED_WORKER(state);
    static const char pairs[] =
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":["
        "{\"name\":\"n1\",\"devices\":1,\"device\":\"cpu\",\"nic_gbit_per_s\":0.1},"
        "{\"name\":\"n2\",\"devices\":2,\"device\":\"cpu\",\"device_link_gbyte_per_s\":10,\"nic_gbit_per_s\":1},"
        "{\"name\":\"slow\",\"devices\":2,\"device\":\"cpu\",\"device_link_gbyte_per_s\":10,\"nic_gbit_per_s\":1,"
        "\"compute_scale\":2}]}";
    static const char *const members[] = {ON("n1", SYNCHRONOUS ",\"scheduler\":{\"batch_us\":5000,\"distributors\":1}"),
                                          ON("n1", ASYNCHRONOUS
                                             ",\"delay_bound\":5,\"scheduler\":{\"batch_us\":10000,\"distributors\":1,"
                                             "\"aggregators\":[\"n2\",\"slow\"]}")};
    for (int i = 0; i < 2; i++) {
        struct trial_result result;
        uint32_t iterations = 0;
        run_of(dense_text, pairs, members[i], i == 0 ? NULL : many_rounds, &result);
        assert_string_equal(result.reason, "");
        for (uint32_t w = 0; w < 5; w++)
            iterations += result.updates->workers[w].iterations;
        assert_int_equal(result.checked, iterations * 33);
        assert_true(result.updates->passed > 0);
        assert_true(result.updates->delay_largest <= (i == 0 ? 0 : 5));
        trial_result_release(&result);
    }
}

/* Each of two servers applies its parts in its own order, and the first one's count ends the run. */
static void two_servers_end_together(void **state) {
    NEED_WORKER(state);
    static const char *const members[] = {ON("slow", ASYNCHRONOUS), ON("slow", BOUNDED), ON("slow", STALE("0")),
                                          ON("slow", STALE("1"))};
    for (int i = 0; i < 4; i++) {
        struct trial_result result;
        complete(members[i], &result);
        trial_result_release(&result);
    }
}

/* The parts of an update are ordered as one (MLfabric §10.2), and each goes when its own server is free. */
static void a_scheduler_of_two_servers_keeps_the_bound_at_both(void **state) {
    NEED_WORKER(state);
    static const char *const members[] = {ON("slow", ASYNCHRONOUS ",\"delay_bound\":2" SCHEDULED),
                                          ON("slow", ASYNCHRONOUS SCHEDULED), ON("slow", SYNCHRONOUS SCHEDULED),
                                          ON("slow", STALE("1") SCHEDULED)};
    for (int i = 0; i < 4; i++) {
        struct trial_result result;
        complete(members[i], &result);
        const struct trial_updates *u = result.updates;
        assert_int_equal(u->late, 0);
        assert_true(i == 0 ? u->dropped > 0 && u->delay_largest <= 2 : u->dropped == 0);
        trial_result_release(&result);
    }
}

static void fault_sum(struct trial_request *request) {
    request->fault = "sum";
}

static void a_wrong_update_fails_the_trial(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    static const char *const members[] = {ON("n1", ASYNCHRONOUS), ON("n1", SYNCHRONOUS SCHEDULED)};
    for (int i = 0; i < 2; i++) {
        run(members[i], fault_sum, &result);
        assert_int_equal(result.ending, TRIAL_FAILED);
        assert_contains(result.reason, "wrong update: message 0, iteration 1 of device 2");
        trial_result_release(&result);
    }
}

static void fault_kill(struct trial_request *request) {
    request->fault = "kill";
}

static void a_killed_worker_fails_the_trial_with_a_reason(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    static const char *const members[] = {ON("n1", STALE("1")), ON("n1", ASYNCHRONOUS SCHEDULED)};
    for (int i = 0; i < 2; i++) {
        run(members[i], fault_kill, &result);
        assert_int_equal(result.ending, TRIAL_FAILED);
        assert_contains(result.reason, "signal 9");
        trial_result_release(&result);
    }
}

static void fault_hang(struct trial_request *request) {
    request->fault = "hang";
    request->time_limit_s = 4;
}

/* Of stale-synchronous workers the others wait for it; the asynchronous ones would go on without. */
static void a_hung_worker_fails_the_trial_when_its_time_is_up(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(ON("n1", STALE("1")), fault_hang, &result);
    assert_int_equal(result.ending, TRIAL_FAILED);
    assert_true(result.wall_s >= 4 && result.wall_s < 20);
    trial_result_release(&result);
}

static void ask_for_the_impossible(struct trial_request *request) {
    request->stop_if_slower_than_us = COMPUTE_US / 4;
    request->iterations = 2000;
}

static void a_hopeless_trial_stops_early(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    run(ON("n1", STALE("0")), ask_for_the_impossible, &result);
    assert_int_equal(result.ending, TRIAL_STOPPED_EARLY);
    assert_int_equal(result.n, TRIAL_HOPELESS_AFTER);
    trial_result_release(&result);
}

/* ---- learning ---- */

enum { MOST_WEIGHTS = 256 };
static struct training_options learns;

static void learn(struct trial_request *request) {
    request->training = learns;
    request->warmup = 0;
}

/* `w` after a round of `workers` updates from the same weights, which make one version or one each. */
static void descend(const struct training *t, uint32_t workers, uint32_t versions, uint32_t round, double *change,
                    double *w) {
    double gradients[WORKERS][MOST_WEIGHTS];
    for (uint32_t d = 0; d < workers; d++) {
        uint32_t batch[TRAINING_BATCH];
        training_draw(t, 0, d, round, batch);
        training_loss(t, TRAINING_BATCH, batch, w, gradients[d]);
    }
    for (uint32_t d = 0; d < workers; d++)
        for (uint32_t k = 0; k < t->n_weights; k++) {
            const double last = d % (workers / versions) == 0 ? learns.momentum * change[k] : change[k];
            change[k] = last - learns.rate * gradients[d][k];
            w[k] += (d + 1) % (workers / versions) == 0 ? change[k] : 0;
        }
}

/* A round makes so many versions, and the loss of each is told, to a relative precision. */
static void check_losses(const struct trial_training *u, uint32_t workers, uint32_t versions, double precision) {
    struct training t;
    struct error err = {0};
    double w[MOST_WEIGHTS], change[MOST_WEIGHTS] = {0}, best[MOST_WEIGHTS], least;
    uint32_t reached = 0;
    assert_ok(training_init(&t, learns.task, &err));
    assert_true(u->given && u->n_losses > 0);
    training_begin(&t, w);
    assert_close(u->first, training_loss(&t, 0, NULL, w, NULL), 1e-12);
    assert_ok(training_solve(&t, best, &least, &err));
    assert_true(fabs(u->least - least) < 1e-12);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        descend(&t, workers, versions, round, change, w);
        const double loss = training_loss(&t, 0, NULL, w, NULL);
        const struct trial_loss *told = &u->losses[(round + 1) * versions - 1];
        assert_close(told->update, (round + 1) * workers, 0);
        assert_close(told->loss, loss, precision);
        if (reached == 0 && loss <= u->target)
            reached = round + 1;
    }
    assert_close(u->last, u->losses[u->n_losses - 1].loss, 1e-12);
    assert_int_equal(u->reached, reached > 0);
    if (workers == 1)
        assert_close(u->reached_update, reached, 0);
    training_release(&t);
}

static void one_worker_descends_as_gradient_descent_with_momentum(void **state) {
    NEED_WORKER(state);
    static const char alone[] =
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n1\",\"devices\":1,"
        "\"device\":\"cpu\",\"nic_gbit_per_s\":1}]}";
    static const enum training_task tasks[] = {TRAINING_SOFTMAX, TRAINING_TWO_LAYER};
    for (int i = 0; i < 2; i++) {
        struct trial_result result;
        learns = (struct training_options){.task = tasks[i], .rate = 0.05, .momentum = 0.5, .target = 0.7};
        run_on(alone, ON("n1", ASYNCHRONOUS), learn, &result);
        assert_string_equal(result.reason, "");
        assert_true(result.updates->delay_largest == 0);
        check_losses(&result.training, 1, 1, 1e-9);
        trial_result_release(&result);
    }
}

static void synchronous_workers_descend_by_the_sum_of_their_gradients(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    learns = (struct training_options){.task = TRAINING_SOFTMAX, .rate = 0.1, .target = 0.01};
    run(ON("slow", STALE("0")), learn, &result);
    assert_string_equal(result.reason, "");
    check_losses(&result.training, WORKERS, WORKERS, 1e-9);
    assert_false(result.training.reached);
    trial_result_release(&result);
}

/* One version, one step of the momentum. */
static void scheduled_synchronous_workers_descend_with_momentum(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    learns = (struct training_options){.task = TRAINING_SOFTMAX, .rate = 0.1, .momentum = 0.5, .target = 0.01};
    run(ON("n1", SYNCHRONOUS SCHEDULED), learn, &result);
    assert_string_equal(result.reason, "");
    check_losses(&result.training, WORKERS, 1, 1e-9);
    trial_result_release(&result);
    run_of(dense_text, narrow, ON("n1", SYNCHRONOUS AGGREGATED("1000000")), learn, &result);
    assert_string_equal(result.reason, "");
    assert_true(result.updates->summed > 0);
    check_losses(&result.training, WORKERS, 1, 1e-9);
    trial_result_release(&result);
}

/* Plans without a "consistency": `a` and b in one message or several, c and d in others. */
#define PLAIN(schedule, a)                                                                                             \
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" schedule "},\"groups\":["                     \
    "{\"id\":0,\"algorithm\":\"ring\"},{\"id\":1,\"algorithm\":\"tree\",\"partition_bytes\":4096},"                    \
    "{\"id\":2,\"algorithm\":\"recursive_doubling\"},{\"id\":3,\"algorithm\":\"halving_doubling\"},"                   \
    "{\"id\":4,\"algorithm\":\"hierarchical\"},{\"id\":5,\"algorithm\":\"ring\"},{\"id\":6,\"algorithm\":\"ring\"},"   \
    "{\"id\":7,\"algorithm\":\"all_gather\"}],\"variables\":["                                                         \
    "{\"name\":\"a\",\"sync\":" a "},{\"name\":\"b\",\"sync\":" REDUCED(                                               \
        "0") "},"                                                                                                      \
             "{\"name\":\"c\",\"sync\":" REDUCED("5") "},{\"name\":\"d\",\"sync\":" REDUCED("6") "}]}"
#define REDUCED(group) "{\"kind\":\"all_reduce\",\"group\":" group "}"
#define PUSHED(more)   "{\"kind\":\"parameter_server\",\"servers\":[\"pair\"]," more "}"
#define BARRIER        "\"policy\":\"fifo\",\"credit_bytes\":0,\"cross_iteration\":false"
#define CROSSING       "\"policy\":\"priority\",\"credit_bytes\":5000,\"cross_iteration\":true"

static void spoil_while_learning(struct trial_request *request) {
    learn(request);
    request->fault = "sum";
}

static const char pair_and_one[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":["
    "{\"name\":\"pair\",\"devices\":2,\"device\":\"cpu\",\"nic_gbit_per_s\":1,\"device_link_gbyte_per_s\":10},"
    "{\"name\":\"one\",\"devices\":1,\"device\":\"cpu\",\"nic_gbit_per_s\":1}]}";

/* Every algorithm and server adds the same gradients, in f32; the other bytes are proved as ever. Of 16 samples of the
 * first message one lies in the weights, of a message of 1024 elements three. */
static void synchronous_plans_descend_alike(void **state) {
    NEED_WORKER(state);
    static const struct {
        const char *model, *strategy;
        uint32_t proved; /* samples of an iteration on a device */
    } of[] = {
        {dense_text, PLAIN(BARRIER, REDUCED("0")), 15 + 16 + 1},
        {dense_text, PLAIN(CROSSING, REDUCED("1")), 13 + 15 * 16 + 7 + 16 + 1},
        {dense_text, PLAIN(BARRIER, REDUCED("2")), 15 + 7 + 16 + 1},
        {dense_text, PLAIN(CROSSING, REDUCED("3")), 15 + 7 + 16 + 1},
        {dense_text, PLAIN(BARRIER, REDUCED("4")), 15 + 7 + 16 + 1},
        {model_text, PLAIN(BARRIER, REDUCED("7")), 15 + 7 + 16 + 1},
        {dense_text, PLAIN(BARRIER, PUSHED("\"local_reduction\":false")), 15 + 7 + 16 + 1},
        {dense_text, PLAIN(CROSSING, PUSHED("\"local_reduction\":true,\"partition_bytes\":10000")),
         15 + 6 * 16 + 7 + 16 + 1},
    };
    static const enum training_task tasks[] = {TRAINING_SOFTMAX, TRAINING_TWO_LAYER};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct trial_result result;
        learns = (struct training_options){.task = tasks[i % 2], .rate = 0.05, .momentum = 0.7, .target = 0.5};
        run_of(of[i].model, pair_and_one, of[i].strategy, learn, &result);
        assert_string_equal(result.reason, "");
        assert_null(result.updates);
        check_losses(&result.training, WORKERS, 1, 1e-5);
        assert_int_equal(result.checked, of[i].proved * WORKERS * ROUNDS);
        trial_result_release(&result);
    }
}

static void doubles_carry_gradients_to_their_last_digits(void **state) {
    NEED_WORKER(state);
    static const char wide[] = "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["
                               "{\"name\":\"a\",\"shape\":[105],\"dtype\":\"f64\"}],\"layers\":[{\"name\":\"1\","
                               "\"forward_us\":1000,\"backward_us\":1000,\"variables\":[\"a\"]}]}";
    static const char strategy[] =
        "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" BARRIER "},\"groups\":[{\"id\":0,"
        "\"algorithm\":\"ring\"}],\"variables\":[{\"name\":\"a\",\"sync\":" REDUCED("0") "}]}";
    struct trial_result result;
    learns = (struct training_options){.task = TRAINING_SOFTMAX, .rate = 0.05, .momentum = 0.9, .target = 0.5};
    run_of(wide, pair_and_one, strategy, learn, &result);
    assert_string_equal(result.reason, "");
    check_losses(&result.training, WORKERS, 1, 1e-12);
    assert_int_equal(result.checked, 0); /* all elements are weights */
    trial_result_release(&result);
}

static void a_wrong_sum_beside_the_weights_fails_the_trial(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    learns = (struct training_options){.task = TRAINING_SOFTMAX, .rate = 0.05, .target = 0.5};
    run_of(dense_text, pair_and_one, PLAIN(BARRIER, REDUCED("2")), spoil_while_learning, &result);
    assert_int_equal(result.ending, TRIAL_FAILED);
    assert_contains(result.reason, "wrong sum: message ");
    trial_result_release(&result);
}

/* The trial goes well; what it learned is no number. */
static void a_rate_that_is_too_high_goes_astray(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    learns = (struct training_options){.task = TRAINING_TWO_LAYER, .rate = 1e6, .momentum = 0.99, .target = 0.01};
    run(ON("n1", ASYNCHRONOUS), learn, &result);
    assert_int_equal(result.ending, TRIAL_COMPLETE);
    assert_false(result.training.reached);
    assert_true(!(result.training.last < 1e6));
    trial_result_release(&result);
}

static void weights_need_room_in_the_largest_message(void **state) {
    (void)state;
    static const char small[] =
        "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["
        "{\"name\":\"a\",\"shape\":[209],\"dtype\":\"f32\"}],\"layers\":[{\"name\":\"1\","
        "\"forward_us\":1,\"backward_us\":1,\"variables\":[\"a\"]}]}";
    static const char strategy[] =
        "{\"schema\":\"syncopate.strategy/"
        "1\",\"name\":\"s\",\"schedule\":{\"policy\":\"fifo\",\"cross_iteration\":false}"
        ",\"consistency\":{" ASYNCHRONOUS "},\"groups\":[],\"variables\":[" SERVED("a", "n1", "") "]}";
    struct subject subject;
    struct trial_result result;
    struct error err = {0};
    subject_init_of(&subject, small, CLUSTER("1"), strategy);
    struct trial_request request = request_for(&subject);
    request.training = (struct training_options){.task = TRAINING_SOFTMAX, .rate = 1, .target = 0.1};
    assert_ok(trial_run(&request, &result, &err));
    assert_int_equal(result.ending, TRIAL_INFEASIBLE);
    assert_string_equal(result.reason, "the largest message has 836 bytes, and softmax has 840 bytes of weights");
    trial_result_release(&result);
    subject_release(&subject);
}

static void refused(const char *strategy, void (*change)(struct trial_request *), const char *why) {
    struct subject subject;
    struct trial_result result;
    struct error err = {0};
    subject_init(&subject, CLUSTER("1"), strategy);
    struct trial_request request = request_for(&subject);
    if (change)
        change(&request);
    assert_fails(trial_run(&request, &result, &err), ST_INVALID, why);
    subject_release(&subject);
}

static void use_nccl(struct trial_request *request) {
    request->launcher.worker = TRIAL_WORKER_NCCL;
}

static void take_interval(void *context, const struct trial_interval *interval) {
    (void)context, (void)interval;
}

static void ask_for_a_trace(struct trial_request *request) {
    request->on_interval = take_interval;
}

static void learn_by_nccl(struct trial_request *request) {
    learn(request);
    use_nccl(request);
}

/* `a` is encoded. */
static const char all_of_bf16[] =
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"s\",\"schedule\":{" BARRIER "},\"groups\":[{\"id\":0,"
    "\"algorithm\":\"ring\"},{\"id\":1,\"algorithm\":\"ring\"},{\"id\":2,\"algorithm\":\"ring\"}],"
    "\"variables\":[{\"name\":\"a\",\"encoding\":\"bf16\",\"sync\":" REDUCED(
        "0") "},{\"name\":\"b\",\"encoding\":\"bf16\",\"sync\":" REDUCED("0") "},{\"name\":\"c\","
                                                                              "\"sync\":" REDUCED("1") "},{"
                                                                                                       "\"name\":"
                                                                                                       "\"d\","
                                                                                                       "\"sync\""
                                                                                                       ":" REDUCED(
                                                                                                           "2") "}]}";

static void what_no_worker_runs_is_refused_before_it_starts(void **state) {
    (void)state;
    refused(ON("n1", ASYNCHRONOUS ",\"scheduler\":{},\"replica\":{\"node\":\"n2\",\"divergence\":1}"), NULL,
            "trials do not run s with the replica \"n2\": variables have several types");
    refused(ON("n1", ASYNCHRONOUS), use_nccl, "which the MPI worker alone runs");
    refused(ON("n1", STALE("1")), ask_for_a_trace, "whose trials are not traced");
    learns = (struct training_options){.task = TRAINING_SOFTMAX, .rate = 0.1, .target = 0.5};
    refused(all_of_bf16, learn, "the largest message travels as bf16; softmax is learned over f32 or f64");
    refused(PLAIN(BARRIER, REDUCED("0")), learn_by_nccl, "softmax is learned by the MPI worker alone");
}

static void use_slow_lab(struct trial_request *request) {
    request->launcher.kind = LAUNCHER_LAB;
    request->iterations = 15;
}

/* With K = 0 the updates of n2 and of the slow node pass the server's NIC in every round: of `a` alone 25,600 bytes
 * each, at 0.625 bytes a us. The shaper lets a burst of 256 KB pass. */
static void a_lab_takes_as_long_as_its_server_must(void **state) {
    NEED_WORKER(state);
    struct trial_result result;
    if (!test_lab_possible())
        skip();
    run_on(CLUSTER("0.005"), ON("n1", STALE("0")), use_slow_lab, &result);
    assert_string_equal(result.reason, "");
    assert_true(result.updates->window_us > (15 * 2 * 25600 - 256000) / 0.625);
    trial_result_release(&result);
}

static void play_weather(struct trial_request *request) {
    request->launcher.kind = LAUNCHER_LAB;
    request->iterations = 10;
    request->weather = 1;
}

/* Each worker takes three times as long in each iteration. */
static void weather_slows_workers_down(void **state) {
    NEED_WORKER(state);
    static const char in_weather[] =
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":2,\"devices\":1,"
        "\"device\":\"cpu\",\"nic_gbit_per_s\":1}],\"variability\":{\"compute\":{\"share\":1,\"factor\":3}}}";
    struct trial_result result;
    if (!test_lab_possible())
        skip();
    run_on(in_weather, ON("n1", ASYNCHRONOUS), play_weather, &result);
    assert_string_equal(result.reason, "");
    assert_true(result.updates->workers[0].mean_us >= 3 * COMPUTE_US);
    assert_contains(result.environment, "\"weather\":1");
    trial_result_release(&result);
}

/* In a process of its own, which dies by SIGKILL in the middle. */
static void kill_owner_of(const char *strategy) {
    int ready[2];
    struct subject subject;
    subject_init_of(&subject, dense_text, narrow, strategy);
    struct trial_request request = request_for(&subject);
    request.iterations = 100000;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct trial_result result;
        (void)!write(ready[1], "y", 1);
        trial_run(&request, &result, NULL);
        _exit(1);
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (int i = 0; i < 1000 && entries_with(getenv("TMPDIR"), "syncopate-") == 0; i++)
        clock_sleep_us(1000);
    clock_sleep_us(700000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(descendants_vanish());
    assert_int_equal(entries_with(getenv("TMPDIR"), "syncopate-"), 0);
    close(ready[0]);
    close(ready[1]);
    subject_release(&subject);
}

static void nothing_is_left_when_its_owner_is_killed(void **state) {
    NEED_WORKER(state);
    kill_owner_of(ON("n1", ASYNCHRONOUS));
    kill_owner_of(ON("n1", ASYNCHRONOUS GROUPED("20000", ",\"distributors\":1")));
}

static void lines_that_make_no_sense_change_nothing(void **state) {
    (void)state;
    struct trial_updates *u = trial_updates_new(2);
    static const char *const lines[] = {"{\"device\":2,\"iterations\":7,\"mean_us\":1}",
                                        "{\"device\":-1,\"iterations\":1e300}", "{}", "[]", "7"};
    for (int i = 0; i < 5; i++) {
        cJSON *line = parsed(lines[i], "text");
        trial_updates_take(u, "worker", line);
        trial_updates_take(u, "updates", line);
        trial_updates_take(u, "loss", line);
        trial_updates_take(u, "other", line);
        cJSON_Delete(line);
    }
    assert_int_equal(u->workers[0].iterations + u->workers[1].iterations, 0);
    assert_close(trial_updates_rate(u) + trial_updates_each_us(u) + trial_updates_dropped(u), 0, 0);
    char text[2048] = "{\"useful\":6,\"dropped\":1,\"late\":1,\"window_us\":3000,\"delays\":[";
    for (int d = 0; d < TRIAL_DELAYS + 9; d++)
        strcat(text, "1,");
    strcat(text, "\"x\"]}");
    cJSON *line = parsed(text, "text");
    trial_updates_take(u, "updates", line);
    cJSON_Delete(line);
    assert_close(trial_updates_rate(u), 2000, 1e-12);
    assert_close(trial_updates_each_us(u), 500, 1e-12);
    assert_close(trial_updates_dropped(u), 0.25, 1e-12);
    assert_close(sum_of_delays(u), TRIAL_DELAYS, 0);
    trial_updates_free(u);
    struct trial_training training = {0};
    for (int i = 0; i < TRIAL_LOSSES + 9; i++)
        trial_training_take(&training, "loss", NULL);
    assert_int_equal(training.n_losses, TRIAL_LOSSES);
    trial_training_take(&training, "training", NULL);
    assert_true(training.given && !training.reached && isnan(training.last));
}

/* The worker lies in bin/ beside tests/: OUT/tests/unit/trial-runner/test_updates; SYNCOPATE_WORKER names another. */
static int setup(void **state) {
    static bool possible;
    assert_int_equal(adopt_orphans(state), 0);
    const char *other = getenv("SYNCOPATE_WORKER");
    ssize_t n = readlink("/proc/self/exe", worker, sizeof worker - 64);
    for (int i = 0; i < 4 && n > 0; i++)
        *strrchr(worker, '/') = '\0';
    strcat(worker, "/bin/syncopate-worker-mpi");
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
        cmocka_unit_test(fast_workers_do_not_wait_for_a_slow_one),
        cmocka_unit_test(an_update_over_the_bound_is_dropped),
        cmocka_unit_test(staleness_0_is_a_round_of_all_workers),
        cmocka_unit_test(staleness_bounds_the_lead_and_the_delay),
        cmocka_unit_test(a_scheduler_drops_at_the_worker_what_cannot_keep_the_bound),
        cmocka_unit_test(without_a_bound_a_scheduler_drops_nothing),
        cmocka_unit_test(synchronous_updates_of_an_iteration_make_one_version),
        cmocka_unit_test(sums_of_aggregators_keep_the_bound_and_the_numbers),
        cmocka_unit_test(models_are_passed_on_by_nodes_of_workers),
        cmocka_unit_test(two_servers_end_together),
        cmocka_unit_test(a_scheduler_of_two_servers_keeps_the_bound_at_both),
        cmocka_unit_test(a_wrong_update_fails_the_trial),
        cmocka_unit_test(a_killed_worker_fails_the_trial_with_a_reason),
        cmocka_unit_test(a_hung_worker_fails_the_trial_when_its_time_is_up),
        cmocka_unit_test(a_hopeless_trial_stops_early),
        cmocka_unit_test(one_worker_descends_as_gradient_descent_with_momentum),
        cmocka_unit_test(synchronous_workers_descend_by_the_sum_of_their_gradients),
        cmocka_unit_test(scheduled_synchronous_workers_descend_with_momentum),
        cmocka_unit_test(synchronous_plans_descend_alike),
        cmocka_unit_test(doubles_carry_gradients_to_their_last_digits),
        cmocka_unit_test(a_wrong_sum_beside_the_weights_fails_the_trial),
        cmocka_unit_test(a_rate_that_is_too_high_goes_astray),
        cmocka_unit_test(weights_need_room_in_the_largest_message),
        cmocka_unit_test(what_no_worker_runs_is_refused_before_it_starts),
        cmocka_unit_test(a_lab_takes_as_long_as_its_server_must),
        cmocka_unit_test(weather_slows_workers_down),
        cmocka_unit_test(nothing_is_left_when_its_owner_is_killed),
        cmocka_unit_test(lines_that_make_no_sense_change_nothing),
    };
    return cmocka_run_group_tests_name("updates", tests, setup, NULL);
}
