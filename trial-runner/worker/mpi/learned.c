/* Losses are found after the run, so that they take no time of it. */
#include "trial-runner/worker/mpi/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/wait.h"

void learned_init(struct learned *l, struct learned_subject of, double *weights) {
    const uint32_t n = of.training->n_weights;
    *l = (struct learned){.of = of, .every = (of.versions + LEARNED_MOST - 1) / LEARNED_MOST};
    l->change = report_alloc(n, sizeof *l->change);
    l->sum = report_alloc(n, sizeof *l->sum);
    l->at_us = report_alloc(LEARNED_MOST, sizeof *l->at_us);
    l->weights = report_alloc((size_t)LEARNED_MOST * n, sizeof *l->weights);
    training_begin(of.training, weights);
}

void learned_add(struct learned *l, const double *update) {
    for (uint32_t k = 0; k < l->of.training->n_weights; k++)
        l->sum[k] += update[k];
}

void learned_apply(struct learned *l, uint64_t version, double *weights) {
    const uint32_t n = l->of.training->n_weights;
    const uint64_t known = version < l->of.versions ? version : l->of.versions;
    for (uint32_t k = 0; k < n; k++) {
        l->change[k] = l->sum[k] + l->of.options->momentum * l->change[k];
        weights[k] += l->change[k];
        l->sum[k] = 0;
    }
    while ((l->n + 1) * l->every <= known && l->n < LEARNED_MOST) {
        l->at_us[l->n] = clock_now_us() - l->began_us;
        memcpy(l->weights + l->n++ * n, weights, n * sizeof *weights);
    }
}

void learned_so_far(const struct learned *l, const double *weights, double *out) {
    for (uint32_t k = 0; k < l->of.training->n_weights; k++)
        out[k] = weights[k] + l->sum[k] + l->of.options->momentum * l->change[k];
}

void learned_send(const struct learned *l, int rank, int tag, MPI_Comm comm, double limit_us) {
    MPI_Request requests[2];
    MPI_Isend(l->at_us, (int)l->n, MPI_DOUBLE, rank, tag, comm, &requests[0]);
    MPI_Isend(l->weights, (int)(l->n * l->of.training->n_weights), MPI_DOUBLE, rank, tag, comm, &requests[1]);
    wait_for_all(2, requests, MPI_STATUSES_IGNORE, limit_us);
}

void learned_receive(struct learned *l, int rank, int tag, MPI_Comm comm, double limit_us) {
    const int room = LEARNED_MOST * (int)l->of.training->n_weights;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int n;
    MPI_Irecv(l->at_us, LEARNED_MOST, MPI_DOUBLE, rank, tag, comm, &requests[0]);
    MPI_Irecv(l->weights, room, MPI_DOUBLE, rank, tag, comm, &requests[1]);
    wait_for_all(2, requests, statuses, limit_us);
    MPI_Get_count(&statuses[0], MPI_DOUBLE, &n);
    l->n = (size_t)n;
}

static double loss_of(const struct learned *l, size_t i) {
    const struct training *t = l->of.training;
    return training_loss(t, 0, NULL, l->weights + i * t->n_weights, NULL);
}

/* So many updates are in the version that is kept at i. */
static double update_of(const struct learned *l, size_t i) {
    return (double)((i + 1) * l->every * l->of.updates_in_version);
}

/* Training that went astray has losses that JSON cannot say; they are left out. */
static void tell_loss(const struct learned *l, size_t i, double loss) {
    cJSON *line = report_event("loss");
    cJSON_AddNumberToObject(line, "update", update_of(l, i));
    cJSON_AddNumberToObject(line, "time_us", l->at_us[i]);
    json_add_known(line, "loss", isfinite(loss) ? loss : NAN);
    report_send(line);
}

/* The first of the kept versions whose loss is at most the target; n: none. */
static size_t find(const struct learned *l, double target) {
    size_t i = 0;
    while (i < l->n && !(loss_of(l, i) <= target))
        i++;
    return i;
}

void learned_tell(const struct learned *l) {
    const struct training *t = l->of.training;
    struct error err = {.status = ST_OK};
    double *weights = report_alloc(t->n_weights, sizeof *weights), least;
    training_begin(t, weights);
    const double first = training_loss(t, 0, NULL, weights, NULL);
    if (training_solve(t, weights, &least, &err))
        report_abort(err.status, "%s", ERROR_TEXT(&err));
    free(weights);
    const double target = least + l->of.options->target * (first - least),
                 last = l->n > 0 ? loss_of(l, l->n - 1) : first;
    const size_t reached = find(l, target), step = l->n / LEARNED_LINES + 1;
    for (size_t i = 0; i < l->n; i += step)
        tell_loss(l, i, loss_of(l, i));
    cJSON *line = report_event("training");
    cJSON_AddNumberToObject(line, "first", first);
    cJSON_AddNumberToObject(line, "least", least);
    cJSON_AddNumberToObject(line, "target", target);
    json_add_known(line, "last", isfinite(last) ? last : NAN);
    if (reached < l->n) {
        cJSON_AddNumberToObject(line, "reached_update", update_of(l, reached));
        cJSON_AddNumberToObject(line, "reached_us", l->at_us[reached]);
    }
    report_send(line);
}

void learned_release(struct learned *l) {
    free(l->change);
    free(l->sum);
    free(l->at_us);
    free(l->weights);
    *l = (struct learned){0};
}
