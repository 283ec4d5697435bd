/* See knobs.h. Every knob is one 64-bit value and has one dimension, of which those with a single value are left out;
 * so mapping to and from the cube is a loop over the table of knobs.
 *
 * Merging follows the order of readiness, as frameworks fill their buckets, with one open group a type on the wire.
 * Servers are filled as in scheduling on uniform machines: the largest variable first, to the servers that would be
 * done with it first. A variable gets as many of them as let its last shard finish earliest. */
#include "tuner/search/knobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/plan.h"
#include "strategy/space/largest_first.h"

static const double QUANTUM = SPACE_MIN_BYTES, END = 0.125;

static const char *const knob_names[KNOB_COUNT] = {
#define X(name) #name,
    KNOB_TABLE(X)
#undef X
};

/* ---- dimensions ---- */

static uint32_t architectures(const struct space *space) {
    const struct space_options *o = &space->options;
    uint32_t set = 0;
    if (o->all_reduce)
        set |= 1u << KNOB_ARCHITECTURE_all_reduce;
    if (o->parameter_server)
        set |= 1u << KNOB_ARCHITECTURE_server;
    if (o->all_reduce && o->algorithms >> ALGORITHM_all_gather & 1)
        set |= 1u << KNOB_ARCHITECTURE_sparse_gathered;
    if (o->all_reduce && o->parameter_server)
        set |= 1u << KNOB_ARCHITECTURE_large_served | (uint32_t)space->sparse << KNOB_ARCHITECTURE_sparse_served;
    return set;
}

static uint32_t shardings(const struct space_options *o) {
    _Static_assert((int)KNOB_SHARDING_parameters == (int)SHARDED_parameters, "knobs count as strategies do");
    return o->sharded | (o->sharded >> SHARDED_parameters & 1) << KNOB_SHARDING_kept;
}

static struct knob_dimension category(enum knob knob, uint32_t members) {
    return (struct knob_dimension){.knob = knob,
                                   .name = knob_names[knob],
                                   .kind = KNOB_CATEGORY,
                                   .choices = (uint32_t)__builtin_popcount(members),
                                   .members = members};
}

/* The range shrinks to whole quanta; one without any is its lower end. */
static struct knob_dimension size(enum knob knob, uint64_t low, uint64_t high) {
    uint64_t q = SPACE_MIN_BYTES, up = (low + q - 1) / q * q, down = high / q * q;
    return (struct knob_dimension){.knob = knob,
                                   .name = knob_names[knob],
                                   .kind = KNOB_SIZE,
                                   .low = up <= down ? up : low,
                                   .high = up <= down ? down : low};
}

static uint64_t largest_bytes(const struct model *model) {
    uint64_t most = 0;
    for (uint32_t v = 0; v < model->n_variables; v++)
        most = model->variables[v].bytes > most ? model->variables[v].bytes : most;
    return most;
}

/* One at a time for all-reduce; for servers no limit. */
static struct knob_dimension usual_credit(const struct space *space) {
    const struct space_options *o = &space->options;
    const uint64_t credit = o->all_reduce ? 0 : CREDIT_UNLIMITED;
    struct knob_dimension d = {
        .knob = KNOB_credit_bytes, .name = knob_names[KNOB_credit_bytes], .kind = KNOB_NUMBER, .low = credit};
    d.high = credit;
    if (o->all_reduce && o->parameter_server) {
        d.has_last = true;
        d.last = CREDIT_UNLIMITED;
    }
    return d;
}

