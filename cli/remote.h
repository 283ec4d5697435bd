/* Commands as clients of a service: the options that say which, and how its models and clusters are named.
 *
 * A command that can work on a service has REMOTE_OPTIONS in its table, and does so when `server` is set: by --server
 * before or behind the command, by SYNCOPATE_SERVER, or in syncopate.json. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/client/client.h"
#include "cli/inputs.h"

struct remote_options {
    const char *server, *token_file, *ca_file, *proxy;
};

#define REMOTE_OPTIONS(r)                                                                                              \
    {"server", OPTION_ONE_OF, &(r).server, "URL", "ask this service, in place of doing it here"},                      \
        {"token-file", OPTION_TEXT, &(r).token_file, "FILE",                                                           \
         "the token for it, in a file that only you can read (default: SYNCOPATE_TOKEN)"},                             \
        {"cacert", OPTION_TEXT, &(r).ca_file, "FILE", "PEM certificates to trust, in place of the system's"}, {        \
        "proxy", OPTION_TEXT, &(r).proxy, "URL", "in place of that of the environment (https_proxy, no_proxy)"         \
    }

/* What a person waits for: three more tries within a few seconds. */
enum { REMOTE_TRIES = 4 };

/* `tries` as in client_options; `cancel` may be NULL. Warns when a token would cross a network in the clear. Fails: as
 * client_open and client_token. */
enum status remote_open(const struct remote_options *options, unsigned tries, const atomic_int *cancel,
                        struct client **out, struct error *err);

/* Fails, with ST_USAGE, when no server is named; for commands that have nothing to do here. */
enum status remote_required(const struct remote_options *options, const char *command, struct error *err);

/* Fails, with ST_USAGE, when a service and a dataset here (or NULL) are both named, for commands that work on one. */
enum status remote_or_here(const struct remote_options *options, const char *dataset, struct error *err);

/* GET; the path is formatted, its parts escaped by the caller. */
enum status remote_get(struct client *client, cJSON **out, struct error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* POST; `body` is deleted, `whole` says that nothing is missing in it for want of memory. */
enum status remote_post(struct client *client, const char *path, cJSON *body, bool whole, cJSON **out,
                        struct error *err);

/* The model and the cluster that two words name, which the service has from then on. A word that is a file here, or
 * has a '/', is read and sent; another names what the service has, or else a description that comes with syncopate.
 * The paths of `out` are empty. Release with inputs_release. */
enum status remote_inputs(struct client *client, const char *model, const char *cluster, struct inputs *out,
                          struct error *err);

/* As remote_inputs, for the model and the cluster that the service has under these ids. */
enum status remote_inputs_of_ids(struct client *client, const char *model, const char *cluster, struct inputs *out,
                                 struct error *err);

/* A text member of an answer, "" without it; a number, NAN without it; a whole number, 0 without it. Borrowed. */
const char *remote_text(const cJSON *object, const char *key);
double remote_number(const cJSON *object, const char *key);
uint64_t remote_count(const cJSON *object, const char *key);

#endif
