/* Long work that a client asks for and comes back for: one piece at a time, in a thread of its own, while its row in
 * the dataset (dataset/operations.h) says how it stands. What was running or waiting when the service stopped or
 * crashed is marked failed with "the service ended": nothing is half done, since the outcome and the row's end are one
 * transaction.
 * Threads: any, for every function but open and close. */
#ifndef SERVICE_OPERATION_QUEUE_H
#define SERVICE_OPERATION_QUEUE_H

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "dataset/operations.h"
#include "service/access.h"
#include "service/tokens.h"

struct operation_queue; /* opaque */

/* A piece of work; a kind of work embeds it as its first member. */
struct operation_work {
    struct operation_work *next;
    char id[OPERATION_ID_ROOM];   /* of its row */
    char team[TEAM_NAME_MAX + 1]; /* whose it is */
    /* Take as long as needed; read through access_read. To end soon with ST_CANCELLED when *cancel is set. */
    enum status (*run)(struct operation_work *work, struct access *access, const atomic_int *cancel, struct error *err);
    /* Write what came out, in the transaction that ends the row, and add to the result. May run a second time, after an
     * undone first time. */
    enum status (*keep)(struct operation_work *work, struct store *store, cJSON *result, struct error *err);
    void (*release)(struct operation_work *work); /* frees it */
};

/* What a dead process left running fails now. Fails: as the store, ST_ENVIRONMENT (no thread). */
enum status operation_queue_open(struct access *access, struct operation_queue **out, struct error *err);

/* Cancels what runs and waits for its end. NULL is allowed. */
void operation_queue_close(struct operation_queue *operations);

/* Whether one more of the team's may wait. Teams take turns, and none has more than a share of the queue. */
bool operation_queue_have_room(struct operation_queue *operations, const char *team);

/* Do it when what came before is done. Its row is there and running. Taken. */
void operation_queue_submit(struct operation_queue *operations, struct operation_work *work);

#endif
