/* An iteration is a wait for the end of the compute, in which the gradient of what is learned is computed, a push to
 * every server and the models that come back. The servers hold a model back where this worker has to wait for others.
 */
#include "trial-runner/worker/mpi/update_worker.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "strategy/weather.h"
#include "trial-runner/worker/mpi/update_kept.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/requests.h"

enum { PROGRESS_US = 500 };

struct update_worker {
    const struct update_run *run;
    struct requests requests;
    char **pushes, **models;     /* [n_messages] */
    uint32_t n_models, n_pushes; /* that are on their way */
    int server;                  /* rank of the largest message's */
    enum update_phase phase;
    struct update_head control; /* the next control message, where there is a scheduler */
    struct update_head told;    /* what the scheduler said last of this update */
    bool is_told;
    struct update_kept kept; /* where there is a replica, as the next four */
    uint32_t epoch;          /* 1 after its takeover, else 0 */
    bool released;
    double beat_us;           /* this worker's last sign of life */
    struct update_head model; /* the head of the last whole model */
    double norm;              /* of the update: how far it moves the weights; 1 where nothing is learned */
    double compute_us;        /* of an iteration, on a device with compute_scale 1 */
    double measured_us;       /* when the first measured iteration began */
    struct update_worker_result result;
};

static void worker_init(struct update_worker *w, const struct update_run *run) {
    const struct plan *plan = run->plan;
    *w = (struct update_worker){.run = run, .server = run->server, .norm = 1};
    w->pushes = report_alloc(plan->n_messages, sizeof *w->pushes);
    w->models = report_alloc(plan->n_messages, sizeof *w->models);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        w->pushes[m] = update_kept_buffer(&w->kept, &run->forms[m]);
        w->models[m] = update_kept_buffer(&w->kept, &run->forms[m]);
        memset(w->pushes[m], 0, update_bytes(&run->forms[m])); /* touched before the run begins */
        memset(w->models[m], 0, update_bytes(&run->forms[m]));
    }
    if (run->training.n_weights > 0)
        training_begin(&run->training, update_weights(w->models[run->largest]));
    for (uint32_t k = 0; k < plan->n_steps; k++)
        w->compute_us += plan->step_us[k];
}

static void worker_release(struct update_worker *w) {
    requests_end(&w->requests);
    for (uint32_t m = 0; m < w->run->plan->n_messages; m++) {
        pool_give(&w->kept.pool, w->pushes[m]);
        pool_give(&w->kept.pool, w->models[m]);
    }
    free(w->pushes);
    free(w->models);
    update_kept_release(&w->kept);
}

static bool keeps_updates(const struct update_worker *w) {
    return w->run->replica >= 0;
}

static bool strikes_here(const struct update_worker *w) {
    const struct world *world = w->run->world;
    return w->result.iterations == 1 && world->device + 1 == world->cluster->n_devices;
}

static void strike(const struct update_worker *w) {
    if (w->run->options->fault == FAULT_KILL)
        raise(SIGKILL);
    while (w->run->options->fault == FAULT_HANG)
        pause();
}

static bool progress(struct update_worker *w);

static double scale(const struct update_worker *w) {
    const struct world *world = w->run->world;
    const uint64_t seed = w->run->options->weather;
    const double slowness =
        seed ? weather_device_slowness(world->cluster, seed, world->device, w->result.iterations) : 1;
    return world_node(world)->compute_scale * slowness;
}

/* What the weights should change by, in front of the largest message. */
static void learn(struct update_worker *w) {
    const struct update_run *run = w->run;
    double *change = update_weights(w->pushes[run->largest]), sum = 0;
    if (run->training.n_weights == 0)
        return;
    training_change(&run->training, run->options->training.rate, run->options->weather, run->world->device,
                    w->result.iterations, update_weights(w->models[run->largest]), change);
    for (uint32_t k = 0; k < run->training.n_weights; k++)
        sum += change[k] * change[k];
    w->norm = sqrt(sum);
}

/* A worker whose updates are kept also answers while it computes. */
static void compute(struct update_worker *w, double start_us) {
    const double end_us = start_us + w->compute_us * scale(w);
    learn(w);
    for (double left; (left = end_us - clock_now_us()) > 0;) {
        if (keeps_updates(w))
            progress(w);
        clock_sleep_us(keeps_updates(w) && left > PROGRESS_US ? PROGRESS_US : left);
    }
}

static void fill(struct update_worker *w, const struct update_form *form) {
    enum { MORE_THAN_ANY_VALUE = 50 };
    const struct update_run *run = w->run;
    char *push = w->pushes[form->number];
    *update_head_of(push) = (struct update_head){.kind = UPDATE_PUSH,
                                                 .worker = run->world->device,
                                                 .iteration = w->result.iterations,
                                                 .version = update_head_of(w->models[form->number])->version};
    for (uint32_t k = 0; k < form->n_samples; k++)
        update_store(form, push, k, update_value(run, form, run->world->device, w->result.iterations, k));
    if (run->options->fault == FAULT_SUM && strikes_here(w))
        update_store(form, push, 0, MORE_THAN_ANY_VALUE);
}

