/* Monotonic time, sleeps, and stamps that people read. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>

double clock_now_us(void);  /* monotonic, from an arbitrary start */
double clock_real_us(void); /* the wall clock, from 1970-01-01 UTC */
void clock_sleep_us(double us);
void clock_utc(char *out, size_t n); /* "2026-11-21T08:41:17.123Z"; n >= 25 */

/* Is `text` a time in that form? The day must exist in the calendar. A leap second is refused. */
bool clock_is_utc(const char *text);

/* The time `us` from now, in that form; negative: before now. At most a century. */
void clock_utc_after(double us, char *out, size_t n);

#endif
