/* See headers.h. */
#include "service/http/transport/headers.h"

static const struct {
    const char *name, *schema, *about;
} rows[] = {
#define X(constant, name, schema, about) {name, schema, about},
    HEADER_TABLE(X)
#undef X
};

const char *header_name(enum header header) {
    return rows[header].name;
}

const char *header_schema(enum header header) {
    return rows[header].schema;
}

const char *header_about(enum header header) {
    return rows[header].about;
}

enum header_duty header_everywhere(enum header header) {
    switch (header) {
    case HEADER_CACHE_CONTROL:
    case HEADER_CONTENT_SECURITY_POLICY:
    case HEADER_CROSS_ORIGIN_RESOURCE_POLICY:
    case HEADER_REFERRER_POLICY:
    case HEADER_REQUEST_ID:
    case HEADER_X_CONTENT_TYPE_OPTIONS:
        return HEADER_ALWAYS;
    case HEADER_STRICT_TRANSPORT_SECURITY:
        return HEADER_MAYBE;
    default:
        return HEADER_NEVER;
    }
}
