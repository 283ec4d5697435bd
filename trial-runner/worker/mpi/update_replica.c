/* Before a takeover this rank's parts are as at the server, but it answers nobody and tells no rounds. */
#include "trial-runner/worker/mpi/update_replica.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "strategy/updates/replicate.h"
#include "trial-runner/worker/mpi/update_server_internal.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"

/* What a takeover is judged by. */
struct takeover {
    double silent_us, began_us;
    uint64_t server, replica;    /* updates in the newest model that a worker had, and in the replica's */
    double divergence, distance; /* of these two: at most, by norms; of the weights, where some are learned */
    double *weights;             /* the replica's at the beginning */
    uint32_t recovered, unordered, compared;
};

struct replica {
    const struct update_run *run;
    uint64_t *copies; /* [n_devices] that came from the worker */
    uint64_t n_copies, expected;
    bool ended; /* the server has said the next, and what is expected */
    struct update_counts counts;
    double bound;     /* of the divergence, in norms */
    uint64_t dropped; /* updates, at the server */
    double step;      /* a bound on the last step applied */
    struct update_head *states;
    uint32_t n_states;
    bool serves;
    uint32_t n_rounds;
    double *round_us; /* [iterations] */
    struct takeover takeover;
};

static uint32_t n_workers(const struct replica *r) {
    return r->run->world->cluster->n_devices;
}

static struct update_head *model_of(const struct update_server *s) {
    return head_of(&s->parts[0]);
}

/* ---- following ---- */

/* The server's word for what it knows of these workers. */
void update_replica_follows(struct update_server *s, uint32_t n, const struct update_member *members) {
    for (uint32_t i = 0; i < n; i++) {
        struct client *client = &s->parts[0].clients[members[i].worker];
        if (members[i].iteration < client->ended)
            report_abort(ST_TRIAL, "the replica got iteration %u of device %u twice", members[i].iteration,
                         members[i].worker);
        client->ended = members[i].iteration;
        client->version = members[i].version;
    }
}

static void compare_models(const struct update_server *s, const struct update_head *state) {
    const struct update_head *mine = model_of(s);
    bool same = state->weights == mine->weights;
    for (uint32_t k = 0; k < s->parts[0].form->n_samples; k++)
        same = same && state->sums[k] == mine->sums[k];
    if (!same)
        report_abort(ST_TRIAL, "version %llu of the replica is not the one that device %u had from the server",
                     (unsigned long long)mine->version, state->worker);
}

/* The replica comes by the versions that workers have from the server. */
static void judge_version(struct update_server *s) {
    struct replica *r = s->replica;
    struct takeover *t = &r->takeover;
    const uint32_t n = s->run->training.n_weights;
    for (uint32_t w = 0; w < n_workers(r); w++) {
        if (r->states[w].version * updates_in_version(s->run) != model_of(s)->updates || r->states[w].version == 0)
            continue;
        compare_models(s, &r->states[w]);
        t->compared++;
    }
    if (model_of(s)->updates != t->server || n == 0)
        return;
    double sum = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += pow(update_weights(s->parts[0].model->buffer)[k] - t->weights[k], 2);
    t->distance = sqrt(sum);
}

void update_replica_applied(struct update_server *s) {
    struct replica *r = s->replica;
    r->step = replica_step(r->step, s->sequence->steps[s->sequence->next - 1].norm, s->run->plan->consistency.momentum);
    if (r->n_states == n_workers(r))
        judge_version(s);
}

static void say_progress(struct update_server *s, uint32_t worker) {
    if (s->epoch == 0)
        update_server_tell(s, s->run->server,
                           &(struct update_head){.kind = UPDATE_HAS, .worker = worker, .updates = s->sequence->next});
}

void update_replica_has(struct update_server *s, uint32_t worker) {
    s->replica->copies[worker]++;
    s->replica->n_copies++;
    say_progress(s, worker);
}

static void take_sequel(struct update_server *s, const struct update_head *head) {
    const size_t before = s->sequence->next;
    update_sequence_add(s->sequence, head->members, (const struct update_member *)(head + 1), head->norm);
    update_server_go_on(s);
    if (s->sequence->next > before)
        say_progress(s, UPDATE_NOBODY);
}

/* What a server says that was taken for dead, and is not, comes too late; but for the order of updates that workers may
 * have models with. */
