/* Time against memory: which strategies are worth their memory (tuner/predict/advice.h), as a table and as a picture.
 */
#ifndef CLI_FRONT_H
#define CLI_FRONT_H

#include "base/error.h"
#include "tuner/predict/advice.h"

/* Print those on the front. */
void front_print(const struct advice *advice);

/* Draw all candidates, a line a way, and the front behind them. Fails: ST_NO_MEMORY, as json_write_file. */
enum status front_write_plot(const struct advice *advice, const char *path, struct error *err);

#endif
