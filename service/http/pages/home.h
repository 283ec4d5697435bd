/* What the first page shows above its list of sessions. Each part is appended to the element that is open in `m`. */
#ifndef SERVICE_HTTP_PAGES_HOME_H
#define SERVICE_HTTP_PAGES_HOME_H

#include "dataset/store.h"
#include "report/findings.h"
#include "report/markup.h"
#include "service/http/transport/request.h"

/* The sessions that run or are paused, how far each is, and who works on it. assets/page.js keeps it up to date by
 * /live. Fails: as the store. */
enum status home_running(struct request *request, struct store *store, struct markup *m, struct error *err);

/* For each model and cluster, how the best that a session measured compares with PyTorch's default. Fails: as the
 * store. */
enum status home_won(struct request *request, struct store *store, struct markup *m, struct error *err);

/* "7 of 12", with a bar. `f` is NULL where the session's descriptions cannot be read any more. */
void home_progress(struct markup *m, const struct findings *f, const struct stored_session *session);

#endif
