/* Processor sharing in virtual time (Parekh and Gallager 1993), one clock a class; see simulator/network.h. */
#include "simulator/network.h"

#include <math.h>

void network_clear(struct network *network) {
    network->n_active = 0;
    network->weight = 0;
    network->pace = network->timed_pace = 1;
    network->turns = 0;
    network->new_rates = 0;
    network->changed = false;
    for (uint32_t c = 0; c < network->n_classes; c++) {
        struct network_class *class = &network->classes[c];
        *class = (struct network_class){.heap = class->heap, .connection = class->connection};
    }
    for (uint32_t p = 0; p < network->n_ports; p++)
        network->ports[p] = (struct network_port){.saved = 0};
}

/* ---- transfers of a class ---- */

static bool before(const struct transfer *a, const struct transfer *b) {
    return a->end != b->end ? a->end < b->end : a->turn - b->turn > UINT32_MAX / 2;
}

static void heap_push(struct transfer *heap, uint32_t n, struct transfer item) {
    while (n > 0 && before(&item, &heap[(n - 1) / 2])) {
        heap[n] = heap[(n - 1) / 2];
        n = (n - 1) / 2;
    }
    heap[n] = item;
}

/* Remove heap[0]; n is the size before. */
static void heap_pop(struct transfer *heap, uint32_t n) {
    struct transfer item = heap[--n];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &item))
            break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

/* ---- classes by their next end ---- */

static void put(struct network *network, uint32_t at, struct network_active item) {
    network->active[at] = item;
    network->classes[item.class].place = at;
}

/* Of equal times the lower class comes first, so that the order is always the same. */
static bool ends_before(const struct network_active *a, const struct network_active *b) {
    return a->next_us != b->next_us ? a->next_us < b->next_us : a->class < b->class;
}

static void sift_down(struct network *network, uint32_t at, struct network_active item) {
    struct network_active *active = network->active;
    for (uint32_t child; (child = 2 * at + 1) < network->n_active; at = child) {
        if (child + 1 < network->n_active && ends_before(&active[child + 1], &active[child]))
            child++;
        if (!ends_before(&active[child], &item))
            break;
        put(network, at, active[child]);
    }
    put(network, at, item);
}

/* Put `item` at place `at`, or where above or below it belongs. */
static void settle(struct network *network, uint32_t at, struct network_active item) {
    struct network_active *active = network->active;
    for (; at > 0 && ends_before(&item, &active[(at - 1) / 2]); at = (at - 1) / 2)
        put(network, at, active[(at - 1) / 2]);
    sift_down(network, at, item);
}

static void settle_all(struct network *network) {
    for (uint32_t at = network->n_active / 2; at-- > 0;)
        sift_down(network, at, network->active[at]);
}

static void run_clock(struct network_class *class, double now_us) {
    class->clock += class->rate * (now_us - class->since_us);
    class->since_us = now_us;
}

static double next_end(const struct network_class *class, double now_us) {
    double left = class->end - class->clock;
    return left <= 0 ? now_us : class->rate > 0 ? now_us + left / class->rate : INFINITY;
}

static void foresee(struct network *network, uint32_t c, double now_us) {
    const struct network_class *class = &network->classes[c];
    settle(network, class->place, (struct network_active){next_end(class, now_us), c});
}

/* A rate that was worked out for an earlier transfer of this instant still holds. */
static void activate(struct network *network, uint32_t c, double now_us) {
    struct network_class *class = &network->classes[c];
    class->place = network->n_active;
    network->active[network->n_active++] = (struct network_active){INFINITY, c};
    class->clock = 0;
    class->rate = c == network->timed ? network->timed_pace : network->flows ? network->flows->class[c].rate : 0;
    class->since_us = now_us;
}

static void retire(struct network *network, uint32_t c) {
    struct network_active last = network->active[--network->n_active];
    if (last.class != c)
        settle(network, network->classes[c].place, last);
}

/* ---- ports ---- */

static void save(const struct network *network, uint32_t port, double now_us) {
    struct network_port *p = &network->ports[port];
    double spare = network->flows->capacity[port] - p->used;
    p->saved = fmin(network->burst, p->saved + fmax(spare, 0) * (now_us - p->since_us));
    p->since_us = now_us;
}

/* The class's rate or weight has changed: the ports count anew how fast they are used. */
static void load_ports(struct network *network, uint32_t c, double now_us) {
    const struct flows *flows = network->flows;
    struct network_class *class = &network->classes[c];
    double load = flows->class[c].rate * flows->class[c].weight, more = load - class->load;
    if (network->burst <= 0 || more == 0)
        return;
    class->load = load;
    for (uint32_t i = flows->first[c]; i < flows->first[c + 1]; i++) {
        if (flows->uses[i] >= network->n_ports)
            continue;
        save(network, flows->uses[i], now_us);
        network->ports[flows->uses[i]].used += more * flows->use[i].times;
    }
}

/* What each of `weight` transfers may send at once: the least that a port on the way has saved, in equal shares. 0 on a
 * way without ports, and for a connection that also passes a resource which is no port. */
static double saved_for(const struct network *network, uint32_t c, double weight, double now_us) {
    const struct flows *flows = network->flows;
    double least = INFINITY;
    for (uint32_t i = flows->first[c]; i < flows->first[c + 1]; i++) {
        if (flows->uses[i] >= network->n_ports && network->classes[c].connection)
            return 0;
        if (flows->uses[i] >= network->n_ports)
            continue;
        save(network, flows->uses[i], now_us);
        least = fmin(least, network->ports[flows->uses[i]].saved / (weight * flows->use[i].times));
    }
    return isfinite(least) ? least : 0;
}