void update_replica_take(struct update_server *s, const struct update_head *head) {
    struct replica *r = s->replica;
    if (r && s->epoch > 0 && head->kind != UPDATE_STATE && (head->kind != UPDATE_SEQUEL || !s->sequence))
        return;
    if (r && head->kind == UPDATE_SEQUEL)
        take_sequel(s, head);
    else if (r && head->kind == UPDATE_BEAT) {
        r->bound = head->norm;
        r->dropped = head->updates;
    } else if (r && head->kind == UPDATE_STATE) {
        r->states[head->worker] = *head;
        r->n_states++;
    } else if (r && head->kind == UPDATE_END) {
        r->ended = true;
        r->expected = head->updates;
        memcpy(&r->counts, head + 1, sizeof r->counts);
    } else
        report_abort(ST_TRIAL, "a server of updates was told what it cannot understand");
}

void update_replica_round(struct replica *r, uint32_t round, double time_us) {
    r->round_us[round] = time_us;
    r->n_rounds = round + 1;
    if (r->serves)
        report_iteration(round, time_us);
}

/* ---- the takeover ---- */

/* Whether the server is dead or not, nothing waits for this message to it. */
static void fence(const struct update_run *run) {
    static struct update_head head = {.kind = UPDATE_TAKEOVER};
    MPI_Request request;
    MPI_Isend(&head, sizeof head, MPI_BYTE, run->server, run->control, run->world->pushes, &request);
    MPI_Request_free(&request);
}

static void tell_all(struct update_server *s, enum update_kind kind, bool relays) {
    const struct world *world = s->run->world;
    for (uint32_t w = 0; w < world->cluster->n_devices; w++)
        update_server_tell(s, world->worker_rank[w], &(struct update_head){.kind = kind});
    for (uint32_t i = 0; i < world->cluster->n_nodes && relays; i++)
        if (world->server_rank[i] >= 0 && world->server_rank[i] != world->rank &&
            world->server_rank[i] != s->run->server)
            update_server_tell(s, world->server_rank[i], &(struct update_head){.kind = kind});
}

void update_replica_releases(struct update_server *s) {
    tell_all(s, UPDATE_BYE, false);
}

/* Every worker has said where it stands, and all copies that it has sent are here. */
static bool has_all(const struct replica *r) {
    bool all = r->n_states == n_workers(r);
    for (uint32_t w = 0; w < n_workers(r) && all; w++)
        all = r->copies[w] == r->states[w].updates;
    return all;
}

static uint64_t newest_of_workers(const struct replica *r) {
    uint64_t newest = 0;
    for (uint32_t w = 0; w < n_workers(r); w++)
        newest = r->states[w].version > newest ? r->states[w].version : newest;
    return newest;
}

/* Of the steps between the replica's model and the newest that a worker had. */
static double find_divergence(const struct update_server *s) {
    const struct update_sequence *q = s->sequence;
    const struct takeover *t = &s->replica->takeover;
    double *norms = report_alloc(q->n - q->next, sizeof *norms);
    uint32_t n = 0;
    for (uint64_t at = t->replica; at < t->server && q->next + n < q->n; n++) {
        norms[n] = q->steps[q->next + n].norm;
        at += q->steps[q->next + n].n;
    }
    const double apart = n > 0 ? replica_divergence(n, norms, s->replica->step, s->run->plan->consistency.momentum) : 0;
    free(norms);
    return apart;
}

/* Of a version that is not complete, as if it was. */
static void keep_weights(struct update_server *s) {
    const uint32_t n = s->run->training.n_weights;
    const double *weights = update_weights(s->parts[0].model->buffer);
    s->replica->takeover.weights = report_alloc(n, sizeof *weights);
    if (n > 0 && model_of(s)->updates % updates_in_version(s->run) != 0)
        learned_so_far(s->learned, weights, s->replica->takeover.weights);
    else
        memcpy(s->replica->takeover.weights, weights, n * sizeof *weights);
}

static void begin_takeover(struct update_server *s) {
    struct replica *r = s->replica;
    struct takeover *t = &r->takeover;
    t->began_us = clock_now_us();
    t->silent_us = t->began_us - s->heard_us[s->run->server];
    t->replica = model_of(s)->updates;
    keep_weights(s);
    requests_forget(&s->requests, DONE_CONTROL_SEND);
    s->schedule = update_schedule_new(s->run);
    s->epoch = 1;
    s->halts = true;
    fence(s->run);
    tell_all(s, UPDATE_TAKEOVER, true);
}

static void take_clients(struct update_server *s) {
    struct part *part = &s->parts[0];
    for (uint32_t w = 0; w < workers(s); w++) {
        const struct update_head *state = &s->replica->states[w];
        const bool waits = state->to == PHASE_WAITS, gone = state->to == PHASE_LEAVES;
        part->clients[w] =
            (struct client){.ended = state->iteration + waits, .version = state->version, .waits = waits, .gone = gone};
        part->n_gone += gone;
    }
    s->n_open -= part->n_gone == workers(s);
}

