/* Servers and workers count on their own. At the end device 0 gathers what they counted and tells it. */
#include "trial-runner/worker/mpi/updates.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "trial-runner/worker/mpi/learned.h"
#include "trial-runner/worker/mpi/update.h"
#include "trial-runner/worker/mpi/update_relay.h"
#include "trial-runner/worker/mpi/update_replica.h"
#include "trial-runner/worker/mpi/update_server.h"
#include "trial-runner/worker/mpi/update_worker.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/wait.h"

/* Numbers that are added up over all servers, and those of which the largest counts. */
enum {
    SUM_USEFUL,
    SUM_DROPPED,
    SUM_LATE,
    SUM_SUMMED,
    SUM_PASSED,
    SUM_DELAYS,
    SUM_SQUARES,
    SUM_CHECKED,
    SUM_COPIES,
    SUM_OF_DELAY,
    SUMS = SUM_OF_DELAY + UPDATE_DELAYS
};
enum { MOST_DELAY, MOST_WINDOW, MOST_DIVERGENCE, MOSTS };

static void add_delays(cJSON *line, const double *of_delay) {
    cJSON *list = cJSON_AddArrayToObject(line, "delays");
    for (int d = 0; d < UPDATE_DELAYS; d++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(of_delay[d]));
}

/* Updates are counted by their parts, each of which is applied or dropped on its own. */
static void tell_updates(const struct update_run *run, const double *sums, const double *mosts) {
    const double parts = run->plan->n_messages, useful = sums[SUM_USEFUL] > 0 ? sums[SUM_USEFUL] : 1;
    const double mean = sums[SUM_DELAYS] / useful;
    cJSON *line = report_event("updates");
    cJSON_AddNumberToObject(line, "useful", sums[SUM_USEFUL] / parts);
    cJSON_AddNumberToObject(line, "dropped", sums[SUM_DROPPED] / parts);
    cJSON_AddNumberToObject(line, "late", sums[SUM_LATE] / parts);
    cJSON_AddNumberToObject(line, "summed", sums[SUM_SUMMED] / parts);
    cJSON_AddNumberToObject(line, "passed", sums[SUM_PASSED] / parts);
    cJSON_AddNumberToObject(line, "copies", sums[SUM_COPIES]);
    cJSON_AddNumberToObject(line, "divergence_most", mosts[MOST_DIVERGENCE]);
    cJSON_AddNumberToObject(line, "window_us", mosts[MOST_WINDOW]);
    cJSON_AddNumberToObject(line, "delay_mean", mean);
    cJSON_AddNumberToObject(line, "delay_variance", sums[SUM_SQUARES] / useful - mean * mean);
    cJSON_AddNumberToObject(line, "delay_largest", mosts[MOST_DELAY]);
    add_delays(line, sums + SUM_OF_DELAY);
    report_send(line);
}

/* Where there is a replica, MPI ends no rank when another dies; so long, then, do the others wait for it at the end. */
static double limit_us(const struct update_run *run) {
    return run->replica >= 0 ? UPDATE_LOST_US : INFINITY;
}

/* Until all ranks that last are here. */
static void meet(const struct update_run *run) {
    MPI_Request request;
    MPI_Ibarrier(run->lasting, &request);
    wait_for_all(1, &request, MPI_STATUSES_IGNORE, limit_us(run));
}

