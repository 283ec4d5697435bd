/* A line each for the rate, what was dropped, the delays and the workers, and a picture of the delays. */
#include "cli/updates_output.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/delays_output.h"

static void print_delays(const struct trial_updates *u) {
    text_print(stdout, "delays: mean %.2f, variance %.2f, largest %.0f\n", u->delay_mean, u->delay_variance,
               u->delay_largest);
}

/* Shares by delay, predicted beside measured. */
static void print_histograms(const struct trial_updates *u, const struct updates_prediction *predicted) {
    static const char *const names[] = {"predicted", "measured"};
    struct delay_counts counts[2] = {0};
    delays_add_predicted(predicted, &counts[0]);
    delays_add_measured(u, &counts[1]);
    delays_print(2, names, counts);
}

static void print_workers(const struct trial_updates *u) {
    char time[32];
    text_print(stdout, "workers' iterations:");
    for (uint32_t w = 0; w < u->n_workers; w++)
        text_print(stdout, "%s %s (%u)", w > 0 ? "," : "", units_format_time(u->workers[w].mean_us, time, sizeof time),
                   u->workers[w].iterations);
    text_print(stdout, "\n");
}

void training_print(const char *task, const struct trial_training *t) {
    char last[32] = "no finite number", time[32];
    if (!isnan(t->last))
        snprintf(last, sizeof last, "%.4g", t->last);
    text_print(stdout, "%s: loss from %.4g to %s; the least is %.4g; ", task, t->first, last, t->least);
    if (t->reached)
        text_print(stdout, "%.4g was reached after %.0f updates and %s\n", t->target, t->reached_update,
                   units_format_time(t->reached_us, time, sizeof time));
    else
        text_print(stdout, "%.4g was not reached\n", t->target);
}

static void print_takeover(const struct trial_takeover *t) {
    char silent[32], took[32];
    text_print(
        stdout,
        "The server died after at least %.0f updates. The replica had %.0f, and was at most %.3g norms of an update "
        "behind (bound %.3g).\n",
        t->server_updates, t->replica_updates, t->divergence, t->bound);
    text_print(stdout, "It noticed after %s, and served %s later. Updates that workers then sent it: %.0f.\n",
               units_format_time(t->silent_us, silent, sizeof silent), units_format_time(t->took_us, took, sizeof took),
               t->recovered);
    text_print(stdout, "Models that workers had from the server, found equal to its own: %.0f\n", t->compared);
}

static void print_predicted(double measured_us, double us, const struct updates_prediction *p) {
    char round[32];
    text_print(stdout,
               "predicted: %u of them in %s (%+.1f%%); %.1f%% dropped; delays: mean %.2f, variance %.2f, largest %lu\n",
               p->workers, units_format_time(us, round, sizeof round), (us / measured_us - 1) * 100,
               updates_share_dropped(p) * 100, updates_delay_mean(p), updates_delay_variance(p),
               (unsigned long)p->delay_most);
}

bool updates_add_figures(cJSON *to, const struct updates_prediction *p) {
    return cJSON_AddNumberToObject(to, "dropped_share", updates_share_dropped(p)) &&
           cJSON_AddNumberToObject(to, "delay_mean", updates_delay_mean(p)) &&
           cJSON_AddNumberToObject(to, "delay_variance", updates_delay_variance(p)) &&
           cJSON_AddNumberToObject(to, "delay_largest", (double)p->delay_most);
}

bool updates_add_predicted(cJSON *root, const struct updates_prediction *p) {
    int n = UPDATES_DELAYS;
    while (n > 0 && p->delays[n - 1] <= 0)
        n--;
    cJSON *json = cJSON_AddObjectToObject(root, "predicted_updates"), *delays = cJSON_CreateDoubleArray(p->delays, n);
    return json && delays && cJSON_AddItemToObject(json, "delays", delays) && updates_add_figures(json, p);
}

void updates_print(const char *strategy, const struct summary *rounds, uint64_t seed, const struct trial_updates *u,
                   double predicted_us, const struct updates_prediction *predicted) {
    char each[32], mean[32], weather[64] = "";
    if (seed > 0)
        snprintf(weather, sizeof weather, "in weather %llu ", (unsigned long long)seed);
    text_print(stdout, "%s: %s%.1f useful updates a second, one in %s; %u of them in %s (mean of %zu)\n", strategy,
               weather, trial_updates_rate(u), units_format_time(trial_updates_each_us(u), each, sizeof each),
               u->n_workers, units_format_time(rounds->mean_us, mean, sizeof mean), rounds->n);
    text_print(stdout, "dropped: %.0f of %.0f updates (%.1f%%), %.0f by the scheduler, %.0f too late at a server\n",
               u->dropped + u->late, u->useful + u->dropped + u->late, trial_updates_dropped(u) * 100, u->dropped,
               u->late);
    if (u->summed > 0)
        text_print(stdout, "added up on their way: %.0f of %.0f updates\n", u->summed, u->useful);
    if (u->copies > 0)
        text_print(stdout, "copies for the replica: %.0f; it was at most %.3g norms of an update behind\n", u->copies,
                   u->divergence_most);
    if (u->takeover.given)
        print_takeover(&u->takeover);
    if (u->passed > 0)
        text_print(stdout, "models passed on by workers' nodes: %.0f\n", u->passed);
    print_delays(u);
    print_workers(u);
    print_predicted(rounds->mean_us, predicted_us, predicted);
    print_histograms(u, predicted);
}

static bool add_workers(cJSON *json, const struct trial_updates *u) {
    cJSON *list = cJSON_AddArrayToObject(json, "workers");
    bool ok = list;
    for (uint32_t w = 0; w < u->n_workers && ok; w++) {
        cJSON *worker = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(list, worker) &&
             cJSON_AddNumberToObject(worker, "iterations", u->workers[w].iterations) &&
             cJSON_AddNumberToObject(worker, "mean_us", u->workers[w].mean_us);
    }
    return ok;
}

static bool add_losses(cJSON *json, const struct trial_training *t) {
    cJSON *list = cJSON_AddArrayToObject(json, "losses");
    bool ok = list;
    for (size_t i = 0; i < t->n_losses && ok; i++) {
        cJSON *loss = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(list, loss) && cJSON_AddNumberToObject(loss, "update", t->losses[i].update) &&
             cJSON_AddNumberToObject(loss, "time_us", t->losses[i].time_us) &&
             json_add_known(loss, "loss", t->losses[i].loss);
    }
    return ok;
}

bool training_add(cJSON *root, const struct trial_training *t) {
    cJSON *json = cJSON_AddObjectToObject(root, "training");
    return json && trial_training_add_figures(t, json) && add_losses(json, t);
}

bool updates_add(cJSON *root, const struct trial_updates *u) {
    cJSON *json = trial_updates_write(u, root);
    return json && cJSON_AddNumberToObject(json, "each_us", trial_updates_each_us(u)) && add_workers(json, u) &&
           (!u->takeover.given || trial_takeover_write(&u->takeover, root));
}
