/* A line is parsed by the strict reader of JSON and becomes a row; records are gathered and added by batches. What must
 * come back byte for byte (a description, whose hash is its id, and a seed of 64 bits) is taken from the line as it
 * stands, not from the parsed tree. Cost: O(bytes), and O(log n) a row. */
#include "dataset/import.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/holdings.h"
#include "dataset/names_internal.h"
#include "dataset/sharing.h"
#include "dataset/store_internal.h"
#include "dataset/validate_internal.h"

enum { BATCH = 500 };

struct importer {
    struct store *store;
    const char *name;
    struct import_options options;
    char origin[VALID_ORIGIN_MAX + 1];
    struct import_counts counts;
    uint64_t line;
    struct arena arena; /* of the batch */
    struct record records[BATCH];
    uint64_t lines[BATCH]; /* of the records */
    size_t n;
};

#define BLANKS " \t\r\n"

/* The value of a member of the outermost object as it stands in `text`, which is known to be JSON; *out is NULL without
 * one. */
static enum status raw_member(struct arena *arena, const char *text, const char *key, const char **out,
                              struct error *err) {
    const size_t n = strlen(key);
    int depth = 0;
    *out = NULL;
    for (const char *at = text, *value = NULL; *at; at++) {
        if (value && depth == 1 && (*at == ',' || *at == '}')) {
            size_t length = (size_t)(at - value);
            while (length > 0 && strchr(BLANKS, value[length - 1]))
                length--;
            *out = arena_copy(arena, value, length);
            return *out ? ST_OK : error_no_memory(err);
        }
        if (*at == '"') {
            const char *begin = ++at;
            while (*at != '"')
                at += *at == '\\' ? 2 : 1;
            const char *colon = at + 1 + strspn(at + 1, BLANKS);
            if (depth == 1 && !value && (size_t)(at - begin) == n && !memcmp(begin, key, n) && *colon == ':') {
                value = colon + 1 + strspn(colon + 1, BLANKS);
                at = value - 1;
            }
        } else {
            depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        }
    }
    return ST_OK;
}

static enum status place_at(uint64_t line, enum status status, struct error *err) {
    if (status && status != ST_NO_MEMORY && err)
        err->position = line;
    return status;
}

/* An error is about the current line. */
static enum status place(const struct importer *im, enum status status, struct error *err) {
    return place_at(im->line, status, err);
}

static enum status fail(const struct importer *im, struct error *err, const char *what, const char *key) {
    return place(im, error_set(err, ST_INVALID, "%s %s", what, key), err);
}

static enum status check_stamp(const struct importer *im, const char *key, const char *stamp, struct error *err) {
    return !stamp || clock_is_utc(stamp) ? ST_OK : fail(im, err, "must be UTC as 2026-11-21T08:41:17.123Z:", key);
}

/* Texts may be empty and hold anything; *out is NULL when there is none. */
static enum status get_text(struct importer *im, const cJSON *json, const char *key, const char **out,
                            struct error *err) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, key);
    *out = NULL;
    if (!node)
        return ST_OK;
    if (!cJSON_IsString(node))
        return fail(im, err, "must be a text:", key);
    *out = arena_strdup(&im->arena, node->valuestring);
    return *out ? ST_OK : error_no_memory(err);
}

static enum status get_shared(struct importer *im, const cJSON *json, const char **out, struct error *err) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, "shared");
    *out = NULL;
    return node ? place(im, shared_read(node, &im->arena, out, err), err) : ST_OK;
}

static enum status get_number(struct importer *im, const cJSON *json, const char *key, double *out, struct error *err) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, key);
    *out = node ? node->valuedouble : (double)NAN;
    return !node || cJSON_IsNumber(node) ? ST_OK : fail(im, err, "must be a number:", key);
}

static enum status get_integer(struct importer *im, const char *line, const char *key, uint64_t *out,
                               struct error *err) {
    const char *digits;
    enum status status = raw_member(&im->arena, line, key, &digits, err);
    *out = 0;
    if (status || !digits)
        return status;
    errno = 0;
    *out = strtoull(digits, NULL, 10);
    return !errno && *digits && strspn(digits, "0123456789") == strlen(digits)
               ? ST_OK
               : fail(im, err, "must be a whole number:", key);
}

