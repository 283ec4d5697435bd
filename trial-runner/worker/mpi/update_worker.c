/* An iteration is a wait for the end of the compute, in which the gradient of what is learned is computed, a push to
 * every server and the models that come back. The servers hold a model back where this worker has to wait for others.
 */
#include "trial-runner/worker/mpi/update_worker.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "strategy/weather.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/requests.h"

struct update_worker {
    const struct update_run *run;
    struct requests requests;
    char **pushes, **models; /* [n_messages] */
    struct update_head told; /* what the scheduler said last */
    bool is_told;
    double *gradient;   /* [n_weights] */
    double compute_us;  /* of an iteration, on a device with compute_scale 1 */
    double measured_us; /* when the first measured iteration began */
    struct update_worker_result result;
};

static void worker_init(struct update_worker *w, const struct update_run *run) {
    const struct plan *plan = run->plan;
    *w = (struct update_worker){.run = run};
    w->pushes = report_alloc(plan->n_messages, sizeof *w->pushes);
    w->models = report_alloc(plan->n_messages, sizeof *w->models);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        w->pushes[m] = report_alloc(update_bytes(&run->forms[m]), 1);
        w->models[m] = report_alloc(update_bytes(&run->forms[m]), 1);
        memset(w->pushes[m], 0, update_bytes(&run->forms[m])); /* touched before the run begins */
        memset(w->models[m], 0, update_bytes(&run->forms[m]));
    }
    w->gradient = report_alloc(run->training.n_weights, sizeof *w->gradient);
    if (run->training.n_weights > 0)
        training_begin(&run->training, update_weights(w->models[run->largest]));
    for (uint32_t k = 0; k < plan->n_steps; k++)
        w->compute_us += plan->step_us[k];
}

static void worker_release(struct update_worker *w) {
    for (uint32_t m = 0; m < w->run->plan->n_messages; m++) {
        free(w->pushes[m]);
        free(w->models[m]);
    }
    free(w->pushes);
    free(w->models);
    free(w->gradient);
    requests_release(&w->requests);
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

static double scale(const struct update_worker *w) {
    const struct world *world = w->run->world;
    const uint64_t seed = w->run->options->weather;
    const double slowness =
        seed ? weather_device_slowness(world->cluster, seed, world->device, w->result.iterations) : 1;
    return world_node(world)->compute_scale * slowness;
}

/* Equation 1: what the weights should change by, in front of the largest message. */
static void learn(struct update_worker *w) {
    const struct update_run *run = w->run;
    const struct training *training = &run->training;
    uint32_t batch[TRAINING_BATCH];
    if (training->n_weights == 0)
        return;
    training_draw(training, run->options->weather, run->world->device, w->result.iterations, batch);
    training_loss(training, TRAINING_BATCH, batch, update_weights(w->models[run->largest]), w->gradient);
    for (uint32_t k = 0; k < training->n_weights; k++)
        update_weights(w->pushes[run->largest])[k] = -run->options->training.rate * w->gradient[k];
}

static void compute(struct update_worker *w, double start_us) {
    const double end_us = start_us + w->compute_us * scale(w);
    learn(w);
    for (double left; (left = end_us - clock_now_us()) > 0;)
        clock_sleep_us(left);
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
    return w->run->world->server_rank[form->message->server];
}

static void send(struct update_worker *w, const struct update_form *form, int units, int rank) {
    MPI_Isend(w->pushes[form->number], units, w->run->unit, rank, (int)form->number, w->run->world->pushes,
              requests_add(&w->requests, (struct completion){.kind = DONE_PUSH, .message = form->number}));
}

static void receive(struct update_worker *w, const struct update_form *form) {
    const bool passed = w->run->plan->consistency.distributors > 0;
    MPI_Irecv(w->models[form->number], form->units, w->run->unit, passed ? MPI_ANY_SOURCE : server_of(w, form),
              (int)form->number, w->run->world->pushes,
              requests_add(&w->requests, (struct completion){.kind = DONE_PULL, .message = form->number}));
}

static void wait_for_some(struct update_worker *w) {
    const int n = requests_poll(&w->requests);
    for (int i = 0; i < n; i++) {
        w->is_told = w->is_told || w->requests.done[i].kind == DONE_GO;
        if (w->requests.done[i].kind == DONE_CONTROL_SEND)
            free(w->requests.done[i].buffer);
    }
    if (n == 0)
        pause_for_us(PAUSE_US);
}

static void wait_all(struct update_worker *w) {
    while (w->requests.n > 0)
        wait_for_some(w);
}

/* Tell the scheduler that the update is ready, and wait until it may go, or is dropped. */
static bool may_go(struct update_worker *w) {
    const struct update_run *run = w->run;
    struct update_head ready = *update_head_of(w->pushes[run->largest]);
    ready.kind = UPDATE_READY;
    w->is_told = false;
    MPI_Irecv(&w->told, sizeof w->told, MPI_BYTE, MPI_ANY_SOURCE, run->control, run->world->pushes,
              requests_add(&w->requests, (struct completion){.kind = DONE_GO}));
    requests_send_copy(&w->requests, &ready, sizeof ready, server_of(w, &run->forms[run->largest]), run->control,
                       run->world->pushes);
    while (!w->is_told)
        wait_for_some(w);
    return w->told.kind == UPDATE_GO;
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
    const bool scheduled = run->plan->consistency.scheduled, goes = !scheduled || may_go(w);
    for (uint32_t m = 0; m < run->plan->n_messages && goes; m++)
        send(w, &run->forms[m], run->forms[m].units, scheduled ? w->told.to : server_of(w, &run->forms[m]));
    wait_all(w);
    for (uint32_t m = 0; m < run->plan->n_messages; m++)
        check_model(w, &run->forms[m]);
}

static void leave(struct update_worker *w) {
    for (uint32_t m = 0; m < w->run->plan->n_messages; m++) {
        update_head_of(w->pushes[m])->kind = UPDATE_BYE;
        send(w, &w->run->forms[m], UPDATE_HEAD_UNITS, server_of(w, &w->run->forms[m]));
    }
    wait_all(w);
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
