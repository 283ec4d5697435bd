/* Samples are the first element, the last and evenly between, as in trial-runner/worker/layout.h. */
#include "trial-runner/worker/mpi/update.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/mpi/collective.h"
#include "trial-runner/worker/report.h"

static void form_init(struct update_form *form, const struct plan *plan, uint32_t number, uint64_t weights_bytes) {
    const struct message *message = &plan->messages[number];
    const uint64_t width = dtype_bytes(message->dtype), elements = (message->bytes - weights_bytes) / width;
    *form = (struct update_form){.message = message, .number = number, .weights_bytes = weights_bytes};
    form->n_samples = elements < UPDATE_SAMPLES ? (uint32_t)elements : UPDATE_SAMPLES;
    for (uint32_t k = 0; k < form->n_samples; k++)
        form->samples[k] =
            weights_bytes + width * (form->n_samples > 1 ? (elements - 1) * k / (form->n_samples - 1) : 0);
    form->units = UPDATE_HEAD_UNITS + (int)((message->bytes + UPDATE_UNIT - 1) / UPDATE_UNIT);
}

/* A rank that dies must not end the others by an error. */
static void find_replica(struct update_run *run) {
    const struct consistency *c = &run->plan->consistency;
    run->server = run->world->server_rank[run->plan->messages[run->largest].server];
    run->replica = c->replicated ? run->world->server_rank[c->replica] : -1;
    run->lasting = MPI_COMM_WORLD;
    if (run->replica < 0)
        return;
    const bool lasts = run->world->rank != run->server;
    MPI_Comm_split(MPI_COMM_WORLD, lasts ? 0 : MPI_UNDEFINED, run->world->rank, &run->lasting);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(run->world->pushes, MPI_ERRORS_RETURN);
}

uint32_t update_server_of(const struct update_run *run, uint32_t message) {
    uint32_t s = 0;
    while (run->servers[s] != run->plan->messages[message].server)
        s++;
    return s;
}

static void list_servers(struct update_run *run) {
    const uint32_t nodes = run->world->cluster->n_nodes, first = run->plan->messages[run->largest].server;
    run->servers = report_alloc(nodes, sizeof *run->servers);
    run->first_of = report_alloc(nodes, sizeof *run->first_of);
    run->servers[run->n_servers++] = first;
    for (uint32_t node = 0; node < nodes; node++)
        if (node != first && plan_serves(run->plan, node))
            run->servers[run->n_servers++] = node;
    for (uint32_t m = run->plan->n_messages; m-- > 0;)
        run->first_of[update_server_of(run, m)] = m;
    run->first_of[0] = run->largest;
}

void update_run_init(struct update_run *run, const struct plan *plan, const struct world *world,
                     const struct execute_options *options) {
    *run = (struct update_run){.plan = plan, .world = world, .options = options, .control = (int)plan->n_messages};
    MPI_Type_contiguous(UPDATE_UNIT, MPI_BYTE, &run->unit);
    MPI_Type_commit(&run->unit);
    run->forms = report_alloc(plan->n_messages, sizeof *run->forms);
    struct error err = {.status = ST_OK};
    if (plan->n_messages == 0)
        report_abort(ST_INFEASIBLE, "no message carries an update");
    if (training_place(options->training.task, plan, &run->largest, &err) ||
        training_init(&run->training, options->training.task, &err))
        report_abort(err.status, "%s", ERROR_TEXT(&err));
    const uint64_t weights_bytes = run->training.n_weights * sizeof(double);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        form_init(&run->forms[m], plan, m, m == run->largest ? weights_bytes : 0);
    list_servers(run);
    find_replica(run);
}

void update_run_release(struct update_run *run) {
    training_release(&run->training);
    free(run->forms);
    free(run->servers);
    free(run->first_of);
    MPI_Type_free(&run->unit);
    if (run->lasting != MPI_COMM_WORLD && run->lasting != MPI_COMM_NULL)
        MPI_Comm_free(&run->lasting);
}

