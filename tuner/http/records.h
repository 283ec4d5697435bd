/* Trials as answers. */
#ifndef TUNER_HTTP_RECORDS_H
#define TUNER_HTTP_RECORDS_H

#include "dataset/query.h"
#include "tuner/http/request.h"

/* A trial's JSON (syncopate.record/1), malloc'd; NULL when memory is out. */
char *record_text(const struct record *record);

/* Answer with one trial. Fails: ST_NO_MEMORY. */
enum status record_answer(const struct record *record, struct response *response, struct error *err);

/* The same as something that can be changed: with its entity tag, which is of the whole text. */
enum status record_answer_tagged(struct request *request, const struct record *record, struct response *response,
                                 struct error *err);

#endif
