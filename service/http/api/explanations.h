/* Traces of all ranks in one upload, each a part "trace" of multipart/form-data, and where their time went. */
#ifndef SERVICE_HTTP_API_EXPLANATIONS_H
#define SERVICE_HTTP_API_EXPLANATIONS_H

#include "interop/traces/explanation.h"
#include "service/http/transport/request.h"

/* Explain the traces of the body; to be released. Fails: PROBLEM_BAD_REQUEST, and as explanation_of. */
enum status explanation_of_upload(struct request *request, struct explanation *out, struct error *err);

#endif
