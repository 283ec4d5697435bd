/* Predict many strategies for one model on one cluster, fastest first. Each strategy is one part of the work; this
 * worker and idle ones take the parts. A strategy that cannot be predicted is listed under "failures", and the others
 * are answered all the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "base/text.h"
#include "service/http/api/api.h"
#include "service/http/api/references.h"
#include "service/http/transport/server.h"
#include "simulator/bound.h"
#include "simulator/trace.h"
#include "simulator/tuned.h"
#include "simulator/updates_trace.h"
#include "strategy/baselines/baselines.h"
#include "strategy/memory.h"
#include "strategy/weather.h"

enum { MAX_STRATEGIES = 10000, MAX_TIMELINES = 16, NAME_ROOM = 128, SAMPLES = 3, FEW = 8, MOST_CHANGES = 20000 };
#define MOST_MEMORY (UINT64_C(1) << 53)

/* One strategy that was asked about. */
struct item {
    struct json_at at; /* of the member that names it */
    const struct baseline *baseline;
    const char *stored; /* what a stored one is called, or NULL */
    bool done;
    enum status status;
    struct error error;
    struct id strategy;
    char name[NAME_ROOM]; /* cut where it is longer */
    struct outlook outlook;
    struct updates_prediction *updates; /* malloc'd; NULL: its consistency is plain */
    char *timeline;                     /* JSON text, malloc'd */
    bool has_memory, over;              /* asked for, and its consistency is plain; more than there may be */
    struct memory memory;
};

struct batch {
    struct request *rq;
    struct prepared_domain *domain;
    struct item *items;
    size_t n;
    bool timeline, memory;
    uint64_t memory_bytes; /* that a device may have; 0: no budget */
};

/* One iteration in the steady state, or a few rounds of updates in the first seed's weather. */
static enum status trace(const struct batch *batch, struct predictor *p, const struct strategy *strategy, FILE *to,
                         struct error *err) {
    const struct updates_options rounds = {
        .weather = batch->domain->cluster->variability.given, .seed = PREPARED_WEATHER, .rounds = UPDATES_TRACE_ROUNDS};
    struct prediction again;
    if (!consistency_is_plain(&strategy->consistency)) {
        enum status st = plan_relower(&p->plan, p->model, &p->corrected, strategy, err);
        return st ? st : updates_trace_write(to, &p->plan, &p->cost, &rounds, err);
    }
    enum status st = predictor_run(p, strategy, &again, err);
    return st ? st : trace_write(to, p->timeline, &p->plan, &p->cost, err);
}

static enum status write_timeline(struct batch *batch, const struct strategy *strategy, struct item *item,
                                  struct error *err) {
    struct predictor *p;
    char *text;
    size_t size;
    enum status st = prepared_domain_take_predictor(batch->domain, &p, err);
    if (st)
        return st;
    FILE *to = stream_open(&text, &size);
    st = to ? trace(batch, p, strategy, to, err) : ST_OK;
    st = stream_close(to, st, &text, err);
    prepared_domain_give_predictor(batch->domain, p);
    if (!st)
        item->timeline = text;
    return st;
}

static enum status find_memory(struct batch *batch, const struct strategy *strategy, struct item *item,
                               struct error *err) {
    struct predictor *p;
    struct error over;
    if (!consistency_is_plain(&strategy->consistency))
        return ST_OK;
    enum status st = prepared_domain_take_predictor(batch->domain, &p, err);
    if (st)
        return st;
    st = plan_relower(&p->plan, p->model, batch->domain->cluster, strategy, err);
    if (!st)
        st = memory_of_plan(&p->plan, &item->memory, err);
    prepared_domain_give_predictor(batch->domain, p);
    item->has_memory = !st;
    item->over = !st && memory_check(&item->memory, batch->domain->cluster, batch->memory_bytes, &over);
    return st;
}

