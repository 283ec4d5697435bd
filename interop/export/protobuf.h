/* Protocol-buffer wire format from a JSON tree: the messages are described once, by tables, and written from the same
 * tree as the JSON form. Only what AutoDist's messages need. */
#ifndef INTEROP_EXPORT_PROTOBUF_H
#define INTEROP_EXPORT_PROTOBUF_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

/* PROTO_MESSAGE, PROTO_TEXT: one or, as an array, several. */
enum proto_kind { PROTO_TEXT, PROTO_INTEGER, PROTO_BOOL, PROTO_ENUM, PROTO_MESSAGE };

struct proto_field {
    const char *name; /* the JSON member; NULL ends a table */
    uint32_t number;
    enum proto_kind kind;
    const struct proto_field *message; /* PROTO_MESSAGE: its fields */
    const char *const *words;          /* PROTO_ENUM: by value, NULL-terminated */
};

/* Write `json`, an object whose members are all in `fields`; integers are not negative. O(bytes * depth). */
void proto_write(FILE *file, const cJSON *json, const struct proto_field *fields);

#endif
