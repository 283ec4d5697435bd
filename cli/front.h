/* Time against memory: which strategies are worth their memory, as a table and as a picture.
 *
 * A strategy is on the front when all that need no more memory than it are slower. */
#ifndef CLI_FRONT_H
#define CLI_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct front_point {
    const char *way, *name; /* "FSDP", "fsdp-optimal" */
    const char *id;         /* of the strategy */
    uint32_t groups;
    double us;
    uint64_t bytes; /* that a device holds at most */
    bool on_front;  /* filled by front_find */
};

/* Sort the points by memory and mark those on the front. O(n log n). */
void front_find(size_t n, struct front_point *points);

/* Print those on the front. */
void front_print(size_t n, const struct front_point *points);

/* Draw all of them, a line a way, and the front behind them; `points` as front_find leaves them. Fails: ST_INVALID (no
 * point), ST_NO_MEMORY, as json_write_file. */
enum status front_write_plot(const char *title, size_t n, const struct front_point *points, const char *path,
                             struct error *err);

#endif
