/* A load client: one thread, many kept connections, epoll.
 *
 * What is measured is a unit: a request, or several that follow from each other on one connection. Closed loop (rate
 * 0): every connection begins its next unit when the last has ended, which shows the throughput. Constant rate: unit k
 * is due at k / rate, whatever became of those before it, and its time counts from when it was due; so a service that
 * falls behind cannot hide that by slowing its client down. Units: seconds (_s), milliseconds (_ms). Threads: a run
 * belongs to one thread. */
#ifndef TESTS_LOAD_LOAD_H
#define TESTS_LOAD_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow; {0} is empty. */
struct load_text {
    char *bytes;
    size_t n, room;
};
void load_put(struct load_text *text, const void *bytes, size_t n); /* ends the program without memory */
void load_printf(struct load_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void load_text_release(struct load_text *text);

/* A whole request; without a body it is a GET or an empty POST. */
void load_request(struct load_text *to, const char *method, const char *path, const char *headers, size_t n,
                  const char *body);

enum load_turn {
    LOAD_DONE,
    LOAD_MORE /* the unit has another request */,
    LOAD_WRONG,
    LOAD_OVER /* done, and the last */
};

struct load_plan {
    uint16_t port;
    unsigned connections;
    double rate, seconds;
    uint64_t most;                                                          /* units; 0: no limit */
    void (*make)(void *context, unsigned connection, struct load_text *to); /* the next request */
    /* What came; `body` has n bytes and a NUL behind them. */
    enum load_turn (*take)(void *context, unsigned connection, int status, char *body, size_t n);
    void *context;
};

struct load_result {
    uint64_t units, errors;
    double seconds, p50_ms, p99_ms, max_ms;
    double bytes; /* of bodies that came */
};

/* Ends the program when it cannot connect at all. */
void load_run(const struct load_plan *plan, struct load_result *out);

/* One request; the status, 0 when none came, and the body in *body (may be NULL). */
int load_once(uint16_t port, const struct load_text *request, struct load_text *body);

#endif
