/* Drawing whole strategies.
 *
 * Uniform: each variable on its own, as AutoSync's search without constraints does. This reaches every strategy, and
 * most of them are slow. Guided: first an idea for the whole strategy, such as a person would have, then c_am for the
 * merge groups and c_lb for the servers. The probabilities below say how often each idea is tried. Cost O(variables log
 * variables + variables · nodes). */
#include "strategy/plan.h"
#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

static enum status start(struct draft *d, const struct space *space, struct rng *rng, const char *name,
                         struct error *err) {
    enum status st = draft_open(d, space, rng, err);
    if (st)
        return st;
    st = strategy_init(&d->strategy, name, space->model, 0, err);
    if (st)
        draft_close(d);
    return st;
}

static void draw_groups(struct draft *d, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        group_add(d, (struct group){.algorithm = (enum algorithm)draw_bit(d->rng, d->space->options.algorithms),
                                    .partition_bytes = draw_partition(d, 0.5)});
}

static void draw_kind(struct draft *d, uint32_t v, struct variable_sync *sync) {
    const struct space_options *o = &d->space->options;
    bool server = o->parameter_server && (!o->all_reduce || draw_chance(d->rng, 0.5));
    sync->encoding = draw_encoding(d, v);
    sync->kind = server ? SYNC_PARAMETER_SERVER : SYNC_ALL_REDUCE;
}

/* The rest of what this kind has, with at most `most` servers. */
static void draw_way(struct draft *d, struct variable_sync *sync, uint32_t most) {
    if (sync->kind == SYNC_ALL_REDUCE) {
        sync->group = (uint32_t)rng_below(d->rng, d->strategy.n_groups);
        return;
    }
    servers_draw_uniform(d, sync, most);
    sync->local_reduction = !d->space->several_devices || draw_chance(d->rng, 0.5);
    sync->partition_bytes = draw_partition(d, 0.5);
}

static void draw_variable(struct draft *d, uint32_t v) {
    struct variable_sync *sync = &d->strategy.variables[v];
    draw_kind(d, v, sync);
    draw_cut(d, v, 0.5);
    draw_way(d, sync, sync->shards);
    if (!d->space->options.each_shard || sync->shards == 1 || draw_chance(d->rng, 0.9) || !shards_part(d, v))
        return;
    for (uint32_t k = 0; k < sync->shards && !d->no_memory; k++) {
        draw_kind(d, v, &sync->each[k]);
        if (d->strategy.n_groups && draw_chance(d->rng, 0.3)) /* there are no more than variables so far */
            draw_groups(d, 1);
        draw_way(d, &sync->each[k], 1);
    }
}

enum status space_sample_uniform(const struct space *space, struct rng *rng, struct strategy *out, struct error *err) {
    struct draft d;
    enum status st = start(&d, space, rng, "uniform", err);
    if (st)
        return st;
    struct strategy *s = &d.strategy;
    s->policy = (enum policy)draw_bit(rng, space->options.policies);
    s->credit_bytes = draw_credit(&d, 0.2, 0.2);
    s->pulls_by_priority = draw_may_order_pulls(&d) && draw_chance(rng, 0.5);
    s->cross_iteration = space->options.cross_iteration && draw_chance(rng, 0.5);
    if (space->options.all_reduce)
        draw_groups(&d, 1 + (uint32_t)rng_below(rng, s->n_variables));
    for (uint32_t v = 0; v < s->n_variables && !d.no_memory; v++)
        draw_variable(&d, v);
    pushes_draw_uniform(&d);
    sharded_draw(&d, true);
    st = draft_finish(&d, out, err);
    draft_close(&d);
    return st;
}

/* ---- guided ---- */

enum idea { ALL_REDUCE_ALL, SERVER_ALL, BY_SPARSITY, BY_SIZE, BY_RUNS, N_IDEAS };

static enum idea draw_idea(const struct draft *d) {
    const struct space_options *o = &d->space->options;
    double weights[N_IDEAS] = {[ALL_REDUCE_ALL] = 0.5, [SERVER_ALL] = 0.2, [BY_SIZE] = 0.15, [BY_RUNS] = 0.05};
    weights[BY_SPARSITY] = d->space->sparse ? 0.3 : 0.0;
    if (!o->parameter_server)
        return ALL_REDUCE_ALL;
    if (!o->all_reduce)
        return SERVER_ALL;
    return (enum idea)rng_weighted(d->rng, N_IDEAS, weights);
}

static void set_server(struct draft *d, uint32_t v, bool server) {
    d->strategy.variables[v].kind = server ? SYNC_PARAMETER_SERVER : SYNC_ALL_REDUCE;
}

/* The size of one variable, so that a threshold always has something on either side. */
static uint64_t some_size(const struct draft *d) {
    const struct model *model = d->space->model;
    return model->variables[rng_below(d->rng, model->n_variables)].bytes;
}

/* Runs of the order of readiness, long ones as likely as short ones, that change sides in turn. */
static void draw_runs(struct draft *d) {
    uint32_t n = d->strategy.n_variables, left = 0;
    bool server = draw_chance(d->rng, 0.5);
    for (uint32_t i = 0; i < n; i++, left--) {
        if (!left) {
            left = draw_log_count(d->rng, n);
            server = !server;
        }
        set_server(d, d->space->ready[i], server);
    }
}

