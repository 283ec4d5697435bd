/* Each number has a random stream of its own, split from the seed, so a draw does not depend on those before it. */
#include "tuner/session/collection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "dataset/claims.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "tuner/session/trials.h"

enum { RECIPES = 8, NEAR_STEPS = 4, FAST_GUIDED = 30, FAST_STEPS = 30, MOST_DRAWS = 50, WARMUP = 1 };

#define X(constant, word, words) word,
static const char *const way_words[COLLECTION_BY_RECIPE] = {COLLECTION_TABLE(X) COLLECTION_PARTLY_TABLE(X)};
#undef X
static const size_t PREFIX = sizeof "collect-" - 1;

enum status collection_way_named(const char *word, enum collection_way *out, struct error *err) {
    if (!strcmp(word, "recipe")) {
        *out = COLLECTION_BY_RECIPE;
        return ST_OK;
    }
    for (int way = 0; way < COLLECTION_BY_RECIPE; way++)
        if (!strcmp(word, way_words[way] + PREFIX)) {
            *out = (enum collection_way)way;
            return ST_OK;
        }
    return error_set(err, ST_USAGE,
                     "strategies are not drawn by '%s'; take recipe, guided, uniform, baseline, sizes, near, fast, "
                     "balanced, adjacent or loose",
                     word);
}

/* ---- drawing ---- */

enum status collection_init(struct collection *out, const struct model *model, const struct cluster *cluster,
                            const struct space_options *options, struct error *err) {
    struct collection c = {.model = model, .cluster = cluster, .fastest_us = INFINITY, .only = COLLECTION_BY_RECIPE};
    *out = c;
    enum status st = space_init(&out->space, model, cluster, options, err);
    if (!st)
        st = predictor_init(&out->predictor, model, cluster, err);
    if (!st)
        st = starts_list(&out->predictor, &out->space, &out->starts, err);
    for (size_t i = 0; i < out->starts.n && !st; i++)
        out->fastest_us = fmin(out->fastest_us, out->starts.items[i].predicted_us);
    out->predictor.brief = true;
    if (st)
        collection_release(out);
    return st;
}

void collection_release(struct collection *c) {
    starts_release(&c->starts);
    predictor_release(&c->predictor);
    space_release(&c->space);
    *c = (struct collection){0};
}

/* *strategy becomes a neighbour of itself, `steps` times. */
static enum status walk(const struct collection *c, uint64_t steps, struct rng *rng, struct strategy *strategy,
                        struct error *err) {
    for (uint64_t i = 0; i < steps; i++) {
        struct strategy next;
        enum status st = space_neighbour(&c->space, strategy, rng, &next, err);
        if (st)
            return st;
        strategy_release(strategy);
        *strategy = next;
    }
    return ST_OK;
}

static enum status copy_start(const struct collection *c, size_t index, struct strategy *out, struct error *err) {
    const struct strategy *from = &c->starts.items[index].strategy;
    enum status st = strategy_copy(from, from->name, out, err);
    if (!st && (st = strategy_seal(out, c->model, c->cluster, err)))
        strategy_release(out);
    return st;
}

static enum status draw_near(const struct collection *c, struct rng *rng, struct strategy *out, struct error *err) {
    enum status st = copy_start(c, rng_below(rng, c->starts.n), out, err);
    if (!st && (st = walk(c, 1 + rng_below(rng, NEAR_STEPS), rng, out, err)))
        strategy_release(out);
    return st;
}

static uint64_t draw_size(struct rng *rng, uint64_t low, uint64_t high) {
    return (uint64_t)rng_log_between(rng, (double)low, (double)high) / SPACE_MIN_BYTES * SPACE_MIN_BYTES;
}

/* Partitions of so many bytes everywhere, but of matrices that powersgd needs whole. */
static void set_partitions(struct strategy *s, uint64_t bytes) {
    for (uint32_t g = 0; g < s->n_groups; g++)
        s->groups[g].partition_bytes = bytes;
    for (uint32_t v = 0; v < s->n_variables; v++)
        s->variables[v].partition_bytes = s->variables[v].kind == SYNC_PARAMETER_SERVER ? bytes : 0;
    strategy_leave_matrices_whole(s);
}

static enum status draw_sizes(const struct collection *c, struct rng *rng, struct strategy *out, struct error *err) {
    const struct space_options *o = &c->space.options;
    uint64_t largest = c->model->bytes > o->min_partition_bytes ? c->model->bytes : o->min_partition_bytes;
    enum status st = space_sample_guided(&c->space, rng, out, err);
    if (st)
        return st;
    uint64_t partition = rng_below(rng, 4) ? draw_size(rng, o->min_partition_bytes, largest) : 0;
    set_partitions(out, partition);
    switch (rng_below(rng, 4)) {
    case 0:
        out->credit_bytes = 0;
        break;
    case 1:
        out->credit_bytes = CREDIT_UNLIMITED;
        break;
    default:
        out->credit_bytes = draw_size(rng, o->min_credit_bytes, largest);
    }
    if ((st = strategy_seal(out, c->model, c->cluster, err)))
        strategy_release(out);
    return st;
}

