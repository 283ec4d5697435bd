/* Servers and workers count on their own. At the end device 0 gathers what they counted and tells it. */
#include "trial-runner/worker/mpi/updates.h"

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
    MPI_Reduce(sums, all, SUMS, MPI_DOUBLE, MPI_SUM, root, run->lasting);
    MPI_Reduce(mosts, most, MOSTS, MPI_DOUBLE, MPI_MAX, root, run->lasting);
    if (!tells)
        return;
    tell_updates(run, all, most);
    out->checked = (uint64_t)all[SUM_CHECKED];
}

static void tell_workers(const struct world *world, const struct update_worker_result *mine) {
    enum { ITERATIONS, TIME, FIELDS };
    const double own[FIELDS] = {mine->iterations, mine->iteration_us};
    const bool tells = world->device == 0;
    double *all = report_alloc(tells ? world->cluster->n_devices : 0, sizeof own);
    MPI_Gather(own, FIELDS, MPI_DOUBLE, all, FIELDS, MPI_DOUBLE, 0, world->workers);
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
    const double until_us = clock_now_us() + UPDATE_LOST_US;
    int found = 0;
    MPI_Status status;
    if (own->of.training)
        learned_send(own, teller, tag, run->world->pushes);
    if (run->world->rank != teller)
        return;
    while (!found && (run->replica < 0 || clock_now_us() < until_us)) {
        MPI_Iprobe(MPI_ANY_SOURCE, tag, run->world->pushes, &found, &status);
        pause_for_us(PAUSE_US);
    }
    if (!found)
        return;
    struct learned all = {0};
    double *first = report_alloc(run->training.n_weights, sizeof *first);
    learned_init(&all, update_subject(run), first);
    learned_receive(&all, status.MPI_SOURCE, tag, run->world->pushes);
    learned_tell(&all);
    learned_release(&all);
    free(first);
}

/* Ranks that wait for one that died at the very end would wait for ever: the server waits for their word that all has
 * been gathered, unless it was taken for dead. */
static void end_together(const struct update_run *run, bool watches) {
    const int tag = run->control + 1;
    const double until_us = clock_now_us() + UPDATE_LOST_US;
    MPI_Request request;
    int found = !watches;
    if (run->world->rank == run->replica) {
        MPI_Isend(NULL, 0, MPI_BYTE, run->server, tag, run->world->pushes, &request);
        MPI_Request_free(&request);
    }
    while (!found && clock_now_us() < until_us) {
        MPI_Iprobe(run->replica, tag, run->world->pushes, &found, MPI_STATUS_IGNORE);
        pause_for_us(PAUSE_US);
    }
    if (!found)
        report_abort(ST_TRIAL, "a rank died at the end of the run: not all was gathered in %d s",
                     UPDATE_LOST_US / 1000000);
}

void updates_run(const struct plan *plan, const struct world *world, const struct execute_options *options,
                 struct execute_result *out) {
    struct update_run run;
    struct update_counts counts = {0};
    struct update_worker_result mine = {0};
    struct learned learned = {0};
    bool watches = false;
    update_run_init(&run, plan, world, options);
    if (world->is_server && plan_serves(plan, world->node))
        watches = update_server_run(&run, &counts, &learned);
    else if (world->rank == run.replica)
        update_replica_run(&run, &counts, &learned);
    else if (world->is_server)
        counts.passed = update_relay_run(&run);
    else
        update_worker_run(&run, &mine);
    if (run.lasting != MPI_COMM_NULL) { /* else the replica has the counts */
        MPI_Barrier(run.lasting);
        gather_counts(&run, &counts, mine.checked, out);
    }
    if (!world->is_server)
        tell_workers(world, &mine);
    if (run.training.n_weights > 0)
        gather_learned(&run, &learned);
    if (run.replica >= 0)
        end_together(&run, watches);
    learned_release(&learned);
    update_run_release(&run);
}