/* Build the strategy and predict it: a baseline, one in place, or a stored one whose timeline or memory is wanted. */
static enum status predict_built(struct batch *batch, struct item *item, struct error *err) {
    const struct prepared_domain *d = batch->domain;
    struct strategy strategy;
    enum status st = work_check(err);
    if (st)
        return st;
    st = item->baseline ? tuned_build_for(item->baseline, d->model, d->cluster, batch->memory_bytes, &strategy, err)
                        : reference_strategy(batch->rq, d, &item->at, &strategy, err);
    if (st)
        return st;
    st = prepared_domain_predict(batch->domain, &strategy, &item->outlook, &item->updates, err);
    if (!st && batch->timeline)
        st = write_timeline(batch, &strategy, item, err);
    if (!st && batch->memory)
        st = find_memory(batch, &strategy, item, err);
    item->strategy = strategy.id;
    snprintf(item->name, sizeof item->name, "%s", strategy.name);
    strategy_release(&strategy);
    return st;
}

/* work_check is not called here: to look up an earlier prediction costs less. Making a new one calls it. */
static enum status predict_stored(struct batch *batch, struct item *item, struct error *err) {
    struct store *store;
    snprintf(item->name, sizeof item->name, "%s", item->stored);
    enum status st = request_reader(batch->rq, &store, err);
    return st ? st
              : prepared_domain_predict_stored(batch->domain, store, item->strategy.hex, &item->outlook, &item->updates,
                                               err);
}

/* Say that the request is too large: it needs more memory than it may have, and the service is not out of memory. */
static enum status say_too_large(const struct request *rq, struct error *err) {
    return error_set(err, ST_TOO_LARGE, REQUEST_TOO_MUCH_MEMORY, (unsigned long long)rq->work.limit_bytes >> 20);
}

static void predict_item(void *context, size_t i) {
    struct batch *batch = context;
    struct item *item = &batch->items[i];
    if (item->done)
        return;
    item->done = true;
    item->status = item->stored && !batch->timeline && !batch->memory ? predict_stored(batch, item, &item->error)
                                                                      : predict_built(batch, item, &item->error);
    if (item->status == ST_NO_MEMORY && atomic_load(&batch->rq->work.starved))
        item->status = say_too_large(batch->rq, &item->error);
    text_clean(item->name); /* it may have been cut within a character */
}

/* How much of it there is. */

static bool is_over(const struct batch *batch) {
    return work_used_us(&batch->rq->work) > batch->rq->work.limit_us;
}

static enum status say_what_fits(const struct batch *batch, double fits, struct error *err) {
    const double seconds = batch->rq->work.limit_us / 1e6;
    if (fits >= 1)
        return problem_fail(err, PROBLEM_TOO_LARGE,
                            "predicting these %zu takes more than the %g s of processor time that a request may have; "
                            "at most about %.0f would fit",
                            batch->n, seconds, fits);
    return problem_fail(err, PROBLEM_TOO_LARGE,
                        "one of these takes more than the %g s of processor time that a request may have; a smaller "
                        "cluster, fewer servers or larger partitions would fit",
                        seconds);
}

static double used_us(const struct batch *batch) {
    work_check(NULL); /* counts what was used */
    return work_used_us(&batch->rq->work);
}

/* Predict a few first, spread over the list. If all took only as long as the quickest of these, and even so would not
 * fit into the request's time, fail and say how many would fit. */
static enum status sample(struct batch *batch, struct error *err) {
    const double begun = used_us(batch), limit = batch->rq->work.limit_us;
    double least = INFINITY;
    for (size_t k = 0; k < SAMPLES && !is_over(batch); k++) {
        const double before = used_us(batch);
        predict_item(batch, k * batch->n / SAMPLES);
        least = fmin(least, used_us(batch) - before);
    }
    if (!is_over(batch) && begun + least * (double)batch->n <= limit)
        return ST_OK;
    return say_what_fits(batch, floor((limit - begun) / least), err);
}

/* Predict them all. Fails: PROBLEM_TOO_LARGE. */
static enum status predict_all(struct batch *batch, struct error *err) {
    struct request *rq = batch->rq;
    size_t done = 0;
    enum status st = batch->n > FEW ? sample(batch, err) : ST_OK;
    if (st)
        return st;
    thread_pool_each(server_pool(rq->server), rq->principal.team, batch->n, predict_item, batch);
    for (size_t i = 0; i < batch->n; i++)
        done += !batch->items[i].status;
    return is_over(batch) ? say_what_fits(batch, (double)done, err) : ST_OK;
}

