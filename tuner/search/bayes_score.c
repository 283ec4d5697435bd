/* Candidates are predicted CHUNK at a time, on the stack. */
#include "tuner/search/bayes_score.h"

#include <math.h>

#include "tuner/search/acquisition.h"

enum { CHUNK = 128 };

void bayes_score(struct gp *gp, size_t n, const double *rows, const double *prior, double best, double *score) {
    double mean[CHUNK], variance[CHUNK], noise = gp_noise(gp);
    size_t columns = gp_columns(gp);
    for (size_t from = 0; from < n; from += CHUNK) {
        size_t m = n - from < CHUNK ? n - from : CHUNK;
        gp_predict(gp, m, rows + from * columns, prior ? prior + from : NULL, mean, variance);
        for (size_t i = 0; i < m; i++) {
            double sd = sqrt(variance[i]);
            score[from + i] = acquisition_log_ei(best, mean[i], sd) + acquisition_log_taught(sd, noise);
        }
    }
}

size_t bayes_choose(size_t n, const double *score) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (score[i] > score[best])
            best = i;
    return best;
}