static enum status get_times(struct importer *im, const cJSON *json, struct record *r, struct error *err) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(json, "iterations_us"), *node;
    if (!array)
        return ST_OK;
    if (!cJSON_IsArray(array))
        return fail(im, err, "must be an array:", "iterations_us");
    double *times = arena_alloc(&im->arena, (size_t)cJSON_GetArraySize(array), sizeof *times);
    if (!times)
        return error_no_memory(err);
    cJSON_ArrayForEach(node, array) {
        if (!cJSON_IsNumber(node))
            return fail(im, err, "must hold numbers:", "iterations_us");
        times[r->n_iterations++] = node->valuedouble;
    }
    r->iterations_us = times;
    return ST_OK;
}

static bool is_same(const char *a, const char *b) {
    return a && b && !strcmp(a, b);
}

/* A name that is only the first digits of the id is no name that a team gave. */
static const char hold_as_named[] = "INSERT INTO holdings (kind, object, team, name, shared, created)"
                                    " SELECT 'strategy', row, ?2, ?3, '', ?4"
                                    " FROM strategies"
                                    " WHERE id = ?1 AND ?3 <> substr(id, 1, " NAME_DIGITS ")"
                                    " ON CONFLICT DO NOTHING";

/* Each record's team holds the strategy under the record's name for it. */
static enum status hold_strategies(struct importer *im, struct error *err) {
    char now[32];
    enum status status = ST_OK;
    clock_utc(now, sizeof now);
    for (size_t i = 0; i < im->n && !status; i++) {
        const struct record *r = &im->records[i], *before = i ? r - 1 : NULL;
        if (!r->team || !r->strategy_name ||
            (before && is_same(before->team, r->team) && is_same(before->strategy, r->strategy)))
            continue;
        status = validate_name("strategy_name", r->strategy_name, VALID_NAME_MAX, err);
        if (status)
            return place_at(im->lines[i], status, err);
        status = sql_run(im->store, hold_as_named,
                         SQL_VALUES(sql_text(r->strategy), sql_text(r->team), sql_text(r->strategy_name),
                                    sql_text(r->ended ? r->ended : now)),
                         err);
    }
    return status;
}

static enum status flush(struct importer *im, struct error *err) {
    struct import_report report = {0};
    struct error why = {0};
    if (im->n == 0) {
        arena_clear(&im->arena);
        return ST_OK;
    }
    enum status status = store_trials_import(im->store, im->n, im->records, &im->options, &report, &why);
    const uint64_t line = why.position ? im->lines[why.position - 1] : im->line;
    if (status == ST_NOT_FOUND)
        error_at(err, status, why.place, "%s; an export with --references brings them along", why.message);
    else if (status)
        error_pass(err, &why);
    if (status)
        return place_at(line, status, err);
    im->counts.trials += report.added;
    im->counts.duplicates += report.duplicates;
    status = hold_strategies(im, err);
    im->n = 0;
    arena_clear(&im->arena);
    return status;
}

static enum status read_texts(struct importer *im, const cJSON *json, struct record *r, const char **state,
                              struct error *err) {
    const struct {
        const char *key;
        const char **at;
    } texts[] = {{"uid", &r->uid},         {"session", &r->session},   {"model", &r->model},
                 {"cluster", &r->cluster}, {"strategy", &r->strategy}, {"proposer", &r->proposer},
                 {"runner", &r->runner},   {"state", state},           {"queued", &r->queued},
                 {"started", &r->started}, {"ended", &r->ended},       {"reason", &r->reason},
                 {"team", &r->team},       {"client", &r->client},     {"strategy_name", &r->strategy_name}};
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !status; i++)
        status = get_text(im, json, texts[i].key, texts[i].at, err);
    return status;
}

static enum status read_numbers(struct importer *im, const cJSON *json, struct record *r, struct error *err) {
    const struct {
        const char *key;
        double *at;
    } numbers[] = {{"predicted_us", &r->predicted_us},
                   {"mean_us", &r->mean_us},
                   {"median_us", &r->median_us},
                   {"low_us", &r->low_us},
                   {"high_us", &r->high_us}};
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !status; i++)
        status = get_number(im, json, numbers[i].key, numbers[i].at, err);
    return status;
}

