/* The strategy space where the answer is known: spaces small enough to visit every strategy, servers of known
 * bandwidth, and options that are refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/space/ready_order.h"
#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"
#include "tests/support/check.h"
#include "tests/support/strategy/similarity.h"
#include "tests/support/strategy/space_size.h"

struct fixture {
    struct model model;
    struct cluster cluster;
    struct space space;
};

static void fixture_open(struct fixture *f, const char *model, const char *cluster, const struct space_options *o) {
    struct error err = {0};
    cJSON *json;
    assert_ok(json_parse(model, strlen(model), "model", &json, &err));
    assert_ok(model_read(json, "model", &f->model, &err));
    cJSON_Delete(json);
    assert_ok(json_parse(cluster, strlen(cluster), "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", &f->cluster, &err));
    cJSON_Delete(json);
    assert_ok(space_init(&f->space, &f->model, &f->cluster, o, &err));
}

static void fixture_close(struct fixture *f) {
    space_release(&f->space);
    cluster_release(&f->cluster);
    model_release(&f->model);
}

static const char two_variables[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"two\",\"batch_per_device\":1,\"variables\":["
    "{\"name\":\"a\",\"shape\":[3]},{\"name\":\"b\",\"shape\":[]}],\"layers\":["
    "{\"name\":\"l\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"a\",\"b\"]}]}";

static const char two_nodes[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"two\",\"nodes\":[{\"name\":\"n\",\"count\":2,"
    "\"devices\":1,\"nic_gbit_per_s\":1}]}";

/* One size each, so that sizes are 0 and that, credits those and no limit. */
static struct space_options small_options(void) {
    struct space_options o = space_default_options();
    o.algorithms = 1u << ALGORITHM_ring;
    o.policies = 1u << POLICY_fifo;
    o.cross_iteration = false;
    o.share_pushes = o.each_shard = false;
    o.max_partition_bytes = o.min_partition_bytes;
    o.max_credit_bytes = o.min_credit_bytes;
    return o;
}

/* A set of ids, open addressing on their first digits. */
enum { SET_SLOTS = 1 << 18 };
struct id_set {
    uint64_t slots[SET_SLOTS];
    uint32_t n;
};

static bool id_set_add(struct id_set *set, const struct id *id) {
    char digits[17] = {0};
    memcpy(digits, id->hex, 16);
    uint64_t key = strtoull(digits, NULL, 16) | 1;
    for (uint64_t i = key >> 1;; i++) {
        uint64_t *slot = &set->slots[i % SET_SLOTS];
        if (*slot == key)
            return false;
        if (!*slot) {
            *slot = key;
            set->n++;
            return true;
        }
    }
}

/* After how many draws in a row without a new strategy a search ends: `quiet`. Once all `expected` strategies were met
 * a build for release looks for one too many, a quarter of `quiet`; the same draws under sanitizers would find the
 * same.
 */
static uint32_t patience(const struct id_set *set, uint32_t expected, uint32_t quiet) {
#ifdef NDEBUG
    return set->n == expected ? quiet / 4 : quiet;
#else
    return set->n == expected ? 0 : quiet;
#endif
}

static uint32_t count_by_sampling(const struct space *space, uint32_t expected, uint32_t quiet) {
    struct id_set *set = calloc(1, sizeof *set);
    struct error err = {0};
    struct rng rng;
    assert_non_null(set);
    rng_seed(&rng, test_seed());
    for (uint32_t since = 0; since < patience(set, expected, quiet); since++) {
        struct strategy s;
        assert_ok(space_sample_uniform(space, &rng, &s, &err));
        if (id_set_add(set, &s.id))
            since = 0;
        strategy_release(&s);
    }
    uint32_t n = set->n;
    free(set);
    return n;
}

static uint32_t count_by_walking(const struct space *space, uint32_t expected, uint32_t quiet) {
    struct id_set *set = calloc(1, sizeof *set);
    struct error err = {0};
    struct rng rng;
    struct strategy at, next;
    assert_non_null(set);
    rng_seed(&rng, test_seed());
    assert_ok(space_sample_guided(space, &rng, &at, &err));
    for (uint32_t since = 0; since < patience(set, expected, quiet); since++) {
        if (id_set_add(set, &at.id))
            since = 0;
        assert_ok(space_neighbour(space, &at, &rng, &next, &err));
        strategy_release(&at);
        at = next;
    }
    strategy_release(&at);
    uint32_t n = set->n;
    free(set);
    return n;
}