/* What was asked. */

static enum status add_strategies(struct batch *batch, const struct json_at *list, struct error *err) {
    for (struct json_at e = json_first(list); e.node; e = json_next(&e)) {
        struct item *item = &batch->items[batch->n];
        item->at = e;
        enum status st = ST_OK;
        if (cJSON_IsString(e.node))
            st = reference_name(batch->rq, STORE_STRATEGY, e.node->valuestring, &item->strategy, &item->stored, err);
        else if (!cJSON_IsObject(e.node))
            st = json_fail(&e, err, "must be a strategy or a stored one's id");
        if (st)
            return st;
        batch->n++;
    }
    return ST_OK;
}

/* Look all strategies up in one view of the dataset, since to begin a view costs more than to look a strategy up. */
static enum status look_up_strategies(struct batch *batch, const struct json_at *list, struct error *err) {
    struct store *store;
    bool began;
    enum status st = request_reader(batch->rq, &store, err);
    if (!st)
        st = store_begin_read(store, &began, err);
    if (st)
        return st;
    st = add_strategies(batch, list, err);
    store_end_read(store, began);
    return st;
}

static enum status add_baselines(struct batch *batch, const struct json_at *list, struct error *err) {
    for (struct json_at e = json_first(list); e.node; e = json_next(&e)) {
        const char *name;
        enum status st = json_string_at(&e, &name, err);
        if (st)
            return st;
        struct item *item = &batch->items[batch->n++];
        item->at = e;
        if (!(item->baseline = baselines_find(name)))
            return json_fail(&e, err, "there is no baseline \"%.64s\"", name);
    }
    return ST_OK;
}

static enum status add_items(struct batch *batch, const struct json_at *body, struct json_at *strategies,
                             struct json_at *baselines, struct error *err) {
    size_t n = 0, m = 0;
    struct json_at unused;
    enum status st = json_get_bool(body, "timeline", JSON_OPTIONAL, &batch->timeline, err);
    if (!st)
        st = json_get_bool(body, "memory", JSON_OPTIONAL, &batch->memory, err);
    if (!st)
        st = json_get_integer(body, "memory_bytes", JSON_OPTIONAL, 1, MOST_MEMORY, &batch->memory_bytes, err);
    batch->memory |= batch->memory_bytes > 0;
    if (batch->memory && !batch->memory_bytes)
        batch->memory_bytes = memory_of_devices(batch->domain->cluster);
    if (!st && json_has(body, "strategies", &unused))
        st = json_array(body, "strategies", MAX_STRATEGIES, strategies, &n, err);
    if (!st && json_has(body, "baselines", &unused))
        st = json_array(body, "baselines", MAX_STRATEGIES, baselines, &m, err);
    if (st)
        return st;
    if (!(n + m))
        return json_fail(body, err, "needs strategies or baselines");
    if (n + m > MAX_STRATEGIES || (batch->timeline && n + m > MAX_TIMELINES))
        return json_fail(body, err, "at most %d strategies, or %d with timelines", MAX_STRATEGIES, MAX_TIMELINES);
    batch->items = arena_alloc(&batch->rq->arena, n + m, sizeof *batch->items);
    if (!batch->items)
        return error_no_memory(err);
    st = n ? look_up_strategies(batch, strategies, err) : ST_OK;
    return !st && m ? add_baselines(batch, baselines, err) : st;
}

/* The answer. */

/* In weather the time to expect there. */
static double typical_us(const struct outlook *o) {
    return o->expected.seeds ? o->expected.mean_us : o->quiet.iteration_us;
}

static int compare_items(const void *a, const void *b) {
    const struct item *const *x = a, *const *y = b;
    const double p = typical_us(&(*x)->outlook), q = typical_us(&(*y)->outlook);
    if ((*x)->over != (*y)->over)
        return (*x)->over ? 1 : -1;
    return p != q ? (p < q ? -1 : 1) : strcmp((*x)->strategy.hex, (*y)->strategy.hex);
}

