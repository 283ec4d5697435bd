/* See training.h. Reading and featurizing the trials and training on them take no lock and write nothing; the ranker is
 * put with the end of the operation. */
#include "service/training.h"

#include <stdlib.h>

#include "tuner/learn/examples.h"
#include "tuner/learn/ranker_fit.h"
#include "tuner/learn/rankers.h"

struct training_work {
    struct operation_work work;
    struct arena arena;
    struct training_request wanted;
    struct examples examples;
    struct ranker_fit fit;
    struct stored_ranker from;
    size_t left_out;
};

static enum status read_inputs(struct training_work *t, struct access *access, struct error *err) {
    const struct viewer asker = {t->wanted.team, t->wanted.sees_all};
    struct store *store;
    enum status st = access_read(access, &store, err);
    if (!st && t->wanted.from)
        st = rankers_get(store, &asker, t->wanted.from, &t->from, err);
    return st ? st : examples_load(store, &t->wanted.query, &t->examples, &t->left_out, err);
}

static enum status run(struct operation_work *work, struct access *access, const atomic_int *cancel,
                       struct error *err) {
    struct training_work *t = (struct training_work *)work;
    enum status st = read_inputs(t, access, err);
    if (st)
        return st;
    const struct ranker *from = t->from.ranker;
    struct ranker_fit_options options = {ranker_default_options(from ? ranker_kind_of(from) : t->wanted.kind),
                                         from ? &t->from : NULL, t->wanted.held_out};
    options.training.residual = from ? ranker_residual(from) : t->wanted.residual;
    options.training.seed = t->wanted.seed;
    options.training.cancel = cancel;
    return ranker_fit_run(&t->examples, &options, &t->fit, err);
}

static enum status keep(struct operation_work *work, struct store *store, cJSON *result, struct error *err) {
    struct training_work *t = (struct training_work *)work;
    struct stored_object kept;
    char name[RANKER_NAME_ROOM];
    struct id id;
    ranker_fit_name(&t->fit, name, sizeof name);
    const struct viewer asker = {t->wanted.team, t->wanted.sees_all};
    enum status st = rankers_put_for(store, t->wanted.team, t->wanted.shared, t->wanted.name ? t->wanted.name : name,
                                     t->fit.ranker, &t->fit.origin, &id, err);
    if (!st)
        st = seen_get(store, STORE_RANKER, id.hex, &asker, &t->arena, &kept, err);
    if (st)
        return st;
    return cJSON_AddStringToObject(result, "ranker", id.hex) && cJSON_AddStringToObject(result, "name", kept.name) &&
                   cJSON_AddNumberToObject(result, "trials", (double)t->fit.origin.n_trials) &&
                   cJSON_AddNumberToObject(result, "left_out", (double)t->left_out) &&
                   cJSON_AddNumberToObject(result, "seconds", t->fit.report.seconds)
               ? ST_OK
               : error_no_memory(err);
}

static void release(struct operation_work *work) {
    struct training_work *t = (struct training_work *)work;
    ranker_fit_release(&t->fit);
    examples_release(&t->examples);
    stored_ranker_release(&t->from);
    arena_release(&t->arena);
    free(t);
}

static bool copy_text(struct arena *arena, const char **text) {
    const char *given = *text;
    *text = given ? arena_strdup(arena, given) : NULL;
    return *text || !given;
}

enum status training_new(const struct training_request *wanted, struct operation_work **out, struct error *err) {
    struct training_work *t = calloc(1, sizeof *t);
    if (!t)
        return error_no_memory(err);
    t->work = (struct operation_work){.run = run, .keep = keep, .release = release};
    t->wanted = *wanted;
    const char **const texts[] = {&t->wanted.from,         &t->wanted.name, &t->wanted.query.filter,
                                  &t->wanted.query.viewer, &t->wanted.team, &t->wanted.shared};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!copy_text(&t->arena, texts[i])) {
            release(&t->work);
            return error_no_memory(err);
        }
    *out = &t->work;
    return ST_OK;
}
