/* Protobuf messages written by hand, for tests of their readers: a message is bytes, put into another as a field. */
#ifndef TESTS_UNIT_INTEROP_PROTO_BYTES_H
#define TESTS_UNIT_INTEROP_PROTO_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "interop/import/source.h"

struct proto_bytes {
    char data[4000];
    size_t n;
};

static inline void put_byte(struct proto_bytes *to, unsigned x) {
    assert(to->n < sizeof to->data - 1);
    to->data[to->n++] = (char)x;
    to->data[to->n] = 0;
}

static inline void put_raw_varint(struct proto_bytes *to, uint64_t x) {
    for (; x > 0x7f; x >>= 7)
        put_byte(to, (unsigned)(x & 0x7f) | 0x80);
    put_byte(to, (unsigned)x);
}

static inline void put_number(struct proto_bytes *to, uint32_t field, uint64_t x) {
    put_raw_varint(to, (uint64_t)field << 3);
    put_raw_varint(to, x);
}

static inline void put_data(struct proto_bytes *to, uint32_t field, const char *data, size_t n) {
    put_raw_varint(to, (uint64_t)field << 3 | 2);
    put_raw_varint(to, n);
    for (size_t i = 0; i < n; i++)
        put_byte(to, (unsigned char)data[i]);
}

static inline void put_text(struct proto_bytes *to, uint32_t field, const char *text) {
    put_data(to, field, text, strlen(text));
}

static inline void put_message(struct proto_bytes *to, uint32_t field, const struct proto_bytes *message) {
    put_data(to, field, message->data, message->n);
}

/* Valid while `bytes` is. */
static inline struct source source_of_bytes(const char *name, const struct proto_bytes *bytes) {
    return (struct source){.name = name, .text = bytes->data, .n = bytes->n};
}

#endif