/* The architecture of every variable. Large or sparse gradients gain from servers that share them (Parallax); small
 * ones may too, where a collective's start-up costs more than a push: both directions are tried. */
static void draw_architecture(struct draft *d) {
    enum idea idea = draw_idea(d);
    uint64_t threshold = idea == BY_SIZE ? some_size(d) : 0;
    bool above = idea == BY_SIZE && draw_chance(d->rng, 0.5);
    if (idea == BY_RUNS) {
        draw_runs(d);
        return;
    }
    for (uint32_t v = 0; v < d->strategy.n_variables; v++) {
        const struct variable *variable = &d->space->model->variables[v];
        if (idea == BY_SPARSITY)
            set_server(d, v, variable->sparse_rows);
        else if (idea == BY_SIZE)
            set_server(d, v, above ? variable->bytes >= threshold : variable->bytes <= threshold);
        else
            set_server(d, v, idea == SERVER_ALL);
    }
}

/* Cut what is larger than a threshold into pieces of about that size: along axis 0 as frameworks do, sometimes along
 * the longest axis. */
static void cut_large(struct draft *d, uint32_t v, uint64_t piece) {
    const struct variable *variable = &d->space->model->variables[v];
    struct variable_sync *sync = &d->strategy.variables[v];
    uint32_t axis = 0;
    if (variable->bytes <= piece || !variable->rank)
        return;
    for (uint32_t a = 1; a < variable->rank; a++)
        if (variable->shape[a] > variable->shape[axis])
            axis = a;
    if (variable->shape[0] > 1 && draw_chance(d->rng, 0.75))
        axis = 0;
    uint64_t shards = (variable->bytes + piece - 1) / piece;
    uint32_t most = space_max_shards(d->space, variable, axis);
    sync->axis = axis;
    sync->shards = shards < most ? (uint32_t)shards : most;
}

static void draw_cuts(struct draft *d) {
    const struct model *model = d->space->model;
    uint64_t largest = SPACE_MIN_BYTES;
    for (uint32_t v = 0; v < model->n_variables; v++)
        if (model->variables[v].bytes > largest)
            largest = model->variables[v].bytes;
    uint64_t piece = draw_size(d->rng, SPACE_MIN_BYTES, largest);
    bool servers = draw_chance(d->rng, 0.6), collectives = draw_chance(d->rng, 0.1);
    for (uint32_t v = 0; v < model->n_variables; v++)
        if (d->strategy.variables[v].kind == SYNC_PARAMETER_SERVER ? servers : collectives)
            cut_large(d, v, piece);
}

/* One algorithm for all groups, one for small and one for large ones, or one each. */
struct algorithms {
    uint32_t mode; /* 0, 1, 2 */
    enum algorithm small, large;
    uint64_t threshold;
};

static enum algorithm some_algorithm(const struct draft *d) {
    return (enum algorithm)draw_bit(d->rng, space_all_reduces(&d->space->options));
}

static struct algorithms draw_algorithms(const struct draft *d) {
    static const double weights[] = {0.6, 0.25, 0.15};
    const struct space_options *o = &d->space->options;
    struct algorithms a = {.mode = (uint32_t)rng_weighted(d->rng, 3, weights)};
    a.large = some_algorithm(d);
    a.small = a.mode == 1 ? some_algorithm(d) : a.large;
    a.threshold = draw_size(d->rng, o->min_partition_bytes, o->max_partition_bytes);
    return a;
}

/* c_am. Where runs of the order of readiness end. Either by bytes, as buckets do: each run holds from half to twice one
 * size that is drawn for the whole strategy. Or at uniformly random places, whose number is log-uniform. */
struct cutter {
    bool by_bytes;
    double bucket;              /* bytes at which the present run ends */
    double size;                /* about what buckets hold */
    uint32_t cuts, places_left; /* by count */
};

static struct cutter draw_cutter(struct draft *d, uint32_t n, double bytes) {
    struct cutter c = {.by_bytes = draw_chance(d->rng, 0.6), .places_left = n - 1};
    if (c.by_bytes)
        c.size = rng_log_between(d->rng, bytes < SPACE_MIN_BYTES ? bytes : SPACE_MIN_BYTES, bytes);
    else
        c.cuts = draw_log_count(d->rng, n) - 1;
    c.bucket = c.size * rng_log_between(d->rng, 0.5, 2.0);
    return c;
}

static bool cutter_ends(struct draft *d, struct cutter *c, double run_bytes) {
    if (c->by_bytes) {
        bool ends = run_bytes >= c->bucket;
        if (ends)
            c->bucket = c->size * rng_log_between(d->rng, 0.5, 2.0);
        return ends;
    }
    bool ends = c->places_left && rng_below(d->rng, c->places_left) < c->cuts;
    c->cuts -= ends;
    c->places_left -= c->places_left > 0;
    return ends;
}

