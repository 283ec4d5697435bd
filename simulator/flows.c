/* Levels by local repair. The level of a resource is the rate of those of its flows that no other resource holds back.
 * A flow's rate is the lowest level on its way. When a resource's flows change, or the flows that are held back
 * elsewhere, its level is worked out anew. This may move the rates of some flows, and then the other resources of those
 * flows wait for their turn, until nothing moves.
 *
 * The repair ends in the fair rates. Every level is at least the resource's capacity over its flows. So once all
 * waiting resources had a turn, no level is below the smallest of these quotients. The resource with that quotient then
 * has its final level, and its flows their final rates. The same argument holds for the next smallest, and so on. So
 * there are at most resources + 1 rounds over the queue, and what still moves after them is rounding. A small change
 * seldom reaches far, because it passes only from lower levels to higher ones: that is why this is faster than filling
 * all anew. */
#include "simulator/flows.h"

#include <math.h>

/* A smaller change of a level counts as none, so that rounding does not spread. */
static const double SAME = 1e-14;

static void place_members(struct flows *flows) {
    uint32_t at = 0, n_uses = flows->first[flows->n_classes];
    for (uint32_t r = 0; r < flows->n_resources; r++)
        flows->resource[r] = (struct flow_resource){.level = INFINITY};
    for (uint32_t i = 0; i < n_uses; i++)
        flows->resource[flows->uses[i]].n_members++;
    for (uint32_t r = 0; r < flows->n_resources; r++) {
        flows->resource[r].first_member = at;
        at += flows->resource[r].n_members;
        flows->resource[r].n_members = 0;
    }
}

void flows_clear(struct flows *flows) {
    place_members(flows);
    for (uint32_t c = 0; c < flows->n_classes; c++)
        flows->class[c] = (struct flow_class){.rate = 0};
    flows->n_touched = flows->n_changed = flows->n_queue = flows->head = 0;
}

void flows_add(struct flows *flows, uint32_t c, double weight) {
    struct flow_class *class = &flows->class[c];
    class->weight += weight;
    if (!class->touched)
        flows->touched[flows->n_touched++] = c;
    class->touched = true;
}

static void wait_for_turn(struct flows *flows, uint32_t r) {
    if (flows->resource[r].waits)
        return;
    uint32_t at = flows->head + flows->n_queue++;
    flows->queue[at < flows->n_resources ? at : at - flows->n_resources] = r;
    flows->resource[r].waits = true;
}

void flows_set_capacity(struct flows *flows, uint32_t r, double capacity) {
    flows->capacity[r] = capacity;
    wait_for_turn(flows, r);
}

static void note_change(struct flows *flows, uint32_t c) {
    if (!flows->class[c].changed)
        flows->changed[flows->n_changed++] = c;
    flows->class[c].changed = true;
}

/* ---- members ---- */

static void join(struct flows *flows, uint32_t c) {
    for (uint32_t i = flows->first[c]; i < flows->first[c + 1]; i++) {
        struct flow_resource *resource = &flows->resource[flows->uses[i]];
        flows->use[i].place = resource->first_member + resource->n_members++;
        flows->members[flows->use[i].place] = (struct flow_member){.class = c, .use = i};
    }
}

static void leave(struct flows *flows, uint32_t c) {
    for (uint32_t i = flows->first[c]; i < flows->first[c + 1]; i++) {
        struct flow_resource *resource = &flows->resource[flows->uses[i]];
        struct flow_member last = flows->members[resource->first_member + --resource->n_members];
        flows->members[flows->use[i].place] = last;
        flows->use[last.use].place = flows->use[i].place;
    }
}

/* The lowest level on the way of a class, without resource `but` (NONE: with all). */
enum { NONE = UINT32_MAX };
static double lowest_level(const struct flows *flows, uint32_t c, uint32_t but) {
    double lowest = INFINITY;
    for (uint32_t i = flows->first[c]; i < flows->first[c + 1]; i++) {
        double level = flows->resource[flows->uses[i]].level;
        if (flows->uses[i] != but && level < lowest)
            lowest = level;
    }
    return lowest;
}

