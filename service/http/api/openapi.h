/* /openapi.json: every route described (OpenAPI 3.1), but for pages and assets (ROUTE_HIDDEN). It is generated from the
 * route table, the schemas and the problem table, so that it cannot say anything else than what dispatch does. */
#ifndef SERVICE_HTTP_API_OPENAPI_H
#define SERVICE_HTTP_API_OPENAPI_H

#include "base/error.h"
#include "service/http/transport/route.h"

/* The document of these routes, malloc'd. Fails: ST_NO_MEMORY. */
enum status openapi_write(size_t n_routes, const struct route *routes, char **out, struct error *err);

#endif