static enum status read_integers(struct importer *im, const char *line, struct record *r, struct error *err) {
    uint64_t trial;
    const struct {
        const char *key;
        uint64_t *at;
    } integers[] = {
        {"trial", &trial}, {"number", &r->number}, {"round", &r->round}, {"seed", &r->seed}, {"attempt", &r->attempt}};
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof integers / sizeof *integers && !status; i++)
        status = get_integer(im, line, integers[i].key, integers[i].at, err);
    if (status)
        return status;
    if (trial > INT64_MAX / 2 || r->number > INT64_MAX || r->round > INT64_MAX || r->attempt > INT64_MAX)
        return fail(im, err, "too large:", "trial, number, round or attempt");
    r->trial = (int64_t)trial;
    return ST_OK;
}

static enum status read_record(struct importer *im, const cJSON *json, const char *line, struct error *err) {
    struct record r = {0};
    const char *state = NULL;
    enum status status = read_texts(im, json, &r, &state, err);
    if (!status)
        status = read_numbers(im, json, &r, err);
    if (!status)
        status = read_integers(im, line, &r, err);
    if (!status)
        status = get_shared(im, json, &r.shared, err);
    if (!status)
        status = get_times(im, json, &r, err);
    if (!status && (!state || !record_state_parse(state, &r.state)))
        status = fail(im, err, "no such state:", state ? state : "(none)");
    if (status)
        return status;
    if (r.state == RECORD_WAITING || r.state == RECORD_RUNNING) {
        im->counts.unfinished++;
        return ST_OK;
    }
    status = raw_member(&im->arena, line, "environment_details", &r.environment_json, err);
    if (status)
        return status;
    im->lines[im->n] = im->line;
    im->records[im->n++] = r;
    return im->n == BATCH ? flush(im, err) : ST_OK;
}

/* False: there is none of that name. */
static bool find_kind(const char *word, enum store_kind *out) {
    *out = 0;
    while (word && *out < STORE_KIND_COUNT && strcmp(word, object_word(*out)) != 0)
        ++*out;
    return word && *out < STORE_KIND_COUNT;
}

static enum status read_object(struct importer *im, const cJSON *json, const char *line, struct error *err) {
    const char *kind, *id, *name, *created, *content;
    enum store_kind k;
    struct id hash;
    bool added;
    enum status status = raw_member(&im->arena, line, "content", &content, err);
    if (!status)
        status = get_text(im, json, "kind", &kind, err);
    if (!status)
        status = get_text(im, json, "id", &id, err);
    if (!status)
        status = get_text(im, json, "name", &name, err);
    if (!status)
        status = get_text(im, json, "created", &created, err);
    if (status)
        return status;
    if (!find_kind(kind, &k) || !name || !content)
        return fail(im, err, "an object needs", "kind, name and content");
    status = check_stamp(im, "created", created, err);
    if (!status)
        status = id_of(content, strlen(content), &hash, err); /* the line is JSON, and so is its member */
    if (!status)
        status = object_put(im->store, k, &hash, name, content, created, &added, err);
    if (status)
        return status;
    if (id && strcmp(id, hash.hex) != 0)
        return fail(im, err, "the content is not that of", id);
    /* What is here already was looked at when it came. */
    if (added)
        status = place(im, validate_object(k, name, cJSON_GetObjectItemCaseSensitive(json, "content"), err), err);
    if (!status && added && k != STORE_STRATEGY &&
        k != STORE_ENVIRONMENT) /* a strategy is visible to whoever sees its trials */
        status = holding_put_at(im->store, k, hash.hex, NULL, name, NULL, created, err);
    if (status)
        return status;
    im->counts.objects += added;
    im->counts.duplicates += !added;
    return ST_OK;
}

static enum status run_counted(struct importer *im, const char *sql, size_t n, const struct sql_value *values,
                               uint64_t *added, struct error *err) {
    enum status status = sql_run(im->store, sql, n, values, err);
    if (status)
        return place(im, status, err);
    if (sql_changes(im->store) > 0)
        ++*added;
    else
        im->counts.duplicates++;
    return ST_OK;
}

/* A line of a session; NULL where it lacks a member. */
struct session_line {
    const char *id, *model, *cluster, *state, *reason, *started, *ended, *team, *mode, *shared, *budget, *options;
    uint64_t seed;
};

static enum status read_session_line(struct importer *im, const cJSON *json, const char *line, struct session_line *s,
                                     struct error *err) {
    const struct {
        const char *key;
        const char **at;
    } texts[] = {{"id", &s->id},       {"model", &s->model},   {"cluster", &s->cluster},
                 {"state", &s->state}, {"reason", &s->reason}, {"started", &s->started},
                 {"ended", &s->ended}, {"team", &s->team},     {"mode", &s->mode}};
    enum status status = raw_member(&im->arena, line, "budget", &s->budget, err);
    if (!status)
        status = raw_member(&im->arena, line, "options", &s->options, err);
    if (!status)
        status = get_integer(im, line, "seed", &s->seed, err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !status; i++)
        status = get_text(im, json, texts[i].key, texts[i].at, err);
    return !status ? get_shared(im, json, &s->shared, err) : status;
}

