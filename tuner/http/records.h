/* Trials as answers. */
#ifndef TUNER_HTTP_RECORDS_H
#define TUNER_HTTP_RECORDS_H

#include "dataset/query.h"
#include "tuner/http/response.h"

/* A trial's JSON (syncopate.record/1), malloc'd; NULL when memory is out. */
char *record_text(const struct record *record);

/* Answer with one trial. Fails: ST_NO_MEMORY. */
enum status record_answer(const struct record *record, struct response *response, struct error *err);

#endif
