/* A private folder for a run's files. It is removed, with all that is in it, when the run ends, whatever ends it: also
 * SIGKILL. */
#ifndef TRIAL_RUNNER_SCRATCH_H
#define TRIAL_RUNNER_SCRATCH_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

enum { SCRATCH_FOLDER = 4096, SCRATCH_FILE = SCRATCH_FOLDER + 64 }; /* bytes of a path */

struct scratch {
    char folder[SCRATCH_FOLDER]; /* an absolute path */
    pid_t keeper;
    int lifeline; /* the keeper removes the folder when no process has this open any more */
};

/* Make a folder of a new name in `parent`, for a caller that removes it itself. Does not use the heap. False, with
 * errno. */
bool scratch_make_folder(const char *parent, size_t n, char out[]);

/* Make the folder in `parent`; NULL: in TMPDIR, else in /tmp. Fails: ST_ENVIRONMENT. */
enum status scratch_init(struct scratch *scratch, const char *parent, struct error *err);

/* Write `json`, which is consumed and may be NULL (out of memory), to a new file `name`; *out is its path.
 * Fails: ST_ENVIRONMENT, ST_NO_MEMORY. */
enum status scratch_write(const struct scratch *scratch, const char *name, cJSON *json, char out[SCRATCH_FILE],
                          struct error *err);

/* The folder is gone on return. */
void scratch_release(struct scratch *scratch);

#endif
