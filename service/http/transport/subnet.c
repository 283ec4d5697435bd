/* See subnet.h. */
#include "service/http/transport/subnet.h"

#include <netinet/in.h>
#include <string.h>

static void take(struct subnet *out, unsigned char version, const void *bytes, size_t n) {
    out->bytes[0] = version;
    memcpy(out->bytes + 1, bytes, n);
}

void subnet_of(const struct sockaddr *address, struct subnet *out) {
    *out = (struct subnet){{0}};
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        take(out, 4, &v4.sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
            take(out, 4, v6.sin6_addr.s6_addr + 12, 4);
        else
            take(out, 6, v6.sin6_addr.s6_addr, 8);
    }
}

bool subnet_same(const struct subnet *a, const struct subnet *b) {
    return !memcmp(a->bytes, b->bytes, sizeof a->bytes);
}
