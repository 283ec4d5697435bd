/* The trials are sorted twice: by domain and strategy, so that those of one strategy meet, and then by when each
 * strategy first occurred. A domain's examples follow each other, so one featurizer a domain is enough. */
#include "tuner/learn/examples.h"

#include <stdlib.h>
#include <string.h>

#include "base/statistics.h"
#include "dataset/describe.h"
#include "tuner/predict/predictor.h"

/* ---- one strategy's features ---- */

struct featurizer {
    struct predictor predictor;
};

enum status featurizer_new(const struct model *model, const struct cluster *cluster, struct featurizer **out,
                           struct error *err) {
    struct featurizer *f = calloc(1, sizeof *f);
    enum status st = f ? predictor_init(&f->predictor, model, cluster, err) : error_no_memory(err);
    if (st)
        free(f);
    else
        *out = f;
    return st;
}

void featurizer_free(struct featurizer *f) {
    if (f)
        predictor_release(&f->predictor);
    free(f);
}

enum status featurizer_run(struct featurizer *f, const struct strategy *strategy, struct features *out,
                           struct error *err) {
    return predictor_features(&f->predictor, strategy, out, NULL, err);
}

/* ---- trials, domain by domain ---- */

struct entry {
    const struct record *record;
    uint32_t domain;
    size_t place; /* among the records */
    size_t first; /* place of the first record of its strategy in its domain */
};

struct loading {
    struct store *store;
    struct examples *out;
    struct arena arena; /* records and what is needed of them until all are examples */
    size_t n_records, n_keys, skipped;
    struct record *records;
    struct entry *entries;
    const struct record **keys; /* [n_keys] a record of each domain, in the order in which they first occur */
    double *medians;            /* [n_records] scratch */
    struct error last;          /* why a trial was left out */
};

static const char *text_or_empty(const char *text) {
    return text ? text : "";
}

static bool same_domain(const struct record *a, const struct record *b) {
    return !strcmp(a->model, b->model) && !strcmp(a->cluster, b->cluster) &&
           !strcmp(text_or_empty(a->runner), text_or_empty(b->runner));
}

static int compare_sizes(size_t a, size_t b) {
    return (a > b) - (a < b);
}

static int by_strategy(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->domain != y->domain)
        return compare_sizes(x->domain, y->domain);
    int order = strcmp(x->record->strategy, y->record->strategy);
    return order ? order : compare_sizes(x->place, y->place);
}

static int by_first(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->domain != y->domain)
        return compare_sizes(x->domain, y->domain);
    return x->first != y->first ? compare_sizes(x->first, y->first) : compare_sizes(x->place, y->place);
}

/* The domain that `record` belongs to, a new one when it is the first of it. */
static uint32_t find_domain(struct loading *l, const struct record *record) {
    size_t k = 0;
    while (k < l->n_keys && !same_domain(l->keys[k], record))
        k++;
    if (k == l->n_keys)
        l->keys[l->n_keys++] = record;
    return (uint32_t)k;
}

/* The entries in the order of the examples: runs of one domain and one `first`. */
static enum status sort_trials(struct loading *l, struct error *err) {
    const size_t n = l->n_records;
    l->entries = arena_alloc(&l->arena, n, sizeof *l->entries);
    l->keys = arena_alloc(&l->arena, n, sizeof *l->keys);
    l->medians = arena_alloc(&l->arena, n, sizeof *l->medians);
    if (!l->entries || !l->keys || !l->medians)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        l->entries[i] = (struct entry){&l->records[i], find_domain(l, &l->records[i]), i, i};
    qsort(l->entries, n, sizeof *l->entries, by_strategy);
    for (size_t i = 1; i < n; i++) {
        struct entry *e = &l->entries[i];
        if (e->domain == e[-1].domain && !strcmp(e->record->strategy, e[-1].record->strategy))
            e->first = e[-1].first;
    }
    qsort(l->entries, n, sizeof *l->entries, by_first);
    return ST_OK;
}

static enum status make_room(struct loading *l, struct error *err) {
    struct examples *out = l->out;
    const size_t n = l->n_records;
    out->domains = arena_alloc(&out->arena, l->n_keys, sizeof *out->domains);
    out->examples = arena_alloc(&out->arena, n, sizeof *out->examples);
    out->features = arena_alloc(&out->arena, n, sizeof *out->features);
    out->strategies = arena_alloc(&out->arena, n, sizeof *out->strategies);
    out->proposers = arena_alloc(&out->arena, n, sizeof *out->proposers);
    out->trials = arena_alloc(&out->arena, n, sizeof *out->trials);
    bool whole = out->domains && out->examples && out->features && out->strategies && out->proposers && out->trials;
    return whole ? ST_OK : error_no_memory(err);
}

/* Take the strategy and its features; both or neither. */
static enum status describe(struct loading *l, const struct domain *domain, struct featurizer *f, const char *id,
                            struct strategy *strategy, struct features *features, struct error *err) {
    enum status st = store_get_strategy(l->store, id, &domain->model, &domain->cluster, strategy, err);
    if (st)
        return st;
    if ((st = featurizer_run(f, strategy, features, err))) {
        strategy_release(strategy);
        *strategy = (struct strategy){0};
    }
    return st;
}

/* Strategies are recorded for good, and the rules and limits for them may change. */
static bool leaves_out(enum status st) {
    return st == ST_INVALID || st == ST_INFEASIBLE || st == ST_TOO_LARGE;
}

