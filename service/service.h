/* What the handlers of the service share: the dataset, the tokens, and caches of what is expensive to read.
 *
 * One connection of the process writes, for all threads (dataset/writer.h); each thread that reads has a read-only one
 * of its own, opened at its first use and closed when the thread ends. Threads: any, for every function but open and
 * close. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "dataset/store.h"
#include "dataset/writer.h"
#include "service/quota.h"
#include "service/tokens.h"

struct service;  /* opaque */
struct domains;  /* domains.h */
struct sign_ins; /* sign_ins.h */

/* What a team may have; 0: no limit. Administrators have none. */
struct service_limits {
    uint64_t sessions;    /* that are open */
    uint64_t rows, bytes; /* that stay because of it (dataset/usage.h) */
};

struct service_options {
    const char *dataset; /* path; created when it is not there */
    struct service_limits limits;
    /* How long events, the audit and answers to repeat are kept, in microseconds; 0: events for ever, the audit for two
     * years, answers for a day. Events of open sessions stay. */
    double keep_events_us, keep_audit_us, keep_answers_us;
    bool open; /* a request from the loopback, through no proxy and without a token, is an administrator of "local" */
    double session_idle_us; /* how long a session stays in memory that nobody uses; 0: hub_default_options() */
};

/* Holds the dataset's lock until closed. Fails: as store_open and tokens_read; ST_USAGE (no tokens, and not open:
 * nobody could ask anything). */
enum status service_open(const struct service_options *options, struct service **out, struct error *err);
void service_close(struct service *service); /* NULL is allowed; every other thread must have stopped using it */

const struct service_limits *service_limits(const struct service *service);
bool service_is_open(const struct service *service);
struct tokens *service_tokens(struct service *service);
struct quota *service_quota(struct service *service);
struct sign_ins *service_sign_ins(struct service *service);
struct domains *service_domains(struct service *service);
const char *service_dataset(const struct service *service);

/* Takes the dataset's path out of a message in place: where it lies is not for clients to read. */
void service_hide_path(const struct service *service, char *message);

/* This thread's read-only store, borrowed. Fails: as store_open. */
enum status service_reader(struct service *service, struct store **out, struct error *err);

/* The one store that writes, for writer_run. */
struct writer *service_writer(struct service *service);

/* Take out of the dataset what need not be remembered, as the options say. A thousand rows of
 * each at a time: *more says that there are others. */
enum status service_forget(struct service *service, bool *more, struct error *err);

/* The sessions (hub.h). */
struct hub;
struct hub *service_hub(struct service *service);

/* Long work (operations.h). */
struct operations;
struct operations *service_operations(struct service *service);

#endif
