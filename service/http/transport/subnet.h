/* What counts as one client where connections are limited: an IPv4 address, or an IPv6 network of 64 bits, since
 * whoever has one address of such a network has all of them (RFC 6177). IPv4 addresses as IPv6 sockets see them,
 * ::ffff:a.b.c.d, are IPv4 addresses. */
#ifndef SERVICE_HTTP_TRANSPORT_SUBNET_H
#define SERVICE_HTTP_TRANSPORT_SUBNET_H

#include <stdbool.h>
#include <sys/socket.h>

struct subnet {
    unsigned char bytes[9]; /* 4 or 6, and the address's first 4 or 8 bytes; all 0 for other families */
};

void subnet_of(const struct sockaddr *address, struct subnet *out);
bool subnet_same(const struct subnet *a, const struct subnet *b);

#endif
