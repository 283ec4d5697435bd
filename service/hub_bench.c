/* See hub.h: the bench that a session offers before its first trial. Who has it stands in the session's options, so
 * that it holds across restarts and services. Its lease ends by the stamp there: clocks that differ by seconds do no
 * harm to a lease of minutes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "dataset/holdings.h"
#include "service/hub_internal.h"
#include "tuner/session/session_options.h"

static enum status read_bench(struct hub_session *s, struct store *store, struct arena *arena,
                              struct stored_session *stored, struct session_options *out, struct error *err) {
    enum status st = store_session_get(store, s->id, arena, stored, err);
    return st ? st : session_options_read(stored, arena, out, err);
}

static enum status write_bench(struct store *store, const struct stored_session *stored,
                               const struct session_options *kept, struct error *err) {
    char *text = session_options_write(kept, stored->options);
    enum status st = text ? store_session_options(store, stored->id, text, err) : error_no_memory(err);
    free(text);
    return st;
}

/* A stamp that lies too far ahead was made before the clock was set back, and counts as past. */
static bool is_held(const struct session_options *kept) {
    char now[32], latest[32];
    if (!kept->bench_client || !kept->bench_until)
        return false;
    clock_utc(now, sizeof now);
    clock_utc_after(HUB_BENCH_MOST_US, latest, sizeof latest);
    return strcmp(kept->bench_until, now) > 0 && strcmp(kept->bench_until, latest) <= 0;
}

static bool is_due(const struct hub_session *s, const struct stored_session *stored,
                   const struct session_options *kept) {
    return s->mode == STORED_SESSION_ASK && stored->state == STORED_SESSION_RUNNING && !stored->trials &&
           !kept->bench_over && cluster_wants_bench(&s->cluster);
}

static enum hub_bench turn_of(const struct session_options *kept, const char *client) {
    if (is_held(kept) && strcmp(kept->bench_client, client) != 0)
        return HUB_BENCH_ELSEWHERE;
    return kept->bench_attempt < ASSIGNMENT_ATTEMPTS ? HUB_BENCH_YOURS : HUB_BENCH_NONE;
}

enum status hub_bench_look(struct hub_session *s, const char *client, enum hub_bench *out, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct session_options kept;
    struct store *reader;
    enum status st = access_read(s->hub->access, &reader, err);
    if (!st)
        st = read_bench(s, reader, &arena, &stored, &kept, err);
    *out = !st && is_due(s, &stored, &kept) ? turn_of(&kept, client) : HUB_BENCH_NONE;
    arena_release(&arena);
    return st;
}

static enum status tell_taken(struct hub_session *s, struct store *store, uint64_t attempt, const char *client,
                              struct error *err) {
    cJSON *content = cJSON_CreateObject();
    const bool whole = cJSON_AddNumberToObject(content, "attempt", (double)attempt) &&
                       cJSON_AddStringToObject(content, "client", client);
    return hub_tell(s, store, "bench-taken", content, whole, err);
}

enum status hub_bench_take(struct hub_session *s, struct store *store, const char *client, double lease_us,
                           uint64_t *attempt, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct session_options kept;
    char until[32];
    enum status st = hub_check_whole(s, store, err);
    if (!st)
        st = read_bench(s, store, &arena, &stored, &kept, err);
    if (!st) {
        kept.bench_attempt++;
        kept.bench_client = client;
        clock_utc_after(lease_us, until, sizeof until);
        kept.bench_until = until;
        *attempt = kept.bench_attempt;
        st = write_bench(store, &stored, &kept, err);
    }
    if (!st)
        st = tell_taken(s, store, *attempt, client, err);
    arena_release(&arena);
    return st;
}

static enum status check_holder(const struct hub_session *s, const struct session_options *kept, const char *client,
                                uint64_t attempt, struct error *err) {
    if (kept->bench_client && !strcmp(kept->bench_client, client) && kept->bench_attempt == attempt)
        return ST_OK;
    return error_set(err, ST_CONFLICT, "the bench of session %s is not with client \"%s\", attempt %lu: it is %s%s",
                     s->id, client, (unsigned long)attempt,
                     kept->bench_client ? "with "
                     : kept->bench_over ? "over"
                                        : "with nobody",
                     kept->bench_client ? kept->bench_client : "");
}

static enum status tell_end(struct hub_session *s, struct store *store, const struct hub_bench_end *end, bool used,
                            struct error *err) {
    cJSON *content = cJSON_CreateObject();
    const char *word = end->measured ? "complete" : end->again ? "returned" : "failed";
    const bool whole = cJSON_AddStringToObject(content, "state", word) &&
                       (!used || cJSON_AddStringToObject(content, "cluster", end->measured->id.hex)) &&
                       (!end->reason || cJSON_AddStringToObject(content, "reason", end->reason));
    return hub_tell(s, store, "bench-ended", content, whole, err);
}

/* Keep the description as the team's own, under the cluster's name. Others see it with the session alone, and as long
 * as they see that; so no name of theirs changes its meaning. What the team can see already stays shared as it is. */
static enum status keep_measured(const struct hub_session *s, struct store *store, const struct cluster *measured,
                                 struct error *err) {
    const struct viewer own = {.team = s->team};
    enum status st = seen_has(store, STORE_CLUSTER, measured->id.hex, &own, err);
    if (st != ST_NOT_FOUND)
        return st;
    cJSON *json = cluster_write(measured);
    char *text = json ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    st = text ? holding_make(store, STORE_CLUSTER, &measured->id, text, s->team, measured->name, s->team ? "" : NULL,
                             err)
              : error_no_memory(err);
    free(text);
    return st;
}

/* Trials that were taken are about the other description, and so is a session that has ended. */
static bool is_of_use(const struct stored_session *stored, const struct hub_bench_end *end) {
    return end->measured && !stored->trials && stored_session_is_open(stored->state);
}

enum status hub_bench_end(struct hub_session *s, struct store *store, const struct hub_bench_end *end, bool *used,
                          struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct session_options kept;
    *used = false;
    enum status st = read_bench(s, store, &arena, &stored, &kept, err);
    if (!st)
        st = check_holder(s, &kept, end->client, end->attempt, err);
    if (!st) {
        kept.bench_client = kept.bench_until = NULL;
        kept.bench_over = end->measured || !end->again || kept.bench_attempt >= ASSIGNMENT_ATTEMPTS;
        st = write_bench(store, &stored, &kept, err);
    }
    if (!st && is_of_use(&stored, end)) {
        st = keep_measured(s, store, end->measured, err);
        if (!st)
            st = store_session_move(store, s->id, end->measured->id.hex, err);
        *used = !st;
    }
    if (!st)
        st = tell_end(s, store, end, *used, err);
    if (!st && !stored.trials)
        hub_forget_engine(s); /* of a budget of time, the bench took none */
    arena_release(&arena);
    return st;
}
