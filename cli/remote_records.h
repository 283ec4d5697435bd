/* Trials as a service gives them (syncopate.record/1), and lists of anything, page by page. */
#ifndef CLI_REMOTE_RECORDS_H
#define CLI_REMOTE_RECORDS_H

#include "cli/client/client.h"
#include "dataset/query.h"

/* Texts are borrowed from `json`; the iterations and environment_json lie in `arena`. Fails: ST_UNREACHABLE (no
 * record), ST_NO_MEMORY. */
enum status remote_record(const cJSON *json, struct arena *arena, struct record *out, struct error *err);

/* Call `visit` with each item of the list at `path` (which has a '?' in it), page after page, until it says that it has
 * enough by *done or fails. */
typedef enum status remote_visit(void *context, const cJSON *item, bool *done, struct error *err);
enum status remote_each(struct client *client, const char *path, remote_visit *visit, void *context, struct error *err);

/* The same lists as text, a page at a time. */
struct remote_pages {
    struct client *client;
    const char *path, *media; /* the path has a '?' in it, and neither page_size nor page_token */
    size_t size;              /* items a page, 1 to 1000; becomes smaller where that is more than an answer may hold */
    char token[256];          /* of the next page; empty: the first, and after the last */
};

/* The next page; free(out->text). Fails: as client_text; the pages stay where they were.
 */
enum status remote_pages_next(struct remote_pages *pages, struct client_text *out, struct error *err);

#endif
