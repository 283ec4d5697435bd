/* A global batch is split among the devices, and what a device gets into micro-batches. */
#include "interop/import/batches.h"

static enum status count(const struct batches *b, const char *name, const struct cluster *cluster, uint64_t *out,
                         struct error *err) {
    const uint64_t at_once = b->micro_batch * cluster->n_devices;
    *out = b->micro_batches ? b->micro_batches : 1;
    if (!b->micro_batches && b->micro_batch && b->global_batch) {
        if (b->global_batch % at_once)
            return error_set(err, ST_INVALID,
                             "%s: %llu samples are no multiple of %llu on each of the %u devices of %s", name,
                             (unsigned long long)b->global_batch, (unsigned long long)b->micro_batch,
                             cluster->n_devices, cluster->name);
        *out = b->global_batch / at_once;
    }
    if (*out <= STRATEGY_MAX_MICRO_BATCHES)
        return ST_OK;
    return error_set(err, ST_INVALID, "%s: %llu micro-batches; at most %d", name, (unsigned long long)*out,
                     STRATEGY_MAX_MICRO_BATCHES);
}

enum status batches_apply(const struct batches *batches, enum synchronize synchronize, const char *name,
                          const struct strategy_for *wanted, struct notes *notes, struct strategy *strategy,
                          struct error *err) {
    const double samples = wanted->model->batch_per_device;
    uint64_t micro_batches;
    enum status st = count(batches, name, wanted->cluster, &micro_batches, err);
    if (!st && batches->micro_batch && (double)batches->micro_batch != samples &&
        !notes_add(notes, "a micro-batch has %llu samples, and the model's times are those of %g",
                   (unsigned long long)batches->micro_batch, samples))
        st = error_no_memory(err);
    if (!st && micro_batches > 1) {
        strategy->micro_batches = (uint32_t)micro_batches;
        strategy->synchronize = synchronize;
        st = strategy_seal(strategy, wanted->model, wanted->cluster, err);
    }
    if (st)
        strategy_release(strategy);
    return st;
}
