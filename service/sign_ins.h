/* Browsers that are signed in at the pages. Each has a random value of its own in a cookie; the value is not a token.
 *
 * A sign-in is bound to a token by its id: to know whether that token is still good, call tokens_confirm. It ends when
 * it was not used for `idle_us`, after `whole_us` in any case, and when somebody signs out. Only SHA-256 hashes are
 * kept, and only in memory: a restart of the service signs everybody out. When a token has SIGN_INS_PER_TOKEN sign-ins,
 * or the service SIGN_INS_MOST, the one that was used longest ago makes room.
 * Units: microseconds, of a clock that goes on while the machine sleeps. Threads: any. */
#ifndef SERVICE_SIGN_INS_H
#define SERVICE_SIGN_INS_H

#include <stdbool.h>

#include "base/error.h"
#include "service/tokens.h"

enum { SIGN_IN_LENGTH = 64, SIGN_INS_PER_TOKEN = 32, SIGN_INS_MOST = 4096 };

struct sign_ins; /* opaque */

/* NULL when memory is out. */
struct sign_ins *sign_ins_new(double idle_us, double whole_us);
void sign_ins_free(struct sign_ins *sign_ins); /* NULL is allowed */

/* A new sign-in by the token of this id; `value` is for the cookie, 64 hex digits (256 random bits). Fails:
 * ST_ENVIRONMENT (no random numbers). */
enum status sign_ins_begin(struct sign_ins *sign_ins, const char *token, char value[SIGN_IN_LENGTH + 1],
                           struct error *err);

/* The id of the token that this sign-in belongs to; the sign-in counts as used now. False: there is no such sign-in, or
 * it has ended. O(SIGN_INS_MOST) and one SHA-256. */
bool sign_ins_find(struct sign_ins *sign_ins, const char *value, char token[TOKEN_ID_LENGTH + 1]);

/* Whether the sign-in is still good. Asking does not count as use: it is for streams, which go on for long. */
bool sign_ins_holds(struct sign_ins *sign_ins, const char *value);

/* End the sign-in; nothing happens when there is none. */
void sign_ins_end(struct sign_ins *sign_ins, const char *value);

#endif
