/* The rates of NICs in a cluster's weather (strategy/weather.h) as chart_timelines draws them. */
#ifndef REPORT_RATES_H
#define REPORT_RATES_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "report/charts.h"
#include "strategy/cluster.h"

/* When a rate changes for the first time after the beginning; INFINITY: never. Fails: ST_NO_MEMORY. */
enum status rates_first_change(const struct cluster *cluster, uint64_t seed, double *us, struct error *err);

/* Set timeline->weather for its window, which begins at from_us in the weather of `seed`: the slowest RATES_SHOWN of
 * those NICs and directions that are slower than the NIC's own rate, the slowest first. Fails: ST_NO_MEMORY. */
enum { RATES_SHOWN = 6 };
enum status rates_add(const struct cluster *cluster, uint64_t seed, double from_us, struct arena *arena,
                      struct chart_timeline *timeline, struct error *err);

#endif
