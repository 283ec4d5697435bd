/* Which environment variables ranks on other machines get: those that steer MPI, NCCL, CUDA and the loader, and those
 * that the user names. All others are not passed, TMPDIR for example, which is a folder of this machine. */
#ifndef TRIAL_RUNNER_PASSED_H
#define TRIAL_RUNNER_PASSED_H

#include "base/arena.h"
#include "base/error.h"

/* Names of variables that are set here, NULL-terminated, each once, in the arena: the families of trial-runner/passed.c
 * and those of `more`, which commas divide; NULL: none. Fails: ST_INVALID (`more` has a name that is not valid),
 * ST_NO_MEMORY. */
enum status passed_names(const char *more, struct arena *arena, const char *const **out, struct error *err);

#endif
