/* See consistency_text.h. */
#include "strategy/consistency_text.h"

#include <stdio.h>

#include "base/stream.h"
#include "base/units.h"

static void print_nodes(FILE *to, const char *what, const struct node_list *list, const struct cluster *cluster) {
    if (list->n > 0)
        fprintf(to, ", %s", what);
    for (uint32_t i = 0; i < list->n; i++)
        fprintf(to, " %s", cluster->nodes[list->nodes[i]].name);
}

static void print_consistency(FILE *to, const struct consistency *c, const struct cluster *cluster) {
    char text[32];
    fprintf(to, "%s", c->kind == CONSISTENCY_stale_synchronous ? "stale-synchronous" : consistency_name(c->kind));
    if (c->kind == CONSISTENCY_stale_synchronous)
        fprintf(to, ", at most %u iterations ahead of the slowest", c->staleness);
    if (c->delay_bound > 0)
        fprintf(to, ", delay at most %u", c->delay_bound);
    if (c->scheduled)
        fprintf(to, "; batches of %s in %s", units_format_time(c->batch_us, text, sizeof text),
                c->order == UPDATE_ORDER_mlfabric ? "MLfabric's order" : "the order of slots");
    print_nodes(to, "added up on", &c->aggregators, cluster);
    if (c->distributors > 0)
        fprintf(to, ", models passed on by up to %u workers", c->distributors);
    if (c->replicated)
        fprintf(to, "; replica on %s within %g (momentum %g), copies %s", cluster->nodes[c->replica].name,
                c->divergence, c->momentum, c->copies_when_due ? "when due" : "early");
    print_nodes(to, "its updates added up on", &c->replica_aggregators, cluster);
}

char *consistency_text(const struct consistency *c, const struct cluster *cluster) {
    char *text;
    size_t size;
    FILE *to = stream_open(&text, &size);
    struct error ignored;
    if (!to)
        return NULL;
    print_consistency(to, c, cluster);
    return stream_close(to, ST_OK, &text, &ignored) ? NULL : text;
}