static void take_in(struct flows *flows, uint32_t c) {
    struct flow_class *class = &flows->class[c];
    class->touched = false;
    if (class->weight == class->settled)
        return;
    if (class->settled == 0) {
        join(flows, c);
        class->rate = lowest_level(flows, c, NONE);
        note_change(flows, c);
    } else if (class->weight == 0) {
        leave(flows, c);
        class->rate = 0;
    }
    class->settled = class->weight;
    for (uint32_t i = flows->first[c]; i < flows->first[c + 1]; i++) {
        if (class->weight != 0)
            flows->members[flows->use[i].place].load = class->weight * flows->use[i].times;
        wait_for_turn(flows, flows->uses[i]);
    }
}

/* ---- levels ---- */

/* The resource's flows in two parts: those that another resource holds below `guess`, and the others. */
struct demand {
    double held_load, held_limit; /* bandwidth of the first part, and its largest limit */
    double open, open_limit;      /* number of the others, and their smallest limit */
};

static struct demand demand_at(const struct flows *flows, uint32_t n, double guess) {
    const double *limit = flows->scratch, *load = flows->scratch + flows->n_classes;
    struct demand d = {.open_limit = INFINITY};
    for (uint32_t k = 0; k < n; k++) {
        if (limit[k] < guess) {
            d.held_load += load[k] * limit[k];
            d.held_limit = limit[k] > d.held_limit ? limit[k] : d.held_limit;
        } else {
            d.open += load[k];
            d.open_limit = limit[k] < d.open_limit ? limit[k] : d.open_limit;
        }
    }
    return d;
}

static void gather_limits(const struct flows *flows, uint32_t r) {
    const struct flow_resource *resource = &flows->resource[r];
    const struct flow_member *member = flows->members + resource->first_member;
    double *limit = flows->scratch, *load = flows->scratch + flows->n_classes;
    for (uint32_t k = 0; k < resource->n_members; k++) {
        double rate = flows->class[member[k].class].rate;
        limit[k] = rate < resource->level ? rate : lowest_level(flows, member[k].class, r);
        load[k] = member[k].load;
    }
}

/* Mostly the same flows are held back as before. If not, the level is raised step by step: the flows whose limit is
 * below the level take their limit, and the others share the rest, which is a higher level. */
static double level_of(const struct flows *flows, uint32_t r) {
    uint32_t n = flows->resource[r].n_members;
    double capacity = flows->capacity[r], level;
    gather_limits(flows, r);
    struct demand d = demand_at(flows, n, flows->resource[r].level);
    if (d.open == 0 && d.held_load <= capacity)
        return INFINITY;
    level = (capacity - d.held_load) / d.open;
    if (d.held_limit <= level && level <= d.open_limit)
        return level;
    d = demand_at(flows, n, 0);
    for (double open = INFINITY; d.open < open && d.open > 0;) {
        open = d.open;
        level = (capacity - d.held_load) / open;
        d = demand_at(flows, n, level);
    }
    return d.open > 0 ? level : INFINITY;
}

static void set_rate(struct flows *flows, uint32_t c, uint32_t by, double rate) {
    flows->class[c].rate = rate;
    note_change(flows, c);
    for (uint32_t i = flows->first[c]; i < flows->first[c + 1]; i++)
        if (flows->uses[i] != by)
            wait_for_turn(flows, flows->uses[i]);
}

static void repair(struct flows *flows, uint32_t r) {
    struct flow_resource *resource = &flows->resource[r];
    double before = resource->level, level = level_of(flows, r);
    if (level == before || fabs(level - before) <= SAME * (level < before ? level : before))
        return;
    resource->level = level;
    for (uint32_t k = 0; k < resource->n_members; k++) {
        uint32_t c = flows->members[resource->first_member + k].class;
        double rate = flows->class[c].rate;
        if (level < rate)
            set_rate(flows, c, r, level);
        else if (rate == before && (rate = lowest_level(flows, c, NONE)) != before)
            set_rate(flows, c, r, rate);
    }
}

void flows_settle(struct flows *flows) {
    for (uint32_t i = 0; i < flows->n_changed; i++)
        flows->class[flows->changed[i]].changed = false;
    flows->n_changed = 0;
    for (uint32_t i = 0; i < flows->n_touched; i++)
        take_in(flows, flows->touched[i]);
    flows->n_touched = 0;
    uint64_t turns = (uint64_t)flows->n_resources * (flows->n_resources + 1);
    for (; flows->n_queue > 0 && turns > 0; turns--) {
        uint32_t r = flows->queue[flows->head];
        flows->head = flows->head + 1 < flows->n_resources ? flows->head + 1 : 0;
        flows->n_queue--;
        flows->resource[r].waits = false;
        repair(flows, r);
    }
}
