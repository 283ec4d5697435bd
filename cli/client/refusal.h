/* What a service says when it cannot (RFC 9457), made into an error. */
#ifndef CLI_CLIENT_REFUSAL_H
#define CLI_CLIENT_REFUSAL_H

#include <cjson/cJSON.h>

#include "base/error.h"

/* Fill *err from an answer of `status`, with the problem document `json` (NULL: it had none, or another body), and
 * return its status: errors that the client can mend keep their own status, and so does ST_TOO_LARGE. Everything else
 * is ST_UNREACHABLE, and so is every answer without such a document (a proxy's). The error has the problem's code
 * ("stale-attempt"). */
enum status client_refused(const char *service, long status, const cJSON *json, struct error *err);

#endif
