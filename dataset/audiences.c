/* The table of audiences says how many reasons there are for an audience, which is a team or all, to see an object.
 * Trials give these reasons:
 *
 *   - a model or a cluster has one a trial. A batch of trials has few models and clusters, so their counts are added up
 *     here and written once.
 *   - a strategy has one for each audience, however many trials: either it has a trial of its own, or a trial is shared
 *     with all. Strategies are many, and to count their trials would write one more page for most of them. The column
 *     `trials` says that the reason is there.
 *   - a strategy has one more for each team that a trial is shared with by name, which is rare.
 *
 * A trial never changes its team, so a reason of a team's own trials never ends. The reason of all can end: when a
 * trial is no longer shared with all, the other trials of its strategy are looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/audiences_internal.h"
#include "dataset/engine_internal.h"
#include "dataset/store_internal.h"

/* What a store remembers. It stays true, since a file has one writer. Where there are several, it lasts for a
 * transaction.
 *
 *   - audiences, by their place
 *   - strategies whose trials are known to be a reason for an audience, so that most trials need no look at the table
 *   - counts that are to be written, of the trials at hand. A count that finds another in its place writes that one
 *     first.
 *   - notes that are to be written, where the engine takes many in one statement
 *
 * Keys are of an object and an audience's place; 0 is none. */
enum { AUDIENCES = 16, AUDIENCE_ROOM = 72, NOTED = 1 << 15, COUNTS = 1 << 11, NOTES = 1 << 10 };
struct count {
    uint64_t key;
    int64_t reasons, own;
};
struct remembered {
    char audiences[AUDIENCES][AUDIENCE_ROOM]; /* "": none yet */
    size_t next;                              /* the place that the next new one takes */
    uint64_t noted[NOTED];                    /* strategies */
    struct count counts[COUNTS];
    struct note {
        int64_t strategy;
        size_t place;
    } notes[NOTES];
    size_t n_notes;
    int64_t columns[4][COUNTS]; /* scratch: what one statement takes */
    bool hides;                 /* one of these trials was shared with all and will no longer be */
};

/* A row of a trial; texts are good until the next. */
struct trial_row {
    int64_t objects[3]; /* of kinds */
    const char *team, *shared;
};
static const enum store_kind kinds[] = {STORE_MODEL, STORE_CLUSTER, STORE_STRATEGY};

static uint64_t key_of(size_t k, int64_t object, size_t place) {
    return ((uint64_t)object * 3 + k) * AUDIENCES + place;
}

static const char add_to_count[] =
    "INSERT INTO audiences (kind, audience, object, reasons, own)"
    " VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (kind, audience, object) DO UPDATE"
    " SET reasons = audiences.reasons + excluded.reasons, own = audiences.own + excluded.own";

static enum status write_count(struct store *store, struct count *c, struct error *err) {
    const char *audience = store->remembered->audiences[c->key % AUDIENCES];
    const uint64_t object = c->key / AUDIENCES;
    enum status status = ST_OK;
    if (c->reasons || c->own)
        status = sql_run(store, add_to_count,
                         SQL_VALUES(sql_text(object_word(kinds[object % 3])), sql_text(audience),
                                    sql_integer((int64_t)(object / 3)), sql_integer(c->reasons), sql_integer(c->own)),
                         err);
    *c = (struct count){0};
    return status;
}

/* All counts of the audience at `place` in one statement. */
static enum status write_counts_of(struct store *store, size_t place, struct error *err) {
    struct remembered *r = store->remembered;
    size_t n = 0;
    for (size_t i = 0; i < COUNTS; i++) {
        struct count *c = &r->counts[i];
        if (!c->key || c->key % AUDIENCES != place)
            continue;
        const uint64_t object = c->key / AUDIENCES;
        const int64_t row[] = {(int64_t)(object % 3), (int64_t)(object / 3), c->reasons, c->own};
        for (size_t k = 0; k < 4; k++)
            r->columns[k][n] = row[k];
        n += c->reasons || c->own;
        *c = (struct count){0};
    }
    return n ? sql_run(store, store->engine->add_to_counts,
                       SQL_VALUES(sql_text(r->audiences[place]), sql_integers(n, r->columns[0]),
                                  sql_integers(n, r->columns[1]), sql_integers(n, r->columns[2]),
                                  sql_integers(n, r->columns[3])),
                       err)
             : ST_OK;
}

