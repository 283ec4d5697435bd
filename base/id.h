/* Content ids: the SHA-256 of a canonical text, in hex. People see the first 12 digits. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stddef.h>

#include "base/error.h"

enum { ID_LENGTH = 64, ID_SHORT = 12 };

struct id {
    char hex[ID_LENGTH + 1];
};

/* Fails: ST_NO_MEMORY. */
enum status id_of(const void *data, size_t n, struct id *out, struct error *err);

#endif