static struct knob_dimension dimension_of(const struct space *space, enum knob knob) {
    const struct space_options *o = &space->options;
    struct knob_dimension d = {.knob = knob, .name = knob_names[knob]};
    switch (knob) {
    case KNOB_merge_bytes:
        d = size(knob, SPACE_MIN_BYTES, space->model->bytes + SPACE_MIN_BYTES - 1);
        d.has_first = true;
        d.first = 0;
        return d;
    case KNOB_partition_bytes:
        if (o->whole_messages)
            return (struct knob_dimension){.knob = knob, .name = knob_names[knob], .kind = KNOB_NUMBER};
        d = size(knob, o->min_partition_bytes, o->max_partition_bytes);
        d.has_last = true;
        d.last = 0;
        return d;
    case KNOB_credit_bytes:
        if (o->usual_credit)
            return usual_credit(space);
        d = size(knob, o->min_credit_bytes, o->max_credit_bytes);
        d.has_first = d.has_last = true;
        d.first = 0;
        d.last = CREDIT_UNLIMITED;
        return d;
    case KNOB_served_bytes:
        return size(knob, SPACE_MIN_BYTES, largest_bytes(space->model));
    case KNOB_policy:
        return category(knob, o->policies);
    case KNOB_algorithm:
        return category(knob, space_all_reduces(o));
    case KNOB_cross_iteration:
        return category(knob, o->cross_iteration ? 3 : 1);
    case KNOB_sharding:
        return category(knob, shardings(o));
    case KNOB_n_servers:
        d.kind = KNOB_NUMBER;
        d.low = 1;
        d.high = space->cluster->n_nodes;
        return d;
    case KNOB_architecture:
    case KNOB_COUNT:
        break;
    }
    return category(knob, architectures(space));
}

/* Whether the knob makes a difference in this space. Collectives have no servers, servers no merge groups. */
static bool is_free(const struct space *space, const struct knob_dimension *d) {
    const struct space_options *o = &space->options;
    if (((d->knob == KNOB_merge_bytes || d->knob == KNOB_algorithm) && !o->all_reduce) ||
        (d->knob == KNOB_n_servers && !o->parameter_server) ||
        (d->knob == KNOB_served_bytes && !(o->all_reduce && o->parameter_server)))
        return false;
    return d->kind == KNOB_CATEGORY ? d->choices > 1 : d->low < d->high || d->has_first || d->has_last;
}

size_t knobs_dimensions(const struct space *space, struct knob_dimension out[KNOB_COUNT]) {
    size_t n = 0;
    for (enum knob k = 0; k < KNOB_COUNT; k++) {
        const struct knob_dimension d = dimension_of(space, k);
        if (is_free(space, &d))
            out[n++] = d;
    }
    return n;
}

/* The i-th member of a set; i is below the number of members. */
static uint32_t member(uint32_t set, uint32_t i) {
    for (; i; i--)
        set &= set - 1;
    return (uint32_t)__builtin_ctz(set);
}

/* ---- values and coordinates ---- */

static uint64_t get(const struct knobs *k, enum knob knob) {
    switch (knob) {
    case KNOB_merge_bytes:
        return k->merge_bytes;
    case KNOB_partition_bytes:
        return k->partition_bytes;
    case KNOB_credit_bytes:
        return k->credit_bytes;
    case KNOB_served_bytes:
        return k->served_bytes;
    case KNOB_policy:
        return k->policy;
    case KNOB_algorithm:
        return k->algorithm;
    case KNOB_cross_iteration:
        return k->cross_iteration;
    case KNOB_n_servers:
        return k->n_servers;
    case KNOB_sharding:
        return k->sharding;
    default:
        return k->architecture;
    }
}

static void set(struct knobs *k, enum knob knob, uint64_t value) {
    switch (knob) {
    case KNOB_merge_bytes:
        k->merge_bytes = value;
        break;
    case KNOB_partition_bytes:
        k->partition_bytes = value;
        break;
    case KNOB_credit_bytes:
        k->credit_bytes = value;
        break;
    case KNOB_served_bytes:
        k->served_bytes = value;
        break;
    case KNOB_policy:
        k->policy = (enum policy)value;
        break;
    case KNOB_algorithm:
        k->algorithm = (enum algorithm)value;
        break;
    case KNOB_cross_iteration:
        k->cross_iteration = value;
        break;
    case KNOB_n_servers:
        k->n_servers = (uint32_t)value;
        break;
    case KNOB_sharding:
        k->sharding = (enum knob_sharding)value;
        break;
    default:
        k->architecture = (enum knob_architecture)value;
    }
}

