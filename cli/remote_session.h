/* A tuning session on a service: opened, followed while others run its trials, and answered as one here is.
 * Units: microseconds (_us). */
#ifndef CLI_REMOTE_SESSION_H
#define CLI_REMOTE_SESSION_H

#include "cli/client/client.h"
#include "cli/inputs.h"
#include "interop/export/limits.h"
#include "tuner/session/session.h"

struct remote_session {
    char id[64], model[ID_LENGTH + 1], cluster[ID_LENGTH + 1];
    char state[16], reason[256]; /* a stored_session_state's word */
    bool own;                    /* the service runs the trials; else agents do */
    uint64_t trials;             /* budget; 0: no limit */
    struct export_limits limits; /* export_to and accept; n = 0: none, or none that this program knows */
};

/* Read a session as the service describes it (Session in /openapi.json). Fails: ST_UNREACHABLE (it is none). */
enum status remote_session_read(const cJSON *json, struct remote_session *out, struct error *err);

/* Words with commas between, as a list; nothing where `words` is NULL. False when memory is out. */
bool remote_add_words(cJSON *to, const char *key, const char *words);

/* Open one about what the service has (remote_inputs). The service runs it where it can and `runner` is NULL; else it
 * is for agents, who run trials by `runner`. Of `options` these are sent: budget, seed, final_rounds, trial_us,
 * least_gain, earlier, allow_lossy, allow_sharded, allow_stale, memory_bytes, job.export_to, job.accept, and whether it
 * is in weather. Fails: as client_call. */
enum status remote_session_open(struct client *client, const struct inputs *inputs, const struct tune_options *options,
                                const char *ranker, const char *runner, struct remote_session *out, struct error *err);

/* Look one up by its id. */
enum status remote_session_find(struct client *client, const char *id, struct remote_session *out, struct error *err);

/* Show its trials from the first on, as a session here shows its own, until it has ended; state and reason are then the
 * last. Fails: ST_CANCELLED (it goes on without us), as client_call. */
enum status remote_session_follow(struct client *client, struct remote_session *session, struct error *err);

/* The outcome, by one request; where the service is too old to know it, from a copy of its records. Fails:
 * ST_INFEASIBLE when no trial completed, as client_call. Release with outcome_release. */
enum status remote_session_answer(struct client *client, const struct remote_session *session,
                                  const struct inputs *inputs, struct outcome *out, struct error *err);

#endif