/* Distances are in norms of a typical update, which the bound is a number of. */
static void tell_takeover(const struct update_server *s) {
    const struct takeover *t = &s->replica->takeover;
    const double divergence = s->run->plan->consistency.divergence;
    const double typical = s->replica->bound > 0 ? s->replica->bound / divergence : 1;
    cJSON *line = report_event("takeover");
    cJSON_AddNumberToObject(line, "silent_us", t->silent_us);
    cJSON_AddNumberToObject(line, "took_us", clock_now_us() - t->began_us);
    cJSON_AddNumberToObject(line, "server_updates", (double)t->server);
    cJSON_AddNumberToObject(line, "replica_updates", (double)t->replica);
    cJSON_AddNumberToObject(line, "recovered", t->recovered);
    cJSON_AddNumberToObject(line, "unordered", t->unordered);
    cJSON_AddNumberToObject(line, "compared", t->compared);
    cJSON_AddNumberToObject(line, "divergence", t->divergence / typical);
    cJSON_AddNumberToObject(line, "bound", divergence);
    if (s->run->training.n_weights > 0)
        cJSON_AddNumberToObject(line, "distance", t->distance / typical);
    report_send(line);
    for (uint32_t i = 0; i < s->replica->n_rounds; i++) /* the server may have told less */
        report_iteration(i, s->replica->round_us[i]);
}

/* All updates are here: apply them. */
static void catch_up(struct update_server *s) {
    struct takeover *t = &s->replica->takeover;
    const uint64_t newest = newest_of_workers(s->replica);
    t->server = newest * updates_in_version(s->run);
    t->divergence = find_divergence(s);
    t->unordered = update_sequence_settle(s->sequence);
    judge_version(s);
    s->halts = false;
    update_server_go_on(s);
    t->recovered = (uint32_t)(model_of(s)->updates - t->replica);
    if (model_of(s)->version < newest)
        report_abort(ST_TRIAL, "the replica has version %llu of the model, and a worker version %llu",
                     (unsigned long long)model_of(s)->version, (unsigned long long)newest);
    update_sequence_release(s->sequence, &s->pool);
    free(s->sequence);
    s->sequence = NULL;
}

static void take_over(struct update_server *s) {
    begin_takeover(s);
    update_server_begin_watch(s);
    while (!has_all(s->replica)) {
        update_server_watch(s);
        if (!update_server_poll(s))
            pause_once();
    }
    catch_up(s);
    take_clients(s);
    s->replica->serves = true;
    tell_takeover(s);
    update_server_answer(s);
    update_server_serve(s);
}

/* ---- the run ---- */

/* Until the server ends the run, or has died. */
static bool follow(struct update_server *s) {
    struct replica *r = s->replica;
    while (!r->ended || r->n_copies < r->expected) {
        const bool any = update_server_poll(s);
        if (!r->ended && update_server_misses(s, s->run->server, UPDATE_SILENCE_US))
            return false;
        if (!any)
            pause_once();
    }
    return true;
}

/* The server has nobody to wait for when these have left. */
static void end(struct update_server *s) {
    requests_forget(&s->requests, DONE_CONTROL_SEND);
    update_replica_releases(s);
    while (s->requests.n > 0)
        update_server_poll(s);
}

static void replica_init(struct replica *r, const struct update_run *run) {
    const uint32_t n = run->world->cluster->n_devices;
    *r = (struct replica){.run = run,
                          .copies = report_alloc(n, sizeof *r->copies),
                          .states = report_alloc(n, sizeof *r->states),
                          .round_us = report_alloc(run->options->iterations, sizeof *r->round_us)};
}

static void replica_release(struct replica *r) {
    free(r->copies);
    free(r->states);
    free(r->round_us);
    free(r->takeover.weights);
}

void update_replica_run(const struct update_run *run, struct update_counts *out, struct learned *learned) {
    struct update_server s;
    struct replica r;
    replica_init(&r, run);
    update_server_init(&s, run, learned);
    s.replica = &r;
    MPI_Barrier(MPI_COMM_WORLD);
    update_server_begin_watch(&s);
    s.parts[0].began_us = learned->began_us = clock_now_us();
    if (follow(&s))
        end(&s);
    else
        take_over(&s);
    s.counts.copies = r.n_copies;
    s.counts.dropped += r.dropped;
    s.counts.divergence_most = r.bound > 0 ? r.takeover.divergence * run->plan->consistency.divergence / r.bound : 0;
    *out = r.serves ? s.counts : r.counts;
    if (!r.serves)
        learned_release(learned); /* the server tells */
    update_server_release(&s);
    replica_release(&r);
}