static enum status name_trials(struct loading *l, const struct entry *run, size_t n, size_t at, struct error *err) {
    struct arena *arena = &l->out->arena;
    const char **uids = arena_alloc(arena, n, sizeof *uids);
    const char *proposer = arena_strdup(arena, text_or_empty(run->record->proposer));
    bool whole = uids && proposer;
    for (size_t i = 0; i < n && whole; i++)
        whole = (uids[i] = arena_strdup(arena, run[i].record->uid));
    if (!whole)
        return error_no_memory(err);
    l->out->proposers[at] = proposer;
    l->out->trials[at] = (struct example_trials){n, uids};
    return ST_OK;
}

/* n trials of one strategy. */
static enum status add_example(struct loading *l, const struct domain *domain, struct featurizer *f,
                               const struct entry *run, size_t n, struct error *err) {
    struct examples *out = l->out;
    const size_t at = out->n;
    struct error why;
    enum status st = describe(l, domain, f, run->record->strategy, &out->strategies[at], &out->features[at], &why);
    if (leaves_out(st)) {
        l->last = why;
        l->skipped += n;
        return ST_OK;
    }
    if (st)
        return error_pass(err, &why);
    for (size_t i = 0; i < n; i++)
        l->medians[i] = run[i].record->median_us;
    out->examples[at] = (struct ranker_example){
        .features = &out->features[at], .us = median_of(n, l->medians), .domain = (uint32_t)out->n_domains};
    out->n++;
    return name_trials(l, run, n, at, err);
}

static void release_domain(struct domain *domain) {
    model_release(&domain->model);
    cluster_release(&domain->cluster);
    *domain = (struct domain){0};
}

static enum status read_domain(struct loading *l, const struct record *key, struct domain *out, struct error *err) {
    enum status st = store_get_model(l->store, key->model, &out->model, err);
    if (!st)
        st = store_get_cluster(l->store, key->cluster, &out->cluster, err);
    out->first = l->out->n;
    out->runner = arena_strdup(&l->out->arena, text_or_empty(key->runner));
    return st || out->runner ? st : error_no_memory(err);
}

/* Times in weather depend on the weather as much as on the strategy, and features say nothing of it. */
static void leave_out_weather(struct loading *l, struct domain *domain, size_t n) {
    error_set(&l->last, ST_INVALID, "\"%s\" has \"variability\", and rankers know no weather", domain->cluster.name);
    l->skipped += n;
    release_domain(domain);
}

/* Fill the next slot of out->domains; when these n entries give no example, the slot stays free. */
static enum status add_domain(struct loading *l, const struct entry *entries, size_t n, struct error *err) {
    struct domain *domain = &l->out->domains[l->out->n_domains];
    struct featurizer *f = NULL;
    enum status st = read_domain(l, entries->record, domain, err);
    if (!st && domain->cluster.variability.given) {
        leave_out_weather(l, domain, n);
        return ST_OK;
    }
    if (!st)
        st = featurizer_new(&domain->model, &domain->cluster, &f, err);
    for (size_t i = 0, end; i < n && !st; i = end) {
        for (end = i + 1; end < n && entries[end].first == entries[i].first;)
            end++;
        st = add_example(l, domain, f, &entries[i], end - i, err);
    }
    featurizer_free(f);
    domain->n = l->out->n - domain->first;
    if (domain->n)
        l->out->n_domains++;
    else
        release_domain(domain);
    return st;
}

static enum status add_domains(struct loading *l, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0, end; i < l->n_records && !st; i = end) {
        for (end = i + 1; end < l->n_records && l->entries[end].domain == l->entries[i].domain;)
            end++;
        st = add_domain(l, &l->entries[i], end - i, err);
    }
    if (!st && !l->out->n)
        st = error_set(err, ST_NOT_FOUND, "none of %zu trials can be predicted any more; the last one: %.300s",
                       l->n_records, ERROR_TEXT(&l->last));
    return st;
}

static enum status load(struct loading *l, const struct query *query, struct error *err) {
    static const enum record_state complete = RECORD_COMPLETE;
    struct query wanted = *query;
    wanted.state = &complete;
    wanted.iterations = false;
    enum status st = query_collect(l->store, &wanted, &l->arena, &l->n_records, &l->records, err);
    if (!st && !l->n_records)
        st = error_at(err, ST_NOT_FOUND, store_path(l->store), "no complete trials%s",
                      query->model || query->cluster || query->runner
                          ? " of that model, cluster and runner; \"syncopate dataset query\" shows what it has"
                          : "; tune, collect and \"trial --dataset\" record them");
    if (!st)
        st = sort_trials(l, err);
    if (!st)
        st = make_room(l, err);
    return st ? st : add_domains(l, err);
}

enum status examples_load(struct store *store, const struct query *query, struct examples *out, size_t *skipped,
                          struct error *err) {
    struct examples examples = {.n = 0};
    struct loading l = {.store = store, .out = &examples};
    enum status st = load(&l, query, err);
    arena_release(&l.arena);
    if (st) {
        examples_release(&examples);
        return st;
    }
    *out = examples;
    if (skipped)
        *skipped = l.skipped;
    return ST_OK;
}

void examples_release(struct examples *e) {
    for (size_t i = 0; i < e->n; i++) {
        features_release(&e->features[i]);
        strategy_release(&e->strategies[i]);
    }
    for (size_t d = 0; d < e->n_domains; d++)
        release_domain(&e->domains[d]);
    arena_release(&e->arena);
    *e = (struct examples){0};
}
