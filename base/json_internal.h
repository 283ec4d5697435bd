/* What the JSON sources share and nobody else may use. */
#ifndef BASE_JSON_INTERNAL_H
#define BASE_JSON_INTERNAL_H

#include <stddef.h>

#include "base/error.h"

enum { JSON_MAX_DEPTH = 64, JSON_MAX_NUMBER = 63 };

/* ST_OK when the n bytes are one JSON value by RFC 8259 and within our limits; otherwise ST_INVALID with line and
 * column. After ST_OK cJSON can fail only for want of memory. Allocates nothing. */
enum status json_scan(const char *text, size_t n, const char *name, struct error *err);

/* Replace what is not clean (base/text.h) in a message: names in it come from files and go to terminals. */
void json_clean_message(struct error *err);

#endif