static int server_of(const struct update_worker *w, const struct update_form *form) {
    return form->number == w->run->largest ? w->server : w->run->world->server_rank[form->message->server];
}

static void send(struct update_worker *w, const struct update_form *form, int units, int rank) {
    w->n_pushes++;
    MPI_Isend(w->pushes[form->number], units, w->run->unit, rank, (int)form->number, w->run->world->pushes,
              requests_add(&w->requests, (struct completion){.kind = DONE_PUSH, .message = form->number}));
}

static void receive(struct update_worker *w, const struct update_form *form) {
    const bool passed = w->run->plan->consistency.distributors > 0;
    w->n_models++;
    MPI_Irecv(w->models[form->number], form->units, w->run->unit, passed ? MPI_ANY_SOURCE : server_of(w, form),
              (int)form->number, w->run->world->pushes,
              requests_add(&w->requests, (struct completion){.kind = DONE_PULL, .message = form->number}));
}

static void tell(struct update_worker *w, const struct update_head *head) {
    requests_send_copy(&w->requests, head, sizeof *head, w->server, w->run->control, w->run->world->pushes);
}

static void tell_ready(struct update_worker *w) {
    const struct update_run *run = w->run;
    const size_t bytes = sizeof(struct update_head) + run->n_servers * sizeof(uint64_t);
    struct update_head *ready = report_alloc(bytes, 1);
    uint64_t *versions = (uint64_t *)(void *)(ready + 1);
    *ready = *update_head_of(w->pushes[run->largest]);
    ready->kind = UPDATE_READY;
    ready->norm = w->norm;
    for (uint32_t s = 0; s < run->n_servers; s++)
        versions[s] = update_head_of(w->pushes[run->first_of[s]])->version;
    requests_send_copy(&w->requests, ready, bytes, w->server, run->control, run->world->pushes);
    free(ready);
}

/* ---- what the scheduler and the replica say ---- */

static void listen(struct update_worker *w) {
    MPI_Irecv(&w->control, sizeof w->control, MPI_BYTE, MPI_ANY_SOURCE, w->run->control, w->run->world->pushes,
              requests_add(&w->requests, (struct completion){.kind = DONE_GO}));
}

static void tell_state(struct update_worker *w) {
    struct update_head state = w->model;
    state.kind = UPDATE_STATE;
    state.worker = w->run->world->device;
    state.iteration = w->result.iterations;
    state.to = (int)w->phase;
    state.updates = w->kept.sent;
    tell(w, &state);
}

/* A message that may have come in part stays MPI's. */
static void wait_for_replica(struct update_worker *w) {
    const struct update_form *form = &w->run->forms[0];
    requests_forget(&w->requests, DONE_PULL);
    w->n_models = 0;
    w->models[0] = update_kept_buffer(&w->kept, form);
    receive(w, form);
}

/* The server is dead: what is on its way to it or from it never ends. */
static void follow_replica(struct update_worker *w) {
    requests_forget(&w->requests, DONE_PUSH);
    requests_forget(&w->requests, DONE_CONTROL_SEND);
    w->n_pushes = 0;
    w->server = w->run->replica;
    w->epoch = 1;
    update_kept_ask_all(&w->kept);
    tell_state(w);
    if (w->phase == PHASE_READY || w->phase == PHASE_WAITS)
        wait_for_replica(w);
    if (w->phase == PHASE_READY)
        tell_ready(w);
}

static void take_control(struct update_worker *w) {
    const struct update_head head = w->control;
    listen(w);
    switch (head.kind) {
    case UPDATE_GO:
    case UPDATE_DROP:
        if (head.epoch != w->epoch) /* a word of the dead */
            return;
        w->told = head;
        w->is_told = true;
        return;
    case UPDATE_COPY:
        if (head.epoch == w->epoch)
            update_kept_ask(&w->kept, head.iteration);
        return;
    case UPDATE_TAKEOVER:
        follow_replica(w);
        return;
    case UPDATE_BYE:
        w->released = true;
        return;
    default:
        report_abort(ST_TRIAL, "a worker was told what it cannot understand");
    }
}

static void take(struct update_worker *w, const struct completion *done) {
    switch (done->kind) {
    case DONE_GO:
        take_control(w);
        return;
    case DONE_CONTROL_SEND:
        free(done->buffer);
        return;
    case DONE_COPY:
        update_kept_left(&w->kept, done->buffer);
        return;
    case DONE_PULL:
        w->n_models--;
        return;
    default: /* DONE_PUSH */
        w->n_pushes--;
    }
}

