/* The JSON Schemas (2020-12) of every body, and the query and path parameters, as /openapi.json shows them.
 *
 * They are texts with ' in place of ", which a C source can hold without a thicket of escapes; none contains a ' of its
 * own. References between them are '#/components/schemas/NAME'. */
#ifndef SERVICE_HTTP_API_SCHEMAS_H
#define SERVICE_HTTP_API_SCHEMAS_H

#include <cjson/cJSON.h>
#include <stddef.h>

struct schema {
    const char *name, *text;
};

/* A query parameter, or one of a path. "RecordList.order" is what "order" means where a RecordList is answered. */
struct parameter {
    const char *name, *text, *about;
};

const struct schema *schemas_list(size_t *n);
const struct parameter *parameters_find(const char *name); /* or NULL */
const struct parameter *parameters_find_of(const char *response, const char *name);

/* The tree of such a text; NULL when memory is out. */
cJSON *schema_parse(const char *text);

#endif
