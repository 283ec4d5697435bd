/* What a service remembers of requests: the answers to requests with an idempotency key, which it gives again when such
 * a request is repeated, and the audit of who asked for what.
 *
 * An answer is kept in the transaction of its effect, so that both are kept or neither is:
 *
 *     store_begin(store, err);
 *     status = response_find(...);                      -- RESPONSE_SAME: send `found`, do nothing
 *     if (!status && match == RESPONSE_NEW)     -- do it, build the answer, then
 *         status = response_put(...);
 *     store_end(store, status, err);
 *
 * Both stay in their file: they are not merged or exported. Errors and threads as in store.h. */
#ifndef DATASET_REQUESTS_H
#define DATASET_REQUESTS_H

#include "dataset/store.h"

struct stored_response {
    int status; /* HTTP */
    const char *content_type;
    const char *body; /* length bytes and a NUL */
    size_t length;
    const char *created;
};

enum response_match {
    RESPONSE_NEW,  /* this token never used the key */
    RESPONSE_SAME, /* for the same request: the answer is in *out */
    RESPONSE_OTHER /* for another request */
};

/* Find the answer to `key` of `token`. `token` is "token@team", or "@team" of who has no token; answers that an earlier
 * version kept under "token" or "team" alone are found too. `fingerprint` is a hash of method, path and body. *out is
 * written when *match is RESPONSE_SAME. */
enum status response_find(struct store *store, const char *token, const char *key, const char *fingerprint,
                          struct arena *arena, enum response_match *match, struct stored_response *out,
                          struct error *err);

/* How many answers of a token are kept, and how many bytes of them. Beyond these the oldest are forgotten. */
enum { RESPONSES_MAX = 10000, RESPONSES_MAX_BYTES = 64 << 20 };

/* Reads status, content_type, body and length. Fails: ST_CONFLICT (the key was used). */
enum status response_put(struct store *store, const char *token, const char *key, const char *fingerprint,
                         const struct stored_response *response, struct error *err);

/* Forget answers created before the stamp, a thousand at most; *n (may be NULL) is how many. */
enum status response_prune(struct store *store, const char *before, uint64_t *n, struct error *err);

/* Texts but method and path may be NULL. */
struct audit_entry {
    const char *token, *team, *address, *method, *path;
    int status; /* HTTP */
    const char *request_id;
};

enum status audit_add(struct store *store, const struct audit_entry *entry, struct error *err);

/* Forget entries older than the stamp, a thousand at most; *n (may be NULL) is how many. */
enum status audit_prune(struct store *store, const char *before, uint64_t *n, struct error *err);

#endif
