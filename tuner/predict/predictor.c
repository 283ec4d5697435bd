/* Correcting means describing the cluster again with other figures: measured times here, all others by the factors in
 * struct cluster. So the simulator needs to know nothing of corrections. */
#include "tuner/predict/predictor.h"

#include <math.h>
#include <string.h>

#include "base/work.h"
#include "simulator/bound.h"
#include "strategy/memory.h"

enum { FIT_LEVELS = 4, BRIEF_PASSES = 3 };

static const double FIT_FIRST_STEP = 0.35; /* of a factor's logarithm */
static const double FIT_NOISE = 0.05;      /* deviation of one trial's log(predicted / measured) by noise alone */
static const double FIT_LARGEST = 0.5;     /* a larger residual is an outlier, and counts as this */

static const double HURRY = 8; /* hurried rates hold for so many of the shortest possible iterations */

/* A curve's fixed part is its value at its smallest size. */
static void correct_measurements(struct measurement *to, const struct cluster *from, struct correction c) {
    double smallest = 0;
    for (uint32_t i = 0; i < from->n_measurements; i++) {
        const struct measurement *m = &from->measurements[i];
        if (!i || m[-1].operation != m->operation || m[-1].algorithm != m->algorithm || m[-1].devices != m->devices)
            smallest = m->time_us;
        double fixed = fmin(smallest, m->time_us);
        to[i] = *m;
        to[i].time_us = c.startup * fixed + c.transfer * (m->time_us - fixed);
    }
}

enum status predictor_correct(struct predictor *p, struct correction c, struct error *err) {
    const struct cluster *from = p->cluster;
    arena_clear(&p->arena);
    struct measurement *measurements = arena_alloc(&p->arena, from->n_measurements, sizeof *measurements);
    if (!measurements)
        return error_no_memory(err);
    correct_measurements(measurements, from, c);
    p->corrected = *from;
    p->corrected.measurements = measurements;
    p->corrected.all_reduce_startup_us *= c.startup;
    p->corrected.all_reduce_per_byte_ns *= c.transfer;
    p->corrected.startup = c.startup;
    p->corrected.transfer = c.transfer;
    p->correction = c;
    cost_release(&p->cost);
    return cost_init(&p->cost, &p->corrected, err);
}

static enum status begin(struct predictor *p, struct error *err) {
    p->timeline = timeline_new();
    enum status st = p->timeline ? predictor_correct(p, (struct correction){1, 1}, err) : error_no_memory(err);
    if (st)
        predictor_release(p);
    return st;
}

enum status predictor_init(struct predictor *out, const struct model *model, const struct cluster *cluster,
                           struct error *err) {
    struct predictor p = {.model = model, .cluster = cluster};
    *out = p;
    if (cluster->variability.given)
        return error_set(
            err, ST_INVALID,
            "\"%s\" has \"variability\", which is for simulate, compare, trial and \"tune --weather\": take "
            "it out of the description",
            cluster->name);
    return begin(out, err);
}

/* How long a NIC keeps a rate in a trace, on average over those that change at all. */
static double rate_holds_us(const struct variability *v, uint32_t ports, bool *changes) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_changes; i++)
        changes[v->changes[i].node * DIRECTION_COUNT + v->changes[i].direction] = true;
    for (uint32_t port = 0; port < ports; port++)
        n += changes[port];
    return v->trace_us * n / v->n_changes;
}

/* Flows in the background as often on their way as they are, but shorter. Each changes two ports twice. */
static enum status hurry_flows(struct predictor *p, double most_us, struct background *b, struct error *err) {
    const double ports = p->cluster->n_nodes * DIRECTION_COUNT;
    if (b->flows_per_s > 0) {
        const double pace = fmin(1, most_us / (ports / (4 * b->flows_per_s) * 1e6));
        b->flows_per_s /= pace;
        b->mbytes *= pace;
    }
    if (b->n_flows == 0)
        return ST_OK;
    struct background_flow *flows = arena_alloc(&p->trace, b->n_flows, sizeof *flows);
    const double pace = fmin(1, most_us / (b->trace_us * ports / (4 * b->n_flows)));
    if (!flows)
        return error_no_memory(err);
    memcpy(flows, b->flows, b->n_flows * sizeof *flows);
    for (uint32_t i = 0; i < b->n_flows; i++) {
        flows[i].at_us *= pace;
        flows[i].mbytes *= pace;
    }
    b->trace_us *= pace;
    b->flows = flows;
    return ST_OK;
}

/* The same rates with the same shares, but each holds for so long at most; those of a trace, and with flows, on
 * average. */
static enum status hurry(struct predictor *p, double most_us, struct error *err) {
    struct variability v = p->cluster->variability;
    const uint32_t ports = p->cluster->n_nodes * DIRECTION_COUNT;
    v.every_us = fmin(v.every_us, most_us);
    enum status st = hurry_flows(p, most_us, &v.background, err);
    if (st)
        return st;
    if (v.n_changes > 0) {
        struct rate_change *changes = arena_alloc(&p->trace, v.n_changes, sizeof *changes);
        bool *which = arena_alloc(&p->trace, ports, sizeof *which);
        if (!changes || !which)
            return error_no_memory(err);
        memset(which, 0, ports * sizeof *which);
        double pace = fmin(1, most_us / rate_holds_us(&v, ports, which));
        memcpy(changes, v.changes, v.n_changes * sizeof *changes);
        for (uint32_t i = 0; i < v.n_changes; i++)
            changes[i].at_us *= pace;
        v.trace_us *= pace;
        v.changes = changes;
    }
    p->hurried = v;
    return ST_OK;
}

