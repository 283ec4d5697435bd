/* How much memory requests hold together: their bodies, what these are parsed into, and answers on their way. Every
 * piece belongs to a team, and no team may hold more than half. So the memory of the service has a bound, whoever asks.
 * Another one of these counts what uploads take of the disk (upload.h).
 * Threads: any. */
#ifndef SERVICE_HTTP_TRANSPORT_MEMORY_H
#define SERVICE_HTTP_TRANSPORT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory; /* opaque */

struct memory *memory_new(uint64_t most_bytes); /* NULL when memory is out */
void memory_free(struct memory *memory);        /* NULL is allowed */

/* May `owner` hold `bytes` more? False: there is no room for them now. What was taken is given back by its owner. */
bool memory_take(struct memory *memory, const char *owner, uint64_t bytes);

/* Count them even over the limit. False: there is no memory to count them. */
bool memory_count(struct memory *memory, const char *owner, uint64_t bytes);
void memory_give(struct memory *memory, const char *owner, uint64_t bytes);

uint64_t memory_held(struct memory *memory);
uint64_t memory_share(const struct memory *memory); /* what one owner may hold at most */

#endif
