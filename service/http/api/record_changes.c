/* What can be changed of a trial: who sees it. What was measured stays as it is. */
#include <stdio.h>
#include <string.h>

#include "dataset/ingest.h"
#include "service/http/api/api.h"
#include "service/http/api/records.h"
#include "service/http/api/sessions.h"

struct change {
    const char *uid, *shared;
};

/* Compare the tag within the transaction: another change may have come between the request's first look and its turn to
 * write. */
static enum status check_tag(struct request *rq, struct store *store, const char *uid, struct response *rs,
                             struct error *err) {
    struct record *record;
    enum status st = rq->if_match ? record_find(rq, store, uid, NULL, &record, err) : ST_OK;
    if (!st && rq->if_match)
        st = record_answer_tagged(rq, record, rs, err);
    if (st || !rq->if_match)
        return st;
    return request_matches(rq, rs->etag)
               ? ST_OK
               : problem_fail(err, PROBLEM_PRECONDITION_FAILED, "trial %s has changed: its entity tag is \"%s\"", uid,
                              rs->etag);
}

static enum status share_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                struct error *err) {
    const struct change *c = context;
    struct record *record;
    enum status st = check_tag(rq, store, c->uid, rs, err);
    if (!st)
        st = store_trial_share(store, c->uid, c->shared, err);
    if (!st)
        st = record_find(rq, store, c->uid, NULL, &record, err);
    return st ? st : record_answer_tagged(rq, record, rs, err);
}

/* Check that the client may change the trial: it belongs to the team that measured the trial, or is an
 * administrator. */
static enum status check_owner(struct request *rq, const struct record *record, struct error *err) {
    const struct principal *who = &rq->principal;
    if (who->role != ROLE_ADMIN && (!record->team || strcmp(record->team, who->team)))
        return problem_fail(err, PROBLEM_FORBIDDEN, "trial %s belongs to another team", record->uid);
    if (record->session)
        return error_set(err, ST_CONFLICT, "trial %s is shared as its session %s is; change that", record->uid,
                         record->session);
    return ST_OK;
}

enum status api_records_patch(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"shared", NULL};
    const struct json_at body = request_body(rq);
    struct change change = {.uid = request_parameter(rq, "uid")};
    struct json_at unused;
    struct store *store;
    struct record *record;
    enum status st = json_expect_object(&body, known, err);
    if (!st && !json_has(&body, "shared", &unused))
        st = json_fail(&body, err, "needs whom it is shared with");
    if (!st)
        st = request_shared(rq, &body, &change.shared, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = record_find(rq, store, change.uid, request_viewer(rq), &record, err);
    if (!st)
        st = check_owner(rq, record, err);
    return st ? st : request_commit(rq, share_effect, &change, rs, err);
}
