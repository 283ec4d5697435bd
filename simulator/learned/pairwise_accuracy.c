/* See simulator/learned/pairwise_accuracy.h. */
#include "simulator/learned/pairwise_accuracy.h"

#include <math.h>

double pairwise_accuracy(size_t n, const double *us, const double *score, const uint32_t *domain) {
    size_t pairs = 0, twice = 0; /* twice the pairs in order, so that halves stay whole */
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (domain[i] != domain[j] || !(us[i] < us[j]))
                continue;
            pairs++;
            twice += score[i] < score[j] ? 2 : score[i] == score[j];
        }
    }
    return pairs ? (double)twice / 2 / (double)pairs : NAN;
}
