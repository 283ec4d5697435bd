/* Expected improvement in logarithms, for minimisation, plain and for noisy trials.
 *
 * The expected improvement over `best` of a point whose value is normal with `mean` and `sd`:
 *
 *   EI = E max(best - value, 0) = sd * h(z),   h(z) = phi(z) + z Phi(z),   z = (best - mean) / sd
 *
 * EI itself underflows long before its ranking stops mattering: at z = -40 it is 1e-351. Its logarithm orders such
 * points still and has a useful slope everywhere (Ament, Daulton, Eriksson, Balandat and Bakshy, "Unexpected
 * improvements to expected improvement", 2023).
 *
 * EI assumes that a trial measures the value exactly. Under noise EI repeats its favourite point long after further
 * trials of it have stopped teaching anything. Augmented EI weighs EI by the share of the uncertainty that one trial
 * removes (Huang, Allen, Notz and Zeng, "Global optimization of stochastic black-box systems via sequential kriging
 * meta-models", 2006):
 *
 *   AEI = EI * (1 - noise / sqrt(sd^2 + noise^2)), noise being the standard deviation of one trial
 *
 * Without noise the two are the same. Units: those of the value. Pure functions. */
#ifndef TUNER_SEARCH_ACQUISITION_H
#define TUNER_SEARCH_ACQUISITION_H

#include <stddef.h>

/* log h(z), to 1e-13 relative or 1e-15 absolute for every finite z; -INFINITY gives -INFINITY. */
double acquisition_log_h(double z);

/* d log h / dz = Phi(z) / h(z) > 0. */
double acquisition_log_h_slope(double z);

/* log EI; sd = 0 gives the logarithm of the certain gain, -INFINITY when there is none. */
double acquisition_log_ei(double best, double mean, double sd);

/* log of 1 - noise / sqrt(sd^2 + noise^2) and its derivative by sd; sd > 0, noise >= 0. At sd = 0 a trial teaches
 * nothing: -INFINITY with noise, 0 without. */
double acquisition_log_taught(double sd, double noise);
double acquisition_log_taught_slope(double sd, double noise);

#endif
