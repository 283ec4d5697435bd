/* Expected improvement in logarithms, for minimisation.
 *
 * What a point whose value is normal with `mean` and `sd` is expected to win over `best`:
 *
 *   EI = E max(best - value, 0) = sd * h(z),   h(z) = phi(z) + z Phi(z),   z = (best - mean) / sd
 *
 * EI itself underflows long before its ranking stops to matter: at z = -40 it is 1e-351. Its logarithm orders such
 * points still and has a useful slope everywhere (Ament, Daulton, Eriksson, Balandat and Bakshy, "Unexpected
 * improvements to expected improvement", 2023). Units: those of the value. Pure functions. */
#ifndef TUNER_SEARCH_ACQUISITION_H
#define TUNER_SEARCH_ACQUISITION_H

#include <stddef.h>

/* log h(z), to 1e-13 relative or 1e-15 absolute for every finite z; -INFINITY gives -INFINITY. */
double acquisition_log_h(double z);

/* d log h / dz = Phi(z) / h(z) > 0. */
double acquisition_log_h_slope(double z);

/* log EI; sd = 0 gives the logarithm of the certain gain, -INFINITY when there is none. */
double acquisition_log_ei(double best, double mean, double sd);

#endif
