/* Trials as a service gives them (syncopate.record/1), and lists of anything, page by page. */
#ifndef TUNER_CLI_REMOTE_RECORDS_H
#define TUNER_CLI_REMOTE_RECORDS_H

#include "dataset/query.h"
#include "tuner/client/client.h"

/* Texts are borrowed from `json`; the iterations and environment_json lie in `arena`. Fails: ST_UNREACHABLE (no
 * record), ST_NO_MEMORY. */
enum status remote_record(const cJSON *json, struct arena *arena, struct record *out, struct error *err);

/* Call `visit` with each item of the list at `path` (which has a '?' in it), page after page, until it says that it has
 * enough by *done or fails. */
typedef enum status remote_visit(void *context, const cJSON *item, bool *done, struct error *err);
enum status remote_each(struct client *client, const char *path, remote_visit *visit, void *context, struct error *err);

#endif