/* Take from the ports what each of `weight` transfers sends at once, at most `amount`; returns it. */
static double take_saved(const struct network *network, uint32_t c, double amount, double weight, double now_us) {
    const struct flows *flows = network->flows;
    if (network->burst <= 0 || amount <= 0)
        return 0;
    double taken = fmin(amount, saved_for(network, c, weight, now_us));
    for (uint32_t i = flows->first[c]; taken > 0 && i < flows->first[c + 1]; i++)
        if (flows->uses[i] < network->n_ports)
            network->ports[flows->uses[i]].saved -= taken * weight * flows->use[i].times;
    return taken;
}

/* The turn of heap[0] has come. */
static void leap(struct network *network, uint32_t c, double now_us) {
    struct network_class *class = &network->classes[c];
    if (class->connection)
        class->clock += take_saved(network, c, class->end - class->clock, class->heap[0].weight, now_us);
}

/* ---- transfers ---- */

static void change(struct network *network, uint32_t c, double weight, double now_us) {
    if (c == network->timed)
        return;
    network->changed = true;
    if (!network->flows) {
        network->weight += weight;
        return;
    }
    flows_add(network->flows, c, weight);
    load_ports(network, c, now_us);
}

void network_add(struct network *network, uint32_t c, double amount, struct transfer transfer, double now_us) {
    struct network_class *class = &network->classes[c];
    bool waits = class->connection && class->n > 0;
    if (!class->connection && c != network->timed)
        amount -= take_saved(network, c, amount, transfer.weight, now_us);
    if (class->n == 0)
        activate(network, c, now_us);
    else
        run_clock(class, now_us);
    transfer.end = (waits ? class->last : class->clock) + amount;
    transfer.turn = class->connection ? network->turns++ : transfer.message;
    class->last = transfer.end;
    heap_push(class->heap, class->n++, transfer);
    class->end = class->heap[0].end;
    if (waits)
        return;
    leap(network, c, now_us);
    change(network, c, transfer.weight, now_us);
    foresee(network, c, now_us);
}

/* Each changed class moves in the heap; where many have changed, the whole heap is built anew. */
static void take_rates(struct network *network, const struct flows *flows, double now_us) {
    bool many = flows->n_changed > network->n_active / 4;
    network->new_rates += flows->n_changed;
    for (uint32_t i = 0; i < flows->n_changed; i++) {
        uint32_t c = flows->changed[i];
        struct network_class *class = &network->classes[c];
        if (class->n == 0)
            continue;
        run_clock(class, now_us);
        class->rate = flows->class[c].rate;
        load_ports(network, c, now_us);
        if (many)
            network->active[class->place].next_us = next_end(class, now_us);
        else
            foresee(network, c, now_us);
    }
    if (many)
        settle_all(network);
}

static void share(struct network *network, double now_us) {
    network->changed = false;
    if (!network->flows) {
        if (network->classes[0].n == 0)
            return;
        run_clock(&network->classes[0], now_us);
        network->classes[0].rate = network->pace / network->weight;
        foresee(network, 0, now_us);
        return;
    }
    flows_settle(network->flows);
    take_rates(network, network->flows, now_us);
}

void network_set_pace(struct network *network, double pace) {
    network->changed = network->changed || pace != network->pace;
    network->pace = pace;
}

void network_set_timed_pace(struct network *network, double pace, double now_us) {
    struct network_class *class = &network->classes[network->timed];
    network->timed_pace = pace;
    if (class->n == 0 || class->rate == pace)
        return;
    run_clock(class, now_us);
    class->rate = pace;
    foresee(network, network->timed, now_us);
}

void network_set_capacity(struct network *network, uint32_t resource, double capacity, double now_us) {
    if (network->flows->capacity[resource] == capacity)
        return;
    if (network->burst > 0 && resource < network->n_ports)
        save(network, resource, now_us);
    flows_set_capacity(network->flows, resource, capacity);
    network->changed = true;
}

double network_next_us(struct network *network, double now_us) {
    if (network->changed)
        share(network, now_us);
    return network->n_active > 0 ? network->active[0].next_us : INFINITY;
}

bool network_pop(struct network *network, double until_us, double now_us, struct transfer *out) {
    if (network->n_active == 0 || network->active[0].next_us > until_us)
        return false;
    uint32_t c = network->active[0].class;
    struct network_class *class = &network->classes[c];
    *out = class->heap[0];
    run_clock(class, now_us);
    heap_pop(class->heap, class->n--);
    class->end = class->heap[0].end;
    double next = class->connection && class->n > 0 ? class->heap[0].weight : 0;
    if (next != (double)out->weight)
        change(network, c, next - (double)out->weight, now_us);
    if (class->n == 0) {
        retire(network, c);
        return true;
    }
    leap(network, c, now_us);
    foresee(network, c, now_us);
    return true;
}

bool network_spends(struct network *network, double now_us) {
    static const double SLACK = 1e-9; /* of a burst */
    bool spends = false;
    for (uint32_t i = 0; network->burst > 0 && i < network->n_ports; i++) {
        struct network_port *p = &network->ports[i];
        save(network, i, now_us);
        spends = spends || p->marked - p->saved > SLACK * network->burst;
        p->marked = p->saved;
    }
    return spends;
}
