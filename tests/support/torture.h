/* Allocation torture: every allocation of a function fails once.
 *
 * Only for test programs whose name ends in _torture: the Makefile links those with the wrapped allocator. It sees the
 * calls of our code and of cJSON, not those inside other libraries. */
#ifndef TESTS_SUPPORT_TORTURE_H
#define TESTS_SUPPORT_TORTURE_H

#include <stddef.h>

#include "base/error.h"

/* Run fn with its first allocation failing, then with its second, and so on until it meets no failing one. With a
 * failed allocation fn must return ST_NO_MEMORY with a message, without one ST_OK, and always free what it took;
 * anything else fails the test. Returns how many allocations were made to fail. */
size_t torture(enum status (*fn)(void *arg, struct error *err), void *arg);

#endif
