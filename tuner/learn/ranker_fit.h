/* A ranker from the examples of a dataset: the split into examples that train and examples that are held out to judge
 * it, the training, and the ranker's origin.
 *
 * Threads: everything is the caller's; two fits may run at once on the same examples. */
#ifndef TUNER_LEARN_RANKER_FIT_H
#define TUNER_LEARN_RANKER_FIT_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulator/learned/ranker.h"
#include "tuner/learn/examples.h"
#include "tuner/learn/rankers.h"

struct ranker_fit_options {
    struct ranker_options training;   /* its seed draws what is held out, too */
    const struct stored_ranker *from; /* train this one further; NULL: begin anew. Borrowed */
    double held_out;                  /* share of each domain's examples that are kept out of the training; below 1 */
};

/* Shares of pairs in the right order, NaN without pairs: of the held out examples, or of those trained on when none
 * are held out. */
struct ranker_judgement {
    size_t trained, held_out; /* examples */
    double ranker_accuracy, timeline_accuracy;
};

struct ranker_fit {
    struct arena arena;
    struct ranker *ranker;
    struct ranker_report report;
    struct ranker_origin origin;      /* borrows from the examples, and from's id */
    struct ranker_judgement *domains; /* [examples->n_domains] */
    struct ranker_judgement all;
};

/* Fails: ST_INVALID (no domain has two examples to train on, or nothing could be held out), and as ranker_train.
 * Release with ranker_fit_release. */
enum status ranker_fit_run(const struct examples *examples, const struct ranker_fit_options *options,
                           struct ranker_fit *out, struct error *err);
/* The name of a ranker that the user gives none: its kind, and what it was trained on. */
enum { RANKER_NAME_ROOM = 160 };
void ranker_fit_name(const struct ranker_fit *fit, char *out, size_t n);
void ranker_fit_release(struct ranker_fit *fit); /* a zeroed one is allowed */

#endif
