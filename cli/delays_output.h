/* How late updates are, as a picture in text: report/delays.h. */
#ifndef CLI_DELAYS_OUTPUT_H
#define CLI_DELAYS_OUTPUT_H

#include "report/delays.h"

/* Print the share of updates by delay, and of those dropped, of n strategies or of what was predicted and what was
 * measured, side by side as far as they fit. n is above 0. */
void delays_print(size_t n, const char *const *names, const struct delay_counts *counts);

#endif