/* What completes in `done` may be forgotten by what comes before it there. */
static bool progress(struct update_worker *w) {
    const uint32_t epoch = w->epoch;
    const int n = requests_poll(&w->requests);
    for (int i = 0; i < n; i++)
        if (epoch == w->epoch || (w->requests.done[i].kind != DONE_PULL && w->requests.done[i].kind != DONE_PUSH))
            take(w, &w->requests.done[i]);
    if (keeps_updates(w) && w->n_pushes == 0)
        update_kept_send(&w->kept, w->run, &w->requests);
    if (keeps_updates(w))
        update_beat(w->run, &w->requests, w->server, 0, 0, &w->beat_us);
    return n > 0;
}

static void wait_for_some(struct update_worker *w) {
    if (!progress(w))
        pause_once();
}

/* ---- an update ---- */

static bool may_go(struct update_worker *w) {
    w->is_told = false;
    while (!w->is_told)
        wait_for_some(w);
    w->phase = PHASE_WAITS;
    return w->told.kind == UPDATE_GO;
}

/* All of the update, or what one of several servers keeps. */
static void send_as_told(struct update_worker *w) {
    const struct update_run *run = w->run;
    for (uint32_t m = 0; m < run->plan->n_messages; m++)
        if (run->n_servers == 1 || server_of(w, &run->forms[m]) == w->told.to)
            send(w, &run->forms[m], run->forms[m].units, w->told.to);
}

/* Tell the scheduler that the update is ready, and send each server's part when it says so. Whether it went, or was
 * dropped. */
static bool send_when_told(struct update_worker *w) {
    w->phase = PHASE_READY;
    tell_ready(w);
    for (uint32_t s = 0; s < w->run->n_servers; s++) {
        if (!may_go(w))
            return false;
        send_as_told(w);
    }
    return true;
}

static bool send_all(struct update_worker *w) {
    const struct update_run *run = w->run;
    for (uint32_t m = 0; m < run->plan->n_messages; m++)
        send(w, &run->forms[m], run->forms[m].units, server_of(w, &run->forms[m]));
    return true;
}

static void check_model(struct update_worker *w, const struct update_form *form) {
    char *model = w->models[form->number];
    const struct update_head *head = update_head_of(model);
    for (uint32_t k = 0; k < form->n_samples; k++)
        if (head->kind != UPDATE_MODEL || !update_holds(form, model, k, head->sums[k]))
            report_abort(ST_TRIAL, "wrong sum: message %u, sample %u of %u, in version %llu of the model, device %u",
                         form->number, k, form->n_samples, (unsigned long long)head->version, w->run->world->device);
    w->result.checked += form->n_samples;
}

static void exchange(struct update_worker *w) {
    const struct update_run *run = w->run;
    for (uint32_t m = 0; m < run->plan->n_messages; m++) {
        fill(w, &run->forms[m]);
        receive(w, &run->forms[m]);
    }
    const bool goes = run->plan->consistency.scheduled ? send_when_told(w) : send_all(w);
    if (goes && keeps_updates(w) && w->epoch == 0) {
        update_kept_add(&w->kept, w->pushes[0]);
        w->pushes[0] = update_kept_buffer(&w->kept, &run->forms[0]);
    }
    while (w->n_models + w->n_pushes > 0)
        wait_for_some(w);
    for (uint32_t m = 0; m < run->plan->n_messages; m++)
        check_model(w, &run->forms[m]);
    w->model = *update_head_of(w->models[run->largest]);
    w->phase = PHASE_COMPUTES;
}

/* Where there is a replica, it may need this worker until the run is over for all. */
static void leave(struct update_worker *w) {
    w->phase = PHASE_LEAVES;
    for (uint32_t m = 0; m < w->run->plan->n_messages; m++) {
        update_head_of(w->pushes[m])->kind = UPDATE_BYE;
        update_head_of(w->pushes[m])->worker = w->run->world->device;
        send(w, &w->run->forms[m], UPDATE_HEAD_UNITS, server_of(w, &w->run->forms[m]));
    }
    while (w->n_pushes > 0 || (keeps_updates(w) && !w->released))
        wait_for_some(w);
}

/* The model of the largest message's part says when the run ends: one server decides for all. */
static bool goes_on(const struct update_worker *w) {
    const struct update_run *run = w->run;
    return update_head_of(w->models[run->largest])->updates < update_target(run);
}

void update_worker_run(const struct update_run *run, struct update_worker_result *out) {
    struct update_worker w;
    worker_init(&w, run);
    MPI_Barrier(MPI_COMM_WORLD);
    const uint32_t warmup = run->options->warmup;
    const double first_us = clock_now_us();
    double now_us = first_us;
    if (run->plan->consistency.scheduled)
        listen(&w);
    while (goes_on(&w)) {
        if (w.result.iterations == warmup)
            w.measured_us = now_us;
        if (strikes_here(&w))
            strike(&w);
        compute(&w, now_us);
        exchange(&w);
        w.result.iterations++;
        now_us = clock_now_us();
    }
    leave(&w);
    const bool short_run = w.result.iterations <= warmup;
    w.result.iteration_us =
        (now_us - (short_run ? first_us : w.measured_us)) / (w.result.iterations - (short_run ? 0 : warmup));
    *out = w.result;
    worker_release(&w);
}
