/* The graph with its times rounded up, then the same windows and the same rule as in continuous time; see
 * tests/support/strategy/slots.h. */
#include "tests/support/strategy/slots.h"

#include <math.h>

/* Times that are whole numbers of slots but for rounding stay what they are. */
static double round_up(double time, double length) {
    return ceil(time / length * (1 - 1e-12));
}

static enum status windows(const struct dag *dag, double length, struct arena *arena, struct slots *out,
                           struct error *err) {
    size_t n = dag->n_operators, m = dag->n_messages;
    double *times = arena_alloc(arena, DAG_SCRATCH(n), sizeof *times), *slots = arena_alloc(arena, n, sizeof *slots);
    uint32_t *scratch = arena_alloc(arena, DAG_SCRATCH(n), sizeof *scratch);
    out->jobs = arena_alloc(arena, m, sizeof *out->jobs);
    if (!times || !slots || !scratch || !out->jobs)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        slots[i] = round_up(dag->time[i], length);
    struct dag rounded = *dag;
    rounded.time = slots;
    return dag_windows(&rounded, scratch, times, out->jobs, &out->path, err);
}

static enum status solve(struct arena *arena, struct slots *out, struct error *err) {
    struct machine_job *copy = arena_alloc(arena, out->n, sizeof *copy);
    uint32_t *scratch = arena_alloc(arena, 2 * (size_t)out->n, sizeof *scratch);
    out->slices = arena_alloc(arena, 2 * (size_t)out->n, sizeof *out->slices);
    if (!copy || !scratch || !out->slices)
        return error_no_memory(err);
    double value = one_machine_schedule(out->n, out->jobs, copy, scratch, out->slices, &out->n_slices);
    out->makespan = fmax(out->path, value);
    return ST_OK;
}

enum status slots_solve(const struct dag *dag, const double *work, double length, enum slots_reading reading,
                        struct arena *arena, struct slots *out, struct error *err) {
    struct slots slots = {.length = length, .n = dag->n_messages};
    if (!(length > 0))
        return error_set(err, ST_INVALID, "a slot of length %g; it must be above 0", length);
    enum status st = windows(dag, length, arena, &slots, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < slots.n; i++) {
        slots.jobs[i].work = round_up(work[i], length);
        if (reading == SLOTS_AS_PRINTED)
            slots.jobs[i].release = fmax(0, slots.jobs[i].release - 1);
    }
    st = solve(arena, &slots, err);
    if (!st)
        *out = slots;
    return st;
}
