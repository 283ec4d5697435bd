/* The table of all routes: dispatch, /openapi.json, metrics, documentation and tests are made from it. How to add a
 * route is in README.md. */
#ifndef SERVICE_HTTP_ROUTES_H
#define SERVICE_HTTP_ROUTES_H

#include <stddef.h>

#include "service/http/transport/route.h"

/* Every route of the service. */
const struct route *routes_list(size_t *n);

#endif