static enum status check_session(struct importer *im, const struct session_line *s, struct error *err) {
    if (!s->id || !s->model || !s->cluster || !s->state || !s->started || !s->budget || !s->options)
        return fail(im, err, "a session needs", "id, model, cluster, state, started, budget and options");
    enum status status = check_stamp(im, "started", s->started, err);
    if (!status)
        status = check_stamp(im, "ended", s->ended, err);
    if (!status)
        status = place(im, validate_session_id(s->id, err), err);
    return !status ? place(im, check_team(s->team, s->shared, err), err) : status;
}

/* A session of this id that is here already must be the same run. */
static enum status compare_session(struct importer *im, const struct session_line *s, struct error *err) {
    struct stored_session here;
    enum status status = store_session_get(im->store, s->id, &im->arena, &here, NULL);
    if (status == ST_NOT_FOUND)
        return ST_OK;
    if (status)
        return status == ST_NO_MEMORY ? error_no_memory(err) : fail(im, err, "cannot be compared: session", s->id);
    if (!strcmp(here.model, s->model) && !strcmp(here.cluster, s->cluster) && here.seed == s->seed)
        return ST_OK;
    return place(im,
                 error_set(err, ST_CONFLICT,
                           "session %s is here with another model, cluster or seed: here %.12s %.12s %llu, there %.12s "
                           "%.12s %llu",
                           s->id, here.model, here.cluster, (unsigned long long)here.seed, s->model, s->cluster,
                           (unsigned long long)s->seed),
                 err);
}

static const char import_session[] =
    "INSERT INTO sessions (id, model, cluster, seed, budget, options, state, reason, started, ended,"
    "                       team, shared, mode, origin)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, reason_kept(?), ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO NOTHING";

static enum status read_session(struct importer *im, const cJSON *json, const char *line, struct error *err) {
    struct session_line s = {0};
    enum status status = read_session_line(im, json, line, &s, err);
    if (!status)
        status = check_session(im, &s, err);
    if (!status)
        status = compare_session(im, &s, err);
    if (status)
        return status;
    return run_counted(im, import_session,
                       SQL_VALUES(sql_text(s.id), sql_text(s.model), sql_text(s.cluster), sql_integer((int64_t)s.seed),
                                  sql_text(s.budget), sql_text(s.options), sql_text(s.state), sql_text(s.reason),
                                  sql_text(s.started), sql_text(s.ended), sql_text(s.team),
                                  sql_text(s.shared ? s.shared : "*"), sql_text(s.mode ? s.mode : "own"),
                                  sql_text(im->origin)),
                       &im->counts.sessions, err);
}

static const char *const record_keys[] = {"schema",        "trial",        "uid",
                                          "session",       "number",       "round",
                                          "model",         "model_name",   "cluster",
                                          "cluster_name",  "strategy",     "strategy_name",
                                          "proposer",      "runner",       "seed",
                                          "state",         "predicted_us", "mean_us",
                                          "median_us",     "low_us",       "high_us",
                                          "queued",        "started",      "ended",
                                          "reason",        "environment",  "environment_details",
                                          "iterations_us", "team",         "shared",
                                          "attempt",       "client",       NULL};
static const char *const object_keys[] = {"schema", "kind", "id", "name", "created", "content", NULL};
static const char *const session_keys[] = {"schema", "id",      "model",  "cluster", "seed",
                                           "budget", "options", "state",  "reason",  "started",
                                           "ended",  "team",    "shared", "mode",    NULL};

static const struct {
    const char *schema;
    const char *const *keys;
    enum status (*read)(struct importer *im, const cJSON *json, const char *line, struct error *err);
} kinds[] = {{"syncopate.record/1", record_keys, read_record},
             {"syncopate.object/1", object_keys, read_object},
             {"syncopate.session/1", session_keys, read_session}};

/* What older exports have and no dataset keeps any more. */
static const char skipped_schema[] = "syncopate.calibration/1";

