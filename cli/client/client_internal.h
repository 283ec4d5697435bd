/* What client.c and listen.c share. */
#ifndef CLI_CLIENT_CLIENT_INTERNAL_H
#define CLI_CLIENT_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/rng.h"
#include "cli/client/retry.h"
#include "cli/client/token.h"

struct client {
    CURL *calls, *stream; /* two, so that a listener may call */
    char *url, *ca_file, *proxy;
    char authorization[CLIENT_TOKEN_ROOM + 32]; /* the header, or empty */
    double deadline_us;
    unsigned tries;
    long last_status;
    enum try_ending last_ending;
    const atomic_int *cancel;
    struct rng rng;
};

/* Everything that each request of this client has in common: where to, TLS, proxy, cancelling. `path` goes behind the
 * URL. Fails: ST_NO_MEMORY. */
enum status client_prepare(struct client *client, CURL *handle, const char *path, double timeout_us,
                           char reason[CURL_ERROR_SIZE], struct error *err);

/* Append a header; NULL when memory is out, with the list freed. */
struct curl_slist *client_header(struct curl_slist *list, bool *whole, const char *name, const char *value);

/* How a try ended whose transfer ended with `code` and the HTTP status `status`. */
enum try_ending client_try_ending(CURLcode code, long status);

/* No answer: into *err, as ST_UNREACHABLE or ST_CANCELLED. */
enum status client_no_answer(const struct client *client, CURLcode code, const char *reason, unsigned tries,
                             struct error *err);

#endif