/* The fastest predicted of a few: guided ones, then a climb from the best. */
static enum status draw_fast(struct collection *c, struct rng *rng, struct strategy *out, struct error *err) {
    double best_us = INFINITY;
    enum status st = ST_OK;
    for (int i = 0; i < FAST_GUIDED + FAST_STEPS && !st; i++) {
        struct strategy next;
        struct prediction p = {.iteration_us = INFINITY};
        st = i < FAST_GUIDED ? space_sample_guided(&c->space, rng, &next, err)
                             : space_neighbour(&c->space, out, rng, &next, err);
        if (st)
            break;
        st = predictor_run(&c->predictor, &next, &p, err);
        bool better = !st && (!i || p.iteration_us < best_us);
        if (better && i)
            strategy_release(out);
        if (better) {
            *out = next;
            best_us = p.iteration_us;
        } else {
            strategy_release(&next);
        }
    }
    if (st && isfinite(best_us))
        strategy_release(out);
    return st;
}

/* How many numbers before `index` are drawn in the same way. */
static uint64_t turn_of(const struct collection *c, uint64_t index) {
    return c->only == COLLECTION_BY_RECIPE ? index / RECIPES : index;
}

static enum status draw_by(struct collection *c, enum collection_way way, uint64_t turn, struct rng *rng,
                           struct strategy *out, struct error *err) {
    switch (way) {
    case COLLECTION_UNIFORM:
        return space_sample_uniform(&c->space, rng, out, err);
    case COLLECTION_SIZES:
    case COLLECTION_SIZES_2:
        return draw_sizes(c, rng, out, err);
    case COLLECTION_BASELINE:
        return turn < c->starts.n ? copy_start(c, turn, out, err) : draw_near(c, rng, out, err);
    case COLLECTION_NEAR:
        return draw_near(c, rng, out, err);
    case COLLECTION_FAST:
        return draw_fast(c, rng, out, err);
    case COLLECTION_BALANCED:
        return space_sample_constrained(&c->space, rng, SPACE_BALANCED, out, err);
    case COLLECTION_ADJACENT:
        return space_sample_constrained(&c->space, rng, SPACE_ADJACENT, out, err);
    case COLLECTION_LOOSE:
        return space_sample_constrained(&c->space, rng, 0, out, err);
    default:
        return space_sample_guided(&c->space, rng, out, err);
    }
}

enum status collection_draw(struct collection *c, uint64_t seed, uint64_t index, struct strategy *out,
                            const char **proposer, double *predicted_us, struct error *err) {
    enum collection_way way = c->only == COLLECTION_BY_RECIPE ? (enum collection_way)(index % RECIPES) : c->only;
    struct prediction prediction = {.iteration_us = INFINITY};
    struct rng rng;
    enum status st = ST_OK;
    rng_split(&rng, seed, index);
    for (int draw = 0; draw < MOST_DRAWS && !st; draw++) {
        st = draw_by(c, way, turn_of(c, index), &rng, out, err);
        bool drawn = !st;
        if (drawn)
            st = predictor_run(&c->predictor, out, &prediction, err);
        bool last = draw + 1 == MOST_DRAWS;
        if (!st && (last || prediction.iteration_us <= COLLECTION_SLOWEST * c->fastest_us))
            break;
        if (drawn)
            strategy_release(out);
        if (!last && (st == ST_INFEASIBLE || st == ST_TOO_LARGE))
            st = ST_OK;
    }
    if (st)
        return st;
    char name[64];
    snprintf(name, sizeof name, "%s-%lu", way_words[way], (unsigned long)index);
    if (way != COLLECTION_BASELINE || turn_of(c, index) >= c->starts.n)
        out->name = arena_strdup(&out->arena, name);
    *proposer = way_words[way];
    *predicted_us = prediction.iteration_us;
    if (!out->name) {
        strategy_release(out);
        return error_no_memory(err);
    }
    return ST_OK;
}

/* ---- running ---- */

/* A seed of up to ten digits fits: two seeds whose last digits were cut off would share a session. So "16-", and "s1-"
 * to "s7-" by what may be sharded, take their room from the model's name. */
static void id_of_session(const struct collection *c, uint64_t seed, char out[64]) {
    const char *way = c->only == COLLECTION_BY_RECIPE ? "collect" : way_words[c->only] + PREFIX;
    const char *encodes = c->space.options.encodings & ~(1u << ENCODING_none) ? "16-" : "";
    const unsigned sharded = c->space.options.sharded >> (SHARDED_none + 1);
    char shards[16] = "";
    if (sharded)
        snprintf(shards, sizeof shards, "s%u-", sharded);
    snprintf(out, 64, "%s%s%.8s-%.*s-%.4s-%.16s-%.4s-%lu", encodes, shards, way,
             16 - (int)(strlen(encodes) + strlen(shards)), c->model->name, c->model->id.hex, c->cluster->name,
             c->cluster->id.hex, (unsigned long)seed);
}

