/* Time against memory: which strategies are worth their memory (tuner/predict/front.h), as a table and as a picture.
 */
#ifndef CLI_FRONT_H
#define CLI_FRONT_H

#include "base/error.h"
#include "tuner/predict/front.h"

/* Print those of n sorted points that are on the front, thinned; they become the first of the points. */
void front_print(size_t n, struct front_point *points);

/* Draw n sorted points with the front behind them, as steps. Points of one way look alike. Where points have no
 * way, those of one strategy look alike. Fails: ST_NO_MEMORY, as plot_write and json_write_file. */
enum status front_write_plot(size_t n, const struct front_point *points, const char *title, const char *path,
                             struct error *err);

#endif
