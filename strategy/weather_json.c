/* The weather of a seed as a trace, in the form in which a description has a recorded one. */
#include <stdlib.h>

#include "strategy/weather.h"

/* Add the ports whose rate is not the one in `last`, and remember theirs. */
static bool add_changes(const struct weather *w, double at_us, double *last, cJSON *changes) {
    const struct cluster *cluster = w->cluster;
    for (uint32_t port = 0; port < cluster->n_nodes * DIRECTION_COUNT; port++) {
        double rate = w->gbit_per_s[port];
        cJSON *change = rate == last[port] ? NULL : cJSON_CreateObject();
        if (rate == last[port])
            continue;
        last[port] = rate;
        if (!change || !cJSON_AddItemToArray(changes, change) || !cJSON_AddNumberToObject(change, "at_us", at_us) ||
            !cJSON_AddStringToObject(change, "node", cluster->nodes[port / DIRECTION_COUNT].name) ||
            !cJSON_AddStringToObject(change, "direction", direction_name(port % DIRECTION_COUNT)) ||
            !cJSON_AddNumberToObject(change, "gbit_per_s", rate))
            return false;
    }
    return true;
}

static bool add_all(struct weather *w, double until_us, double *last, cJSON *changes) {
    double at_us = 0;
    bool ok = true;
    weather_begin(w);
    while (ok && at_us < until_us) {
        ok = add_changes(w, at_us, last, changes);
        at_us = weather_next_us(w);
        if (at_us < until_us)
            weather_advance(w);
    }
    return ok;
}

bool weather_write(const struct cluster *cluster, uint64_t seed, double until_us, cJSON *to) {
    const uint32_t ports = cluster->n_nodes * DIRECTION_COUNT;
    double *rates = calloc((size_t)cluster->n_nodes * WEATHER_NUMBERS, sizeof *rates),
           *last = calloc(ports, sizeof *last);
    struct weather w = {.cluster = cluster, .seed = seed, .gbit_per_s = rates};
    cJSON *changes = NULL;
    bool ok = rates && last && cJSON_AddNumberToObject(to, "until_us", until_us) &&
              (changes = cJSON_AddArrayToObject(to, "changes"));
    for (uint32_t port = 0; ok && port < ports; port++)
        last[port] = cluster->nodes[port / DIRECTION_COUNT].nic_gbit_per_s;
    ok = ok && add_all(&w, until_us, last, changes);
    free(rates);
    free(last);
    return ok;
}
