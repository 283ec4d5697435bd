/* Lists a page at a time, as every resource answers them: {"items": [...], "next_page_token": "..."}. Where there are
 * no items a third member, "note", says why, and what to do. */
#ifndef SERVICE_HTTP_API_LISTS_H
#define SERVICE_HTTP_API_LISTS_H

#include "service/http/transport/response.h"

struct list_answer {
    cJSON *root, *items;
    bool whole; /* every member could be added; set it to false where one could not */
};
void list_begin(struct list_answer *list);

/* One more item, an empty object; NULL when memory is out. */
cJSON *list_add(struct list_answer *list);

/* Answer with it. `next` is the token of the following page, "" after the last; `note` is said where there is no item.
 * Fails: ST_NO_MEMORY. */
enum status list_end(struct list_answer *list, const char *next, const char *note, struct response *response,
                     struct error *err);

/* What to say of an empty list: of a page behind the last, of a list that something was left out of (`filtered`), or of
 * one that has nothing yet. */
const char *list_note(const char *page_token, bool filtered, const char *none_fits, const char *none_yet);

/* The error to fail with when a page cannot be read. A `page_token` of the client's (NULL: none) that does not fit is
 * the client's mistake. */
enum status list_fault(enum status status, const char *page_token, struct error *err);

#endif