/* Open the session, or make it when there is none. *had is the number of its trials that have ended. */
static enum status open_session(struct store *store, const struct collection *c, const char *runner, const char *id,
                                uint64_t seed, uint64_t *had, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct record *records;
    size_t n = 0;
    enum status st = store_claim_session(store, id, 0, err);
    *had = 0;
    if (!st)
        st = store_session_get(store, id, &arena, &stored, err);
    if (st == ST_NOT_FOUND) {
        const struct stored_session session = {.id = id,
                                               .model = c->model->id.hex,
                                               .cluster = c->cluster->id.hex,
                                               .seed = seed,
                                               .budget = "{}",
                                               .options = "{}"};
        st = store_put_model(store, c->model, err);
        if (!st)
            st = store_put_cluster(store, c->cluster, err);
        if (!st)
            st = store_session_begin(store, &session, err);
    } else if (!st) {
        st = store_session_reconcile(store, id, NULL, err);
        if (!st)
            st = store_trials(store, id, &arena, &n, &records, err);
        if (!st && (strcmp(stored.model, c->model->id.hex) || strcmp(stored.cluster, c->cluster->id.hex)))
            st = error_set(err, ST_CONFLICT, "session %s is about another model or cluster; take another --seed", id);
        if (!st && n && strcmp(records[0].runner, runner))
            st = error_set(err, ST_CONFLICT, "session %s was collected by runner %s; take another --seed", id,
                           records[0].runner);
    }
    for (size_t i = 0; i < n && !st; i++)
        *had += records[i].state != RECORD_CANCELLED;
    arena_release(&arena);
    return st;
}

static uint64_t iterations_for(const struct collect_options *o, double predicted_us) {
    return (uint64_t)fmin(fmax(o->trial_us / predicted_us, COLLECT_LEAST), COLLECT_MOST);
}

static void tell(const struct collect_options *o, struct tune_event event, const struct tune_outcome *outcome,
                 double median_us) {
    event.outcome = outcome;
    event.median_us = median_us;
    if (o->listen)
        o->listen(o->context, &event);
}

static enum status try_one(struct store *store, struct collection *c, const struct tune_runner *runner,
                           const struct collect_options *o, const char *session, uint64_t index, double began_us,
                           struct error *err) {
    struct strategy strategy;
    struct tune_outcome outcome = {0};
    struct summary summary = {0};
    struct trial_start start = {
        .model = c->model, .cluster = c->cluster, .session = session, .runner = runner->name, .seed = o->seed};
    int64_t trial;
    enum status st = collection_draw(c, o->seed, index, &strategy, &start.proposer, &start.predicted_us, err);
    if (st)
        return st;
    start.strategy = &strategy;
    const struct tune_order order = {.strategy = &strategy,
                                     .iterations = iterations_for(o, start.predicted_us),
                                     .warmup = WARMUP,
                                     .expected_us = start.predicted_us};
    const struct tune_event event = {.phase = TUNE_SEARCH,
                                     .number = index + 1,
                                     .budget = o->trials,
                                     .name = strategy.name,
                                     .proposer = start.proposer,
                                     .predicted_us = start.predicted_us,
                                     .best_us = INFINITY,
                                     .elapsed_us = clock_now_us() - began_us};
    st = trial_record_start(store, &start, &trial, err);
    if (!st)
        tell(o, event, NULL, 0);
    if (!st && (st = runner->run(runner->context, &order, &outcome, err)))
        store_trial_fail(store, trial, RECORD_CANCELLED, ERROR_TEXT(err), &(struct error){0});
    else if (!st)
        st = trial_record_end(store, trial, &outcome, err);
    if (!st)
        st = summary_of_copy(outcome.n, outcome.iterations_us, &summary, err);
    if (!st)
        tell(o, event, &outcome, outcome.n ? summary.median_us : NAN);
    strategy_release(&strategy);
    return st;
}

enum status collect_run(struct store *store, struct collection *c, const struct tune_runner *runner,
                        const struct collect_options *o, struct error *err) {
    char id[64];
    uint64_t had;
    double began_us = clock_now_us();
    id_of_session(c, o->seed, id);
    enum status st = open_session(store, c, runner->name, id, o->seed, &had, err);
    if (!st && had >= o->trials)
        log_info("session %s has %lu trials already", id, (unsigned long)had);
    for (uint64_t i = had; i < o->trials && !st; i++) {
        if (o->cancel && *o->cancel)
            st = error_set(err, ST_CANCELLED, "interrupted; the same command goes on");
        else
            st = try_one(store, c, runner, o, id, i, began_us, err);
    }
    if (!st)
        st = store_session_update(store, id, STORED_SESSION_DONE, NULL, err);
    return st;
}