/* "*" is no team. */
static bool is_team(const char *audience) {
    return strcmp(audience, "*") != 0;
}

static enum status write_notes_of(struct store *store, size_t place, struct error *err) {
    struct remembered *r = store->remembered;
    const char *audience = r->audiences[place];
    size_t n = 0;
    for (size_t i = 0; i < r->n_notes; i++)
        if (r->notes[i].place == place)
            r->columns[0][n++] = r->notes[i].strategy;
    return n ? sql_run(store, store->engine->note_trials,
                       SQL_VALUES(sql_text(audience), sql_integer(is_team(audience)), sql_integers(n, r->columns[0])),
                       err)
             : ST_OK;
}

static enum status write_notes(struct store *store, struct error *err) {
    enum status status = ST_OK;
    for (size_t place = 0; place < AUDIENCES && !status && store->remembered->n_notes; place++)
        status = write_notes_of(store, place, err);
    store->remembered->n_notes = 0;
    return status;
}

/* Everything that is to be written. */
static enum status write_all(struct store *store, struct error *err) {
    enum status status = write_notes(store, err);
    for (size_t place = 0; place < AUDIENCES && !status && store->engine->add_to_counts; place++)
        status = write_counts_of(store, place, err);
    for (size_t i = 0; i < COUNTS && !status && !store->engine->add_to_counts; i++)
        if (store->remembered->counts[i].key)
            status = write_count(store, &store->remembered->counts[i], err);
    return status;
}

/* The place of the audience that is called the n bytes at `name`. A new audience takes the place of an older one. What
 * was remembered of the older one is forgotten. */
static enum status place_of(struct store *store, const char *name, size_t n, size_t *out, struct error *err) {
    struct remembered *r = store->remembered;
    for (*out = 0; *out < AUDIENCES; ++*out)
        if (!strncmp(r->audiences[*out], name, n) && !r->audiences[*out][n])
            return ST_OK;
    *out = r->next++ % AUDIENCES;
    enum status status = *r->audiences[*out] ? write_all(store, err) : ST_OK;
    for (size_t i = 0; i < NOTED && *r->audiences[*out]; i++)
        if (r->noted[i] % AUDIENCES == *out)
            r->noted[i] = 0;
    memset(r->audiences[*out], 0, AUDIENCE_ROOM);
    memcpy(r->audiences[*out], name, n);
    return status;
}

/* Add `by` reasons for the audience at `place` to see an object; `own` of them are its own trials. */
static enum status count(struct store *store, size_t k, int64_t object, size_t place, int64_t by, int64_t own,
                         struct error *err) {
    const uint64_t key = key_of(k, object, place);
    struct count *c = &store->remembered->counts[(key / AUDIENCES + place * 131) % COUNTS];
    enum status status = c->key && c->key != key ? write_count(store, c, err) : ST_OK;
    c->key = key;
    c->reasons += by;
    c->own += own;
    return status;
}

static const char note_trials[] = "INSERT INTO audiences (kind, audience, object, reasons, own, trials)"
                                  " VALUES ('strategy', ?, ?, 1, ?, 1)"
                                  " ON CONFLICT (kind, audience, object) DO UPDATE"
                                  " SET reasons = audiences.reasons + 1, own = audiences.own + excluded.own, trials = 1"
                                  " WHERE audiences.trials = 0";

