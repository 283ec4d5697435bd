/* The parts of a multipart/form-data body (RFC 7578), as forms with files and `curl -F` send it.
 * Threads: any. */
#ifndef SERVICE_HTTP_TRANSPORT_MULTIPART_H
#define SERVICE_HTTP_TRANSPORT_MULTIPART_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct part {
    const char *name, *file; /* in the arena; file: "" where it is not said, or longer than 255 bytes */
    const char *text;        /* n bytes of the body */
    size_t n;
};

/* Cut the n bytes of `body` by the boundary that `content_type` names. *parts is in the arena. At most `most` parts.
 * Fails: PROBLEM_BAD_REQUEST (no such body), ST_TOO_LARGE, ST_NO_MEMORY. O(n). */
enum status multipart_read(const char *content_type, const char *body, size_t n, size_t most, struct arena *arena,
                           struct part **parts, size_t *n_parts, struct error *err);

#endif
