/* The server's certificate, which can be replaced while it runs: connections that are open keep theirs, new ones get
 * the new one. The library asks for it at each handshake (MHD_OPTION_HTTPS_CERT_CALLBACK). Threads: any, but for open
 * and free. */
#ifndef SERVICE_HTTP_TRANSPORT_CERTIFICATES_H
#define SERVICE_HTTP_TRANSPORT_CERTIFICATES_H

#include <gnutls/abstract.h>

#include "base/error.h"

struct certificates; /* opaque */

/* PEM files: a chain whose first certificate is the server's, and its key; the paths are copied. Fails: ST_ENVIRONMENT
 * (a file cannot be read), ST_INVALID (no PEM, or they do not belong together), ST_NO_MEMORY. */
enum status certificates_open(const char *chain, const char *key, struct certificates **out, struct error *err);
void certificates_free(struct certificates *certificates); /* NULL is allowed; no connection may be left */

/* Read both files again. Fails as certificates_open; then the old ones stay. */
enum status certificates_reload(struct certificates *certificates, struct error *err);

/* A connection that has not shaken hands yet gets the newest when it does. */
void certificates_offer(struct certificates *certificates, gnutls_session_t session);

/* For MHD_OPTION_HTTPS_CERT_CALLBACK, of sessions that were offered one. */
gnutls_certificate_retrieve_function2 certificates_retrieve;

#endif
