/* See explanations.h. Nothing is kept: the answer is all that becomes of the traces. */
#include "service/http/api/explanations.h"

#include <string.h>

#include "base/work.h"
#include "report/explained.h"
#include "service/http/api/api.h"
#include "service/http/transport/multipart.h"

enum { ROW_BYTES = 2048 }; /* what the answer takes for a rank or for a cost, rounded up */

/* Each part as a source. A form in which no file was chosen has one part without name and bytes. */
static enum status list_sources(struct request *rq, size_t n_parts, const struct part *parts, struct source *out,
                                size_t *n, struct error *err) {
    for (size_t i = *n = 0; i < n_parts; i++) {
        const struct part *part = &parts[i];
        if (strcmp(part->name, "trace") != 0)
            return problem_fail(err, PROBLEM_BAD_REQUEST, "unknown field \"%.60s\"; send each file as field \"trace\"",
                                part->name);
        if (!*part->file && !part->n)
            continue;
        const char *name = *part->file ? part->file : arena_printf(&rq->arena, "trace %zu", i + 1);
        if (!name)
            return error_no_memory(err);
        out[(*n)++] = (struct source){.name = name, .text = part->text, .n = part->n};
    }
    if (!*n)
        return problem_fail(err, PROBLEM_BAD_REQUEST,
                            "no trace in it; choose the traces of all ranks, or send each with curl -F trace=@FILE");
    return ST_OK;
}

enum status explanation_of_upload(struct request *rq, struct explanation *out, struct error *err) {
    struct part *parts;
    size_t n_parts, n = 0;
    enum status st = multipart_read(rq->content_type ? rq->content_type : "", rq->body ? rq->body : "", rq->body_bytes,
                                    EXPLANATION_MAX_TRACES, &rq->arena, &parts, &n_parts, err);
    struct source *sources = st ? NULL : arena_alloc(&rq->arena, n_parts + 1, sizeof *sources);
    if (!st && !sources)
        st = error_no_memory(err);
    if (!st)
        st = list_sources(rq, n_parts, parts, sources, &n, err);
    if (!st)
        st = explanation_of(n, sources, out, err);
    if (st || work_take((out->n + out->meetings.n_points) * ROW_BYTES)) /* counted until the request ends */
        return st;
    explanation_release(out);
    return error_no_memory(err);
}

enum status api_explanations_create(struct request *rq, struct response *rs, struct error *err) {
    static const struct explained_floor none = {0};
    struct explanation e;
    bool whole;
    enum status st = explanation_of_upload(rq, &e, err);
    if (st)
        return st;
    cJSON *json = explained_json(&e, &none, &whole);
    explanation_release(&e);
    return response_json(rs, 200, json, whole, err);
}
