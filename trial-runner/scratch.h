/* A private folder for a run's input files, removed when the run ends, whatever ends it: also SIGKILL. */
#ifndef TRIAL_RUNNER_SCRATCH_H
#define TRIAL_RUNNER_SCRATCH_H

#include <cjson/cJSON.h>
#include <sys/types.h>

#include "base/error.h"

enum { SCRATCH_FILES = 3, SCRATCH_PATH = 256 };

struct scratch {
    char folder[SCRATCH_PATH];
    char file[SCRATCH_FILES][SCRATCH_PATH + 32]; /* paths: see scratch_init */
    pid_t keeper;
    int lifeline; /* the keeper removes everything when this closes */
};

/* Make the folder in `parent` (NULL: TMPDIR, else /tmp) and name its files, with whole paths. Fails: ST_ENVIRONMENT. */
enum status scratch_init(struct scratch *scratch, const char *parent, const char *const names[SCRATCH_FILES],
                         struct error *err);

/* Write `json`, which is consumed and may be NULL (out of memory), to file i. Fails: ST_ENVIRONMENT, ST_NO_MEMORY. */
enum status scratch_write(const struct scratch *scratch, int i, cJSON *json, struct error *err);

/* The folder is gone on return. */
void scratch_release(struct scratch *scratch);

#endif