/* Where the range lies on the axis. */
static double range_start(const struct knob_dimension *d) {
    return d->has_first ? END : 0;
}

static double range_end(const struct knob_dimension *d) {
    return d->has_last ? 1 - END : 1;
}

static uint64_t clamp(double x, uint64_t low, uint64_t high) {
    return x <= (double)low ? low : x >= (double)high ? high : (uint64_t)x;
}

static uint64_t value_at(const struct knob_dimension *d, double u) {
    u = fmin(fmax(u, 0), 1);
    if (d->kind == KNOB_CATEGORY) {
        uint32_t i = (uint32_t)(u * d->choices);
        return member(d->members, i < d->choices ? i : d->choices - 1);
    }
    if (d->has_first && u < range_start(d))
        return d->first;
    if (d->has_last && u > range_end(d))
        return d->last;
    if (d->low == d->high)
        return d->low;
    double t = (u - range_start(d)) / (range_end(d) - range_start(d)), low = (double)d->low, high = (double)d->high;
    if (d->kind == KNOB_NUMBER)
        return clamp(low * pow((high + 1) / low, t), d->low, d->high);
    return clamp(round(low * pow(high / low, t) / QUANTUM) * QUANTUM, d->low, d->high);
}

static double category_position(const struct knob_dimension *d, uint64_t value) {
    uint32_t below = d->members & ((1u << value) - 1);
    return (__builtin_popcount(below) + 0.5) / d->choices;
}

static double position_of(const struct knob_dimension *d, uint64_t value) {
    if (d->kind == KNOB_CATEGORY)
        return category_position(d, value);
    if (d->has_first && value == d->first)
        return END / 2;
    if (d->has_last && value == d->last)
        return 1 - END / 2;
    double low = (double)d->low, high = (double)d->high, x = fmin(fmax((double)value, low), high), t = 0.5;
    if (d->kind == KNOB_NUMBER && low < high)
        t = log((x + 0.5) / low) / log((high + 1) / low);
    else if (low < high)
        t = log(x / low) / log(high / low);
    return range_start(d) + t * (range_end(d) - range_start(d));
}

struct knobs knobs_from_unit(const struct space *space, const double *u) {
    struct knobs knobs = {0};
    for (enum knob k = 0; k < KNOB_COUNT; k++) {
        const struct knob_dimension d = dimension_of(space, k);
        set(&knobs, k, value_at(&d, is_free(space, &d) ? *u++ : 0));
    }
    return knobs;
}

void knobs_to_unit(const struct space *space, const struct knobs *knobs, double *u) {
    for (enum knob k = 0; k < KNOB_COUNT; k++) {
        const struct knob_dimension d = dimension_of(space, k);
        if (is_free(space, &d))
            *u++ = position_of(&d, get(knobs, k));
    }
}

/* ---- the strategy ---- */

static enum status check_knobs(const struct space *space, const struct knobs *knobs, struct error *err) {
    for (enum knob k = 0; k < KNOB_COUNT; k++) {
        const struct knob_dimension d = dimension_of(space, k);
        uint64_t value = get(knobs, k);
        if (d.kind == KNOB_CATEGORY && (value >= 32 || !(d.members >> value & 1)))
            return error_set(err, ST_INVALID, "knob %s: its value is not among the options of the space", d.name);
        if (d.kind == KNOB_NUMBER && (value < d.low || value > d.high) && !(d.has_last && value == d.last))
            return error_set(err, ST_INVALID, "knob %s: %lu is not within %lu and %lu", d.name, (unsigned long)value,
                             (unsigned long)d.low, (unsigned long)d.high);
    }
    return ST_OK;
}

