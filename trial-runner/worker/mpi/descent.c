/* The gradient is computed when its message is ready, and the step is made when the sum is there: some microseconds
 * that no compute clock counts. */
#include "trial-runner/worker/mpi/descent.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/report.h"

void descent_init(struct descent *d, struct gradients *gradients, const struct world *world,
                  const struct execute_options *options) {
    struct error err = {.status = ST_OK};
    *d = (struct descent){.world = world, .options = options};
    if (options->training.task == TRAINING_NONE)
        return;
    if (training_place(options->training.task, gradients->plan, &d->message, &err) ||
        training_init(&d->training, options->training.task, &err))
        report_abort(err.status, "%s", ERROR_TEXT(&err));
    const struct learned_subject of = {.training = &d->training,
                                       .options = &options->training,
                                       .versions = options->warmup + options->iterations,
                                       .updates_in_version = world->cluster->n_devices};
    d->weights = report_alloc(d->training.n_weights, sizeof *d->weights);
    d->step = report_alloc(d->training.n_weights, sizeof *d->step);
    learned_init(&d->learned, of, d->weights);
    gradients_reserve(gradients, d->message, d->training.n_weights);
}

void descent_put(struct descent *d, struct gradients *gradients, uint32_t message, uint32_t iteration) {
    if (d->training.n_weights == 0 || message != d->message)
        return;
    training_change(&d->training, d->options->training.rate, d->options->weather, d->world->device, iteration,
                    d->weights, d->step);
    gradients_put(gradients, d->step);
}

void descent_take(struct descent *d, const struct gradients *gradients, uint32_t message, uint32_t iteration) {
    if (d->training.n_weights == 0 || message != d->message)
        return;
    gradients_get(gradients, d->step);
    learned_add(&d->learned, d->step);
    learned_apply(&d->learned, iteration + 1, d->weights);
}

static void check_weights(const struct descent *d) {
    const size_t bytes = d->training.n_weights * sizeof *d->weights;
    memcpy(d->step, d->weights, bytes);
    MPI_Bcast(d->step, (int)d->training.n_weights, MPI_DOUBLE, 0, d->world->workers);
    if (memcmp(d->step, d->weights, bytes) != 0)
        report_abort(ST_TRIAL, "wrong sum: devices 0 and %u learned different weights", d->world->device);
}

void descent_end(struct descent *d) {
    if (d->training.n_weights == 0)
        return;
    check_weights(d);
    if (d->world->device == 0)
        learned_tell(&d->learned);
    learned_release(&d->learned);
    training_release(&d->training);
    free(d->weights);
    free(d->step);
}