enum status predictor_init_in_weather(struct predictor *out, const struct model *model, const struct cluster *cluster,
                                      uint64_t weather, struct error *err) {
    struct predictor p = {.model = model, .cluster = cluster, .weather = weather};
    struct bound bound;
    *out = p;
    if (!cluster->variability.given || !weather)
        return error_set(err, ST_INVALID, "\"%s\" has no \"variability\": there is no weather to expect",
                         cluster->name);
    enum status st = begin(out, err);
    if (st)
        return st;
    st = bound_iteration(model, &out->cost, LOSSINESS_COUNT - 1, IN_PARTS_updates, &bound, err);
    if (!st)
        st = hurry(out, HURRY * bound.iteration_us, err);
    if (st)
        predictor_release(out);
    return st;
}

void predictor_release(struct predictor *p) {
    plan_release(&p->plan);
    predictions_release(&p->known);
    timeline_free(p->timeline);
    cost_release(&p->cost);
    arena_release(&p->arena);
    arena_release(&p->trace);
    *p = (struct predictor){0};
}

size_t predictor_bytes(const struct predictor *p) {
    return arena_bytes(&p->arena) + arena_bytes(&p->trace) + arena_bytes(&p->plan.arena) + timeline_bytes(p->timeline);
}

void predictor_set_memory(struct predictor *p, uint64_t memory_bytes) {
    p->memory_bytes = memory_bytes > 0 ? memory_bytes : memory_of_devices(p->cluster);
}

/* Of the plan that was lowered. */
static enum status check_memory(struct predictor *p, struct error *err) {
    struct memory memory;
    enum status st = memory_of_plan(&p->plan, &memory, err);
    if (st)
        return st;
    st = memory_check(&memory, p->cluster, p->memory_bytes, err);
    p->peak_bytes = memory.peak_bytes;
    p->over = st;
    if (p->over && (p->least_bytes == 0 || memory.peak_bytes < p->least_bytes))
        p->least_bytes = memory.peak_bytes;
    return st;
}

/* Lower the strategy, unless this is no time to, or limits or memory forbid it. */
static enum status lower(struct predictor *p, const struct strategy *strategy, struct error *err) {
    enum status st = work_check(err); /* before lowering, since a search makes thousands of predictions */
    p->peak_bytes = 0;
    p->over = false;
    if (!st && p->limits)
        st = export_limits_check(p->limits, strategy, p->model, p->cluster, err);
    if (!st)
        st = plan_relower(&p->plan, p->model, &p->corrected, strategy, err);
    return st || !p->memory_bytes || !consistency_is_plain(&strategy->consistency) ? st : check_memory(p, err);
}

static enum status run_quiet(struct predictor *p, struct prediction *out, struct error *err) {
    const struct timeline_options options = {
        .max_passes = p->brief ? BRIEF_PASSES : 0, .enough_us = p->enough_us, .most_events = p->most_events};
    return timeline_run(p->timeline, &p->plan, &p->cost, &options, out, err);
}

static enum status run_hurried(struct predictor *p, struct prediction *out, struct error *err) {
    const struct timeline_options options = {.weather = true,
                                             .seed = p->weather,
                                             .passes = p->glance ? PREDICTOR_GLANCE : PREDICTOR_BRIEF,
                                             .enough_us = p->enough_us,
                                             .most_events = p->most_events};
    p->corrected.variability = p->hurried;
    enum status st = timeline_run(p->timeline, &p->plan, &p->cost, &options, out, err);
    p->corrected.variability = p->cluster->variability;
    return st;
}

static enum status run_in_weather(struct predictor *p, struct prediction *quiet, struct expectation *out,
                                  struct error *err) {
    const struct expectation_options options = {.first_seed = p->weather};
    enum status st = run_quiet(p, quiet, err);
    return st ? st : expectation_run(p->timeline, &p->plan, &p->cost, quiet->iteration_us, &options, out, err);
}

enum status predictor_run(struct predictor *p, const struct strategy *strategy, struct prediction *out,
                          struct error *err) {
    struct expectation expected;
    enum status st = lower(p, strategy, err);
    if (st)
        return st;
    if (!p->weather)
        return run_quiet(p, out, err);
    if (p->brief)
        return run_hurried(p, out, err);
    st = run_in_weather(p, out, &expected, err);
    if (st)
        return st;
    out->samples_per_s *= out->iteration_us / expected.mean_us;
    out->iteration_us = expected.mean_us;
    out->exposed_us = fmax(expected.mean_us - out->compute_us, 0);
    return ST_OK;
}