static bool is_served(const struct knobs *knobs, const struct variable *v) {
    switch (knobs->architecture) {
    case KNOB_ARCHITECTURE_server:
        return true;
    case KNOB_ARCHITECTURE_large_served:
        return v->bytes >= knobs->served_bytes;
    case KNOB_ARCHITECTURE_sparse_served:
        return v->sparse_rows;
    default:
        return false;
    }
}

static enum algorithm algorithm_of_groups(const struct space *space, const struct knobs *knobs) {
    if (!knobs->sharding || knobs->algorithm == ALGORITHM_auto)
        return knobs->algorithm;
    return space->options.algorithms >> ALGORITHM_ring & 1 ? ALGORITHM_ring : ALGORITHM_auto;
}

static struct group group_of(const struct space *space, const struct knobs *knobs) {
    const bool kept = knobs->sharding == KNOB_SHARDING_kept;
    return (struct group){.algorithm = algorithm_of_groups(space, knobs),
                          .partition_bytes = knobs->partition_bytes,
                          .sharded = kept ? SHARDED_parameters : (enum sharded)knobs->sharding,
                          .keeps_gathered = kept};
}

/* A group is closed by the first variable that no longer fits. There is room for as many groups as variables. Sharded
 * parameters take the schedule that they need. */
static void merge(const struct space *space, const struct knobs *knobs, struct strategy *s) {
    uint32_t open[DTYPE_COUNT], n = 0;
    uint64_t held[DTYPE_COUNT];
    memset(open, 0xff, sizeof open);
    const struct group like = group_of(space, knobs);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        const uint64_t id = s->groups[g].id;
        s->groups[g] = like;
        s->groups[g].id = id;
    }
    for (uint32_t i = 0; i < s->n_variables; i++) {
        uint32_t v = space->ready[i];
        const struct variable *variable = &space->model->variables[v];
        enum dtype type = variable->dtype;
        if (is_served(knobs, variable))
            continue;
        if (knobs->architecture == KNOB_ARCHITECTURE_sparse_gathered && variable->sparse_rows) {
            s->groups[n].algorithm = ALGORITHM_all_gather;
            s->groups[n].sharded = SHARDED_none;
            s->groups[n].keeps_gathered = false;
            s->variables[v].group = n++;
            continue;
        }
        if (open[type] == UINT32_MAX || held[type] + variable->bytes > knobs->merge_bytes) {
            open[type] = n++;
            held[type] = 0;
        }
        held[type] += variable->bytes;
        s->variables[v].group = open[type];
    }
    s->n_groups = n;
    if (strategy_sharded_parameters(s) > 0) {
        s->policy = POLICY_fifo;
        s->cross_iteration = s->pulls_by_priority = false;
    }
}

struct server {
    uint32_t node;
    double rate, load, finish; /* bytes; finish: of a shard that is not there yet, for sorting */
    bool computes;
};

