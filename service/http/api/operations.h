/* Answers about long work. */
#ifndef SERVICE_HTTP_API_OPERATIONS_H
#define SERVICE_HTTP_API_OPERATIONS_H

#include "dataset/operations.h"
#include "service/http/transport/request.h"
#include "service/http/transport/response.h"

/* Answer with operation `id` as `store` has it. Fails: ST_NOT_FOUND (also when it is another team's). */
enum status operation_answer(struct request *request, struct store *store, const char *id, unsigned status,
                             struct response *response, struct error *err);

#endif
