/* A delay is a whole number; bars of one width show all of them, up to the first that stands for larger ones too. Where
 * updates come as several messages, each message has a delay: counts of those are scaled to the number of updates. */
#include "report/delays.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

/* With many workers a few rounds of two seeds have updates enough for a picture; all eight seeds would take a minute.
 */
enum { MANY_WORKERS = 64, FEW_SEEDS = 2, ENOUGH_UPDATES = 8192, LEAST_ROUNDS = 12 };

void delays_add_predicted(const struct updates_prediction *u, struct delay_counts *sum) {
    for (size_t d = 0; d < UPDATES_DELAYS; d++)
        sum->of_delay[d] += u->delays[d];
    sum->dropped += u->dropped;
    sum->late += u->late;
}

void delays_add_measured(const struct trial_updates *u, struct delay_counts *sum) {
    double all = 0;
    for (size_t d = 0; d < TRIAL_DELAYS; d++)
        all += u->of_delay[d];
    for (size_t d = 0; d < TRIAL_DELAYS && all > 0; d++)
        sum->of_delay[d] += u->of_delay[d] / all * u->useful;
    sum->dropped += u->dropped;
    sum->late += u->late;
    sum->measured = true;
}

/* Records may be other people's: what is no number of updates is not counted. */
static bool is_sound(const struct trial_updates *u) {
    double all = u->useful + u->dropped + u->late;
    for (size_t d = 0; d < TRIAL_DELAYS; d++)
        all += u->of_delay[d];
    return u->useful > 0 && all < 1e15;
}

bool delays_add_record(const struct record *record, struct delay_counts *sum) {
    struct trial_updates updates = {0};
    cJSON *json = record->environment_json ? cJSON_Parse(record->environment_json) : NULL;
    const cJSON *line = cJSON_GetObjectItemCaseSensitive(json, "updates");
    trial_updates_take(&updates, "updates", line);
    const bool any = line && is_sound(&updates);
    if (any)
        delays_add_measured(&updates, sum);
    cJSON_Delete(json);
    return any;
}

enum status delays_predict(struct predictor *p, const struct strategy *strategy, struct delay_counts *sum,
                           struct error *err) {
    struct expectation_options options = {.first_seed = p->weather};
    if (p->cluster->n_devices > MANY_WORKERS) {
        const uint32_t rounds = ENOUGH_UPDATES / FEW_SEEDS / p->cluster->n_devices;
        options.seeds = FEW_SEEDS;
        options.iterations = rounds > LEAST_ROUNDS ? rounds : LEAST_ROUNDS;
    }
    struct updates_prediction updates;
    struct expectation expected;
    enum status st = plan_relower(&p->plan, p->model, &p->corrected, strategy, err);
    if (!st)
        st = expectation_run_updates(&p->plan, &p->cost, &options, &expected, &updates, err);
    if (!st)
        delays_add_predicted(&updates, sum);
    return st;
}

/* The delay that stands for larger ones, where there are any of it. */
static size_t top_of(const struct delay_counts *counts) {
    const size_t top = counts->measured ? TRIAL_DELAYS - 1 : UPDATES_DELAYS - 1;
    return counts->of_delay[top] > 0 ? top : UPDATES_DELAYS;
}

struct delay_bars delays_bars(size_t n, const struct delay_counts *counts) {
    size_t delays = 1, top = UPDATES_DELAYS;
    struct delay_bars bars = {0};
    for (size_t i = 0; i < n; i++) {
        top = top_of(&counts[i]) < top ? top_of(&counts[i]) : top;
        for (size_t d = delays; d < UPDATES_DELAYS; d++)
            delays = counts[i].of_delay[d] > 0 ? d + 1 : delays;
    }
    bars.open = top < UPDATES_DELAYS;
    delays = bars.open ? top + 1 : delays;
    bars.width = (delays + DELAY_BARS - 1) / DELAY_BARS;
    bars.n = (delays + bars.width - 1) / bars.width;
    return bars;
}

const char *delays_bar_text(const struct delay_bars *bars, size_t bar, char out[DELAY_BAR_TEXT]) {
    const size_t first = bar * bars->width, last = first + bars->width - 1;
    if (bars->open && bar + 1 == bars->n)
        snprintf(out, DELAY_BAR_TEXT, "%zu+", first);
    else if (bars->width == 1)
        snprintf(out, DELAY_BAR_TEXT, "%zu", first);
    else
        snprintf(out, DELAY_BAR_TEXT, "%zu-%zu", first, last);
    return out;
}

static double all_of(const struct delay_counts *counts) {
    double all = counts->dropped + counts->late;
    for (size_t d = 0; d < UPDATES_DELAYS; d++)
        all += counts->of_delay[d];
    return all;
}

double delays_share(const struct delay_counts *counts, const struct delay_bars *bars, size_t bar) {
    const double all = all_of(counts);
    const size_t end = bar + 1 < bars->n ? (bar + 1) * bars->width : UPDATES_DELAYS;
    double sum = 0;
    for (size_t d = bar * bars->width; d < end; d++)
        sum += counts->of_delay[d];
    return all > 0 ? sum / all : 0;
}

double delays_share_dropped(const struct delay_counts *counts) {
    const double all = all_of(counts);
    return all > 0 ? (counts->dropped + counts->late) / all : 0;
}