static void check_walk(const struct space *space, uint32_t expected, uint32_t quiet) {
    assert_int_equal(count_by_walking(space, expected, quiet), expected);
}

static double size_of(const struct space *space) {
    struct error err = {0};
    double log10_size = 0;
    assert_ok(space_log10_size(space, &log10_size, &err));
    return pow(10.0, log10_size);
}

/* `shared` more of the rest are those whose variables share a push, or whose shards differ: the formula counts neither.
 */
static void check_count(const struct space_options *options, double schedules, double rest, double shared,
                        uint32_t quiet) {
    struct fixture f;
    fixture_open(&f, two_variables, two_nodes, options);
    assert_close(size_of(&f.space), schedules * rest, 1e-9);
    const uint32_t n = (uint32_t)(schedules * (rest + shared));
    assert_int_equal(count_by_sampling(&f.space, n, quiet), n);
    fixture_close(&f);
}

/* The rarest strategy has a chance of at least 7e-4, so the run stops early less than once in 10^8. */
static void uniform_sampling_visits_exactly_as_many_strategies_as_the_formula_counts(void **state) {
    (void)state;
    struct space_options o = small_options();
    o.parameter_server = false; /* a has 3 cuts, b 1; T_2(2) = 2 + 4 */
    check_count(&o, 3, 3 * 1 * 6, 0, 26000);
    o.all_reduce = false; /* 2 servers for whole variables, 4 lists for 2 and for 3 shards; 2 partition sizes */
    o.parameter_server = true;
    check_count(&o, 3, 10 * 2 * (2 * 2), 0, 26000);
    o.all_reduce = true;
    o.max_shards = 2; /* servers p = 12, 4; cuts a = 2, 1; T_0..2(2) = 1, 2, 6 */
    check_count(&o, 3, 12 * 4 + 2 * (2 * 4 + 12 * 1) + 6 * 2 * 1, 0, 26000);
    o.share_pushes = true; /* both whole, on one of 2 servers, with one of 2 partition sizes */
    check_count(&o, 3, 12 * 4 + 2 * (2 * 4 + 12 * 1) + 6 * 2 * 1, 2 * 2, 26000);
    o.share_pushes = o.parameter_server =
        false; /* a's halves in two groups: T_3(2) = 22, less 6 where they are in one */
    o.each_shard = true;
    check_count(&o, 3, 2 * 6, 22 - 6, 40000);
}

