/* Random small models and clusters for property tests, and preemptive strategies for them.
 *
 * Each is built as JSON and read through model_read or cluster_read, so that a property run exercises the readers too.
 * Models: 1 to 40 variables, as a chain of layers or as a DAG with shared and unread variables, operators in any file
 * order, mixed dtypes, sparse variables, scalars, operators that take no time. Clusters: 1 to 8 nodes of 0 to 4 devices
 * (at least one in all), uneven NICs and speeds, sometimes overriding links, measured curves or fixed costs.
 * The same state of `rng` gives the same instance; seed it with test_seed(). */
#ifndef TESTS_SUPPORT_STRATEGY_RANDOM_INSTANCES_H
#define TESTS_SUPPORT_STRATEGY_RANDOM_INSTANCES_H

#include <cjson/cJSON.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Descriptions, for tests that want to change one before reading it. The caller frees them; out of memory aborts. */
cJSON *random_model_json(struct rng *rng);
cJSON *random_cluster_json(struct rng *rng);

/* Give a model an optimizer and the time of its updates, and what else memory is predicted from: activations on all
 * forward operators, and what some backward operators compute again. Each is left out now and then. */
void random_memory(struct rng *rng, cJSON *model);

/* The same, read. A failure is a reader's fault: the error says what it refused. */
enum status random_model(struct rng *rng, struct model *out, struct error *err);
/* Half of these say how long an update takes. */
enum status random_updated_model(struct rng *rng, struct model *out, struct error *err);
enum status random_cluster(struct rng *rng, struct cluster *out, struct error *err);

/* Make a strategy that is not sealed yet preemptive: every variable all-reduced whole in the group that it names, each
 * group's bytes cut at random elements into 1 to 16 slices, the slices of all groups in a random order. Fails:
 * ST_NO_MEMORY. */
enum status random_slices(struct rng *rng, const struct model *model, struct strategy *strategy, struct error *err);

/* A sealed preemptive strategy: random groups, one element type each, random slices, credit, barrier or none. */
enum status random_preemptive(struct rng *rng, const struct model *model, const struct cluster *cluster,
                              struct strategy *out, struct error *err);

#endif
