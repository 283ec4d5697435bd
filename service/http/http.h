/* The service over HTTP: the server of transport/, which does with each request what dispatch.h says and answers the
 * routes of routes.h. */
#ifndef SERVICE_HTTP_HTTP_H
#define SERVICE_HTTP_HTTP_H

#include "service/http/transport/server.h"

/* As server_start; without `options->routes` all of routes_list(). */
enum status http_start(const struct server_options *options, struct service *service, struct server **out,
                       struct error *err);

#endif
