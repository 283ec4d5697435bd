/* See prepared_domains.h. One mutex guards the lists, never held while something is read or predicted. Two threads that
 * miss the same domain read it both, and the later one uses the earlier's. Look-ups walk a short list: at most some 32
 * domains, and within one a hash table of predictions by strategy, which is emptied when it is full. */
#include "service/prepared_domains.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/describe.h"
#include "simulator/bound.h"

enum { STRATEGIES_KEPT = 8192, SLOTS = 2 * STRATEGIES_KEPT };
/* Predictors and descriptions that exceed these limits are freed when nobody uses them, so that a large request leaves
 * no memory behind. */
enum { SPARE_BYTES = 1 << 20, SPARES = 16, KEPT_BYTES = 128 << 20 };

struct spare {
    struct spare *next;
    struct predictor predictor;
};

/* A prediction; it never changes. */
struct known {
    struct id id;
    struct outlook outlook;
};

struct entry {
    struct prepared_domain domain; /* the first member: a struct prepared_domain * is a struct entry * */
    struct model model;
    struct cluster cluster;
    struct cost cost;               /* domain.bounds has it */
    struct prepared_domains *owner; /* NULL: of one request alone */
    unsigned users;
    struct entry *next; /* most recently used first */
    pthread_mutex_t mutex;
    struct spare *spares;
    unsigned n_spares;
    size_t bytes; /* of its descriptions and costs */
    size_t n_known;
    struct known **known; /* open addressing by the id's first digits; NULL until the first */
};

struct prepared_domains {
    pthread_mutex_t mutex;
    size_t most;
    struct entry *first;
};

struct prepared_domains *prepared_domains_new(size_t most) {
    struct prepared_domains *d = calloc(1, sizeof *d);
    if (d) {
        pthread_mutex_init(&d->mutex, NULL);
        d->most = most;
    }
    return d;
}

static void clear_known(struct entry *e) {
    for (size_t i = 0; e->known && i < SLOTS; i++) {
        free(e->known[i]);
        e->known[i] = NULL;
    }
    e->n_known = 0;
}

static void free_entry(struct entry *e) {
    for (struct spare *s = e->spares, *next; s; s = next) {
        next = s->next;
        predictor_release(&s->predictor);
        free(s);
    }
    clear_known(e);
    free(e->known);
    pthread_mutex_destroy(&e->mutex);
    cost_release(&e->cost);
    cluster_release(&e->cluster);
    model_release(&e->model);
    free(e);
}

