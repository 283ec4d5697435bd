/* See http.h. */
#include "service/http/http.h"

#include "service/http/api/openapi.h"
#include "service/http/dispatch.h"
#include "service/http/routes.h"

enum status http_start(const struct server_options *options, struct service *service, struct server **out,
                       struct error *err) {
    static const struct server_handlers handlers = {
        .admit = dispatch_admit, .run = dispatch_run, .finish = dispatch_finish, .describe = openapi_write};
    struct server_options all = *options;
    if (!all.routes)
        all.routes = routes_list(&all.n_routes);
    return server_start(&all, &handlers, service, out, err);
}
