/* Models, clusters and strategies in and out of the dataset as the structures that the rest of the program uses. */
#ifndef DATASET_DESCRIBE_H
#define DATASET_DESCRIBE_H

#include "dataset/store.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Keep the description under its own id. */
enum status store_put_model(struct store *store, const struct model *model, struct error *err);
enum status store_put_cluster(struct store *store, const struct cluster *cluster, struct error *err);
enum status store_put_strategy(struct store *store, const struct strategy *strategy, const struct model *model,
                               const struct cluster *cluster, struct error *err);

/* Read it back by its whole id; release it as one that was read from a file. Fails: ST_NOT_FOUND. */
enum status store_get_model(struct store *store, const char *id, struct model *out, struct error *err);
enum status store_get_cluster(struct store *store, const char *id, struct cluster *out, struct error *err);
enum status store_get_strategy(struct store *store, const char *id, const struct model *model,
                               const struct cluster *cluster, struct strategy *out, struct error *err);

#endif
