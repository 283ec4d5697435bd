/* Long work as answers. */
#ifndef TUNER_HTTP_OPERATIONS_H
#define TUNER_HTTP_OPERATIONS_H

#include "dataset/operations.h"
#include "tuner/http/request.h"
#include "tuner/http/response.h"

/* Answer with operation `id` as `store` has it. Fails: ST_NOT_FOUND (also when it is another team's). */
enum status operation_answer(struct request *request, struct store *store, const char *id, unsigned status,
                             struct response *response, struct error *err);

#endif