void prepared_domains_free(struct prepared_domains *d) {
    if (!d)
        return;
    for (struct entry *e = d->first, *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

/* Takes both descriptions, also when it fails. */
static enum status make_entry(struct model *model, struct cluster *cluster, struct entry **out, struct error *err) {
    struct entry *e = calloc(1, sizeof *e);
    if (!e) {
        model_release(model);
        cluster_release(cluster);
        return error_no_memory(err);
    }
    e->model = *model;
    e->cluster = *cluster;
    e->domain.model = &e->model;
    e->domain.cluster = &e->cluster;
    e->users = 1;
    pthread_mutex_init(&e->mutex, NULL);
    enum status st = cost_init(&e->cost, &e->cluster, err);
    if (!st)
        st = bounds_find(&e->model, &e->cost, &e->domain.bounds, err);
    if (st) {
        free_entry(e);
        return st;
    }
    e->domain.lower_bound_us = e->domain.bounds.of[IN_PARTS_none][LOSSY_none].iteration_us;
    e->bytes = arena_bytes(&e->model.arena) + arena_bytes(&e->cluster.arena) + arena_bytes(&e->cost.arena);
    *out = e;
    return ST_OK;
}

enum status prepared_domain_new(struct model *model, struct cluster *cluster, struct prepared_domain **out,
                                struct error *err) {
    struct entry *e;
    enum status st = make_entry(model, cluster, &e, err);
    if (!st)
        *out = &e->domain;
    return st;
}

static enum status read_entry(struct store *store, const char *model, const char *cluster, struct entry **out,
                              struct error *err) {
    struct model m;
    struct cluster c;
    enum status st = store_get_model(store, model, &m, err);
    if (st)
        return st;
    st = store_get_cluster(store, cluster, &c, err);
    if (st) {
        model_release(&m);
        return st;
    }
    return make_entry(&m, &c, out, err);
}

/* With the mutex held: the entry, moved to the front and with one user more, or NULL. */
static struct entry *look_up(struct prepared_domains *d, const char *model, const char *cluster) {
    for (struct entry **at = &d->first; *at; at = &(*at)->next) {
        struct entry *e = *at;
        if (strcmp(e->model.id.hex, model) || strcmp(e->cluster.id.hex, cluster))
            continue;
        *at = e->next;
        e->next = d->first;
        d->first = e;
        e->users++;
        return e;
    }
    return NULL;
}

/* With the mutex held: take the least recently used entries beyond the limit off the list, but for those in use, and
 * return them to be freed.
 */
static struct entry *evict(struct prepared_domains *d) {
    struct entry **at = &d->first, *gone = NULL;
    size_t bytes = 0;
    for (size_t kept = 0; *at && kept < d->most && (bytes += (*at)->bytes) <= KEPT_BYTES; kept++)
        at = &(*at)->next;
    while (*at) {
        struct entry *e = *at;
        if (e->users) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        e->next = gone;
        gone = e;
    }
    return gone;
}

static void free_list(struct entry *e) {
    for (struct entry *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
}

enum status prepared_domains_take(struct prepared_domains *d, struct store *store, const char *model,
                                  const char *cluster, struct prepared_domain **out, struct error *err) {
    pthread_mutex_lock(&d->mutex);
    struct entry *e = look_up(d, model, cluster);
    pthread_mutex_unlock(&d->mutex);
    if (!e) {
        struct entry *fresh = NULL, *gone = NULL;
        enum status st = read_entry(store, model, cluster, &fresh, err);
        if (st)
            return st;
        pthread_mutex_lock(&d->mutex);
        e = look_up(d, model, cluster);
        if (!e) {
            e = fresh;
            fresh = NULL;
            e->owner = d;
            e->next = d->first;
            d->first = e;
            gone = evict(d);
        }
        pthread_mutex_unlock(&d->mutex);
        if (fresh)
            free_entry(fresh);
        free_list(gone);
    }
    *out = &e->domain;
    return ST_OK;
}

void prepared_domain_drop(struct prepared_domain *domain) {
    struct entry *e = (struct entry *)domain;
    if (!e)
        return;
    struct prepared_domains *d = e->owner;
    if (!d) {
        free_entry(e);
        return;
    }
    pthread_mutex_lock(&d->mutex);
    e->users--;
    struct entry *gone = evict(d);
    pthread_mutex_unlock(&d->mutex);
    free_list(gone);
}

/* Of a cluster with weather it is given out for the quiet network; look() asks it for the weather. */
static enum status begin(struct entry *e, struct predictor *out, struct error *err) {
    if (!e->cluster.variability.given)
        return predictor_init(out, &e->model, &e->cluster, err);
    enum status st = predictor_init_in_weather(out, &e->model, &e->cluster, PREPARED_WEATHER, err);
    out->weather = 0;
    return st;
}

enum status prepared_domain_take_predictor(struct prepared_domain *domain, struct predictor **out, struct error *err) {
    struct entry *e = (struct entry *)domain;
    pthread_mutex_lock(&e->mutex);
    struct spare *spare = e->spares;
    if (spare) {
        e->spares = spare->next;
        e->n_spares--;
    }
    pthread_mutex_unlock(&e->mutex);
    if (!spare) {
        spare = calloc(1, sizeof *spare);
        enum status st = spare ? begin(e, &spare->predictor, err) : error_no_memory(err);
        if (st) {
            free(spare);
            return st;
        }
    }
    *out = &spare->predictor;
    return ST_OK;
}

void prepared_domain_give_predictor(struct prepared_domain *domain, struct predictor *predictor) {
    struct entry *e = (struct entry *)domain;
    struct spare *spare = (struct spare *)((char *)predictor - offsetof(struct spare, predictor));
    const bool small = predictor_bytes(predictor) <= SPARE_BYTES;
    pthread_mutex_lock(&e->mutex);
    const bool kept = small && e->n_spares < SPARES;
    if (kept) {
        spare->next = e->spares;
        e->spares = spare;
        e->n_spares++;
    }
    pthread_mutex_unlock(&e->mutex);
    if (kept)
        return;
    predictor_release(predictor);
    free(spare);
}

/* With the mutex held: where `id` is, or would be. */
static struct known **find_known(struct entry *e, const char *id) {
    char digits[9];
    snprintf(digits, sizeof digits, "%.8s", id);
    size_t i = strtoul(digits, NULL, 16) % SLOTS;
    while (e->known[i] && strcmp(e->known[i]->id.hex, id))
        i = (i + 1) % SLOTS;
    return &e->known[i];
}

static bool recall(struct entry *e, const char *id, struct outlook *out) {
    pthread_mutex_lock(&e->mutex);
    const struct known *known = e->known ? *find_known(e, id) : NULL;
    if (known)
        *out = known->outlook;
    pthread_mutex_unlock(&e->mutex);
    return known;
}

/* Without memory the prediction is made again next time. */
static void remember(struct entry *e, const struct id *id, const struct outlook *outlook) {
    struct known *known = calloc(1, sizeof *known);
    if (!known)
        return;
    known->id = *id;
    known->outlook = *outlook;
    pthread_mutex_lock(&e->mutex);
    if (e->n_known >= STRATEGIES_KEPT)
        clear_known(e);
    if (!e->known)
        e->known = calloc(SLOTS, sizeof(struct known *));
    struct known **at = e->known ? find_known(e, id->hex) : &known;
    if (!*at) {
        *at = known;
        e->n_known++;
        known = NULL;
    }
    pthread_mutex_unlock(&e->mutex);
    free(known);
}

static enum status look(const struct entry *e, struct predictor *p, const struct strategy *strategy,
                        struct outlook *out, struct error *err) {
    out->expected = (struct expectation){0};
    if (!e->cluster.variability.given)
        return predictor_run(p, strategy, &out->quiet, err);
    p->weather = PREPARED_WEATHER;
    enum status st = predictor_outlook(p, strategy, out, err);
    p->weather = 0;
    return st;
}

/* A round of updates in place of the iteration, as `syncopate simulate` has it. */
static enum status look_at_updates(const struct entry *e, struct predictor *p, const struct strategy *strategy,
                                   struct outlook *out, struct updates_prediction **updates, struct error *err) {
    const struct expectation_options options = {.first_seed = PREPARED_WEATHER};
    struct updates_prediction *u = calloc(1, sizeof *u);
    struct expectation expected;
    enum status st = u ? plan_relower(&p->plan, p->model, &p->corrected, strategy, err) : error_no_memory(err);
    if (!st)
        st = expectation_run_updates(&p->plan, &p->cost, &options, &expected, u, err);
    if (st) {
        free(u);
        return st;
    }
    const double samples = e->model.batch_per_device * e->cluster.n_devices;
    *out = (struct outlook){.quiet = {.iteration_us = expected.mean_us,
                                      .messages = p->plan.n_messages,
                                      .lossy = p->plan.lossy,
                                      .samples_per_s = samples / expected.mean_us * 1e6}};
    if (e->cluster.variability.given)
        out->expected = expected;
    *updates = u;
    return ST_OK;
}

enum status prepared_domain_predict(struct prepared_domain *domain, const struct strategy *strategy,
                                    struct outlook *out, struct updates_prediction **updates, struct error *err) {
    struct entry *e = (struct entry *)domain;
    struct predictor *predictor;
    const bool plain = consistency_is_plain(&strategy->consistency);
    *updates = NULL;
    if (e->owner && plain && recall(e, strategy->id.hex, out))
        return ST_OK;
    enum status st = prepared_domain_take_predictor(domain, &predictor, err);
    if (st)
        return st;
    st = plain ? look(e, predictor, strategy, out, err) : look_at_updates(e, predictor, strategy, out, updates, err);
    prepared_domain_give_predictor(domain, predictor);
    if (!st && e->owner && plain)
        remember(e, &strategy->id, out);
    return st;
}

enum status prepared_domain_predict_stored(struct prepared_domain *domain, struct store *store, const char *id,
                                           struct outlook *out, struct updates_prediction **updates,
                                           struct error *err) {
    struct entry *e = (struct entry *)domain;
    struct strategy strategy;
    *updates = NULL;
    if (recall(e, id, out))
        return ST_OK;
    enum status st = store_get_strategy(store, id, &e->model, &e->cluster, &strategy, err);
    if (st)
        return st;
    st = prepared_domain_predict(domain, &strategy, out, updates, err);
    strategy_release(&strategy);
    return st;
}
