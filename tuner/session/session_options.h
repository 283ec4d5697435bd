/* A session's budget and options as the dataset keeps them: two JSON texts of its row (struct stored_session), read and
 * written here alone.
 *
 * Members that are not known here, of a newer version, are left out by a reader and kept by a writer.
 * Units: microseconds. */
#ifndef TUNER_SESSION_SESSION_OPTIONS_H
#define TUNER_SESSION_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "dataset/store.h"

struct session_budget {
    uint64_t trials;  /* 0: no limit */
    double time_us;   /* that it runs, pauses until it is resumed left out; 0: no limit */
    double gap;       /* stop when the best is within this of the lower bound; 0: never */
    double used_us;   /* by its runs before the last one */
    char resumed[32]; /* UTC: when the last run began; "": it is the first */
};

/* Fails: ST_INVALID, with the place. */
enum status session_budget_read(const struct stored_session *session, struct session_budget *out, struct error *err);

/* As JSON; members of `before` (the text until now; NULL: none) that are not known are kept. malloc'd; NULL when memory
 * is out. */
char *session_budget_write(const struct session_budget *budget, const char *before);

/* False for a collection, which has no budget. */
bool session_budget_is_limited(const struct session_budget *budget);

#endif
