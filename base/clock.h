/* Time that never jumps. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>

double clock_now_us(void); /* monotonic, from an arbitrary start */
void clock_sleep_us(double us);
void clock_utc(char *out, size_t n); /* "2026-11-21T08:41:17.123Z"; n >= 25 */

/* The same of `us` later, or earlier where negative; at most a century. */
void clock_utc_after(double us, char *out, size_t n);

#endif
