/* The trial to use after Bayesian optimization: that with the least posterior mean, which need not be the least value
 * seen, the luckiest noise. */
#ifndef TESTS_SUPPORT_TUNER_RECOMMEND_H
#define TESTS_SUPPORT_TUNER_RECOMMEND_H

#include "tuner/search/bayes.h"

struct recommendation {
    size_t trial;    /* in the history: not elsewhere unless all are */
    double mean, sd; /* of its value without noise */
};

/* By a process fitted to the history, which has at least one trial, in the space and with the prior of
 * bayes_new(n, dimensions, options). Fails like bayes_suggest. */
enum status recommend(size_t n, const struct bayes_dimension *dimensions, const struct bayes_options *options,
                      const struct bayes_history *history, struct recommendation *out, struct error *err);

#endif
