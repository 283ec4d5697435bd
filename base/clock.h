/* Monotonic time, sleeps, and stamps that people read. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>

double clock_now_us(void); /* monotonic, from an arbitrary start */
void clock_sleep_us(double us);
void clock_utc(char *out, size_t n); /* "2026-11-21T08:41:17.123Z"; n >= 25 */

/* Whether `text` is such a time, of a day that there is; no leap second. */
bool clock_is_utc(const char *text);

/* The same of `us` later, or earlier where negative; at most a century. */
void clock_utc_after(double us, char *out, size_t n);

#endif
