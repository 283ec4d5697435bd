/* The findings of a session (report/findings.h), from a dataset here or from a service. */
#ifndef CLI_SESSION_FINDINGS_H
#define CLI_SESSION_FINDINGS_H

#include "cli/remote.h"
#include "report/findings.h"

/* Release with findings_release. Fails: ST_NOT_FOUND, as store_open and findings_gather. */
enum status session_findings_here(const char *dataset, const char *session, enum findings_depth depth,
                                  struct findings *out, struct error *err);

/* Of its trials those that have ended. Fails: as remote_open, remote_session_copy and findings_gather. */
enum status session_findings_there(const struct remote_options *remote, const char *session, enum findings_depth depth,
                                   struct findings *out, struct error *err);

#endif