static const char chain_head[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":[";

/* n variables of `elements` f32 each, the first `sparse` of them sparse, one a layer; the caller frees it. */
static char *chain_model(uint32_t n, uint32_t elements, uint32_t sparse) {
    size_t room = 256 + (size_t)n * 180, used;
    char *text = malloc(room);
    assert_non_null(text);
    used = (size_t)snprintf(text, room, "%s", chain_head);
    for (uint32_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, room - used, "%s{\"name\":\"v%u\",\"shape\":[%u]%s}", i ? "," : "", i,
                                 elements, i < sparse ? ",\"sparse_rows\":10" : "");
    used += (size_t)snprintf(text + used, room - used, "],\"layers\":[");
    for (uint32_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, room - used,
                                 "%s{\"name\":\"l%u\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"v%u\"]}",
                                 i ? "," : "", i, i);
    snprintf(text + used, room - used, "]}");
    return text;
}

/* The rarest strategy is met once in some 30,000 steps. With the usual seed the shorter walk meets it too; builds that
 * are not for release, as those under sanitizers, take that one. */
#ifdef NDEBUG
enum { RARE = 200000 };
#else
enum { RARE = 60000 };
#endif

static void neighbour_steps_connect_the_whole_space(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = small_options();
    fixture_open(&f, two_variables, two_nodes, &o);
    check_walk(&f.space, 3 * (20 * 4 + 2 * (3 * 4 + 20 * 1) + 6 * 3), RARE);
    fixture_close(&f);
    o.max_shards = 2; /* a whole or its halves, and b, each in a group: T_2(2) = 6, T_3(2) = 22 */
    o.each_shard = true;
    o.parameter_server = false;
    fixture_open(&f, two_variables, two_nodes, &o);
    check_walk(&f.space, 3 * (6 + 22), 20000);
    fixture_close(&f);
    o.parameter_server = true;
    o.each_shard = false;
    o.share_pushes = true; /* 2 servers, 2 partition sizes; 3 variables: all alone, one of 3 pairs, or all together */
    o.all_reduce = false;
    o.max_shards = 1;
    char *served = chain_model(3, 1000, 0);
    fixture_open(&f, served, two_nodes, &o);
    check_walk(&f.space, 3 * (4 * 4 * 4 + 3 * 4 * 4 + 4), 60000);
    fixture_close(&f);
    free(served);
    o = small_options();
    o.parameter_server = false; /* groups that are not contiguous too: T_3(2) = 22 */
    o.max_shards = 1;
    char *model = chain_model(3, 1000, 0);
    fixture_open(&f, model, two_nodes, &o);
    check_walk(&f.space, 3 * 22, 20000);
    fixture_close(&f);
    free(model);
}

/* Rates 1 : 2 : 4 : 7: the last NIC could do 16, but the other three together take no more than 7. */
static const char uneven_nodes[] = "{\"schema\":\"syncopate.cluster/1\",\"name\":\"uneven\",\"nodes\":["
                                   "{\"name\":\"a\",\"nic_gbit_per_s\":1},{\"name\":\"b\",\"nic_gbit_per_s\":2},"
                                   "{\"name\":\"c\",\"nic_gbit_per_s\":4},{\"name\":\"d\",\"nic_gbit_per_s\":16}]}";
static const double uneven_rates[] = {1, 2, 4, 7};

static void balance_all(const struct fixture *f, struct rng *rng, struct strategy *out) {
    struct error err = {0};
    struct draft d;
    assert_ok(draft_open(&d, &f->space, rng, &err));
    assert_ok(strategy_init(&d.strategy, "served", &f->model, 0, &err));
    for (uint32_t v = 0; v < f->model.n_variables; v++)
        d.strategy.variables[v].kind = SYNC_PARAMETER_SERVER;
    servers_balance(&d);
    assert_ok(draft_finish(&d, out, &err));
    draft_close(&d);
}

/* Whole messages, one at a time. In one group: three ways without prefetch, and sharded parameters, kept or not, with 0
 * or 1 groups ahead in each pass. In two: each of the five ways, and of n groups with sharded parameters 0 to n ahead.
 */
static void neighbour_steps_connect_all_ways_to_shard(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = small_options();
    o.parameter_server = false;
    o.max_shards = 1;
    o.whole_messages = o.usual_credit = true;
    o.sharded = space_sharded_up_to(SHARDED_parameters);
    fixture_open(&f, two_variables, two_nodes, &o);
    check_walk(&f.space, (3 + 2 * 2 * 2) + (3 * 3) + 2 * (2 * 3) * (2 * 2) + (2 * 2) * (3 * 3), 100000);
    fixture_close(&f);
    o.sharded = space_sharded_up_to(SHARDED_gradients);
    fixture_open(&f, two_variables, two_nodes, &o);
    check_walk(&f.space, 3 + 3 * 3, 4000);
    assert_int_equal(count_by_sampling(&f.space, 3 + 3 * 3, 4000), 3 + 3 * 3);
    fixture_close(&f);
}

/* Without a ring nothing can be sharded, without fifo no parameters. */
static void what_cannot_be_sharded_is_left_out_of_the_options(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = space_default_options();
    o.sharded = space_sharded_up_to(SHARDED_parameters);
    o.policies = 1u << POLICY_priority;
    fixture_open(&f, two_variables, two_nodes, &o);
    assert_int_equal(f.space.options.sharded, space_sharded_up_to(SHARDED_gradients));
    fixture_close(&f);
    o.algorithms = 1u << ALGORITHM_tree;
    fixture_open(&f, two_variables, two_nodes, &o);
    assert_int_equal(f.space.options.sharded, 1u << SHARDED_none);
    fixture_close(&f);
}

static void balanced_servers_carry_load_in_proportion_to_their_bandwidth(void **state) {
    (void)state;
    enum { VARIABLES = 140, DRAWS = 200 };
    struct fixture f;
    struct space_options o = space_default_options();
    struct rng rng;
    char *model = chain_model(VARIABLES, 1000, 0);
    fixture_open(&f, model, uneven_nodes, &o);
    rng_seed(&rng, test_seed());
    double mean[4] = {0};
    for (int draw = 0; draw < DRAWS; draw++) {
        struct strategy s;
        uint32_t load[4] = {0};
        balance_all(&f, &rng, &s);
        for (uint32_t v = 0; v < VARIABLES; v++)
            load[s.variables[v].servers[0]]++;
        for (int i = 0; i < 4; i++) {
            assert_true(fabs(load[i] - VARIABLES * uneven_rates[i] / 14.0) <= 4.0);
            mean[i] += (double)load[i] / DRAWS;
        }
        strategy_release(&s);
    }
    for (int i = 0; i < 4; i++)
        assert_close(mean[i], VARIABLES * uneven_rates[i] / 14.0, 0.02);
    fixture_close(&f);
    free(model);
}

/* Pearson's statistic over 4000 draws of the first placement; 3 degrees of freedom pass 21.1 once in 10,000. */
static void the_first_server_is_multinomial_by_bandwidth(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    struct fixture f;
    struct space_options o = space_default_options();
    struct rng rng;
    char *model = chain_model(1, 1000, 0);
    fixture_open(&f, model, uneven_nodes, &o);
    rng_seed(&rng, test_seed());
    double seen[4] = {0}, chi2 = 0.0;
    for (int draw = 0; draw < DRAWS; draw++) {
        struct strategy s;
        balance_all(&f, &rng, &s);
        seen[s.variables[0].servers[0]]++;
        strategy_release(&s);
    }
    for (int i = 0; i < 4; i++) {
        double expected = DRAWS * uneven_rates[i] / 14.0;
        chi2 += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    assert_true(chi2 < 21.1);
    fixture_close(&f);
    free(model);
}

static void a_link_that_is_slower_than_the_nics_lowers_the_rate_of_both_its_ends(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = space_default_options();
    fixture_open(&f, two_variables,
                 "{\"schema\":\"syncopate.cluster/1\",\"name\":\"slow\",\"nodes\":[{\"name\":\"n\",\"count\":3,"
                 "\"nic_gbit_per_s\":8}],\"links\":[{\"from\":\"n1\",\"to\":\"n2\",\"gbit_per_s\":1},"
                 "{\"from\":\"n3\",\"to\":\"n2\",\"gbit_per_s\":2}]}",
                 &o);
    assert_close(f.space.rate[0], 1000.0, 1e-12); /* n3 still takes 8 */
    assert_close(f.space.rate[1], 375.0, 1e-12);  /* 1 + 2 come in */
    assert_close(f.space.rate[2], 1000.0, 1e-12);
    fixture_close(&f);
}

static void variables_become_ready_in_the_order_of_their_producers(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = space_default_options();
    fixture_open(&f,
                 "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":["
                 "{\"name\":\"a\",\"shape\":[1]},{\"name\":\"b\",\"shape\":[1]},{\"name\":\"c\",\"shape\":[1]},"
                 "{\"name\":\"d\",\"shape\":[1]}],\"layers\":["
                 "{\"name\":\"1\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"d\",\"a\"]},"
                 "{\"name\":\"2\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"c\",\"b\"]}]}",
                 two_nodes, &o);
    const uint32_t want[] = {1, 2, 0, 3};
    assert_memory_equal(f.space.ready, want, sizeof want);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(f.space.place[want[i]], i);
    fixture_close(&f);
}

/* A walk over a larger model with some sparse gradients meets every kind of choice, and stays inside the options. */
static void a_random_walk_meets_every_kind_of_choice(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = space_default_options();
    struct error err = {0};
    struct rng rng;
    struct strategy at, next;
    char *model = chain_model(20, 100000, 5);
    bool algorithm[ALGORITHM_COUNT] = {0}, server[4] = {0}, cut = false, credit[3] = {0}, policy[2] = {0},
         barrier[2] = {0}, pulls[2] = {0}, all_reduce = false, merged = false, whole[2] = {0};
    fixture_open(&f, model, uneven_nodes, &o);
    rng_seed(&rng, test_seed());
    assert_ok(space_sample_guided(&f.space, &rng, &at, &err));
    for (int step = 0; step < 3000; step++) {
        assert_true(space_contains(&f.space, &at));
        credit[at.credit_bytes == CREDIT_UNLIMITED ? 2 : at.credit_bytes > 0] = true;
        policy[at.policy] = true;
        barrier[at.cross_iteration] = true;
        pulls[at.pulls_by_priority] = true;
        merged = merged || (at.n_groups > 0 && at.n_groups < 10);
        for (uint32_t g = 0; g < at.n_groups; g++) {
            algorithm[at.groups[g].algorithm] = true;
            whole[at.groups[g].partition_bytes > 0] = true;
        }
        for (uint32_t v = 0; v < at.n_variables; v++) {
            cut = cut || at.variables[v].shards > 1;
            all_reduce = all_reduce || at.variables[v].kind == SYNC_ALL_REDUCE;
            for (uint32_t k = 0; k < at.variables[v].n_servers; k++)
                server[at.variables[v].servers[k]] = true;
        }
        assert_ok(space_neighbour(&f.space, &at, &rng, &next, &err));
        strategy_release(&at);
        at = next;
    }
    strategy_release(&at);
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        assert_true(algorithm[i]);
    for (int i = 0; i < 4; i++)
        assert_true(server[i]);
    assert_true(cut && all_reduce && merged && whole[0] && whole[1]);
    assert_true(credit[0] && credit[1] && credit[2] && policy[0] && policy[1] && barrier[0] && barrier[1]);
    assert_true(pulls[0] && pulls[1]);
    fixture_close(&f);
    free(model);
}

/* With all encodings, and without the algorithm auto: a walk meets each of them, in mixed strategies too. An encoder
 * has its usual figure and a group without an algorithm; no server has one. */
static void a_walk_with_encodings_meets_each_and_keeps_encoders_off_servers(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = space_default_options();
    struct error err = {0};
    struct rng rng;
    struct strategy at, next;
    char *model = chain_model(20, 100000, 5);
    uint32_t met[ENCODING_COUNT] = {0}, mixed = 0, ranks = 0;
    o.encodings = (1u << ENCODING_COUNT) - 1;
    o.algorithms &= ~(1u << ALGORITHM_auto);
    fixture_open(&f, model, uneven_nodes, &o);
    rng_seed(&rng, test_seed());
    assert_ok(space_sample_guided(&f.space, &rng, &at, &err));
    for (int step = 0; step < 2000; step++) {
        uint32_t here = 0;
        assert_true(space_contains(&f.space, &at));
        for (uint32_t v = 0; v < at.n_variables; v++)
            for (uint32_t k = 0; k < sync_parts(&at.variables[v]); k++) {
                const struct variable_sync *part = sync_part(&at.variables[v], k);
                const bool encoder = part->encoding >= ENCODING_int8;
                met[part->encoding]++;
                here |= 1u << part->encoding;
                assert_true(!encoder || part->kind == SYNC_ALL_REDUCE);
                if (part->encoding == ENCODING_powersgd)
                    ranks |= 1u << (uint32_t)part->figure;
                else
                    assert_close(part->figure,
                                 part->encoding == ENCODING_int8   ? 256
                                 : part->encoding == ENCODING_topk ? 0.01
                                                                   : 0,
                                 0);
                if (part->kind == SYNC_ALL_REDUCE)
                    assert_int_equal(at.groups[part->group].algorithm == ALGORITHM_auto, encoder);
            }
        mixed += __builtin_popcount(here) > 2;
        assert_ok(space_neighbour(&f.space, &at, &rng, &next, &err));
        strategy_release(&at);
        at = next;
    }
    strategy_release(&at);
    for (int e = 0; e < ENCODING_COUNT; e++)
        assert_true(met[e] > 0);
    assert_int_equal(ranks & ~(1u << 1 | 1u << 2 | 1u << 4), 0); /* the usual ones, and more than one of them */
    assert_true(__builtin_popcount(ranks) > 1);
    assert_true(mixed > 100);
    fixture_close(&f);
    free(model);
}

static void preemptive(struct fixture *f, uint32_t n_slices, struct strategy *out) {
    struct error err = {0};
    assert_ok(strategy_init(out, "preemptive", &f->model, 1, &err));
    struct slice *slices = arena_alloc(&out->arena, n_slices, sizeof *slices);
    assert_non_null(slices);
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < f->model.n_variables; v++)
        bytes += f->model.variables[v].bytes;
    for (uint32_t i = 0; i < n_slices; i++)
        slices[i].bytes = i ? 4 : bytes - 4 * (n_slices - 1);
    out->policy = POLICY_preemptive;
    out->slices = slices;
    out->n_slices = n_slices;
    assert_ok(strategy_seal(out, &f->model, &f->cluster, &err));
}

/* Whatever the change is, and also where the space leaves nothing but one group and one policy to choose. */
static void a_neighbour_of_a_preemptive_strategy_has_no_slices(void **state) {
    (void)state;
    struct fixture f;
    struct error err = {0};
    struct rng rng;
    struct strategy from, next;
    char *model = chain_model(4, 100, 0);
    rng_seed(&rng, test_seed());
    for (unsigned policies = 1; policies < 4; policies++) {
        struct space_options o = space_default_options();
        o.policies = policies;
        fixture_open(&f, model, two_nodes, &o);
        preemptive(&f, 3, &from);
        assert_false(space_contains(&f.space, &from));
        uint32_t priority = 0;
        for (int i = 0; i < 200; i++) {
            assert_ok(space_neighbour(&f.space, &from, &rng, &next, &err));
            assert_true(policies >> next.policy & 1);
            priority += next.policy == POLICY_priority;
            assert_int_equal(next.n_slices, 0);
            strategy_release(&next);
        }
        assert_true(priority == (policies == 1   ? 0
                                 : policies == 2 ? 200
                                                 : priority) &&
                    (policies < 3 || priority > 150));
        assert_int_equal(from.n_slices, 3);
        strategy_release(&from);
        fixture_close(&f);
    }
    free(model);
}

static void preemptive_strategies_are_alike_by_their_number_of_slices(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = space_default_options();
    struct error err = {0};
    struct strategy few, more, fifo;
    double same, other, policy;
    char *model = chain_model(4, 100, 0);
    fixture_open(&f, model, two_nodes, &o);
    preemptive(&f, 2, &few);
    preemptive(&f, 4, &more);
    assert_ok(strategy_init(&fifo, "fifo", &f.model, 1, &err));
    assert_ok(strategy_seal(&fifo, &f.model, &f.cluster, &err));
    assert_ok(space_similarity(&f.space, &few, &few, &same, &err));
    assert_ok(space_similarity(&f.space, &few, &more, &other, &err));
    assert_ok(space_similarity(&f.space, &few, &fifo, &policy, &err));
    assert_close(same, 1.0, 1e-12);
    assert_close(other, 1.0 - 0.25 / 3 * 0.1, 1e-12); /* a factor of 2 of 2^10 */
    assert_close(policy, 1.0 - 0.25 / 3, 1e-12);
    strategy_release(&few);
    strategy_release(&more);
    strategy_release(&fifo);
    fixture_close(&f);
    free(model);
}

static void similarity_weighs_groups_by_shared_members(void **state) {
    (void)state;
    struct fixture f;
    struct space_options o = space_default_options();
    struct error err = {0};
    struct strategy one, two, served;
    double similarity;
    char *model = chain_model(4, 10, 0);
    fixture_open(&f, model, two_nodes, &o);
    assert_ok(strategy_init(&one, "one", &f.model, 1, &err));
    assert_ok(strategy_seal(&one, &f.model, &f.cluster, &err));
    assert_ok(strategy_init(&two, "two", &f.model, 2, &err));
    two.variables[3].group = 1;
    two.credit_bytes = 0;
    assert_ok(strategy_seal(&two, &f.model, &f.cluster, &err));
    /* Three variables share 3 of 4 members, one 1 of 4; policy and barrier agree, credit does not. */
    double variables = 0.5 + 0.5 * (3 * 0.75 + 0.25) / 4;
    assert_ok(space_similarity(&f.space, &one, &two, &similarity, &err));
    assert_close(similarity, 0.75 * variables + 0.25 * 2 / 3, 1e-12);
    assert_ok(strategy_init(&served, "served", &f.model, 0, &err));
    const uint32_t node = 1;
    for (uint32_t v = 0; v < 4; v++) {
        served.variables[v].kind = SYNC_PARAMETER_SERVER;
        served.variables[v].servers = &node;
        served.variables[v].n_servers = 1;
    }
    assert_ok(strategy_seal(&served, &f.model, &f.cluster, &err));
    assert_ok(space_similarity(&f.space, &one, &served, &similarity, &err));
    assert_close(similarity, 0.25, 1e-12);
    strategy_release(&one);
    strategy_release(&two);
    strategy_release(&served);
    fixture_close(&f);
    free(model);
}

static void the_size_of_a_large_space_is_finite_and_grows_with_the_model(void **state) {
    (void)state;
    struct space_options o = space_default_options();
    struct error err = {0};
    double before = 0.0;
    for (uint32_t n = 1; n <= 3000; n *= 3) {
        struct fixture f;
        double now;
        char *model = chain_model(n, 1000, 0);
        fixture_open(&f, model, uneven_nodes, &o);
        assert_ok(space_log10_size(&f.space, &now, &err));
        assert_true(isfinite(now) && now > before + 1.0);
        before = now;
        fixture_close(&f);
        free(model);
    }
}

static void options_that_leave_nothing_are_refused(void **state) {
    (void)state;
    struct fixture f;
    struct error err = {0};
    struct space space;
    struct space_options good = space_default_options(), o = good;
    fixture_open(&f, two_variables, two_nodes, &good);
    o.all_reduce = o.parameter_server = false;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "neither");
    o = good;
    o.algorithms = 0;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "algorithms");
    o = good;
    o.policies = 1u << POLICY_preemptive;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "fifo and priority");
    o = good;
    o.encodings = 1u << ENCODING_f16;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "none");
    o = good;
    o.sharded = 1u << SHARDED_parameters;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "sharded");
    o = good;
    o.max_shards = 0;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "max_shards");
    o = good;
    o.max_partition_bytes = o.min_partition_bytes - 1;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "partition");
    o = good;
    o.min_credit_bytes = 1;
    assert_fails(space_init(&space, &f.model, &f.cluster, &o, &err), ST_INVALID, "credit");
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_sampling_visits_exactly_as_many_strategies_as_the_formula_counts),
        cmocka_unit_test(neighbour_steps_connect_the_whole_space),
        cmocka_unit_test(neighbour_steps_connect_all_ways_to_shard),
        cmocka_unit_test(what_cannot_be_sharded_is_left_out_of_the_options),
        cmocka_unit_test(balanced_servers_carry_load_in_proportion_to_their_bandwidth),
        cmocka_unit_test(the_first_server_is_multinomial_by_bandwidth),
        cmocka_unit_test(a_link_that_is_slower_than_the_nics_lowers_the_rate_of_both_its_ends),
        cmocka_unit_test(variables_become_ready_in_the_order_of_their_producers),
        cmocka_unit_test(a_random_walk_meets_every_kind_of_choice),
        cmocka_unit_test(a_walk_with_encodings_meets_each_and_keeps_encoders_off_servers),
        cmocka_unit_test(a_neighbour_of_a_preemptive_strategy_has_no_slices),
        cmocka_unit_test(preemptive_strategies_are_alike_by_their_number_of_slices),
        cmocka_unit_test(similarity_weighs_groups_by_shared_members),
        cmocka_unit_test(the_size_of_a_large_space_is_finite_and_grows_with_the_model),
        cmocka_unit_test(options_that_leave_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
