/* What computing and messages keep of their speeds beside each other, from the times that the worker's bench measured
 * (trial-runner/worker/interference.h): the member "interference" of a cluster's description.
 *
 * Only what was measured is written: a share of which enough rounds are known, and whose interval stays below 1 by more
 * than 2%. */
#ifndef TRIAL_RUNNER_SHARES_H
#define TRIAL_RUNNER_SHARES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum shares_part { SHARES_STARTUP, SHARES_TRANSFER, SHARES_PARTS };
enum { SHARES_ROUNDS = 64, SHARES_LEAST_ROUNDS = 5 };

/* One round of a load. Microseconds. */
struct shares_times {
    double messages;                                    /* how many there were */
    double compute_us, messages_us, both_us, beside_us; /* as the line "interference" says */
};

struct shares_rounds {
    size_t n[SHARES_PARTS];
    struct shares_times times[SHARES_PARTS][SHARES_ROUNDS];
};

/* Keep the times of a line "interference". A line that lacks one, or of an unknown part, or too many, is ignored. */
void shares_add(struct shares_rounds *rounds, const cJSON *line);

struct share {
    size_t rounds;           /* of which it is known */
    double value, low, high; /* median over these rounds, and its interval; they may exceed 1; 0 without rounds */
    bool known;              /* there were enough rounds */
    bool kept;               /* known, and the interval stays below 1 by more than 2%: something was slowed */
    bool clamped; /* known, and the interval stays above 1 by more than 2%, which no share can be: it counts as 1 */
};

struct shares {
    struct {
        struct share compute, traffic;
    } parts[SHARES_PARTS];
};

struct shares shares_fit(const struct shares_rounds *rounds);

const char *shares_part_name(enum shares_part part); /* "startup", "transfer" */

/* Add the member "interference" with the shares that are kept, if there are any. False when memory is out. */
bool shares_write(const struct shares *shares, cJSON *cluster);

#endif
