/* A service's predictions of what simulate compares. Units: microseconds (_us). */
#ifndef CLI_REMOTE_PREDICT_H
#define CLI_REMOTE_PREDICT_H

#include "cli/client/client.h"
#include "tuner/predict/simulation.h"

/* Let the service predict the n contenders for the model and cluster of `s`, which it has (remote_inputs), and tell
 * their memory where `s` does. `rows` has room for n rows, and they come in the order of the contenders. A contender
 * that cannot run on this cluster is reported and gets no row; if it is the only one, the call fails. `s` gets the
 * bound; it need not be released. A Chrome trace of the one contender goes to the file `trace` unless NULL. Fails: as
 * client_call and json_write_file; ST_INFEASIBLE. */
enum status remote_predict(struct client *client, struct simulation *s, size_t n, const struct contender *contenders,
                           const char *trace, struct row *rows, size_t *n_rows, struct error *err);

#endif
