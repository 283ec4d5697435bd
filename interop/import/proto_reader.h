/* Protocol-buffer wire format, read in place: the fields of a message one after the other, whatever their meaning.
 *
 * A message is a range of the bytes of a source. Nothing is copied and no tree is built, so gigabytes of tensor data
 * between fields cost nothing. An error about the bytes begins "FILE: byte OFFSET: ". Source: Protocol Buffers
 * documentation, "Encoding". Threads: a struct proto_message belongs to one thread at a time. */
#ifndef INTEROP_IMPORT_PROTO_READER_H
#define INTEROP_IMPORT_PROTO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/import/source.h"

enum proto_type { PROTO_TYPE_VARINT = 0, PROTO_TYPE_FIXED64 = 1, PROTO_TYPE_LENGTH = 2, PROTO_TYPE_FIXED32 = 5 };

struct proto_message {
    const struct source *source;
    size_t at, end; /* the bytes from `at` on are still to be read */
};

struct proto_value {
    uint32_t number;
    enum proto_type type;
    uint64_t value;    /* of a varint; the little-endian bits of a fixed one */
    const char *bytes; /* of PROTO_TYPE_LENGTH: n bytes of the source, not followed by a NUL */
    size_t n, at;      /* at: where the field begins */
};

struct proto_message proto_root(const struct source *source);

/* The next field; *more is false, and nothing read, at the end. Fails: ST_INVALID. O(1). */
enum status proto_next(struct proto_message *message, struct proto_value *out, bool *more, struct error *err);

/* The message that a field holds. */
enum status proto_inside(const struct proto_message *message, const struct proto_value *field,
                         struct proto_message *out, struct error *err);

/* A field that must be a varint, or text: UTF-8 without control characters, copied into `arena`. */
enum status proto_integer(const struct proto_message *message, const struct proto_value *field, uint64_t *out,
                          struct error *err);
enum status proto_text(const struct proto_message *message, const struct proto_value *field, struct arena *arena,
                       const char **out, struct error *err);

/* Append the numbers of a repeated varint field, one or packed, to out[*n...] while `room` lasts. *n counts all. */
enum status proto_integers(const struct proto_message *message, const struct proto_value *field, size_t room,
                           uint64_t *out, size_t *n, struct error *err);

/* "FILE: byte OFFSET: " of the field, and the formatted words; returns ST_INVALID. */
enum status proto_fail(const struct proto_message *message, const struct proto_value *field, struct error *err,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

#ifdef __clang_analyzer__ /* as in base/error.h */
#define proto_fail(message, field, err, ...) ((void)proto_fail(message, field, err, __VA_ARGS__), ST_INVALID)
#endif

#endif
