/* Resuming a session that was not opened in this dataset (origin, dataset/store.h).
 *
 * Its options are somebody else's words: a command line, a program to start, words for mpirun, files to read and write,
 * and whether mpirun or slurm start anything at all, on which hosts.
 * None of these is used. Whoever resumes it types them again, as he means them, and what was typed takes their place in
 * the dataset: from then on the session is its own. What only says how a job's output is read, or which strategies are
 * tried (--pattern, --unit, --export-env, --export-to, --accept, --time-limit, --share-gpu), stays as it was unless it
 * is typed too. A session that runs nothing of that kind is resumed as any other. */
#ifndef TUNER_CLI_FOREIGN_H
#define TUNER_CLI_FOREIGN_H

#include "base/arena.h"
#include "base/error.h"
#include "dataset/store.h"
#include "tuner/cli/job_options.h"
#include "tuner/runners.h"

/* The session's options, into what was typed, where nothing was and where they are harmless. `runner` is what runs its
 * trials; launch->runner is NULL where none was typed, and becomes `runner`. *adopt: what was typed is
 * to be kept by foreign_adopt. Texts are the arena's. What it would run is listed on standard error where it is
 * missing. Fails: ST_USAGE (an option must be given again, or makes no sense for this session), ST_NO_MEMORY. */
enum status foreign_read(const struct stored_session *session, const char *runner, struct arena *arena,
                         struct job_words *job, struct runner_words *launch, bool *adopt, struct error *err);

/* These words become the session's, which is the dataset's own now. Fails: as store_session_adopt. */
enum status foreign_adopt(struct store *store, const struct stored_session *session, const struct job_words *job,
                          const struct runner_words *launch, struct error *err);

#endif
