/* See acquisition.h. From z = -3 upward h(z) is computed as it is written: at most one digit cancels. Below, with
 * t = -z, h = phi(t) (1 - t M(t)), where M = Phi(-t) / phi(t) is Mills' ratio. Laplace's continued fraction
 *
 *   M(t) = 1 / (t + r(t)),   r(t) = 1 / (t + 2 / (t + 3 / (t + ...)))
 *
 * turns the difference into a quotient, 1 - t M = r / (t + r), in which nothing cancels, and the slope of the logarithm
 * into 1 / r. The paper's branch computes the difference from erfcx and needs a third branch far out; this needs none.
 * TERMS reach double precision at t = 3; about 0.1 us a value. */
#include "tuner/search/acquisition.h"

#include <math.h>

enum { TERMS = 48 };
#define TAIL         (-3.0)
#define LOG_SQRT_2PI 0.91893853320467274178

static double density(double z) {
    return exp(-z * z / 2 - LOG_SQRT_2PI);
}

static double distribution(double z) {
    return erfc(-z * M_SQRT1_2) / 2;
}

/* r(t) of the paragraph above, t >= 3. */
static double fraction(double t) {
    double r = 0;
    for (int k = TERMS; k >= 1; k--)
        r = k / (t + r);
    return r;
}

double acquisition_log_h(double z) {
    if (z > TAIL)
        return log(density(z) + z * distribution(z));
    if (z < -1e150)
        return -INFINITY;
    double t = -z, r = fraction(t);
    return -t * t / 2 - LOG_SQRT_2PI + log(r / (t + r));
}

double acquisition_log_h_slope(double z) {
    if (z > TAIL)
        return distribution(z) / (density(z) + z * distribution(z));
    return 1 / fraction(-z);
}

double acquisition_log_ei(double best, double mean, double sd) {
    double gain = best - mean;
    if (sd > 0)
        return log(sd) + acquisition_log_h(gain / sd);
    return gain > 0 ? log(gain) : -INFINITY;
}

/* With r = sqrt(sd^2 + noise^2), 1 - noise / r = sd^2 / (r (r + noise)), in which nothing cancels. */
double acquisition_log_taught(double sd, double noise) {
    double r = hypot(sd, noise);
    return noise > 0 ? 2 * log(sd) - log(r) - log(r + noise) : 0;
}

double acquisition_log_taught_slope(double sd, double noise) {
    double r = hypot(sd, noise);
    return noise > 0 ? noise / r * ((r + noise) / r) / sd : 0;
}
