/* See expectation.h. */
#include "simulator/expectation.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/statistics.h"
#include "strategy/cluster.h"
#include "strategy/weather.h"

/* The iterations so far, of all seeds. */
struct iterations {
    double *us; /* malloc'd */
    size_t n, room;
    bool failed; /* no memory */
};

static void note(void *context, double us) {
    struct iterations *all = context;
    all->failed = all->failed || !GROW(&all->us, &all->room, all->n + 1);
    if (!all->failed)
        all->us[all->n++] = us;
}

static double default_until_us(const struct variability *v, double quiet_us) {
    return fmax(weather_shows_us(v, EXPECTATION_CHANGES), EXPECTATION_ITERATIONS * quiet_us);
}

/* A seed shows iterations per microsecond. The mean time is the inverse of their mean; the ends of its interval are the
 * inverses of the ends of theirs. */
static void judge(uint32_t seeds, double sum, double squares, struct expectation *out) {
    double mean = sum / seeds, variance = seeds > 1 ? fmax(squares - sum * mean, 0) / (seeds - 1) : 0;
    double off = student_quantile(seeds - 1) * sqrt(variance / seeds);
    out->mean_us = 1 / mean;
    out->low_us = 1 / (mean + off);
    out->high_us = mean > off ? 1 / (mean - off) : INFINITY;
}

/* Sorts them. */
static double p95_of(struct iterations *all) {
    numbers_sort(all->n, all->us);
    return all->n > 0 ? all->us[(size_t)ceil(0.95 * (double)all->n) - 1] : 0;
}

enum status expectation_run(struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                            double quiet_us, const struct expectation_options *options, struct expectation *out,
                            struct error *err) {
    uint64_t first = options->first_seed > 0 ? options->first_seed : 1;
    uint32_t seeds = options->seeds > 0 ? options->seeds : EXPECTATION_SEEDS;
    double until_us =
        options->until_us > 0 ? options->until_us : default_until_us(&cost->cluster->variability, quiet_us);
    if (options->iterations > 0)
        until_us = 0;
    struct iterations all = {0};
    double sum = 0, squares = 0;
    enum status status = ST_OK;
    for (uint32_t i = 0; i < seeds && !status; i++) {
        struct prediction p;
        struct timeline_options run = {.weather = true,
                                       .seed = first + i,
                                       .passes = options->iterations,
                                       .until_us = until_us,
                                       .iteration = note,
                                       .context = &all};
        status = timeline_run(timeline, plan, cost, &run, &p, err);
        if (!status && all.failed)
            status = error_no_memory(err);
        sum += status ? 0 : 1 / p.iteration_us;
        squares += status ? 0 : 1 / (p.iteration_us * p.iteration_us);
    }
    if (!status) {
        *out = (struct expectation){.until_us = until_us, .seeds = seeds, .iterations = all.n};
        judge(seeds, sum, squares, out);
        out->p95_us = p95_of(&all);
    }
    free(all.us);
    return status;
}

enum status expectation_run_updates(const struct plan *plan, const struct cost *cost,
                                    const struct expectation_options *options, struct expectation *out,
                                    struct updates_prediction *sum, struct error *err) {
    const struct variability *v = &cost->cluster->variability;
    const uint64_t first = options->first_seed > 0 ? options->first_seed : 1;
    const uint32_t seeds = !v->given ? 1 : options->seeds > 0 ? options->seeds : EXPECTATION_SEEDS;
    const double until_us = !v->given ? 0 : options->until_us > 0 ? options->until_us : default_until_us(v, 0);
    struct iterations all = {0};
    struct updates_prediction total = {0};
    double rates = 0, squares = 0;
    enum status status = ST_OK;
    for (uint32_t i = 0; i < seeds && !status; i++) {
        struct updates_prediction one;
        struct updates_options run = {.weather = v->given,
                                      .seed = first + i,
                                      .rounds = options->iterations,
                                      .until_us = options->iterations > 0 ? 0 : until_us,
                                      .iteration = note,
                                      .context = &all};
        status = updates_run(plan, cost, &run, &one, err);
        if (!status && all.failed)
            status = error_no_memory(err);
        if (status)
            break;
        updates_prediction_add(&total, &one);
        rates += 1 / updates_round_us(&one);
        squares += 1 / (updates_round_us(&one) * updates_round_us(&one));
    }
    if (!status) {
        *out = (struct expectation){.until_us = total.us / seeds, .seeds = seeds, .iterations = all.n};
        judge(seeds, rates, squares, out);
        out->p95_us = p95_of(&all);
        *sum = total;
    }
    free(all.us);
    return status;
}

bool expectation_has_interval(const struct expectation *e) {
    return e->seeds > 1;
}

bool expectation_write(const struct expectation *e, cJSON *to) {
    cJSON *object = cJSON_AddObjectToObject(to, "in_weather");
    const bool interval = expectation_has_interval(e);
    return object && cJSON_AddNumberToObject(object, "mean_us", e->mean_us) &&
           (!interval || cJSON_AddNumberToObject(object, "low_us", e->low_us)) &&
           (!interval || !isfinite(e->high_us) || cJSON_AddNumberToObject(object, "high_us", e->high_us)) &&
           cJSON_AddNumberToObject(object, "p95_us", e->p95_us) && cJSON_AddNumberToObject(object, "seeds", e->seeds) &&
           cJSON_AddNumberToObject(object, "until_us", e->until_us) &&
           cJSON_AddNumberToObject(object, "iterations", (double)e->iterations);
}

enum status expectation_read(const struct json_at *at, struct expectation *out, struct error *err) {
    static const double most = 1e300;
    struct expectation e = {.high_us = INFINITY};
    uint64_t seeds = 0;
    enum status st = json_get_number(at, "mean_us", JSON_REQUIRED, 0, most, &e.mean_us, err);
    e.low_us = e.mean_us;
    if (!st)
        st = json_get_number(at, "low_us", JSON_OPTIONAL, 0, most, &e.low_us, err);
    if (!st)
        st = json_get_number(at, "high_us", JSON_OPTIONAL, 0, most, &e.high_us, err);
    if (!st)
        st = json_get_number(at, "p95_us", JSON_REQUIRED, 0, most, &e.p95_us, err);
    if (!st)
        st = json_get_number(at, "until_us", JSON_REQUIRED, 0, most, &e.until_us, err);
    if (!st)
        st = json_get_integer(at, "seeds", JSON_REQUIRED, 1, UINT32_MAX, &seeds, err);
    if (!st)
        st = json_get_integer(at, "iterations", JSON_REQUIRED, 0, UINT64_MAX, &e.iterations, err);
    e.seeds = (uint32_t)seeds;
    if (!expectation_has_interval(&e))
        e.low_us = e.high_us = e.mean_us;
    if (!st)
        *out = e;
    return st;
}
