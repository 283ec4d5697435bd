/* The file that --launchers names: the clusters on which a service runs trials itself. */
#ifndef CLI_SERVE_LAUNCHERS_H
#define CLI_SERVE_LAUNCHERS_H

#include "base/error.h"
#include "service/access.h"
#include "service/hub.h"

/* Register the launchers of {"launchers":[{"cluster" or "file","runner","hosts"}]}: "cluster" is a whole id or a name,
 * "file" a cluster's description, beside this file. Descriptions are put into the dataset. Before hub_start. Fails:
 * ST_NOT_FOUND, ST_USAGE (no such runner; a name of several clusters), ST_INVALID (nodes that cannot be hosts), and as
 * the store. */
enum status serve_launchers(const char *path, struct access *access, struct hub *hub, struct error *err);

#endif
