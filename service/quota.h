/* How many trials each token has had within the last 24 hours, against its trials_per_day. Setting the wall clock
 * forward or back gives nobody a new quota, and takes none away for longer than a day.
 *
 * What counts: trials that are taken (:suggest), records that are added or imported, and the budget of a session that
 * the service runs itself, when it is opened or raised. A handler reserves before it has an effect, and settles when it
 * knows the true number, so that requests at the same time cannot overdraw together.
 *
 * Kept in DATASET.usage, lines {"token","at_s","trials","boot","boot_s"}, appended without a sync: a restart or a crash
 * of the service forgets nothing, a power cut the last seconds. Only tokens with a quota are written. Units: trials;
 * seconds since 1970 (at_s). Threads: any, but for open and close. */
#ifndef SERVICE_QUOTA_H
#define SERVICE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "service/tokens.h"

struct quota; /* opaque */

/* Reads the file, which need not be there, and changes nothing. Fails: ST_ENVIRONMENT, ST_NO_MEMORY. A line that is no
 * such line is skipped: a crash may have cut the last one. */
enum status quota_open(const char *path, struct quota **out, struct error *err);
void quota_close(struct quota *quota); /* NULL is allowed */

/* How many trials the token has used within the last 24 hours, those that are reserved included. */
uint64_t quota_used(struct quota *quota, const char *token);

/* Reserve `most` trials or as many as are left, `least` of them at least: *granted. Without a quota it is `most`.
 * False: fewer than `least` are left; *wait_s is after how many seconds to ask again, 0 for never (`least` is over the
 * quota). O(minutes of a day). Out of memory counts as refused for a second. */
bool quota_reserve(struct quota *quota, const struct principal *who, uint64_t least, uint64_t most, uint64_t *granted,
                   unsigned *wait_s);

/* Of the `granted` trials `used` were used; give the rest back. */
void quota_settle(struct quota *quota, const struct principal *who, uint64_t granted, uint64_t used);

#endif
