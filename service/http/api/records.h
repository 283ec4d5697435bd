/* Answers with trials, and members of bodies with what was measured. */
#ifndef SERVICE_HTTP_API_RECORDS_H
#define SERVICE_HTTP_API_RECORDS_H

#include "dataset/query.h"
#include "service/http/transport/request.h"

/* As query_page, but with a time limit. A query that takes long is begun again on the pool for computing, so that one
 * that no index serves does not hold up others. *again: then return ST_OK at once. */
enum status records_page(struct request *request, struct store *store, struct query *query, size_t *n,
                         struct record **out, char next[QUERY_CURSOR_ROOM], bool *again, struct error *err);
#define RECORDS_NO_INDEX                                                                                               \
    "no index serves this filter in this order; narrow it to a session, a strategy, or a model and a cluster"

/* The member "iterations_us" of `at`: at most 100,000 times, in the request's arena. Fails: ST_INVALID, ST_NO_MEMORY.
 */
enum status record_iterations(struct request *request, const struct json_at *at, size_t *n, const double **out,
                              struct error *err);

/* The member `key` of `at`, an object of at most 64 KiB that says what a trial ran on, as canonical text in the
 * request's arena; NULL where there is none. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status record_environment(struct request *request, const struct json_at *at, const char *key, const char **out,
                               struct error *err);

/* The trial of this uid, with its iterations, in the request's arena; `viewer` as in struct query. Fails: ST_NOT_FOUND,
 * also where it is hidden from the viewer. */
enum status record_find(struct request *request, struct store *store, const char *uid, const char *viewer,
                        struct record **out, struct error *err);

/* Answer with one trial and its entity tag, which is of the whole text. */
enum status record_answer_tagged(struct request *request, const struct record *record, struct response *response,
                                 struct error *err);

#endif
