/* Trials of a dataset as a ranker reads them: features and measured times, domain by domain.
 *
 * Each complete trial's strategy is lowered onto its model and cluster, run by the timeline as the cluster is
 * described, and featurized. Trials of one strategy in one domain become one example with the median of their medians.
 * A domain is a model, a cluster and the runner that measured: processes on one machine that stand for a cluster take
 * other times than the cluster itself. Threads: plain data; a const struct examples may be shared. */
#ifndef TUNER_LEARN_EXAMPLES_H
#define TUNER_LEARN_EXAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "dataset/query.h"
#include "dataset/store.h"
#include "featurize/features.h"
#include "simulator/learned/ranker.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

struct domain {
    struct model model;
    struct cluster cluster;
    const char *runner;
    size_t first, n; /* its examples lie together */
};

/* The trials behind an example. */
struct example_trials {
    size_t n;
    const char *const *uids; /* [n] in the order of the query */
};

struct examples {
    struct arena arena;
    size_t n_domains;
    struct domain *domains; /* in the order in which they first occur; examples[].domain is the place here */
    size_t n;
    struct ranker_example *examples; /* in the order of their first trials within a domain */
    struct features *features;       /* [n]; what examples[] borrow */
    struct strategy *strategies;     /* [n] */
    const char **proposers;          /* [n] of the first trial; "" when it names none */
    struct example_trials *trials;   /* [n] */
};

/* The complete trials that `query` finds (its state is ignored; its limit and offset count trials, not examples).
 * Trials whose strategy can no longer be read, lowered or predicted are left out, as are trials in weather, and counted
 * in *skipped (may be NULL); a domain with no trial left is left out. Fails: as the store, ST_NOT_FOUND when there is
 * no example, ST_INVALID (a recorded model or cluster that can no longer be read). Release with examples_release.
 * O(trials log trials), and a lowering, a run of the timeline and features_of for every example. */
enum status examples_load(struct store *store, const struct query *query, struct examples *out, size_t *skipped,
                          struct error *err);
void examples_release(struct examples *examples); /* zeroed ones are allowed */

/* One strategy's features as examples_load makes them: for candidates that are to be ranked. Model and cluster are
 * borrowed. Threads: a featurizer belongs to one thread at a time. Fails: as predictor_init. */
struct featurizer; /* opaque: a predictor and its plan */
enum status featurizer_new(const struct model *model, const struct cluster *cluster, struct featurizer **out,
                           struct error *err);
void featurizer_free(struct featurizer *featurizer); /* NULL is allowed */

/* Release *out with features_release. Fails: as predictor_run and features_of. */
enum status featurizer_run(struct featurizer *featurizer, const struct strategy *strategy, struct features *out,
                           struct error *err);

/* How unlike two domains are, at least 0; 0 for a domain and itself. Root mean square difference of the normalised
 * domain descriptors (log bytes, variables, compute, devices, bandwidth, how communication and start-ups compare with
 * computing, concentration of bytes in few variables, spread of NICs and of compute_scale): near ones transfer better
 * (AutoSync §5.2). Reads model and cluster only. O(variables + nodes). */
double domain_distance(const struct domain *a, const struct domain *b);

#endif
