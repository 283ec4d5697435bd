/* See agent_trial.h. The interface has no word for giving a trial back: its lease is cut to a second instead, after
 * which it is offered again. */
#include "cli/agent_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/units.h"

static const double DELIVERY_TRY_US = 30e6, LAST_TRY_US = 10e6;

struct held {
    const struct agent_place *place;
    uint64_t number, attempt, iterations, warmup, weather;
    double predicted_us, give_up_us;
    struct strategy strategy;
};

/* ---- words with the service ---- */

static cJSON *new_body(const struct held *h, bool *whole) {
    cJSON *root = cJSON_CreateObject();
    *whole = root && cJSON_AddStringToObject(root, "client", h->place->name) &&
             cJSON_AddNumberToObject(root, "attempt", (double)h->attempt);
    return root;
}

/* POST :verb; `body` stays the caller's. With a key where doing it twice would matter. */
static enum status say(const struct held *h, const char *verb, const cJSON *body, bool keyed, double deadline_us,
                       struct error *err) {
    char path[160], key[192];
    cJSON *answer = NULL;
    snprintf(path, sizeof path, "/api/v1/sessions/%s/trials/%lu:%s", h->place->session, (unsigned long)h->number, verb);
    snprintf(key, sizeof key, "%s/%lu/%lu/%s", h->place->session, (unsigned long)h->number, (unsigned long)h->attempt,
             verb);
    const struct client_request request = {
        .method = "POST", .path = path, .body = body, .key = keyed ? key : NULL, .deadline_us = deadline_us};
    enum status st = client_call(h->place->client, &request, &answer, err);
    cJSON_Delete(answer);
    return st;
}

static void give_back(const struct held *h) {
    struct error err;
    bool whole;
    cJSON *body = new_body(h, &whole);
    whole = whole && cJSON_AddNumberToObject(body, "lease_s", 1);
    if (whole && !say(h, "heartbeat", body, false, LAST_TRY_US, &err))
        log_info("trial %lu given back", (unsigned long)h->number);
    cJSON_Delete(body);
}

/* True: the service may take it later. */
static bool is_away(const struct held *h, enum status st) {
    const long answered = client_last_status(h->place->client);
    return st == ST_UNREACHABLE && answered != 401 && answered != 403;
}

/* Repeat until there is an answer; *taken is false where the trial is no longer ours. An agent that is asked to end
 * meanwhile tries once more, for a few seconds. */
static enum status deliver(const struct held *h, const char *verb, const cJSON *body, bool *taken, struct error *err) {
    enum status st;
    bool told = false, last;
    do {
        last = *h->place->interrupted;
        st = say(h, verb, body, true, last ? LAST_TRY_US : DELIVERY_TRY_US, err);
        if (is_away(h, st) && !told)
            log_warn("trial %lu has ended, and the service is away; trying again (%s)", (unsigned long)h->number,
                     ERROR_TEXT(err));
        told = told || st;
    } while (is_away(h, st) && !last);
    *taken = !st;
    if (st != ST_CONFLICT && st != ST_NOT_FOUND)
        return st;
    log_warn("trial %lu was not taken: %s", (unsigned long)h->number, ERROR_TEXT(err));
    return ST_OK;
}

/* ---- its outcome ---- */

static bool add_environment(cJSON *body, const char *text) {
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    return !text || (json && cJSON_AddItemToObject(body, "environment", json));
}

static bool add_runner(cJSON *body, const struct held *h) {
    return cJSON_AddStringToObject(body, "runner", runner_for_session(h->place->runner).name) != NULL;
}

static enum status complete(const struct held *h, const struct tune_outcome *outcome, struct error *err) {
    struct summary summary;
    char median[32];
    bool whole, taken = false;
    enum status st = summary_of_copy(outcome->n, outcome->iterations_us, &summary, err);
    cJSON *body = new_body(h, &whole), *times = cJSON_CreateDoubleArray(outcome->iterations_us, (int)outcome->n);
    whole = whole && times && cJSON_AddItemToObject(body, "iterations_us", times) &&
            cJSON_AddBoolToObject(body, "early", outcome->early) && add_runner(body, h) &&
            add_environment(body, outcome->environment);
    if (!st)
        st = whole ? deliver(h, "complete", body, &taken, err) : error_no_memory(err);
    cJSON_Delete(body);
    if (taken)
        log_info("trial %lu: %s, %s over %zu iterations%s", (unsigned long)h->number, h->strategy.name,
                 units_format_time(summary.median_us, median, sizeof median), outcome->n,
                 outcome->early ? ", ended early" : "");
    return st;
}

