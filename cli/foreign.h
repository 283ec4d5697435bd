/* Resuming a session that was not opened in this dataset (origin, dataset/store.h).
 *
 * Its options are somebody else's words: a command line, a program to start, words for mpirun, files to read and write,
 * and whether mpirun or slurm start anything at all, on which hosts. None of these is used. Whoever resumes the session
 * types them again. What was typed replaces them in the dataset, and from then on the session counts as one that was
 * opened there. What only says how a job's output is read, or which strategies are
 * tried (--pattern, --unit, --export-env, --export-to, --accept, --time-limit, --share-gpu), stays as it was unless it
 * is typed too. A session that runs nothing of that kind is resumed as any other. */
#ifndef CLI_FOREIGN_H
#define CLI_FOREIGN_H

#include "base/arena.h"
#include "base/error.h"
#include "dataset/store.h"
#include "tuner/session/session_options.h"

/* Complete what was typed, *job and *launch, by the session's own options. An option that was not typed becomes the
 * session's, if it runs, reads and writes nothing. An option that does, and was not typed, is listed on standard error,
 * and the call fails. `runner` is what runs the session's trials; launch->runner, NULL where none was typed, becomes
 * `runner`. *adopt becomes true: keep *job and *launch by foreign_adopt. Texts are the arena's. Fails: ST_USAGE (an
 * option must be given again, or makes no sense for this session), ST_NO_MEMORY. */
enum status foreign_read(const struct stored_session *session, const char *runner, struct arena *arena,
                         struct job_options *job, struct runner_options *launch, bool *adopt, struct error *err);

/* Keep these options as the session's, which then counts as one that was opened in this dataset. Fails: as
 * store_session_adopt. */
enum status foreign_adopt(struct store *store, const struct stored_session *session, const struct job_options *job,
                          const struct runner_options *launch, struct error *err);

#endif
