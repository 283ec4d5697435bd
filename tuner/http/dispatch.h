/* What is done with every request, whatever its route: before its body is read (is there such a route, whose token is
 * this, may it, how often), after it (is it JSON, was this key used before), and before the answer is sent (problems as
 * problem details, 304, headers that keep browsers safe). */
#ifndef TUNER_HTTP_DISPATCH_H
#define TUNER_HTTP_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "tuner/http/request.h"
#include "tuner/http/response.h"
#include "tuner/http/routes.h"

/* Cut `uri` at '?' and find its route, principal and query. False: *response says why not. */
bool dispatch_admit(struct request *request, const char *uri, bool has_body, struct response *response);

/* Parse the body and call the handler. */
void dispatch_run(struct request *request, struct response *response);

/* Write the body of a problem and make 304 of what the client has. Cannot fail:
 * without memory a problem's body is a fixed text. */
void dispatch_finish(struct request *request, struct response *response);

/* Answer with the problem that *err is. */
void dispatch_fail(struct request *request, struct response *response, const struct error *err);

#endif
