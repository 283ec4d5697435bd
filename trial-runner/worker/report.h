/* What a worker program says: JSON objects, one a line, on standard output, each written at once.
 *
 * One worker speaks (device 0) while all goes well; any rank may say why it failed. A line that cannot be written
 * means that the caller has gone, and ends the whole job. */
#ifndef TRIAL_RUNNER_WORKER_REPORT_H
#define TRIAL_RUNNER_WORKER_REPORT_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/error.h"

/* {"event":EVENT} to be filled by the caller. Never NULL. */
cJSON *report_event(const char *event);

/* Write `line` and free it. */
void report_send(cJSON *line);

void report_iteration(uint32_t index, double time_us);

/* {"event":"infeasible" or "error","reason":...} */
void report_error(const struct error *err);

/* Say why and end every rank of the job: for what cannot be undone in the middle of a run. */
_Noreturn void report_abort(enum status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End every rank of the job after report_error has said why. */
_Noreturn void report_end(enum status status);

/* calloc that ends the job when memory is out; n = 0 gives a valid pointer. */
void *report_alloc(size_t n, size_t size);

#endif