/* Merge runs of `order`, a permutation of the variables: with c_am the order of readiness. */
static void merge_runs(struct draft *d, const uint32_t *order, uint64_t partition) {
    uint32_t n = 0;
    double bytes = 0.0, run = 0.0;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (d->strategy.variables[v].kind == SYNC_ALL_REDUCE) {
            bytes += (double)d->space->model->variables[v].bytes;
            n++;
        }
    if (!n)
        return;
    struct algorithms algorithms = draw_algorithms(d);
    struct cutter cutter = draw_cutter(d, n, bytes);
    bool open = false;
    for (uint32_t i = 0; i < d->strategy.n_variables && !d->no_memory; i++) {
        struct variable_sync *sync = &d->strategy.variables[order[i]];
        if (sync->kind != SYNC_ALL_REDUCE)
            continue;
        if (!open) {
            enum algorithm algorithm = algorithms.mode == 2 ? some_algorithm(d) : algorithms.large;
            group_add(d, (struct group){.algorithm = algorithm, .partition_bytes = partition});
            run = 0.0;
        }
        sync->group = d->strategy.n_groups - 1;
        run += (double)d->space->model->variables[order[i]].bytes;
        if (algorithms.mode == 1 && !d->no_memory)
            d->strategy.groups[sync->group].algorithm =
                run < (double)algorithms.threshold ? algorithms.small : algorithms.large;
        open = !cutter_ends(d, &cutter, run);
    }
}

/* The variables in a random order; NULL and no_memory when there is none. */
static const uint32_t *any_order(struct draft *d) {
    uint32_t *order = arena_alloc(&d->strategy.arena, d->strategy.n_variables, sizeof *order);
    if (!order) {
        d->no_memory = true;
        return NULL;
    }
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        order[v] = v;
    rng_shuffle(d->rng, d->strategy.n_variables, order);
    return order;
}

/* Sometimes each sparse gradient that no server has is gathered by itself (Horovod). */
static void gather_sparse(struct draft *d, uint64_t partition) {
    const struct group like = {.algorithm = ALGORITHM_all_gather, .partition_bytes = partition};
    if (!(d->space->options.algorithms >> ALGORITHM_all_gather & 1) || draw_chance(d->rng, 0.4))
        return;
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++) {
        struct variable_sync *sync = &d->strategy.variables[v];
        if (sync->kind == SYNC_ALL_REDUCE && d->space->model->variables[v].sparse_rows)
            sync->group = group_add(d, like);
    }
}

static void set_servers(struct draft *d, uint64_t partition, bool balanced) {
    bool local = !d->space->several_devices || draw_chance(d->rng, 0.9);
    for (uint32_t v = 0; v < d->strategy.n_variables; v++) {
        struct variable_sync *sync = &d->strategy.variables[v];
        if (sync->kind == SYNC_PARAMETER_SERVER) {
            sync->local_reduction = local;
            sync->partition_bytes = partition;
        }
    }
    if (draw_chance(d->rng, 0.4))
        servers_allow_some(d);
    if (balanced)
        servers_balance(d);
    else
        servers_scatter(d);
}

/* Priority makes a difference only if the next forward pass may start before all messages are there, and only while
 * messages wait. So it mostly comes with cross_iteration and a limited credit. */
static void draw_schedule(struct draft *d) {
    struct strategy *s = &d->strategy;
    s->policy = (enum policy)draw_bit(d->rng, d->space->options.policies);
    bool priority = s->policy == POLICY_priority;
    s->cross_iteration = d->space->options.cross_iteration && draw_chance(d->rng, priority ? 0.9 : 0.5);
    s->credit_bytes = priority ? draw_credit(d, 0.1, 0.1) : draw_credit(d, 0.3, 0.4);
    s->pulls_by_priority = draw_may_order_pulls(d) && draw_chance(d->rng, 0.5);
}

static void draw_encodings(struct draft *d) {
    enum encoding encoding = (enum encoding)draw_bit(d->rng, d->space->options.encodings);
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (space_may_encode(&d->space->model->variables[v]))
            d->strategy.variables[v].encoding = encoding;
}

enum status space_sample_constrained(const struct space *space, struct rng *rng, unsigned constraints,
                                     struct strategy *out, struct error *err) {
    struct draft d;
    enum status st = start(&d, space, rng, "guided", err);
    if (st)
        return st;
    draw_schedule(&d);
    draw_encodings(&d);
    draw_architecture(&d);
    draw_cuts(&d);
    uint64_t partition = draw_partition(&d, 0.4);
    const uint32_t *order = constraints & SPACE_ADJACENT ? space->ready : any_order(&d);
    if (order) {
        merge_runs(&d, order, partition);
        pushes_merge(&d, order);
    }
    gather_sparse(&d, partition);
    set_servers(&d, partition, constraints & SPACE_BALANCED);
    sharded_draw(&d, false);
    st = draft_finish(&d, out, err);
    draft_close(&d);
    return st;
}

enum status space_sample_guided(const struct space *space, struct rng *rng, struct strategy *out, struct error *err) {
    return space_sample_constrained(space, rng, SPACE_BALANCED | SPACE_ADJACENT, out, err);
}