static enum status write_note(struct store *store, int64_t strategy, size_t place, struct error *err) {
    struct remembered *r = store->remembered;
    const char *audience = r->audiences[place];
    if (!store->engine->note_trials)
        return sql_run(store, note_trials,
                       SQL_VALUES(sql_text(audience), sql_integer(strategy), sql_integer(is_team(audience))), err);
    enum status status = r->n_notes == NOTES ? write_notes(store, err) : ST_OK;
    r->notes[r->n_notes++] = (struct note){strategy, place};
    return status;
}

/* A strategy's trials are a reason for the audience at `place`. Rows of strategies count from 1, so that up to NOTED of
 * them have places of their own for one audience. */
static enum status note(struct store *store, int64_t strategy, size_t place, struct error *err) {
    const uint64_t key = key_of(2, strategy, place);
    uint64_t *known = &store->remembered->noted[((uint64_t)strategy + place * 12289) % NOTED];
    if (*known == key)
        return ST_OK;
    enum status status = write_note(store, strategy, place, err);
    if (!status)
        *known = key;
    return status;
}

void audiences_forget(struct store *store) {
    free(store->remembered);
    store->remembered = NULL;
}

/* ---- trials ---- */

static bool is_open(const char *shared) {
    return !strcmp(shared, "*");
}

/* Add the trial as `by` reasons for the audience called the n bytes at `name`. BY_NAME: a team in the trial's list;
 * FOR_ALL: everybody; OWN: the trial's own team. */
enum reason { BY_NAME, FOR_ALL, OWN };
static enum status count_for(struct store *store, const struct trial_row *row, const char *name, size_t n,
                             enum reason reason, int64_t by, struct error *err) {
    size_t place;
    if (n >= AUDIENCE_ROOM) /* no team is called so */
        return ST_OK;
    enum status status = place_of(store, name, n, &place, err);
    for (size_t k = 0; k < (reason == BY_NAME ? 3 : 2) && !status; k++)
        status = count(store, k, row->objects[k], place, by, reason == OWN ? by : 0, err);
    return !status && reason != BY_NAME && by > 0 ? note(store, row->objects[2], place, err) : status;
}

/* Count `by` reasons more for those that `shared` names. */
static enum status count_shared(struct store *store, const struct trial_row *row, const char *shared, int64_t by,
                                struct error *err) {
    const enum reason reason = is_open(shared) ? FOR_ALL : BY_NAME;
    const char *name = shared + (*shared == '|');
    enum status status = ST_OK;
    while (*name && !status) {
        const size_t n = strcspn(name, "|");
        status = count_for(store, row, name, n, reason, by, err);
        name += n + (name[n] == '|');
    }
    return status;
}

/* What is done with each trial; `shared` is its new value. */
typedef enum status use_trial(struct store *store, const struct trial_row *row, const char *shared, struct error *err);

static enum status add_trial(struct store *store, const struct trial_row *row, const char *shared, struct error *err) {
    enum status status = ST_OK;
    (void)shared;
    if (row->team)
        status = count_for(store, row, row->team, strlen(row->team), OWN, 1, err);
    return !status ? count_shared(store, row, row->shared, 1, err) : status;
}

static enum status share_trial(struct store *store, const struct trial_row *row, const char *shared,
                               struct error *err) {
    enum status status = count_shared(store, row, row->shared, -1, err);
    store->remembered->hides |= is_open(row->shared);
    return !status ? count_shared(store, row, shared, 1, err) : status;
}

static enum status read_row(struct sql_statement *stmt, struct trial_row *out, struct error *err) {
    for (int k = 0; k < 3; k++)
        out->objects[k] = sql_column_integer(stmt, k);
    out->team = sql_column_text(stmt, 3);
    out->shared = sql_column_text(stmt, 4);
    const bool lost = !out->shared || (!out->team && !sql_column_is_null(stmt, 3));
    return lost ? error_no_memory(err) : ST_OK;
}

