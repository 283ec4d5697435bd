/* Default places of files, and whether a result can be written where it should go. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "base/error.h"

#define DEFAULT_DATASET "syncopate.db"

/* Can a file of this path be written? To be asked before long work whose result goes there. Fails: ST_ENVIRONMENT. */
enum status output_check(const char *path, struct error *err);

/* Make this folder, unless it is there. Fails: ST_ENVIRONMENT. */
enum status paths_make_folder(const char *path, struct error *err);

#endif
