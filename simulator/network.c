/* Processor sharing in virtual time (Parekh and Gallager 1993), one clock a class; see network.h. */
#include "simulator/network.h"

#include <math.h>

void network_clear(struct network *network) {
    network->n_active = network->n_filled = 0;
    network->filled = 0;
    network->changed = false;
    for (uint32_t c = 0; c < network->n_classes; c++) {
        struct transfer *heap = network->classes[c].heap;
        network->classes[c] = (struct network_class){.heap = heap, .next_us = INFINITY};
        network->weight[c] = network->rate[c] = 0;
    }
}

static bool before(const struct transfer *a, const struct transfer *b) {
    return a->end != b->end ? a->end < b->end : a->message < b->message;
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

static void run_clock(struct network_class *class, double now_us) {
    class->clock += class->rate * (now_us - class->since_us);
    class->since_us = now_us;
}

static void foresee(struct network_class *class, double now_us) {
    double left = class->heap[0].end - class->clock;
    class->next_us = left <= 0 ? now_us : class->rate > 0 ? now_us + left / class->rate : INFINITY;
}

static void activate(struct network *network, uint32_t c, double now_us) {
    struct network_class *class = &network->classes[c];
    class->place = network->n_active;
    network->active[network->n_active++] = c;
    class->clock = class->rate = 0;
    class->since_us = now_us;
}

static void retire(struct network *network, uint32_t c) {
    struct network_class *class = &network->classes[c];
    uint32_t last = network->active[--network->n_active];
    network->active[class->place] = last;
    network->classes[last].place = class->place;
    class->next_us = INFINITY;
}

void network_add(struct network *network, uint32_t c, uint32_t weight, double amount, uint32_t message, double began_us,
                 double now_us) {
    struct network_class *class = &network->classes[c];
    if (class->n == 0)
        activate(network, c, now_us);
    else
        run_clock(class, now_us);
    heap_push(class->heap, class->n++, (struct transfer){class->clock + amount, began_us, message, weight});
    network->weight[c] += weight;
    network->changed = true;
    foresee(class, now_us);
}

static void set_rate(struct network_class *class, double rate, double now_us) {
    run_clock(class, now_us);
    class->rate = rate;
    foresee(class, now_us);
}

/* The same classes with the same weights as when rates were last worked out: often so where one transfer follows
 * another. */
static bool is_as_filled(const struct network *network) {
    if (network->n_active != network->n_filled)
        return false;
    for (uint32_t i = 0; i < network->n_active; i++) {
        uint32_t c = network->active[i];
        if (network->classes[c].filled != network->filled || network->weight[c] != network->classes[c].weight_then)
            return false;
    }
    return true;
}

static void fill(struct network *network) {
    network->filled++;
    network->n_filled = network->n_active;
    for (uint32_t i = 0; i < network->n_active; i++) {
        uint32_t c = network->active[i];
        network->order[i] = c;
        network->classes[c].filled = network->filled;
        network->classes[c].weight_then = network->weight[c];
    }
    flows_fill(network->flows, network->weight, network->n_active, network->order, network->rate, network->scratch);
}

static void share(struct network *network, double now_us) {
    network->changed = false;
    if (network->n_active == 0)
        return;
    if (!network->flows) {
        set_rate(&network->classes[0], 1 / network->weight[0], now_us);
        return;
    }
    if (!is_as_filled(network))
        fill(network);
    for (uint32_t i = 0; i < network->n_active; i++) {
        uint32_t c = network->active[i];
        set_rate(&network->classes[c], network->rate[c], now_us);
    }
}

double network_next_us(struct network *network, double now_us) {
    if (network->changed)
        share(network, now_us);
    double next = INFINITY;
    for (uint32_t i = 0; i < network->n_active; i++)
        if (network->classes[network->active[i]].next_us < next)
            next = network->classes[network->active[i]].next_us;
    return next;
}

bool network_pop(struct network *network, double until_us, double now_us, uint32_t *out_class, struct transfer *out) {
    for (uint32_t i = 0; i < network->n_active; i++) {
        uint32_t c = network->active[i];
        struct network_class *class = &network->classes[c];
        if (class->next_us > until_us)
            continue;
        *out_class = c;
        *out = class->heap[0];
        run_clock(class, now_us);
        heap_pop(class->heap, class->n--);
        network->weight[c] -= out->weight;
        network->changed = true;
        if (class->n == 0)
            retire(network, c);
        else
            foresee(class, now_us);
        return true;
    }
    return false;
}
