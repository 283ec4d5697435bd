/* Who runs which trial of a session: trials that the search suggested, given to clients under leases.
 *
 * An assignment is a trial that was suggested and has not ended. It waits until a client takes it. The client then has
 * it for the length of a lease, which each renewal begins anew (dataset/leases.h). A client that is silent for longer
 * loses the trial: the trial waits again, as its next attempt. After ASSIGNMENT_ATTEMPTS attempts it is cancelled as
 * lost, which costs no budget.
 *
 * The dataset decides; a struct assignments holds what was last read from it. There are two users: asking.h reads a
 * session anew for each call, and the service's hub (service/hub.h) keeps it in memory between calls. Each decides by a
 * clock of its own when a lease has run out.
 * Units: microseconds. Threads: a struct assignments belongs to one thread at a time. */
#ifndef TUNER_SESSION_ASSIGNMENTS_H
#define TUNER_SESSION_ASSIGNMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "dataset/store.h"
#include "tuner/session/session.h"
#include "tuner/session/trials.h"

enum { ASSIGNMENT_ATTEMPTS = 3, ASSIGNMENTS_MOST = 64, CLIENT_NAME_MAX = 64 };

struct assignment {
    struct suggestion suggestion; /* its order and texts are borrowed from the session */
    uint64_t number;              /* within the session; 0: not in the dataset yet */
    int64_t row;                  /* of the dataset, with a number */
    uint64_t attempt;             /* of the client that has it, or of the next that takes it */
    bool taken;
    char client[CLIENT_NAME_MAX + 1]; /* that has it */
    double lease_us;
    char until[32];     /* UTC: when the lease ends, for people */
    double deadline_us; /* the same by the clock of asking.h or the hub; assignments_* do not use it */
    size_t place;       /* in assignments.list, of a copy that assignments_take made */
};

struct assignments {
    struct session *engine; /* borrowed */
    uint64_t last_number;   /* that a trial of the session has */
    size_t n;
    struct assignment list[ASSIGNMENTS_MOST];
};

/* What the dataset says: the trials that wait and, with `taken`, those that a client has. All trials that have not
 * ended are taken up by `engine`, which has resumed the session. Fails: as the store and session_take_up. */
enum status assignments_load(struct assignments *out, struct session *engine, struct store *store, bool taken,
                             struct error *err);

/* How many wait. */
size_t assignments_waiting(const struct assignments *a);

/* Suggest trials until `count` wait, or ASSIGNMENTS_MOST are listed. *step says why fewer wait; SESSION_TRIAL: none are
 * missing. Nothing is written. A new suggestion takes up to a second. Fails: as session_suggest. */
enum status assignments_suggest(struct assignments *a, size_t count, enum session_step *step, struct error *err);

/* Write that `client` takes up to `count` of those that wait: taken[0..n). Call it in a transaction. `a` does not
 * change, so a transaction that is undone needs no repair. Call assignments_took after the commit. Fails: as the
 * store. */
enum status assignments_take(const struct assignments *a, struct store *store, const char *client, size_t count,
                             double lease_us, struct assignment taken[ASSIGNMENTS_MOST], size_t *n, struct error *err);
void assignments_took(struct assignments *a, size_t n, const struct assignment *taken);

/* Remove a trial that has ended from the list; those behind it move up. */
void assignments_forget(struct assignments *a, size_t place);

/* How a session that is over has ended, and why, for store_session_update. */
enum stored_session_state session_end_state(struct session *engine, char reason[ERROR_TEXT_ROOM]);

/* A client, and the trial that it says it has. */
struct holder {
    const char *session, *client;
    uint64_t number, attempt;
    int64_t row; /* of the dataset; 0: it is looked up */
};

/* The row of the trial when the holder has it. Fails: ST_NOT_FOUND (the session has no such trial), ST_CONFLICT with
 * the reason: it has ended, its lease ran out, or which client has it until when. */
enum status assignment_check(struct store *store, const struct holder *holder, int64_t *row, struct error *err);

/* The lease lasts lease_us from now. Fails as assignment_check and lease_renew. */
enum status assignment_renew(struct store *store, const struct holder *holder, double lease_us, struct error *err);

/* The trial has ended. `runner`: what ran it; NULL: what the session says. Fails as assignment_check. */
enum status assignment_end(struct store *store, const struct holder *holder, const char *runner,
                           const struct tune_outcome *outcome, struct error *err);

/* The lease of this attempt has run out: the trial waits again or, after its last attempt, is cancelled as lost. *state
 * (may be NULL) says which. Fails as lease_expire. */
enum status assignment_expire(struct store *store, int64_t row, uint64_t attempt, enum record_state *state,
                              struct error *err);

#endif
