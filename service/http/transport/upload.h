/* A body that is too large for memory: it lies in a file without a name, in TMPDIR or else /var/tmp, and is mapped once
 * it is whole. The file goes with the request, however that ends.
 * Threads: one at a time. */
#ifndef SERVICE_HTTP_TRANSPORT_UPLOAD_H
#define SERVICE_HTTP_TRANSPORT_UPLOAD_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* Zeroed: nothing has come. */
struct upload {
    FILE *file;
    uint64_t n;
    char *text; /* all n bytes, once it is mapped */
};

/* Fails: ST_ENVIRONMENT (the disk is full, or there is no such folder). */
enum status upload_add(struct upload *upload, const char *data, size_t n, struct error *err);

/* Fails: ST_ENVIRONMENT. */
enum status upload_map(struct upload *upload, struct error *err);
void upload_release(struct upload *upload);

#endif
