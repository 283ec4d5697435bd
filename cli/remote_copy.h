/* A service's session as a dataset here, for commands that read one. */
#ifndef CLI_REMOTE_COPY_H
#define CLI_REMOTE_COPY_H

#include "cli/client/client.h"
#include "dataset/store.h"

/* What the service shows of it, with its trials that have ended, in a temporary file that is already unlinked: *out is
 * its only user, and leaves nothing behind when closed or killed. Fails: ST_NOT_FOUND (the session, or it has no trial
 * that ended), as client_text. Close with store_close. */
enum status remote_session_copy(struct client *client, const char *session, struct store **out, struct error *err);

#endif