enum status predictor_outlook(struct predictor *p, const struct strategy *strategy, struct outlook *out,
                              struct error *err) {
    enum status st = lower(p, strategy, err);
    return st ? st : run_in_weather(p, &out->quiet, &out->expected, err);
}

enum status predictor_round(struct predictor *p, const struct strategy *strategy, struct expectation *out,
                            struct updates_prediction *updates, struct error *err) {
    const struct expectation_options options = {.first_seed = p->weather};
    enum status st = lower(p, strategy, err);
    return st ? st : expectation_run_updates(&p->plan, &p->cost, &options, out, updates, err);
}

enum status predictor_features(struct predictor *p, const struct strategy *strategy, struct features *out,
                               struct prediction *prediction, struct error *err) {
    struct prediction here;
    enum status st = predictor_run(p, strategy, &here, err);
    if (st)
        return st;
    const struct timeline_terms terms = {.iteration_us = here.iteration_us,
                                         .compute_us = here.compute_us,
                                         .exposed_us = here.exposed_us,
                                         .busy_us = here.comm_busy_us,
                                         .queue_us = here.queue_us};
    if (prediction)
        *prediction = here;
    return features_of(strategy, &p->plan, &p->cost, &terms, out, err);
}

/* The iterations after the first few. */
struct measured_part {
    uint32_t skip, n;
    double sum_us;
};

static void take_iteration(void *context, double us) {
    struct measured_part *part = context;
    if (part->skip > 0) {
        part->skip--;
        return;
    }
    part->n++;
    part->sum_us += us;
}

/* What a trial should have measured: in the weather of its seed, with as many iterations. */
static enum status predict_trial(struct predictor *p, const struct measured *trial, double *us, struct error *err) {
    struct prediction prediction;
    struct measured_part part = {.skip = trial->warmup};
    const struct timeline_options in_weather = {.weather = true,
                                                .seed = p->weather,
                                                .passes = trial->warmup + trial->iterations,
                                                .iteration = take_iteration,
                                                .context = &part};
    enum status st = lower(p, trial->strategy, err);
    if (!st)
        st = p->weather ? timeline_run(p->timeline, &p->plan, &p->cost, &in_weather, &prediction, err)
                        : run_quiet(p, &prediction, err);
    if (!st)
        *us = part.n > 0 ? part.sum_us / part.n : prediction.iteration_us;
    return st;
}

/* The same under these factors, which the predictor already uses. In weather a time also depends on how many iterations
 * there were; factors are below 10, so adding that number keeps keys apart. */
static enum status predict_with(struct predictor *p, const double factors[2], const struct measured *trial, double *us,
                                struct error *err) {
    const double key[2] = {factors[0], factors[1] + 100.0 * (p->weather ? trial->iterations : 0)};
    if (predictions_find(&p->known, &trial->strategy->id, key, us))
        return ST_OK;
    enum status st = predict_trial(p, trial, us, err);
    if (!st)
        predictions_keep(&p->known, &trial->strategy->id, key, *us);
    return st;
}

/* Minus the log of the posterior, up to a constant. */
static enum status misfit(struct predictor *p, const double factors[2], size_t n, const struct measured *measured,
                          double *out, struct error *err) {
    enum status st = predictor_correct(p, (struct correction){exp(factors[0]), exp(factors[1])}, err);
    double sum = 0;
    for (size_t i = 0; i < n && !st; i++) {
        double us = 1;
        st = predict_with(p, factors, &measured[i], &us, err);
        double residual = log(us / measured[i].us);
        residual = fmin(fabs(residual), FIT_LARGEST) / FIT_NOISE;
        sum += residual * residual;
    }
    for (int k = 0; k < 2; k++)
        sum += factors[k] * factors[k] / (PREDICTOR_PRIOR * PREDICTOR_PRIOR);
    *out = sum;
    return st;
}

/* Try both directions along factor k; keep what is better. */
static enum status improve(struct predictor *p, double factors[2], int k, double step, size_t n,
                           const struct measured *measured, double *best, bool *moved, struct error *err) {
    for (int sign = -1; sign <= 1; sign += 2) {
        double value, trial[2] = {factors[0], factors[1]};
        trial[k] += sign * step;
        enum status st = misfit(p, trial, n, measured, &value, err);
        if (st)
            return st;
        if (value < *best) {
            *best = value;
            factors[k] = trial[k];
            *moved = true;
            break;
        }
    }
    return ST_OK;
}

enum status predictor_fit(struct predictor *p, size_t n, const struct measured *measured, struct error *err) {
    double factors[2] = {0, 0}, best;
    p->brief = true;
    enum status st = misfit(p, factors, n, measured, &best, err);
    double step = FIT_FIRST_STEP;
    for (int level = 0; level < FIT_LEVELS && !st;) {
        bool moved = false;
        for (int k = 0; k < 2 && !st; k++)
            st = improve(p, factors, k, step, n, measured, &best, &moved, err);
        if (!moved || fabs(factors[0]) > 3 || fabs(factors[1]) > 3) {
            level++;
            step /= 2;
        }
    }
    p->brief = false;
    return st ? st : predictor_correct(p, (struct correction){exp(factors[0]), exp(factors[1])}, err);
}
