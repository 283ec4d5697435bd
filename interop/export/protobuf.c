/* A field is a key (number, wire type) and a value: a varint, or a length and so many bytes. A message's length stands
 * before it, so sizes are counted first, by the same walk.
 * Source: Protocol Buffers documentation, "Encoding". */
#include "interop/export/protobuf.h"

#include <stdbool.h>
#include <string.h>

enum { VARINT = 0, LENGTH = 2 };

static uint64_t varint_size(uint64_t x) {
    uint64_t n = 1;
    for (; x > 0x7f; x >>= 7)
        n++;
    return n;
}

static void write_varint(FILE *file, uint64_t x) {
    for (; x > 0x7f; x >>= 7)
        fputc((int)(x & 0x7f) | 0x80, file);
    fputc((int)x, file);
}

static const struct proto_field *field_of(const struct proto_field *fields, const char *name) {
    while (fields->name && strcmp(fields->name, name) != 0)
        fields++;
    return fields->name ? fields : NULL;
}

/* The number that stands for an integer, a boolean or a word of an enumeration. */
static uint64_t number_of(const struct proto_field *field, const cJSON *value) {
    uint64_t x = 0;
    if (field->kind == PROTO_BOOL)
        return cJSON_IsTrue(value) ? 1 : 0;
    if (field->kind == PROTO_INTEGER)
        return (uint64_t)value->valuedouble;
    while (field->words[x] && strcmp(field->words[x], value->valuestring) != 0)
        x++;
    return x;
}

static uint64_t message_size(const cJSON *json, const struct proto_field *fields);

static uint64_t length_of(const struct proto_field *field, const cJSON *value) {
    return field->kind == PROTO_TEXT ? strlen(value->valuestring) : message_size(value, field->message);
}

static uint64_t value_size(const struct proto_field *field, const cJSON *value) {
    const uint64_t key = varint_size((uint64_t)field->number << 3);
    if (field->kind != PROTO_TEXT && field->kind != PROTO_MESSAGE)
        return key + varint_size(number_of(field, value));
    const uint64_t n = length_of(field, value);
    return key + varint_size(n) + n;
}

static uint64_t message_size(const cJSON *json, const struct proto_field *fields) {
    uint64_t n = 0;
    for (const cJSON *member = json->child; member; member = member->next) {
        const struct proto_field *field = field_of(fields, member->string);
        for (const cJSON *one = cJSON_IsArray(member) ? member->child : member; field && one;
             one = cJSON_IsArray(member) ? one->next : NULL)
            n += value_size(field, one);
    }
    return n;
}

static void write_value(FILE *file, const struct proto_field *field, const cJSON *value) {
    const bool length = field->kind == PROTO_TEXT || field->kind == PROTO_MESSAGE;
    write_varint(file, (uint64_t)field->number << 3 | (length ? LENGTH : VARINT));
    write_varint(file, length ? length_of(field, value) : number_of(field, value));
    if (field->kind == PROTO_TEXT)
        fputs(value->valuestring, file);
    else if (field->kind == PROTO_MESSAGE)
        proto_write(file, value, field->message);
}

void proto_write(FILE *file, const cJSON *json, const struct proto_field *fields) {
    for (const cJSON *member = json->child; member; member = member->next) {
        const struct proto_field *field = field_of(fields, member->string);
        for (const cJSON *one = cJSON_IsArray(member) ? member->child : member; field && one;
             one = cJSON_IsArray(member) ? one->next : NULL)
            write_value(file, field, one);
    }
}
