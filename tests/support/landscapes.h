/* Functions whose minima are known, for optimizers (Dixon and Szego 1978, Towards Global Optimisation 2), and ways to
 * measure how near an optimizer comes. */
#ifndef TESTS_SUPPORT_LANDSCAPES_H
#define TESTS_SUPPORT_LANDSCAPES_H

#include <math.h>
#include <stddef.h>

#include "tuner/search/bayes_space.h"

struct landscape {
    const char *name;
    double (*at)(const double *x);
    size_t n;
    const struct bayes_dimension *dimensions;
    double least;
};

static inline double branin(const double *x) {
    double a = x[1] - 5.1 / (4 * M_PI * M_PI) * x[0] * x[0] + 5 / M_PI * x[0] - 6;
    return a * a + 10 * (1 - 1 / (8 * M_PI)) * cos(x[0]) + 10;
}

static inline double camel(const double *x) {
    double a = x[0] * x[0], b = x[1] * x[1];
    return (4 - 2.1 * a + a * a / 3) * a + x[0] * x[1] + (4 * b - 4) * b;
}

static inline double hartmann6(const double *x) {
    static const double height[4] = {1, 1.2, 3, 3.2};
    static const double width[4][6] = {
        {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
    static const double centre[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                        {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                        {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                        {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        double q = 0;
        for (int k = 0; k < 6; k++)
            q += width[i][k] * (x[k] - centre[i][k]) * (x[k] - centre[i][k]);
        sum -= height[i] * exp(-q);
    }
    return sum;
}

static const struct bayes_dimension branin_box[] = {{BAYES_LINEAR, -5, 10}, {BAYES_LINEAR, 0, 15}};
static const struct bayes_dimension camel_box[] = {{BAYES_LINEAR, -3, 3}, {BAYES_LINEAR, -2, 2}};
static const struct bayes_dimension unit_box[] = {{BAYES_LINEAR, 0, 1}, {BAYES_LINEAR, 0, 1}, {BAYES_LINEAR, 0, 1},
                                                  {BAYES_LINEAR, 0, 1}, {BAYES_LINEAR, 0, 1}, {BAYES_LINEAR, 0, 1}};

static const struct landscape landscapes[] = {{"Branin", branin, 2, branin_box, 0.39788735772973816},
                                              {"six-hump camel", camel, 2, camel_box, -1.0316284534898774},
                                              {"Hartmann-6", hartmann6, 6, unit_box, -3.32236801141551}};

#endif
