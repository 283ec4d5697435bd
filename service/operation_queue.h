/* Long work that clients start and poll. One piece runs at a time, in a thread of its own; its row in the dataset
 * (dataset/operations.h) has its state. What was running or waiting when the service stopped or crashed is marked
 * failed with "the service ended": nothing is half done, since the outcome and the row's end are one transaction.
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
    /* Do the work, however long it takes; read through access_read. When *cancel is set, end soon with ST_CANCELLED. */
    enum status (*run)(struct operation_work *work, struct access *access, const atomic_int *cancel, struct error *err);
    /* Write the outcome, in the transaction that ends the row, and add to the result. Called again if that transaction
     * was undone. */
    enum status (*keep)(struct operation_work *work, struct store *store, cJSON *result, struct error *err);
    void (*release)(struct operation_work *work); /* frees it */
};

/* What a dead process left running fails now. Fails: as the store, ST_ENVIRONMENT (no thread). */
enum status operation_queue_open(struct access *access, struct operation_queue **out, struct error *err);

/* Cancels what runs and waits for its end. NULL is allowed. */
void operation_queue_close(struct operation_queue *operations);

/* Whether the queue has room for one more of the team's. Teams take turns, and none has more than a share of the queue.
 */
bool operation_queue_have_room(struct operation_queue *operations, const char *team);

/* Queue the work, which is taken. Its row must be in the dataset, with the state running. */
void operation_queue_submit(struct operation_queue *operations, struct operation_work *work);

#endif
