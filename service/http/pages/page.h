/* What the pages for people share: their frame, links, forms and times.
 *
 * A page is a document of report/html.h, whole without a script; assets/page.js only keeps it up to date: an element
 * with the attribute data-live is replaced by the one of the same id of the document at data-from, after each event of
 * the stream at data-events, or every data-every seconds. Its data-say is what a screen reader hears of the change.
 * Texts of users reach a page only through report/markup.h. */
#ifndef SERVICE_HTTP_PAGES_PAGE_H
#define SERVICE_HTTP_PAGES_PAGE_H

#include <stdbool.h>

#include "dataset/pages.h"
#include "dataset/store.h"
#include "report/markup.h"
#include "service/http/transport/request.h"
#include "service/http/transport/response.h"

enum page_place {
    PAGE_SESSIONS,
    PAGE_DATASET,
    PAGE_MODELS,
    PAGE_CLUSTERS,
    PAGE_WHAT_IF,
    PAGE_ADVICE,
    PAGE_TRACES,
    PAGE_ELSEWHERE
};

/* The frame up to the content, with the ways to the other pages; `place` is marked as where one is. */
void page_begin(struct request *request, struct markup *m, const char *title, enum page_place place);

/* End the frame and answer with it; *m is empty then. Fails: ST_NO_MEMORY. */
enum status page_answer(struct request *request, struct markup *m, unsigned status, struct response *response,
                        struct error *err);

/* Answer a form: 303 to `path`, which is in the arena or static. */
enum status page_redirect(struct response *response, const char *path);

/* The problem that *response is, as a page; without a valid token the form to sign in. Fails: ST_NO_MEMORY, and
 * *response is as it was. */
enum status page_problem(struct request *request, struct response *response, struct error *err);

/* Percent-encoded, for a part of an address; in the request's arena. "" when memory is out. */
const char *page_escape(struct request *request, const char *text);

/* <a href="...">text</a> */
void page_link(struct markup *m, const char *text, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A form that is sent to `path`, to be ended by markup_end, and its parts. */
void page_form_begin(struct markup *m, const char *method, const char *path, const char *class);
void page_hidden(struct markup *m, const char *name, const char *value);
void page_button(struct markup *m, const char *text, const char *name, const char *value);
void page_label_begin(struct markup *m, const char *text);
void page_option(struct markup *m, const char *value, const char *text, bool chosen);

/* The newest objects of a kind, for a select; in the request's arena. */
struct page_choices {
    size_t n;
    struct stored_object *objects;
};
enum status page_choices_read(struct request *request, enum store_kind kind, struct page_choices *out,
                              struct error *err);

/* A labelled select of them; `chosen` is an id, or NULL. */
void page_choice(struct markup *m, const char *label, const char *name, const struct page_choices *from,
                 const char *chosen);

/* Begin a form that gets `action` for a model and a cluster, which stand in it first; ids or NULL say what is chosen.
 * End it with markup_end. Where there is no model or no cluster yet, a sentence stands in place of the form, and *begun
 * is false. Fails: as page_choices_read. */
enum status page_domain_form_begin(struct request *request, struct markup *m, const char *action, const char *model,
                                   const char *cluster, bool *begun, struct error *err);

/* A UTC stamp up to its minute. */
const char *page_stamp(const char *stamp, char out[32]);

/* "http://host:port" as the browser has it, for commands to type. */
const char *page_origin(struct request *request);

/* "curl" for commands to type, with the header that has the token where there are tokens. */
const char *page_curl(const struct request *request);

/* A stored object's name, or the first digits of its id where there is none; in the request's arena. */
const char *page_name(struct request *request, struct store *store, enum store_kind kind, const char *id);

/* The query's number, which is finite and at least `least`; `missing` where it is not there. Fails: ST_USAGE. */
enum status page_query_number(struct request *request, const char *name, double missing, double least, double *out,
                              struct error *err);

/* A field of the form that was sent, decoded into the arena; NULL: not there, or no text. */
const char *form_field(struct request *request, const char *name);

#endif
