/* See session_findings.h. */
#include "cli/session_findings.h"

#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/remote_copy.h"

enum status session_findings_here(const char *dataset, const char *session, enum findings_depth depth,
                                  struct findings *out, struct error *err) {
    struct store *store;
    if (access(dataset, F_OK))
        return error_at(err, ST_NOT_FOUND, dataset, "no such dataset; --dataset names the one that the session is in");
    enum status st = store_open(dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = findings_gather(store, session, depth, out, err);
    store_close(store);
    if (st == ST_NOT_FOUND)
        return error_set(err, ST_NOT_FOUND,
                         "%s has no session %.80s; \"syncopate dataset sessions --dataset %s\" lists them", dataset,
                         session, dataset);
    return st;
}

enum status session_findings_there(const struct remote_options *remote, const char *session, enum findings_depth depth,
                                   struct findings *out, struct error *err) {
    struct client *client;
    struct store *store;
    enum status st = remote_open(remote, REMOTE_TRIES, interrupt_flag(), &client, err);
    if (st)
        return st;
    st = remote_session_copy(client, session, &store, err);
    client_close(client);
    if (st)
        return st;
    st = findings_gather(store, session, depth, out, err);
    if (!st)
        out->outcome.session.origin = NULL; /* what it says is of the copy */
    store_close(store);
    return st;
}
