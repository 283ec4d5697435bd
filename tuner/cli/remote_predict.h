/* A service's predictions of what simulate compares. Units: microseconds (_us). */
#ifndef TUNER_CLI_REMOTE_PREDICT_H
#define TUNER_CLI_REMOTE_PREDICT_H

#include "tuner/cli/simulation.h"
#include "tuner/client/client.h"

/* Predict the n contenders for what the service has (remote_inputs): rows has room for n, in their order, without those
 * that cannot run on this cluster, which are told about; one alone that cannot is an error. `out` gets model, cluster
 * and bound, and nothing to release. A Chrome trace of the one contender goes to the file `trace` unless NULL.
 * Fails: as client_call and json_write_file; ST_INFEASIBLE. */
enum status remote_predict(struct client *client, const struct model *model, const struct cluster *cluster, size_t n,
                           const struct contender *contenders, const char *trace, struct simulation *out,
                           struct row *rows, size_t *n_rows, struct error *err);

#endif
