/* Operations: long work of a service. A client begins one and later asks for its state and result. Operations stay in
 * their file: they are not merged or exported. Errors and threads as in store.h. */
#ifndef DATASET_OPERATIONS_H
#define DATASET_OPERATIONS_H

#include "dataset/store.h"

/* X(constant, word) */
#define OPERATION_STATE_TABLE(X)                                                                                       \
    X(OPERATION_RUNNING, running)                                                                                      \
    X(OPERATION_DONE, done)                                                                                            \
    X(OPERATION_FAILED, failed)

enum operation_state {
#define X(constant, word) constant,
    OPERATION_STATE_TABLE(X)
#undef X
        OPERATION_STATE_COUNT
};
const char *operation_state_word(enum operation_state state);

struct stored_operation {
    const char *id;
    const char *kind; /* "train-ranker", ... */
    const char *team; /* who asked; NULL: nobody in particular */
    enum operation_state state;
    const char *request, *result; /* JSON; result is NULL while it runs */
    const char *created, *ended;
};

enum { OPERATION_ID_ROOM = 40 };

/* Running from now. `id` is given. Fails: ST_INVALID (request is no JSON). */
enum status operation_begin(struct store *store, const char *kind, const char *team, const char *request,
                            char id[OPERATION_ID_ROOM], struct error *err);

/* running -> done or failed. Fails: ST_NOT_FOUND, ST_CONFLICT (it has ended), ST_INVALID (result is no JSON). */
enum status operation_end(struct store *store, const char *id, enum operation_state state, const char *result,
                          struct error *err);

/* Fails: ST_NOT_FOUND. */
enum status operation_get(struct store *store, const char *id, struct arena *arena, struct stored_operation *out,
                          struct error *err);

/* Every member narrows; {0} is every operation. */
struct operation_query {
    const enum operation_state *state;
    const char *team;
    const char *before; /* an operation's id: only those begun before it */
};

/* List operations, newest first, at most `limit` (0: all). */
enum status operation_list(struct store *store, const struct operation_query *query, size_t limit, struct arena *arena,
                           size_t *n, struct stored_operation **out, struct error *err);

/* To be called after a restart. Operations that still say `running` were left by a dead process: they become failed,
 * with `result` (JSON). *n (may be NULL) is how many. */
enum status operation_reconcile(struct store *store, const char *result, uint64_t *n, struct error *err);

#endif
