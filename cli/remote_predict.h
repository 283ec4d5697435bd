/* A service's predictions of what simulate compares. Units: microseconds (_us). */
#ifndef CLI_REMOTE_PREDICT_H
#define CLI_REMOTE_PREDICT_H

#include "cli/client/client.h"
#include "cli/simulation.h"

/* Predict the n contenders for what the service has (remote_inputs): rows has room for n, in their order, without those
 * that cannot run on this cluster, which are reported; it is an error if there is only one and it cannot. `out` gets
 * model, cluster and bound, and nothing to release. A Chrome trace of the one contender goes to the file `trace` unless
 * NULL. Fails: as client_call and json_write_file; ST_INFEASIBLE. */
enum status remote_predict(struct client *client, const struct model *model, const struct cluster *cluster, size_t n,
                           const struct contender *contenders, const char *trace, struct simulation *out,
                           struct row *rows, size_t *n_rows, struct error *err);

#endif