uint64_t update_target(const struct update_run *run) {
    return (uint64_t)(run->options->warmup + run->options->iterations) * run->world->cluster->n_devices;
}

bool update_is_measured(const struct update_run *run, uint64_t updates) {
    return updates >= (uint64_t)run->options->warmup * run->world->cluster->n_devices && updates < update_target(run);
}

void update_beat(const struct update_run *run, struct requests *requests, int rank, double norm, uint64_t updates,
                 double *beat_us) {
    const double now_us = clock_now_us();
    const struct update_head head = {.kind = UPDATE_BEAT, .norm = norm, .updates = updates};
    if (now_us < *beat_us + UPDATE_BEAT_US)
        return;
    *beat_us = now_us;
    requests_send_copy(requests, &head, sizeof head, rank, run->control, run->world->pushes);
}

void update_send_with_members(const struct update_run *run, const struct update_form *form, void *buffer, uint32_t n,
                              struct update_member *members, int rank, MPI_Request *request) {
    const uint32_t room = (uint32_t)update_member_units(n) * UPDATE_UNIT / sizeof *members;
    int units[] = {form->units, update_member_units(n)};
    MPI_Aint places[2];
    MPI_Datatype both;
    for (uint32_t i = n; i < room; i++)
        members[i].worker = UPDATE_NOBODY;
    MPI_Get_address(buffer, &places[0]);
    MPI_Get_address(members, &places[1]);
    MPI_Type_create_hindexed(2, units, places, run->unit, &both);
    MPI_Type_commit(&both);
    MPI_Isend(MPI_BOTTOM, 1, both, rank, (int)form->number, run->world->pushes, request);
    MPI_Type_free(&both);
}

void update_add(const struct update_form *form, void *sum, void *update) {
    const struct message *message = form->message;
    const uint64_t front = form->weights_bytes;
    MPI_Reduce_local(update_body(update) + front, update_body(sum) + front,
                     collective_count(message->bytes - front, message->dtype), collective_type(message->dtype),
                     collective_sum(message->dtype));
}

/* FNV-1a. */
uint64_t update_hash(const struct update_form *form, void *buffer) {
    const unsigned char *byte = (const unsigned char *)update_body(buffer);
    uint64_t hash = form->weights_bytes > 0 ? 14695981039346656037u : 0;
    for (uint64_t i = 0; i < form->weights_bytes; i++)
        hash = (hash ^ byte[i]) * 1099511628211u;
    return hash;
}

void update_sum(const struct update_form *form, void *sum, void *update) {
    double *weights = update_weights(sum), *more = update_weights(update);
    for (uint64_t k = 0; k < form->weights_bytes / sizeof(double); k++)
        weights[k] += more[k];
    update_add(form, sum, update);
}

uint32_t updates_in_version(const struct update_run *run) {
    return run->plan->consistency.kind == CONSISTENCY_synchronous ? run->world->cluster->n_devices : 1;
}

struct learned_subject update_subject(const struct update_run *run) {
    return (struct learned_subject){.training = &run->training,
                                    .options = &run->options->training,
                                    .versions = update_target(run) / updates_in_version(run),
                                    .updates_in_version = updates_in_version(run)};
}

uint32_t update_value(const struct update_run *run, const struct update_form *form, uint32_t worker, uint32_t iteration,
                      uint32_t k) {
    return kernel_value(worker, run->world->cluster->n_devices, iteration, form->number, k, form->message->dtype);
}

/* Little endian: the first bytes of a number's bits are those of the narrower types. */
void update_store(const struct update_form *form, void *buffer, uint32_t k, uint32_t value) {
    const uint64_t bits = kernel_bits(form->message->dtype, value);
    memcpy(update_body(buffer) + form->samples[k], &bits, dtype_bytes(form->message->dtype));
}

bool update_holds(const struct update_form *form, void *buffer, uint32_t k, uint32_t value) {
    const uint64_t bits = kernel_bits(form->message->dtype, value);
    return memcmp(update_body(buffer) + form->samples[k], &bits, dtype_bytes(form->message->dtype)) == 0;
}