static enum status read_parsed(struct importer *im, const cJSON *json, const char *line, struct error *err) {
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(json, "schema");
    const char *word = cJSON_IsString(schema) ? schema->valuestring : "(none)";
    const struct json_at root = json_root(json, "");
    if (!strcmp(word, skipped_schema)) {
        im->counts.skipped++;
        return ST_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].schema, word)) {
            enum status status = place(im, json_expect_object(&root, kinds[i].keys, err), err);
            /* What records refer to comes before them, or is here already. */
            if (!status && i > 0)
                status = flush(im, err);
            return !status ? kinds[i].read(im, json, line, err) : status;
        }
    return fail(im, err, "this program imports no", word);
}

static enum status read_line(struct importer *im, const char *line, size_t n, struct error *err) {
    cJSON *json = NULL;
    if (n > JSON_MAX_BYTES)
        return place(im, error_set(err, ST_TOO_LARGE, "longer than 64 MiB"), err);
    enum status status = place(im, json_parse(line, n, "", &json, err), err);
    if (!status)
        status = read_parsed(im, json, line, err);
    cJSON_Delete(json);
    return status;
}

static enum status read_lines(struct importer *im, FILE *in, struct error *err) {
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    enum status status = ST_OK;
    while (!status && (n = getline(&line, &room, in)) >= 0) {
        im->line++;
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            line[--n] = '\0';
        if (n > 0)
            status = read_line(im, line, (size_t)n, err);
    }
    free(line);
    if (!status && ferror(in))
        status = error_at(err, ST_ENVIRONMENT, im->name, "cannot be read: %s", strerror(errno));
    return !status ? flush(im, err) : status;
}

/* Put the input's name and the line before what is wrong with the line. */
static enum status name_line(const struct importer *im, enum status status, struct error *err) {
    const size_t line = err ? err->position : 0;
    if (!status || !line || !*im->name)
        return status;
    error_prefix(err, status, "%s: line %zu", im->name, line);
    err->position = line;
    return status;
}

/* New strategies (those after a row) that no trial is about. */
static const char hold_strategies_for_all[] =
    "INSERT INTO holdings (kind, object, team, name, shared, created)"
    " SELECT 'strategy', row, '', name, '*', created"
    " FROM strategies s"
    " WHERE row > ? AND NOT EXISTS (SELECT 1 FROM trials t WHERE t.strategy = s.row)"
    " ON CONFLICT DO NOTHING";

/* New strategies, held for the teams of the new trials. */
static const char hold_strategies_of_trials[] = "INSERT INTO holdings (kind, object, team, name, shared, created)"
                                                " SELECT DISTINCT 'strategy', s.row, t.team, s.name, '', s.created"
                                                " FROM trials t JOIN strategies s ON s.row = t.strategy"
                                                " WHERE t.team IS NOT NULL AND t.id > ?1 AND s.row > ?2"
                                                " ON CONFLICT DO NOTHING";

/* A strategy that came without a trial belongs to no team, and all see it, as with other objects. A strategy that came
 * with a trial is held by the trial's team, also where the record gives it no name. */
static enum status read_all(struct importer *im, FILE *in, struct error *err) {
    int64_t last = 0, last_trial = 0;
    enum status status = sql_first_integer(im->store, "SELECT max(row) FROM strategies", 0, NULL, &last, err);
    if (!status)
        status = sql_first_integer(im->store, "SELECT max(id) FROM trials", 0, NULL, &last_trial, err);
    if (!status)
        status = read_lines(im, in, err);
    if (!status)
        status = sql_run(im->store, hold_strategies_for_all, SQL_VALUES(sql_integer(last)), err);
    if (!status)
        status =
            sql_run(im->store, hold_strategies_of_trials, SQL_VALUES(sql_integer(last_trial), sql_integer(last)), err);
    return status;
}

enum status import_run(struct store *store, FILE *in, const char *name, const struct import_options *options,
                       struct import_counts *out, struct error *err) {
    struct importer *im = calloc(1, sizeof *im);
    if (!im)
        return error_no_memory(err);
    im->store = store;
    im->name = name;
    if (options)
        im->options = *options;
    text_format(im->origin, sizeof im->origin, "%s",
                im->options.origin && *im->options.origin ? im->options.origin : "import");
    enum status status = store_begin(store, err);
    if (!status)
        status = store_end(store, name_line(im, read_all(im, in, err), err), err);
    if (!status)
        *out = im->counts;
    arena_release(&im->arena);
    free(im);
    return status;
}
