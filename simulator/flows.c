/* Progressive filling: raise all rates together; where a resource fills up, its flows stop there and the rest go on.
 * Each round stops at least one resource, and all that fill up together stop in one round, so that symmetric clusters
 * need a round or two. */
#include "simulator/flows.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Two resources fill up together when their levels differ by rounding only. */
static const double TOGETHER = 1 + 1e-12;

static inline void take(const struct flows *flows, uint32_t class, double amount, double weight, double *left,
                        double *load) {
    for (uint32_t i = flows->first[class]; i < flows->first[class + 1]; i++) {
        uint32_t resource = flows->uses[i];
        left[resource] -= amount;
        load[resource] += weight;
    }
}

static inline double lowest_level(const struct flows *flows, const double *left, const double *load) {
    double level = INFINITY;
    for (uint32_t r = 0; r < flows->n_resources; r++)
        if (load[r] > 0 && left[r] < level * load[r])
            level = left[r] / load[r];
    return fmax(level, 0);
}

static inline bool is_stopped(const struct flows *flows, uint32_t class, double level, const double *left,
                              const double *load) {
    for (uint32_t i = flows->first[class]; i < flows->first[class + 1]; i++) {
        uint32_t r = flows->uses[i];
        if (left[r] <= level * load[r] * TOGETHER)
            return true;
    }
    return false;
}

void flows_fill(const struct flows *flows, const double *weight, uint32_t n_active, uint32_t *active, double *rate,
                double *scratch) {
    double *left = scratch, *load = scratch + flows->n_resources;
    memcpy(left, flows->capacity, flows->n_resources * sizeof *left);
    memset(load, 0, flows->n_resources * sizeof *load);
    for (uint32_t i = 0; i < n_active; i++)
        take(flows, active[i], 0, weight[active[i]], left, load);
    while (n_active > 0) {
        double level = lowest_level(flows, left, load);
        uint32_t stopped = n_active;
        /* Stopped classes gather at the end; capacities change only after all of this round are known. */
        for (uint32_t i = 0; i < stopped;) {
            uint32_t class = active[i];
            if (!is_stopped(flows, class, level, left, load)) {
                i++;
                continue;
            }
            active[i] = active[--stopped];
            active[stopped] = class;
        }
        for (uint32_t i = stopped; i < n_active; i++) {
            uint32_t class = active[i];
            rate[class] = level;
            take(flows, class, level * weight[class], -weight[class], left, load);
        }
        n_active = stopped;
    }
}
