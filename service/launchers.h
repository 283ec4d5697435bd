/* Names of launchers, each bound to the cluster that had the name when the launcher was first registered.
 *
 * Anybody who may submit can give a cluster any name. Therefore a launcher stands for a cluster's whole id. Where an
 * administrator wrote a name, the service writes the cluster's id into DATASET.launchers once, and later reads that:
 *     {"schema":"syncopate.launchers/1","pins":[{"name","cluster","since"}]}
 * The file has mode 0600 and is replaced by a rename; it is refused when others can write it. Threads: one at a time.
 */
#ifndef SERVICE_LAUNCHERS_H
#define SERVICE_LAUNCHERS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/id.h"

/* The id that `name` has; *found is false when it has none yet. Fails: ST_INVALID (the file is damaged or others can
 * write it), ST_ENVIRONMENT, ST_NO_MEMORY. */
enum status launcher_pin_find(const char *dataset, const char *name, bool *found, struct id *out, struct error *err);

/* From now on `name`, which has none yet, is this cluster. Fails: as launcher_pin_find. */
enum status launcher_pin_add(const char *dataset, const char *name, const struct id *cluster, struct error *err);

#endif
