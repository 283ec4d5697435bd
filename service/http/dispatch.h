/* What is done with every request, whatever its route: before its body is read (is there such a route, whose token is
 * this, may it, how often), after it (is it JSON, was this key used before), and before the answer is sent (problems as
 * problem details, 304, headers that keep browsers safe). */
#ifndef SERVICE_HTTP_DISPATCH_H
#define SERVICE_HTTP_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "service/http/transport/request.h"
#include "service/http/transport/response.h"
#include "service/http/transport/route.h"

/* Cut `uri` at '?' and find its route, principal and query. False: *response says why not. */
bool dispatch_admit(struct request *request, const char *uri, bool has_body, struct response *response);

/* Parse the body and call the handler. */
void dispatch_run(struct request *request, struct response *response);

/* Write the body of a problem and make 304 of what the client has. Cannot fail:
 * without memory a problem's body is a fixed text. */
void dispatch_finish(struct request *request, struct response *response);

#endif
