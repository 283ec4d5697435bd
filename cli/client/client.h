/* A client of a service: one request at a time with its repetitions, and its streams of events.
 *
 * Every POST that changes something carries an Idempotency-Key, so that it can be sent again when its answer was
 * lost: what it does, it does once. Connections are kept open between calls. Redirects are not followed (a token would
 * go where nobody meant it to), TLS is 1.2 and up. Proxies come from the environment as with curl (https_proxy,
 * no_proxy), certificates too (CURL_CA_BUNDLE, SSL_CERT_FILE).
 * Units: microseconds (_us).
 * Threads: a client belongs to one thread at a time; open one each. */
#ifndef CLI_CLIENT_CLIENT_H
#define CLI_CLIENT_CLIENT_H

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/client/event_parser.h"

struct client_options {
    const char *url;          /* "http://host:8642", "https://host/prefix" */
    const char *token;        /* NULL or "": none */
    const char *ca_file;      /* PEM, in place of the system's; NULL */
    const char *proxy;        /* in place of the environment's; NULL */
    double deadline_us;       /* of a call with all its tries; 0: two minutes */
    unsigned tries;           /* at most, of a call; 0: until the deadline */
    const atomic_int *cancel; /* ends a call or a wait when it becomes non-zero; NULL */
};

struct client; /* opaque */

/* Nothing is sent yet; texts are copied. Fails: ST_USAGE (the URL), ST_NO_MEMORY, ST_ENVIRONMENT. */
enum status client_open(const struct client_options *options, struct client **out, struct error *err);
void client_close(struct client *client); /* NULL is allowed */

/* The service's URL as the user gave it, without a '/' at its end. */
const char *client_url(const struct client *client);

enum { CLIENT_MOST_BYTES = 64 << 20 }; /* of an answer */

struct client_request {
    const char *method; /* "GET", "POST", "PATCH" */
    const char *path;   /* "/api/v1/models/x?name=y", escaped where needed: client_escape */
    const cJSON *body;  /* NULL: none */
    const char *key;    /* Idempotency-Key; NULL: a new one for each POST */
    bool keyless;       /* a POST that changes nothing, and has none */
    double deadline_us; /* 0: the client's */
};

/* *out is the answer's JSON, to be deleted; NULL when it had no body. Where the service refuses, the error has its code
 * ("stale-attempt"). Fails: ST_UNREACHABLE (no connection, no answer in time, the service cannot or may not),
 * ST_CANCELLED, ST_NO_MEMORY, ST_TOO_LARGE, and what the service says: ST_USAGE, ST_INVALID, ST_NOT_FOUND, ST_CONFLICT,
 * ST_INFEASIBLE. */
enum status client_call(struct client *client, const struct client_request *request, cJSON **out, struct error *err);

/* GET of what is not JSON. */
struct client_text {
    char *text; /* malloc'd, NUL-terminated; never NULL */
    size_t n;
    char next_page[256]; /* the header Next-Page-Token, or empty */
};

/* free(out->text). Fails: as client_call; ST_UNREACHABLE also when the answer is not of this media type, like a page of
 * a proxy's own. */
enum status client_text(struct client *client, const char *path, const char *media, struct client_text *out,
                        struct error *err);

/* The HTTP status of the last call's answer; 0: there was none. */
long client_last_status(const struct client *client);

/* Whether what the last call failed with passes by itself: no connection, a cut one, silence, a service that is busy,
 * ending or in trouble (429, 5xx). Not so: a refusal, a certificate, an answer that no service gives. */
bool client_may_come_back(const struct client *client);

/* Listen to the events at `path` after `last_id` (NULL: from the first) until the listener has enough. A stream that is
 * cut or silent for 45 s is begun again after its last event; `tries` connections in a row without an event are the
 * end of it (0: no end). The listener may call the same client. Fails: as client_call. */
enum status client_listen(struct client *client, const char *path, const char *last_id, unsigned tries,
                          client_listener *listener, void *context, struct error *err);

/* Wait, unless *cancel becomes non-zero. Fails: ST_CANCELLED. */
enum status client_pause(const struct client *client, double us, struct error *err);

/* `text` as part of a path or query; free() it. NULL when memory is out. */
char *client_escape(const struct client *client, const char *text);

#endif
