/* Quantities as people write and read them.
 *
 * Inside, times are microseconds (_us, double), sizes bytes (_bytes, uint64_t), rates bytes per microsecond
 * (_bytes_per_us, which is also MB/s). */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* "64", "64K", "4MiB", "25 MB", "1G": K, M, G, T alone and KiB, MiB, GiB, TiB are powers of 1024; KB, MB, GB, TB are
 * powers of 1000. Fails: ST_USAGE. */
enum status units_parse_bytes(const char *text, uint64_t *bytes, struct error *err);

/* The same of memory: a number without a unit below a million is refused, since nobody means "--memory 24" as bytes,
 * and so is 0. */
enum status units_parse_memory(const char *text, uint64_t *bytes, struct error *err);

/* "90", "90s", "5m" or "5min", "1.5h", "2d", "250ms", "40us" to microseconds; a bare number is seconds.
 * Fails: ST_USAGE. */
enum status units_parse_time(const char *text, double *us, struct error *err);

/* Short text into out[n], which is returned: "4 MiB", "25.0 MiB", "812 µs", "3.42 ms", "1.207 s", "2 min 05 s". */
const char *units_format_bytes(uint64_t bytes, char *out, size_t n);
const char *units_format_time(double us, char *out, size_t n);

/* With at least four digits, so that what differs by 0.1% looks different: "11.04 GiB". */
const char *units_format_bytes_finely(uint64_t bytes, char *out, size_t n);

/* What memory may be had, as somebody says it and as it is: "80GB (74.51 GiB)", "24 GiB", "35.25 KiB". */
const char *units_format_budget(uint64_t bytes, char *out, size_t n);

/* As units_format_time, or `unknown` where a measured or predicted time is not known: NAN, infinite, or 0 and less. */
const char *units_format_known_time(double us, const char *unknown, char *out, size_t n);

/* Gigabit per second and gigabyte per second to bytes per microsecond. */
static inline double units_gbit_per_s(double gbit) {
    return gbit * 125.0;
}
static inline double units_gbyte_per_s(double gbyte) {
    return gbyte * 1000.0;
}

#endif
