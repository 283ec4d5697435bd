/* A service's session as a dataset here, for commands that read one. */
#ifndef CLI_REMOTE_COPY_H
#define CLI_REMOTE_COPY_H

#include "cli/client/client.h"
#include "dataset/store.h"

/* Copy what the service shows of the session, with its trials that have ended, into a temporary dataset. Its file is
 * unlinked already: *out is its only user, and nothing is left when *out is closed or the process is killed. Fails:
 * ST_NOT_FOUND (the session, or it has no trial that ended), as client_text. Close with store_close. */
enum status remote_session_copy(struct client *client, const char *session, struct store **out, struct error *err);

#endif
