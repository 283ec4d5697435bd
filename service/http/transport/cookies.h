/* The cookie of who is signed in at the pages (service/sign_ins.h).
 *
 * Over TLS it is called __Host-syncopate, which browsers take from this host alone and send by TLS alone; else, on the
 * loopback or behind a proxy, syncopate_session. No script can read it, and it
 * comes along with nothing that another site's page asks for (SameSite=Strict). */
#ifndef SERVICE_HTTP_TRANSPORT_COOKIES_H
#define SERVICE_HTTP_TRANSPORT_COOKIES_H

#include "service/http/transport/request.h"
#include "service/http/transport/response.h"
#include "service/sign_ins.h"

/* The value that the browser sent. False: it sent none that can be one. */
bool cookie_read(const struct request *rq, char value[SIGN_IN_LENGTH + 1]);

/* Have the browser keep `value` for `seconds`; 0: forget it. What browsers were given before, a cookie with the token
 * itself, they are told to forget too. Fails: ST_NO_MEMORY. */
enum status cookie_set(struct request *rq, const char *value, int seconds, struct response *rs, struct error *err);

/* Who is signed in. False: nobody. */
bool cookie_principal(struct request *rq, struct principal *out);

#endif