static enum status fail(const struct held *h, const struct tune_outcome *outcome, struct error *err) {
    char reason[512];
    bool whole, taken = false;
    cJSON *body = new_body(h, &whole);
    snprintf(reason, sizeof reason, "%s",
             outcome->reason && *outcome->reason ? outcome->reason : "the trial gave no reason");
    text_clean(reason); /* the interface takes no other */
    whole = whole && cJSON_AddStringToObject(body, "reason", reason) &&
            cJSON_AddBoolToObject(body, "infeasible", outcome->state == RECORD_INFEASIBLE) && add_runner(body, h);
    enum status st = whole ? deliver(h, "fail", body, &taken, err) : error_no_memory(err);
    cJSON_Delete(body);
    if (taken)
        log_info("trial %lu: %s, %s: %s", (unsigned long)h->number, h->strategy.name, record_state_word(outcome->state),
                 reason);
    return st;
}

/* Report what was measured until the service had the run ended. */
static struct tune_outcome cut_short(const struct runner *runner) {
    const struct trial_result *last = &runner->last;
    return (struct tune_outcome){.state = last->n ? RECORD_COMPLETE : RECORD_FAILED,
                                 .early = true,
                                 .n = last->n,
                                 .iterations_us = last->time_us,
                                 .environment = last->environment,
                                 .reason = "ended by the service before its first iteration"};
}

/* ---- the run ---- */

static void on_iteration(void *context, uint32_t index, double time_us) {
    (void)index;
    keeper_add(context, time_us);
}

static enum status run_kept(const struct held *h, struct tune_outcome *outcome, enum keeper_verdict *verdict,
                            struct error *err) {
    const struct agent_place *place = h->place;
    const struct keeper_options options = {.remote = place->remote,
                                           .session = place->session,
                                           .client = place->name,
                                           .number = h->number,
                                           .attempt = h->attempt,
                                           .lease_us = place->lease_us,
                                           .interrupted = place->interrupted};
    const struct tune_order order = {.strategy = &h->strategy,
                                     .iterations = h->iterations,
                                     .warmup = h->warmup,
                                     .expected_us = h->predicted_us,
                                     .number = h->number,
                                     .give_up_us = h->give_up_us,
                                     .weather = h->weather,
                                     .learns = !consistency_is_plain(&h->strategy.consistency)};
    struct keeper *keeper;
    enum status st = keeper_start(&options, &keeper, err);
    if (st)
        return st;
    place->runner->cancel = keeper_flag(keeper);
    place->runner->on_iteration = on_iteration;
    place->runner->context = keeper;
    const struct tune_runner run = runner_for_session(place->runner);
    st = run.run(run.context, &order, outcome, err);
    *verdict = keeper_stop(keeper);
    place->runner->cancel = NULL;
    return st;
}

static enum status run_held(const struct held *h, struct error *err) {
    struct tune_outcome outcome;
    struct error why;
    enum keeper_verdict verdict = KEEPER_GO_ON;
    if (!consistency_is_plain(&h->strategy.consistency) && runner_check_updates(h->place->runner, &why)) {
        outcome = (struct tune_outcome){.state = RECORD_INFEASIBLE, .reason = ERROR_TEXT(&why)};
        return fail(h, &outcome, err);
    }
    enum status st = run_kept(h, &outcome, &verdict, err);
    if (st == ST_CANCELLED && verdict == KEEPER_STOP) {
        outcome = cut_short(h->place->runner);
        st = ST_OK;
    }
    if (st == ST_CANCELLED && verdict == KEEPER_LOST) {
        log_warn("trial %lu was dropped: %s", (unsigned long)h->number, keeper_label(verdict));
        return ST_OK;
    }
    if (st) {
        give_back(h);
        return st;
    }
    return outcome.state == RECORD_COMPLETE ? complete(h, &outcome, err) : fail(h, &outcome, err);
}

enum status agent_trial_run(const struct agent_place *place, const cJSON *suggestion, struct error *err) {
    struct held h = {.place = place,
                     .number = remote_count(suggestion, "number"),
                     .attempt = remote_count(suggestion, "attempt"),
                     .iterations = remote_count(suggestion, "iterations"),
                     .warmup = remote_count(suggestion, "warmup"),
                     .weather = remote_count(suggestion, "weather")};
    const double predicted = remote_number(suggestion, "predicted_us"), bound = remote_number(suggestion, "give_up_us");
    h.predicted_us = predicted > 0 ? predicted : 0;
    h.give_up_us = bound > 0 ? bound : 0;
    enum status st = strategy_read(cJSON_GetObjectItemCaseSensitive(suggestion, "strategy"), "suggestion",
                                   &place->inputs->model, &place->inputs->cluster, &h.strategy, err);
    if (st) {
        give_back(&h);
        return st;
    }
    log_debug("trial %lu: %s, attempt %lu", (unsigned long)h.number, h.strategy.name, (unsigned long)h.attempt);
    st = run_held(&h, err);
    strategy_release(&h.strategy);
    return st;
}
