/* A field is a key (number and wire type) and a value: a varint, 4 or 8 bytes, or a length and so many bytes. A length
 * is compared with the message around it before anything is read. Groups, which no message of today has, are refused,
 * so nothing nests without a length. */
#include "interop/import/proto_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct proto_message proto_root(const struct source *source) {
    return (struct proto_message){source, 0, source->n};
}

/* Brackets as in base/error.c. */
enum status(proto_fail)(const struct proto_message *message, const struct proto_value *field, struct error *err,
                        const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return error_at(err, ST_INVALID, message->source->name, "byte %zu: %s", field->at, what);
}

/* At most ten bytes of seven bits, the lowest first. */
static bool read_varint(struct proto_message *message, uint64_t *out) {
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 70 && message->at < message->end; shift += 7) {
        const unsigned char byte = (unsigned char)message->source->text[message->at++];
        if (shift == 63 && byte > 1)
            return false;
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = x;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct proto_message *message, size_t n, uint64_t *out) {
    if (n > message->end - message->at)
        return false;
    *out = 0;
    for (size_t i = n; i--;)
        *out = *out << 8 | (unsigned char)message->source->text[message->at + i];
    message->at += n;
    return true;
}

static enum status read_length(struct proto_message *message, struct proto_value *out, struct error *err) {
    uint64_t n;
    if (!read_varint(message, &n))
        return proto_fail(message, out, err, "the length of field %u ends early; the file is cut or damaged",
                          out->number);
    if (n > message->end - message->at)
        return proto_fail(message, out, err, "field %u has %llu bytes where %zu are left; the file is cut or damaged",
                          out->number, (unsigned long long)n, message->end - message->at);
    out->bytes = message->source->text + message->at;
    out->n = (size_t)n;
    message->at += out->n;
    return ST_OK;
}

enum status proto_next(struct proto_message *message, struct proto_value *out, bool *more, struct error *err) {
    uint64_t key;
    bool whole = true;
    struct proto_value field = {.at = message->at};
    if (message->at == message->end) {
        *more = false;
        return ST_OK;
    }
    if (!read_varint(message, &key) || key >> 3 == 0 || key >> 32)
        return proto_fail(message, &field, err, "no field of a protobuf message begins here");
    field.number = (uint32_t)(key >> 3);
    field.type = (enum proto_type)(key & 7);
    enum status st = ST_OK;
    switch (field.type) {
    case PROTO_TYPE_VARINT:
        whole = read_varint(message, &field.value);
        break;
    case PROTO_TYPE_FIXED64:
        whole = read_fixed(message, 8, &field.value);
        break;
    case PROTO_TYPE_FIXED32:
        whole = read_fixed(message, 4, &field.value);
        break;
    case PROTO_TYPE_LENGTH:
        st = read_length(message, &field, err);
        break;
    default:
        return proto_fail(message, &field, err, "there is no wire type %u", (unsigned)(key & 7));
    }
    if (!whole)
        return proto_fail(message, &field, err, "field %u ends early; the file is cut or damaged", field.number);
    *more = true;
    *out = field;
    return st;
}

static enum status expect(const struct proto_message *message, const struct proto_value *field, enum proto_type type,
                          struct error *err) {
    return field->type == type ? ST_OK
                               : proto_fail(message, field, err, "field %u is of wire type %u, not %u", field->number,
                                            (unsigned)field->type, (unsigned)type);
}

enum status proto_inside(const struct proto_message *message, const struct proto_value *field,
                         struct proto_message *out, struct error *err) {
    enum status st = expect(message, field, PROTO_TYPE_LENGTH, err);
    if (st)
        return st;
    const size_t at = (size_t)(field->bytes - message->source->text);
    *out = (struct proto_message){message->source, at, at + field->n};
    return ST_OK;
}

enum status proto_integer(const struct proto_message *message, const struct proto_value *field, uint64_t *out,
                          struct error *err) {
    enum status st = expect(message, field, PROTO_TYPE_VARINT, err);
    if (!st)
        *out = field->value;
    return st;
}

enum status proto_text(const struct proto_message *message, const struct proto_value *field, struct arena *arena,
                       const char **out, struct error *err) {
    enum status st = expect(message, field, PROTO_TYPE_LENGTH, err);
    if (!st && text_valid_bytes(field->bytes, field->n) != field->n)
        st = proto_fail(message, field, err, "field %u is not UTF-8 text", field->number);
    if (!st && !text_is_clean(field->bytes, field->n))
        st = proto_fail(message, field, err, "field %u is a name with control characters", field->number);
    if (st)
        return st;
    const char *copy = arena_copy(arena, field->bytes, field->n);
    if (!copy)
        return error_no_memory(err);
    *out = copy;
    return ST_OK;
}

enum status proto_integers(const struct proto_message *message, const struct proto_value *field, size_t room,
                           uint64_t *out, size_t *n, struct error *err) {
    struct proto_message packed;
    uint64_t x = field->value;
    if (field->type == PROTO_TYPE_VARINT) {
        if (*n < room)
            out[*n] = x;
        ++*n;
        return ST_OK;
    }
    enum status st = proto_inside(message, field, &packed, err);
    while (!st && packed.at < packed.end) {
        if (!read_varint(&packed, &x))
            return proto_fail(message, field, err, "the numbers of field %u end early", field->number);
        if (*n < room)
            out[*n] = x;
        ++*n;
    }
    return st;
}