/* A round of updates has no iteration that the bound could hold for. */
static bool add_bound(cJSON *row, const struct item *item, const struct batch *batch) {
    const struct bounds *bounds = &batch->domain->bounds;
    const struct prediction *p = &item->outlook.quiet;
    double bound_us;
    if (bounds_of(bounds, p, item->has_memory && !item->over ? batch->memory_bytes : 0, &bound_us, NULL))
        return false;
    const bool plain = bounds_is_plain(bounds, p) && bound_us <= bounds->of[p->in_parts][LOSSY_none].iteration_us;
    return (plain || cJSON_AddNumberToObject(row, "lower_bound_us", bound_us)) &&
           cJSON_AddNumberToObject(row, "gap", bound_us > 0 ? p->iteration_us / bound_us - 1 : 0);
}

static bool add_memory(cJSON *row, const struct item *item, const struct batch *batch) {
    if (!item->has_memory)
        return true;
    cJSON *memory =
        memory_write(&item->memory, batch->domain->cluster, row) ? cJSON_GetObjectItem(row, "memory") : NULL;
    return memory &&
           (!batch->memory_bytes || cJSON_AddNumberToObject(memory, "budget_bytes", (double)batch->memory_bytes)) &&
           (!batch->domain->model->activations_estimated || cJSON_AddTrueToObject(memory, "activations_estimated")) &&
           cJSON_AddBoolToObject(memory, "fits", !item->over);
}

static bool add_prediction(cJSON *to, const struct item *item, const struct batch *batch) {
    const struct prediction *p = &item->outlook.quiet;
    cJSON *row = cJSON_CreateObject();
    return row && cJSON_AddItemToArray(to, row) && json_add_named(row, "strategy", item->strategy.hex, item->name) &&
           cJSON_AddNumberToObject(row, "iteration_us", p->iteration_us) &&
           cJSON_AddNumberToObject(row, "compute_us", p->compute_us) &&
           cJSON_AddNumberToObject(row, "exposed_us", p->exposed_us) &&
           cJSON_AddNumberToObject(row, "samples_per_s", p->samples_per_s) &&
           cJSON_AddNumberToObject(row, "messages", p->messages) && (item->updates || add_bound(row, item, batch)) &&
           (!item->outlook.expected.seeds || expectation_write(&item->outlook.expected, row)) &&
           (!item->updates || updates_prediction_write(item->updates, row)) && add_memory(row, item, batch) &&
           (!item->timeline || cJSON_AddRawToObject(row, "timeline", item->timeline));
}

static bool add_failure(struct request *rq, cJSON *to, const struct item *item) {
    const char *inner = problem_pointer(&item->error);
    char detail[ERROR_TEXT_ROOM];
    cJSON *row = cJSON_CreateObject();
    if (!row || !cJSON_AddItemToArray(to, row))
        return false;
    const char *list = item->baseline ? "baselines" : "strategies";
    const char *pointer = arena_printf(&rq->arena, "/%s/%zu%s", list, item->at.index, inner ? inner : "");
    return pointer && cJSON_AddStringToObject(row, "pointer", pointer) &&
           cJSON_AddStringToObject(row, "code", problem_code(problem_of_status(item->status))) &&
           cJSON_AddStringToObject(row, "detail", problem_detail(&item->error, detail));
}

/* Where timelines are asked for: the rates that the first seed's weather has while it is simulated, or as long a part
 * of that as has few changes. */
static bool add_weather(const struct batch *batch, size_t n, const struct item *const *items, cJSON *to) {
    const struct cluster *cluster = batch->domain->cluster;
    double until_us = 0;
    for (size_t i = 0; i < n; i++)
        until_us = fmax(until_us, items[i]->outlook.expected.until_us);
    const double changes = weather_changes(cluster, until_us);
    if (!batch->timeline || !cluster->variability.given || until_us <= 0)
        return true;
    cJSON *weather = cJSON_AddObjectToObject(to, "weather");
    return weather && cJSON_AddNumberToObject(weather, "seed", PREPARED_WEATHER) &&
           weather_write(cluster, PREPARED_WEATHER,
                         changes > MOST_CHANGES ? until_us * MOST_CHANGES / changes : until_us, weather);
}

