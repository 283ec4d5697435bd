/* The findings of a session (report/findings.h), from a dataset here or from a service. */
#ifndef CLI_SESSION_FINDINGS_H
#define CLI_SESSION_FINDINGS_H

#include "cli/remote.h"
#include "report/findings.h"

/* Release with findings_release. Fails: ST_NOT_FOUND, as store_open and findings_gather. */
enum status session_findings_here(const char *dataset, const char *session, enum findings_depth depth,
                                  struct findings *out, struct error *err);

/* FINDINGS_FIGURES are two requests: model and cluster are then names and ids. FINDINGS_ALL, and a service that is
 * older than outcomes, take a copy of the trials that have ended. Fails: as remote_open, outcome_read,
 * remote_session_copy and findings_gather. */
enum status session_findings_there(const struct remote_options *remote, const char *session, enum findings_depth depth,
                                   struct findings *out, struct error *err);

#endif
