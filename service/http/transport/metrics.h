/* What the server counts, and the text that Prometheus scrapes (exposition format 0.0.4).
 * Threads: any; counting is a few atomic additions. */
#ifndef SERVICE_HTTP_TRANSPORT_METRICS_H
#define SERVICE_HTTP_TRANSPORT_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct metrics; /* opaque */
struct route;

/* NULL when memory is out. `routes` must outlive it. */
struct metrics *metrics_new(size_t n_routes, const struct route *routes);
void metrics_free(struct metrics *metrics); /* NULL is allowed */

/* One answered request; `route` is NULL where none matched. */
void metrics_count(struct metrics *metrics, const struct route *route, unsigned status, double seconds,
                   uint64_t bytes_in, uint64_t bytes_out);

enum metrics_gauge {
    METRICS_CONNECTIONS,
    METRICS_IN_FLIGHT,
    METRICS_STREAMS,
    METRICS_GAUGES,
};
void metrics_add(struct metrics *metrics, enum metrics_gauge gauge, int by);

enum metrics_counter {
    METRICS_DEADLINES, /* connections cut for being slow */
    METRICS_REFUSED,   /* requests refused for ambiguous framing */
    METRICS_OVERLOADS, /* requests refused because the worker queue was full */
    METRICS_COUNTERS,
};
void metrics_increment(struct metrics *metrics, enum metrics_counter counter);

/* Trials that came as records, duplicates left out. */
void metrics_add_records(struct metrics *metrics, uint64_t n);

void metrics_write(struct metrics *metrics, FILE *out);

/* Sessions and trials, the dataset's size and what room its disk has. What cannot be read is left out, so that the rest
 * can be told when the disk is in trouble. O(sessions). */
struct service;
void metrics_write_held(uint64_t bytes, FILE *out); /* server_memory_held */
/* `team`: the team whose use of the dataset is written; NULL: every team's. */
void metrics_write_service(struct service *service, const char *team, FILE *out);

#endif
