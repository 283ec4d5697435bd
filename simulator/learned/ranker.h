/* Learned rankers: which of two strategies is faster, and how long one takes.
 *
 * A ranker is trained on trials and orders strategies by score: the lower, the faster. Kinds: a linear model of the
 * global features; a bidirectional LSTM over the variables between two perceptrons (AutoSync §3.1.2 "RNN"); graph
 * attention over the variable graph ("GAT"); boosted trees on the global features (XGBoost). All are trained with the
 * pairwise logistic loss of AutoSync's equation 3 with its partition penalty sigma; pairs are drawn within a domain,
 * (model, cluster), because times of different domains say nothing about each other.
 *
 * A residual ranker corrects the timeline: score = log(timeline_us) + correction(features). Beside the ranking loss, a
 * second term of the loss keeps its scores near log(measured_us), so exp(score) is a time in microseconds. For a domain
 * that it has not seen this time has a bias: domains differ in ways that no feature shows. A ranker that is not
 * residual uses the features alone, and its scores have no unit.
 *
 * Training is deterministic: options->seed and the examples decide the result, bit for bit, on one machine. Features
 * are normalised by means and deviations of the training examples, which the ranker keeps.
 * Threads: a const struct ranker may be shared; training runs in its own thread without touching anything shared. */
#ifndef SIMULATOR_LEARNED_RANKER_H
#define SIMULATOR_LEARNED_RANKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "featurize/features.h"
#include "simulator/learned/ranker_options.h"

struct ranker; /* opaque */

/* Train. *report may be NULL. Fails: ST_INVALID (fewer than two examples of any domain, a time that is not positive
 * and finite), ST_NUMERIC (the loss is not finite), ST_CANCELLED, ST_NO_MEMORY. Free with ranker_free. */
enum status ranker_train(const struct ranker_options *options, size_t n, const struct ranker_example *examples,
                         struct ranker **out, struct ranker_report *report, struct error *err);

/* A copy of `from` that is trained further with these examples, for a domain that `from` has not seen. It keeps the
 * normalisation, kind and residual of `from`, whatever the options say. The scores of a residual ranker are first
 * shifted so that they are right on average over the examples. The fewer examples, the smaller the steps. Fails as
 * ranker_train. */
enum status ranker_fine_tune(const struct ranker *from, const struct ranker_options *options, size_t n,
                             const struct ranker_example *examples, struct ranker **out, struct ranker_report *report,
                             struct error *err);
void ranker_free(struct ranker *ranker); /* NULL is allowed */

enum ranker_kind ranker_kind_of(const struct ranker *ranker);
bool ranker_residual(const struct ranker *ranker);

/* The options of the last training and its report; borrowed. cancel is NULL, and seconds are 0, since they are not
 * written. */
const struct ranker_options *ranker_options_of(const struct ranker *ranker);
const struct ranker_report *ranker_report_of(const struct ranker *ranker);

/* Lower is faster. For a residual ranker exp(score) is the predicted time. Fails: ST_INVALID (residual, and
 * timeline_us is not positive), ST_NO_MEMORY. */
enum status ranker_score(const struct ranker *ranker, const struct features *features, double *out, struct error *err);

/* Canonical JSON, malloc'd; a ranker read back from it gives the same scores bit for bit. NULL when memory is out. */
char *ranker_write(const struct ranker *ranker);
/* Fails: ST_INVALID (no ranker, of another version, of other features), ST_NO_MEMORY. */
enum status ranker_read(const char *text, struct ranker **out, struct error *err);

#endif
