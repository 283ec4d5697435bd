/* See proposers.h. */
#include "tuner/search/proposers.h"

#include <math.h>
#include <string.h>

#define X(name, words) #name,
static const char *const names[] = {PROPOSER_TABLE(X)};
#undef X
#define X(name, words) words,
static const char *const abouts[] = {PROPOSER_TABLE(X)};
#undef X

const char *proposer_name(enum proposer proposer) {
    return names[proposer];
}

const char *proposer_label(enum proposer proposer) {
    return abouts[proposer];
}

void proposers_judge(size_t n, const struct tried *tried, struct proposer_score out[PROPOSER_COUNT]) {
    double best = INFINITY, sum = 0;
    memset(out, 0, PROPOSER_COUNT * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        for (int p = 0; p < PROPOSER_COUNT; p++) {
            bool its = tried[i].proposer && !strcmp(tried[i].proposer, names[p]);
            out[p].tried += its;
            out[p].wins += its && tried[i].us < best;
        }
        best = fmin(best, tried[i].us);
    }
    for (int p = 0; p < PROPOSER_COUNT; p++)
        sum += out[p].share = (1 + (double)out[p].wins) / (2 + (double)out[p].tried);
    for (int p = 0; p < PROPOSER_COUNT; p++)
        out[p].share = PROPOSER_LEAST + (1 - PROPOSER_COUNT * PROPOSER_LEAST) * out[p].share / sum;
}