static int compare_pool(const void *a, const void *b) {
    const struct server *x = a, *y = b;
    if (x->computes != y->computes)
        return x->computes ? 1 : -1;
    if (x->rate != y->rate)
        return x->rate > y->rate ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static int compare_finish(const void *a, const void *b) {
    const struct server *x = a, *y = b;
    if (x->finish != y->finish)
        return x->finish < y->finish ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static uint32_t shards_of(const struct space *space, const struct knobs *knobs, const struct variable *v) {
    if (!knobs->partition_bytes || !v->rank)
        return 1;
    uint64_t want = (v->bytes + knobs->partition_bytes - 1) / knobs->partition_bytes, most = space->options.max_shards;
    most = v->shape[0] < most ? v->shape[0] : most;
    return (uint32_t)(want < most ? want : most);
}

/* How many shards the i-th of m servers holds. */
static uint32_t held_by(uint32_t shards, uint32_t m, uint32_t i) {
    return shards / m + (i < shards % m);
}

/* Over how many of the first `most` servers the variable must be spread to be done earliest; of equal numbers the
 * largest. */
static uint32_t best_count(const struct server *pool, uint32_t most, uint32_t shards, double bytes) {
    uint32_t best = 1;
    double least = INFINITY;
    for (uint32_t m = most; m; m--) {
        double last = 0;
        for (uint32_t i = 0; i < m; i++)
            last = fmax(last, (pool[i].load + bytes / shards * held_by(shards, m, i)) / pool[i].rate);
        if (last < least) {
            least = last;
            best = m;
        }
    }
    return best;
}

static enum status serve(const struct knobs *knobs, struct strategy *s, uint32_t v, double bytes, struct server *pool,
                         struct error *err) {
    struct variable_sync *sync = &s->variables[v];
    uint32_t most = sync->shards < knobs->n_servers ? sync->shards : knobs->n_servers;
    for (uint32_t i = 0; i < knobs->n_servers; i++)
        pool[i].finish = (pool[i].load + bytes / most) / pool[i].rate;
    qsort(pool, knobs->n_servers, sizeof *pool, compare_finish);
    uint32_t m = best_count(pool, most, sync->shards, bytes), *servers = arena_alloc(&s->arena, m, sizeof *servers);
    if (!servers)
        return error_no_memory(err);
    for (uint32_t i = 0; i < m; i++) {
        servers[i] = pool[i].node;
        pool[i].load += bytes / sync->shards * held_by(sync->shards, m, i);
    }
    sync->servers = servers;
    sync->n_servers = m;
    return ST_OK;
}

/* List the served variables with their shards and bytes, largest first; returns how many. */
static uint32_t collect(const struct space *space, const struct knobs *knobs, struct strategy *s,
                        struct sized_variable *list) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable *variable = &space->model->variables[v];
        struct variable_sync *sync = &s->variables[v];
        if (!is_served(knobs, variable))
            continue;
        sync->kind = SYNC_PARAMETER_SERVER;
        sync->shards = shards_of(space, knobs, variable);
        sync->local_reduction = true;
        sync->partition_bytes = knobs->partition_bytes;
        list[n++] = (struct sized_variable){(double)plan_gradient_bytes(s, variable, sync), v};
    }
    largest_first(n, list);
    return n;
}

static enum status place(const struct space *space, const struct knobs *knobs, struct strategy *s, struct error *err) {
    uint32_t n_nodes = space->cluster->n_nodes;
    struct server *pool = calloc(n_nodes, sizeof *pool);
    struct sized_variable *list = calloc(s->n_variables, sizeof *list);
    enum status st = pool && list ? ST_OK : error_no_memory(err);
    if (!st) {
        for (uint32_t i = 0; i < n_nodes; i++)
            pool[i] =
                (struct server){.node = i, .rate = space->rate[i], .computes = space->cluster->nodes[i].devices > 0};
        qsort(pool, n_nodes, sizeof *pool, compare_pool);
        uint32_t n = collect(space, knobs, s, list);
        for (uint32_t i = 0; i < n && !st; i++)
            st = serve(knobs, s, list[i].variable, list[i].bytes, pool, err);
    }
    free(pool);
    free(list);
    return st;
}

enum status knobs_strategy(const struct space *space, const struct knobs *knobs, struct strategy *out,
                           struct error *err) {
    struct strategy s;
    enum status st = check_knobs(space, knobs, err);
    if (!st)
        st = strategy_init(&s, "knobs", space->model, space->model->n_variables, err);
    if (st)
        return st;
    s.policy = knobs->policy;
    s.credit_bytes = knobs->credit_bytes;
    s.cross_iteration = knobs->cross_iteration;
    s.pulls_by_priority = knobs->pulls_by_priority && space->options.order_pulls;
    merge(space, knobs, &s);
    st = place(space, knobs, &s, err);
    if (!st)
        st = strategy_seal(&s, space->model, space->cluster, err);
    if (!st && !space_contains(space, &s))
        st = error_set(err, ST_INVALID, "knobs: partition_bytes or credit_bytes is outside the options of the space");
    if (st)
        strategy_release(&s);
    else
        *out = s;
    return st;
}
