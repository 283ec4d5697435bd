/* The cookie of who is signed in at the pages (service/sign_ins.h).
 *
 * Over TLS it is called __Host-syncopate, which browsers take from this host alone and send by TLS alone; else, on the
 * loopback or behind a proxy, syncopate_session. No script can read it, and browsers do not send it with requests of
 * other sites' pages (SameSite=Strict). */
#ifndef SERVICE_HTTP_TRANSPORT_COOKIES_H
#define SERVICE_HTTP_TRANSPORT_COOKIES_H

#include "service/http/transport/request.h"
#include "service/http/transport/response.h"
#include "service/sign_ins.h"

/* The value that the browser sent. False: it sent none that can be one. */
bool cookie_read(const struct request *rq, char value[SIGN_IN_LENGTH + 1]);

/* Have the browser keep `value` for `seconds`; 0: forget it. Browsers are also told to forget the cookie of earlier
 * versions, which had the token itself. Fails: ST_NO_MEMORY. */
enum status cookie_set(struct request *rq, const char *value, int seconds, struct response *rs, struct error *err);

/* The principal who is signed in. False when nobody is. */
bool cookie_principal(struct request *rq, struct principal *out);

#endif
