/* A ranker trained from the dataset's trials, as work of the service (operation_queue.h). */
#ifndef SERVICE_TRAINING_H
#define SERVICE_TRAINING_H

#include "dataset/query.h"
#include "service/operation_queue.h"
#include "simulator/learned/ranker.h"

struct training_request {
    struct query query; /* which trials: filter, viewer */
    enum ranker_kind kind;
    bool residual;
    const char *from; /* a ranker's name or id to train on, which keeps its kind and form; NULL: begin anew */
    const char *name; /* NULL: of its kind and what it was trained on */
    uint64_t seed;
    double held_out;           /* share of each domain, below 1 */
    const char *team, *shared; /* whose it is, and with whom it is shared (holding_put) */
    bool sees_all;             /* `from` may be any team's */
};

/* Texts are copied. The result is {"ranker":ID,"name","trials","left_out","seconds"}. Fails: ST_NO_MEMORY. */
enum status training_new(const struct training_request *wanted, struct operation_work **out, struct error *err);

#endif
