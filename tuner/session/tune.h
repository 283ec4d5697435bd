/* A session from beginning to end in one thread: each trial that it suggests is run at once and recorded. */
#ifndef TUNER_SESSION_TUNE_H
#define TUNER_SESSION_TUNE_H

#include "tuner/session/session.h"
#include "tuner/session/trials.h"

/* Start a session, or go on with `resume` (a session's id). Fails: ST_INFEASIBLE when no trial completed, ST_CANCELLED,
 * ST_CONFLICT (the session to resume is about another model or cluster), and what runner and store fail with. */
enum status tune_run(struct store *store, const struct model *model, const struct cluster *cluster,
                     const struct tune_runner *runner, const struct tune_options *options, const char *resume,
                     struct outcome *out, struct error *err);

#endif
