/* What happened in a session, in order, for those who watch it. Ids of events only grow and none is given twice, so
 * a client that was cut off goes on behind the last one it has. Events stay in their file: they are not merged or
 * exported. Errors and threads as in store.h. */
#ifndef DATASET_EVENTS_H
#define DATASET_EVENTS_H

#include "dataset/store.h"

struct stored_event {
    int64_t id;
    const char *session; /* NULL: of no session */
    const char *kind;
    const char *content; /* JSON */
    const char *created;
};

/* Add an event. Call this between store_begin and store_end, together with the change that the event is about. *id may
 * be NULL. Fails: ST_INVALID (no JSON). */
enum status event_add(struct store *store, const char *session, const char *kind, const char *content, int64_t *id,
                      struct error *err);

/* Events after `after` (0: from the first), oldest first, at most `limit` (0: all); of one session or, with NULL, of
 * all. O(log n + found). */
enum status event_list(struct store *store, const char *session, int64_t after, size_t limit, struct arena *arena,
                       size_t *n, struct stored_event **out, struct error *err);

/* The newest id of a session (NULL: of all); 0 when there is none. */
enum status event_last(struct store *store, const char *session, int64_t *id, struct error *err);

/* Forget events created before the stamp, oldest first, a thousand at most. *n (may be NULL) is how many. Events of
 * open sessions stay. Ids are not used again. */
enum status event_prune(struct store *store, const char *before, uint64_t *n, struct error *err);

/* The newest forgotten event of a session, 0 when none was forgotten. A client whose last event is older has missed
 * some. */
enum status event_pruned(struct store *store, const char *session, int64_t *last, struct error *err);

#endif
