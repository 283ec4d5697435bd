/* Models and clusters that are predicted for again and again, ready to use.
 *
 * A domain is a (model, cluster) of the dataset, read and checked once, with its lower bound, predictors (one for each
 * thread that is predicting) and what stored strategies were predicted to take. Descriptions never change under their
 * id, so nothing here can be stale; the least recently used go when there are too many. Threads: any. A struct
 * prepared_domain is used between prepared_domains_take and prepared_domain_drop. */
#ifndef SERVICE_PREPARED_DOMAINS_H
#define SERVICE_PREPARED_DOMAINS_H

#include <stddef.h>

#include "base/error.h"
#include "dataset/store.h"
#include "simulator/bound.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "tuner/predict/predictor.h"

struct prepared_domains; /* opaque */
struct prepared_domain {
    const struct model *model;
    const struct cluster *cluster;
    double lower_bound_us; /* of strategies without encodings and replicas */
    struct bounds bounds;  /* by what strategies may do */
};

/* Keep at most `most` domains that nobody uses. NULL when memory is out. */
struct prepared_domains *prepared_domains_new(size_t most);
void prepared_domains_free(struct prepared_domains *domains); /* NULL is allowed; all domains must have been dropped */

/* The domain of two whole ids. Fails: ST_NOT_FOUND, and as store_get_model. */
enum status prepared_domains_take(struct prepared_domains *domains, struct store *store, const char *model,
                                  const char *cluster, struct prepared_domain **out, struct error *err);

/* A domain of this request alone: takes both descriptions, also when it fails. */
enum status prepared_domain_new(struct model *model, struct cluster *cluster, struct prepared_domain **out,
                                struct error *err);
void prepared_domain_drop(struct prepared_domain *domain); /* NULL is allowed */

/* The first seed of the weather in which times are expected. */
enum { PREPARED_WEATHER = 1 };

/* Take a predictor for one thread, of the quiet network where the cluster has weather. Give it back with
 * prepared_domain_give_predictor. Fails: as predictor_init. */
enum status prepared_domain_take_predictor(struct prepared_domain *domain, struct predictor **out, struct error *err);
void prepared_domain_give_predictor(struct prepared_domain *domain, struct predictor *predictor);

/* What a strategy is predicted to take here; where the cluster has no weather, nothing is expected (no seeds). Of a
 * strategy with a "consistency" *updates is what its updates do, malloc'd, and its iteration is a round of them; of any
 * other it is NULL. Fails: as predictor_run and expectation_run_updates. */
enum status prepared_domain_predict(struct prepared_domain *domain, const struct strategy *strategy,
                                    struct outlook *out, struct updates_prediction **updates, struct error *err);

/* What strategy `id` (whole) of the dataset is predicted to take here. Fails: ST_NOT_FOUND, ST_INVALID (it is for
 * another model or cluster), and as prepared_domain_predict. */
enum status prepared_domain_predict_stored(struct prepared_domain *domain, struct store *store, const char *id,
                                           struct outlook *out, struct updates_prediction **updates, struct error *err);

#endif