/* The statement `sql` gives trials as read_row takes them; each is used as it comes. */
static enum status each_trial(struct store *store, const char *sql, size_t n, const struct sql_value *values,
                              use_trial *use, const char *shared, struct error *err) {
    struct trial_row row;
    struct sql_statement *stmt;
    bool more = true;
    if (!store->remembered && !(store->remembered = calloc(1, sizeof *store->remembered)))
        return error_no_memory(err);
    store->remembered->hides = false;
    enum status status = sql_start(store, sql, n, values, &stmt, err);
    if (status)
        return status;
    while (!status) {
        status = sql_next(store, stmt, &more, err);
        if (status || !more)
            break;
        status = read_row(stmt, &row, err);
        if (!status)
            status = use(store, &row, shared, err);
    }
    sql_reset(stmt);
    return !status ? write_all(store, err) : status;
}

static const char trials_added[] = "SELECT model, cluster, strategy, team, shared"
                                   " FROM trials NOT INDEXED"
                                   " WHERE id BETWEEN ?1 AND ?2";

enum status audiences_add(struct store *store, int64_t first, int64_t last, struct error *err) {
    return each_trial(store, trials_added, SQL_VALUES(sql_integer(first), sql_integer(last)), add_trial, NULL, err);
}

/* How trials are shared anew. Parameters: ?1 the session's id or the trial's uid, ?2 whom they are shared with. */
struct sharing {
    const char *changed; /* the trials that are shared otherwise now */
    const char *update;
    const char *hide; /* takes the reason of all from strategies that no trial shares with all any more */
};

/* *n is how many trials were written. */
static enum status share(struct store *store, const struct sharing *how, const char *id, const char *shared, int64_t *n,
                         struct error *err) {
    const struct sql_value values[] = {sql_text(id), sql_text(shared)};
    enum status status = each_trial(store, how->changed, 2, values, share_trial, shared, err);
    if (!status)
        status = sql_run(store, how->update, 2, values, err);
    *n = sql_changes(store);
    if (status || !store->remembered->hides)
        return status;
    audiences_forget(store);
    return sql_run(store, how->hide, 1, values, err);
}

static const struct sharing of_session = {
    .changed = "SELECT model, cluster, strategy, team, shared"
               " FROM trials"
               " WHERE session = ?1 AND shared <> ?2",
    .update = "UPDATE trials"
              " SET shared = ?2"
              " WHERE session = ?1 AND shared <> ?2",
    .hide = "UPDATE audiences"
            " SET reasons = reasons - 1, trials = 0"
            " WHERE kind = 'strategy' AND audience = '*' AND trials <> 0"
            "   AND object IN (SELECT strategy FROM trials WHERE session = ?1)"
            "   AND NOT EXISTS (SELECT 1 FROM trials t WHERE t.strategy = audiences.object AND t.shared = '*')",
};

enum status audiences_share_session(struct store *store, const char *session, const char *shared, struct error *err) {
    int64_t n;
    return share(store, &of_session, session, shared, &n, err);
}

static const struct sharing of_trial = {
    .changed = "SELECT model, cluster, strategy, team, shared"
               " FROM trials"
               " WHERE uid = ?1 AND shared <> ?2",
    .update = "UPDATE trials"
              " SET shared = ?2"
              " WHERE uid = ?1",
    .hide = "UPDATE audiences"
            " SET reasons = reasons - 1, trials = 0"
            " WHERE kind = 'strategy' AND audience = '*' AND trials <> 0"
            "   AND object IN (SELECT strategy FROM trials WHERE uid = ?1)"
            "   AND NOT EXISTS (SELECT 1 FROM trials t WHERE t.strategy = audiences.object AND t.shared = '*')",
};

enum status audiences_share_trial(struct store *store, const char *uid, const char *shared, bool *found,
                                  struct error *err) {
    int64_t n;
    enum status status = share(store, &of_trial, uid, shared, &n, err);
    if (!status)
        *found = n > 0;
    return status;
}