static void gather_counts(const struct update_run *run, const struct update_counts *c, uint64_t checked,
                          struct execute_result *out) {
    const struct world *world = run->world;
    const bool tells = !world->is_server && world->device == 0;
    double sums[SUMS] = {(double)c->useful, (double)c->dropped, (double)c->late, (double)c->summed, (double)c->passed,
                         c->delays,         c->squares,         (double)checked, (double)c->copies};
    double mosts[MOSTS] = {(double)c->largest, c->window_us, c->divergence_most}, all[SUMS], most[MOSTS];
    for (int d = 0; d < UPDATE_DELAYS; d++)
        sums[SUM_OF_DELAY + d] = (double)c->of_delay[d];
    const int root = world->worker_rank[0] - (run->replica >= 0 && run->server < world->worker_rank[0]);
    MPI_Request requests[2];
    MPI_Ireduce(sums, all, SUMS, MPI_DOUBLE, MPI_SUM, root, run->lasting, &requests[0]);
    MPI_Ireduce(mosts, most, MOSTS, MPI_DOUBLE, MPI_MAX, root, run->lasting, &requests[1]);
    wait_for_all(2, requests, MPI_STATUSES_IGNORE, limit_us(run));
    if (!tells)
        return;
    tell_updates(run, all, most);
    out->checked = (uint64_t)all[SUM_CHECKED];
}

static void tell_workers(const struct update_run *run, const struct update_worker_result *mine) {
    enum { ITERATIONS, TIME, FIELDS };
    const struct world *world = run->world;
    const double own[FIELDS] = {mine->iterations, mine->iteration_us};
    const bool tells = world->device == 0;
    double *all = report_alloc(tells ? world->cluster->n_devices : 0, sizeof own);
    MPI_Request request;
    MPI_Igather(own, FIELDS, MPI_DOUBLE, all, FIELDS, MPI_DOUBLE, 0, world->workers, &request);
    wait_for_all(1, &request, MPI_STATUSES_IGNORE, limit_us(run));
    for (uint32_t d = 0; d < world->cluster->n_devices && tells; d++) {
        cJSON *line = report_event("worker");
        cJSON_AddNumberToObject(line, "device", d);
        cJSON_AddNumberToObject(line, "iterations", all[d * FIELDS + ITERATIONS]);
        cJSON_AddNumberToObject(line, "mean_us", all[d * FIELDS + TIME]);
        report_send(line);
    }
    free(all);
}

/* Whoever keeps the weights gives them to device 0, which tells: lines of two ranks at once would be torn where mpirun
 * passes them on. A server that died at the very end gives nothing. */
static void gather_learned(const struct update_run *run, const struct learned *own) {
    const int tag = run->control + 2, teller = run->world->worker_rank[0];
    const double until_us = clock_now_us() + limit_us(run);
    int found = 0;
    MPI_Status status;
    if (own->of.training)
        learned_send(own, teller, tag, run->world->pushes, limit_us(run));
    if (run->world->rank != teller)
        return;
    while (!found && clock_now_us() < until_us) {
        MPI_Iprobe(MPI_ANY_SOURCE, tag, run->world->pushes, &found, &status);
        pause_once();
    }
    if (!found)
        return;
    struct learned all = {0};
    double *first = report_alloc(run->training.n_weights, sizeof *first);
    learned_init(&all, update_subject(run), first);
    learned_receive(&all, status.MPI_SOURCE, tag, run->world->pushes, limit_us(run));
    learned_tell(&all);
    learned_release(&all);
    free(first);
}

void updates_run(const struct plan *plan, const struct world *world, const struct execute_options *options,
                 struct execute_result *out) {
    struct update_run run;
    struct update_counts counts = {0};
    struct update_worker_result mine = {0};
    struct learned learned = {0};
    update_run_init(&run, plan, world, options);
    if (world->is_server && plan_serves(plan, world->node))
        update_server_run(&run, &counts, &learned);
    else if (world->rank == run.replica)
        update_replica_run(&run, &counts, &learned);
    else if (world->is_server)
        counts.passed = update_relay_run(&run);
    else
        update_worker_run(&run, &mine);
    if (run.lasting != MPI_COMM_NULL) { /* else the replica has the counts */
        meet(&run);
        gather_counts(&run, &counts, mine.checked, out);
    }
    if (!world->is_server)
        tell_workers(&run, &mine);
    if (run.training.n_weights > 0)
        gather_learned(&run, &learned);
    learned_release(&learned);
    update_run_release(&run);
}