static enum status answer(struct batch *batch, struct response *rs, struct error *err) {
    const struct prepared_domain *d = batch->domain;
    const struct item **ranked = arena_alloc(&batch->rq->arena, batch->n, sizeof *ranked);
    cJSON *root = cJSON_CreateObject();
    bool whole = ranked && root && cJSON_AddStringToObject(root, "schema", "syncopate.predictions/1") &&
                 json_add_named(root, "model", d->model->id.hex, d->model->name) &&
                 json_add_named(root, "cluster", d->cluster->id.hex, d->cluster->name) &&
                 cJSON_AddNumberToObject(root, "lower_bound_us", d->lower_bound_us);
    cJSON *rows = whole ? cJSON_AddArrayToObject(root, "predictions") : NULL;
    cJSON *failures = rows ? cJSON_AddArrayToObject(root, "failures") : NULL;
    size_t n = 0;
    whole = failures != NULL;
    for (size_t i = 0; i < batch->n && whole; i++)
        if (batch->items[i].status)
            whole = add_failure(batch->rq, failures, &batch->items[i]);
        else
            ranked[n++] = &batch->items[i];
    if (whole && n)
        qsort(ranked, n, sizeof *ranked, compare_items);
    for (size_t i = 0; i < n && whole; i++)
        whole = add_prediction(rows, ranked[i], batch);
    whole = whole && add_weather(batch, n, ranked, root);
    return response_json(rs, 200, root, whole, err);
}

/* When memory is out, the dataset cannot be read or the service stops, the whole request fails. */
static enum status first_fault(const struct batch *batch, struct error *err) {
    for (size_t i = 0; i < batch->n; i++)
        if (batch->items[i].status && problem_status(problem_of_status(batch->items[i].status)) >= 500)
            return error_pass(err, &batch->items[i].error);
    return ST_OK;
}

/* The member "what_if": other figures of the model and the cluster. */
static enum status change_domain(const struct json_at *body, struct prepared_domain **domain, struct error *err) {
    static const char *const known[] = {"gbit_per_s", "nodes", "batch", NULL};
    struct what_if w = {0};
    struct json_at at;
    if (!json_has(body, "what_if", &at))
        return ST_OK;
    enum status st = json_expect_object(&at, known, err);
    if (!st)
        st = json_get_number(&at, "gbit_per_s", JSON_OPTIONAL, WHAT_IF_LEAST_RATE, WHAT_IF_MOST_RATE, &w.gbit_per_s,
                             err);
    if (!st)
        st = json_get_integer(&at, "nodes", JSON_OPTIONAL, 1, WHAT_IF_MOST_NODES, &w.nodes, err);
    if (!st)
        st = json_get_number(&at, "batch", JSON_OPTIONAL, WHAT_IF_LEAST_BATCH, WHAT_IF_MOST_BATCH, &w.batch, err);
    return st ? st : reference_what_if(&w, domain, err);
}

enum status api_predictions_create(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"model",  "cluster",      "strategies", "baselines", "timeline",
                                        "memory", "memory_bytes", "what_if",    NULL};
    const struct json_at body = request_body(rq);
    struct batch batch = {.rq = rq};
    struct json_at strategies, baselines;
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = reference_domain(rq, &body, &batch.domain, err);
    if (st)
        return st;
    st = change_domain(&body, &batch.domain, err);
    if (!st)
        st = add_items(&batch, &body, &strategies, &baselines, err);
    if (!st)
        st = predict_all(&batch, err);
    if (!st)
        st = first_fault(&batch, err);
    if (!st)
        st = answer(&batch, rs, err);
    for (size_t i = 0; i < batch.n; i++) {
        free(batch.items[i].updates);
        free(batch.items[i].timeline);
    }
    prepared_domain_drop(batch.domain);
    return st;
}
