/* The parts of the service, opened and closed together in their order. Whoever needs one part takes that part; only the
 * server and the handlers of http/ hold them all.
 *
 * Threads: the struct does not change between open and close; each part says what threads it allows. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "service/access.h"
#include "service/hub.h"
#include "service/operation_queue.h"
#include "service/prepared_domains.h"
#include "service/quota.h"
#include "service/sign_ins.h"
#include "service/tokens.h"

/* What a team may have; 0: no limit. Administrators have none. */
struct service_limits {
    uint64_t sessions;    /* that are open */
    uint64_t rows, bytes; /* that stay because of it (dataset/usage.h) */
};

struct service_options {
    struct access_options access;
    struct service_limits limits;
    bool open; /* a request from the loopback, through no proxy and without a token, is an administrator of "local" */
    double session_idle_us; /* how long a session stays in memory that nobody uses; 0: hub_default_options() */
};

struct service {
    struct service_limits limits;
    bool open;
    struct access *access;
    struct tokens *tokens;
    struct quota *quota;
    struct sign_ins *sign_ins;
    struct prepared_domains *domains;
    struct hub *hub;
    struct operation_queue *operations;
};

/* Holds the dataset's lock until closed. Fails: as store_open and tokens_read; ST_USAGE (no tokens, and not open:
 * nobody could ask anything). */
enum status service_open(const struct service_options *options, struct service **out, struct error *err);
void service_close(struct service *service); /* NULL is allowed; every other thread must have stopped using it */

#endif
