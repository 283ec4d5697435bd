/* Where an iteration's time went: a form for the profiler traces of all ranks, and the page that they make. */
#include "report/explained.h"
#include "report/html.h"
#include "service/http/api/explanations.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"
#include "service/http/transport/server.h"

static void trace_form(struct request *rq, struct markup *m) {
    page_form_begin(m, "post", "/traces", "fields unified");
    markup_attribute(m, "enctype", "multipart/form-data");
    html_begin(m, "label", "wide");
    markup_leaf(m, "span", "Traces, one of each rank");
    markup_begin(m, "input");
    markup_attribute(m, "type", "file");
    markup_attribute(m, "name", "trace");
    markup_attribute(m, "multiple", "");
    markup_attribute(m, "required", "");
    markup_attribute(m, "accept", ".json");
    markup_end(m);
    markup_end(m);
    page_button(m, "Explain", NULL, NULL);
    markup_end(m);
    html_leaff(m, "p", "soft",
               "Together at most %llu MiB, and not compressed. The traces are read and forgotten. For larger ones type "
               "this where they are:",
               (unsigned long long)server_upload_bytes(rq->server) >> 20);
    html_command(m, "syncopate explain rank*.json");
}

enum status page_traces(struct request *rq, struct response *rs, struct error *err) {
    struct markup m = {0};
    page_begin(rq, &m, EXPLAINED_TITLE, PAGE_TRACES);
    markup_begin(&m, "header");
    markup_leaf(&m, "h1", EXPLAINED_TITLE);
    markup_leaf(
        &m, "p",
        "From PyTorch profiler traces of all ranks, of the same iterations: what each rank computed, waited and "
        "sent, which rank is late, what collectives cost, and what tuning of communication could win at most.");
    markup_end(&m);
    trace_form(rq, &m);
    return page_answer(rq, &m, 200, rs, err);
}

enum status page_traces_explain(struct request *rq, struct response *rs, struct error *err) {
    static const struct explained_floor none = {0};
    struct explanation e;
    struct markup m = {0};
    enum status st = explanation_of_upload(rq, &e, err);
    if (st)
        return st;
    page_begin(rq, &m, EXPLAINED_TITLE, PAGE_TRACES);
    st = explained_write(&m, &e, &none, err);
    explanation_release(&e);
    if (!st) {
        html_section(&m, "more", "Other traces");
        trace_form(rq, &m);
        markup_end(&m);
        return page_answer(rq, &m, 200, rs, err);
    }
    markup_release(&m);
    return st;
}
