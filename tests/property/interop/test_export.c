/* Exported knobs against the rules that they go to: a strategy that a knob made gives back that knob, or where the
 * strategy cannot tell several knobs apart, one that makes the same strategy. The rules of PyTorch, TensorFlow and
 * DeepSpeed are written down here once more, plainly, from their documentation. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "interop/export/export.h"
#include "interop/export/export_internal.h"
#include "interop/export/nccl/table.h"
#include "interop/import/import.h"
#include "strategy/baselines/buckets.h"
#include "strategy/baselines/byteps.h"
#include "strategy/baselines/bytescheduler.h"
#include "strategy/baselines/horovod.h"
#include "strategy/baselines/xla.h"
#include "strategy/plan.h"
#include "strategy/space/ready_order.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 500 };
#else
enum { INSTANCES = 200 };
#endif

/* ---- a model and a cluster ---- */

struct world {
    struct rng rng;
    struct model model;
    struct cluster cluster;
    uint32_t *ready;
};

static void world_open(struct world *w, uint64_t number) {
    struct error err = {0};
    rng_split(&w->rng, test_seed(), number);
    assert_ok(random_model(&w->rng, &w->model, &err));
    assert_ok(random_cluster(&w->rng, &w->cluster, &err));
    w->ready = calloc(w->model.n_variables, sizeof *w->ready);
    assert_non_null(w->ready);
    assert_ok(ready_order(&w->model, w->ready, &err));
}

static void world_close(struct world *w) {
    free(w->ready);
    cluster_release(&w->cluster);
    model_release(&w->model);
}

static void export_to(const struct world *w, const char *name, const struct strategy *s, struct export *out) {
    struct error err = {0};
    const struct exporter *exporter = exporters_find(name);
    assert_non_null(exporter);
    assert_ok(export_build(exporter, s, &w->model, &w->cluster, out, &err));
    assert_true(out->n_files > 0);
}

static bool has_note(const struct export *export, enum export_loss loss) {
    for (uint32_t i = 0; i < export->n_notes; i++)
        if (export->notes[i].loss == loss)
            return true;
    return false;
}

static const struct export_file *file_of(const struct export *export, const char *name) {
    for (uint32_t i = 0; i < export->n_files; i++)
        if (!strcmp(export->files[i].name, name))
            return &export->files[i];
    return NULL;
}

/* The number behind "NAME=" at the beginning of a line. */
static uint64_t setting(const struct export *export, const char *name) {
    const size_t n = strlen(name);
    for (const char *line = export->files[0].text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (!strncmp(line, name, n) && line[n] == '=')
            return strtoull(line + n + 1, NULL, 10);
    fail_msg("no %s in %s", name, export->files[0].text);
    return 0;
}

static cJSON *json_of(const struct export_file *file) {
    struct error err = {0};
    cJSON *json = NULL;
    assert_non_null(file);
    assert_ok(json_parse(file->text, file->n, file->name, &json, &err));
    return json;
}

static void assert_same_groups(const struct strategy *a, const struct strategy *b) {
    for (uint32_t v = 0; v < a->n_variables; v++)
        if (a->variables[v].group != b->variables[v].group)
            fail_msg("variable %u is in group %u, not %u", v, b->variables[v].group, a->variables[v].group);
}

/* An unsealed strategy of up to n groups, one message at a time. */
static void strategy_open(const struct world *w, uint32_t n_groups, struct strategy *out) {
    struct error err = {0};
    assert_ok(strategy_init(out, "s", &w->model, n_groups, &err));
    out->credit_bytes = 0;
}

static void seal(const struct world *w, struct strategy *s) {
    struct error err = {0};
    assert_ok(strategy_seal(s, &w->model, &w->cluster, &err));
}

/* ---- the rules, once more ---- */

struct rule_state {
    bool open;
    uint32_t group, index;
    uint64_t held;
};

/* PyTorch: caps[k] for the k-th bucket of a dtype; a bucket that holds its cap is done. */
static void pytorch_rule(const struct world *w, uint32_t n_caps, const uint64_t *caps, struct strategy *s) {
    struct rule_state of[DTYPE_COUNT] = {{0}};
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->model.n_variables; i++) {
        const struct variable *v = &w->model.variables[w->ready[i]];
        struct rule_state *b = &of[v->dtype];
        if (!b->open) {
            b->open = true;
            b->group = n++;
            b->held = 0;
        }
        s->variables[w->ready[i]].group = b->group;
        b->held += v->bytes;
        if (b->held >= caps[b->index < n_caps ? b->index : n_caps - 1]) {
            b->open = false;
            b->index++;
        }
    }
    seal(w, s);
}

/* TensorFlow: in the reverse of declaration; a new pack when the last holds more than `bytes`; 0: one pack. */
static void tensorflow_rule(const struct world *w, uint64_t bytes, struct strategy *s) {
    uint64_t held = 0;
    uint32_t group = 0;
    for (uint32_t v = w->model.n_variables; v-- > 0;) {
        if (bytes && held > bytes) {
            group++;
            held = 0;
        }
        s->variables[v].group = group;
        held += w->model.variables[v].bytes;
    }
    seal(w, s);
}

/* DeepSpeed: the bucket of a dtype is reduced before it would hold more than so many elements. */
static void deepspeed_rule(const struct world *w, uint64_t elements, struct strategy *s) {
    struct rule_state of[DTYPE_COUNT] = {{0}};
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->model.n_variables; i++) {
        const struct variable *v = &w->model.variables[w->ready[i]];
        struct rule_state *b = &of[v->dtype];
        if (!b->open || b->held + v->elements > elements) {
            b->open = true;
            b->group = n++;
            b->held = 0;
        }
        s->variables[w->ready[i]].group = b->group;
        b->held += v->elements;
    }
    seal(w, s);
}

/* What XLA combines: each variable's bytes and kind, in an order. */
struct xla_program {
    const uint32_t *order;
    uint64_t size[64];
    uint32_t kind[64];
};

/* XLA: pass by pass over what is left, in order. The first of a pass says the kind; what is larger than `bytes` is
 * taken out and stays alone; the pass ends before it would hold more than `bytes`, or with 256. */
static void xla_rule(const struct xla_program *p, uint32_t n, uint64_t bytes, uint32_t *label) {
    bool *taken = calloc(n, sizeof *taken);
    uint32_t left = n, group = 0;
    assert_non_null(taken);
    while (left > 0) {
        uint64_t held = 0;
        uint32_t members = 0, alone = 0;
        uint32_t kind = 0;
        const uint32_t of_pass = group++;
        for (uint32_t i = 0; i < n && members < 256; i++) {
            const uint32_t v = p->order[i];
            if (taken[i] || (members > 0 && p->kind[v] != kind))
                continue;
            if (p->size[v] <= bytes && held + p->size[v] > bytes)
                break;
            taken[i] = true;
            if (p->size[v] > bytes) {
                label[v] = group++;
                alone++;
                continue;
            }
            kind = p->kind[v];
            label[v] = of_pass;
            held += p->size[v];
            members++;
        }
        left -= members + alone;
    }
    free(taken);
}

/* The same variables together, whatever the groups are called. */
static bool same_partition(const struct strategy *s, const uint32_t *label) {
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t u = 0; u < v; u++)
            if ((s->variables[v].group == s->variables[u].group) != (label[v] == label[u]))
                return false;
    return true;
}

/* Groups numbered 0, 1, ... by their first variable, of those that have both labels in common. */
static void join_groups(struct strategy *s, const uint32_t *a, const uint32_t *b) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < s->n_variables; v++) {
        uint32_t u = 0;
        while (u < v && (a[u] != a[v] || b[u] != b[v]))
            u++;
        s->variables[v].group = u < v ? s->variables[u].group : n++;
    }
}

static bool one_dtype(const struct world *w) {
    for (uint32_t v = 1; v < w->model.n_variables; v++)
        if (w->model.variables[v].dtype != w->model.variables[0].dtype)
            return false;
    return true;
}

/* ---- buckets ---- */

/* Items of small sizes, so that sums meet caps exactly. */
static uint32_t random_items(struct rng *rng, struct bucket_item *items, uint32_t most, uint32_t kinds) {
    const uint32_t n = 1 + (uint32_t)rng_below(rng, most);
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct bucket_item){.kind = (uint32_t)rng_below(rng, kinds), .size = 1 + rng_below(rng, 6)};
    return n;
}

static bool same_labels(uint32_t n, const struct bucket_item *a, const struct bucket_item *b) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if ((a[i].label == a[j].label) != (b[i].label == b[j].label))
                return false;
    return true;
}

static void caps_that_filled_buckets_are_inferred_and_no_others(void **state) {
    (void)state;
    struct rng rng;
    struct error err = {0};
    struct bucket_item items[12], again[12];
    for (uint64_t i = 0; i < 4 * INSTANCES; i++) {
        rng_split(&rng, test_seed(), i);
        const enum bucket_rule rule = (enum bucket_rule)rng_below(&rng, 3);
        const uint32_t n = random_items(&rng, items, 12, 2), n_caps = 1 + (uint32_t)rng_below(&rng, 4);
        uint64_t caps[4];
        for (uint32_t k = 0; k < n_caps; k++)
            caps[k] = 1 + rng_below(&rng, 20);
        const uint32_t n_labels = buckets_fill(rule, n, items, n_caps, caps);
        struct arena arena = {0};
        struct bucket_caps inferred;
        bool fits;
        assert_ok(buckets_infer(rule, n, items, n_labels, &arena, &inferred, &fits, &err));
        assert_true(fits);
        memcpy(again, items, sizeof items);
        uint64_t used[12];
        for (uint32_t k = 0; k < inferred.n; k++) {
            const struct cap_range *range = &inferred.ranges[k];
            const uint64_t cap = caps[k < n_caps ? k : n_caps - 1];
            assert_in_range(cap, range->low, range->high);
            used[k] = rng_below(&rng, 2) ? range->low : range->high;
        }
        buckets_fill(rule, n, again, inferred.n, used);
        assert_true(same_labels(n, items, again));
        const uint32_t k = (uint32_t)rng_below(&rng, inferred.n);
        const struct cap_range *range = &inferred.ranges[k];
        const bool below = rng_below(&rng, 2);
        if (below ? range->low > 1 : range->high < UINT64_MAX) {
            used[k] = below ? range->low - 1 : range->high + 1;
            buckets_fill(rule, n, again, inferred.n, used);
            assert_false(same_labels(n, items, again));
        }
        arena_release(&arena);
    }
}

static void labels_fit_one_cap_exactly_when_some_cap_makes_them(void **state) {
    (void)state;
    struct rng rng;
    struct error err = {0};
    struct bucket_item items[6], again[6];
    uint32_t fitting = 0;
    for (uint64_t i = 0; i < 4 * INSTANCES; i++) {
        rng_split(&rng, test_seed(), i);
        const enum bucket_rule rule = (enum bucket_rule)rng_below(&rng, 4);
        const uint32_t n = random_items(&rng, items, 6, 2);
        for (uint32_t k = 0; k < n; k++)
            items[k].label = k && rng_below(&rng, 3) ? items[k - 1].label : (uint32_t)rng_below(&rng, 6);
        struct arena arena = {0};
        struct bucket_caps inferred;
        struct cap_range one;
        bool fits, any = false;
        assert_ok(buckets_infer(rule, n, items, 6, &arena, &inferred, &fits, &err));
        for (uint64_t cap = 1; cap <= 40 && !any; cap++) {
            memcpy(again, items, sizeof items);
            buckets_fill(rule, n, again, 1, &cap);
            any = same_labels(n, items, again);
        }
        assert_int_equal(fits && buckets_common(&inferred, &one), any);
        for (uint64_t cap = one.low; any && cap <= one.high && cap <= 40; cap++) {
            memcpy(again, items, sizeof items);
            buckets_fill(rule, n, again, 1, &cap);
            assert_true(same_labels(n, items, again));
        }
        fitting += any;
        arena_release(&arena);
    }
    assert_in_range(fitting, INSTANCES / 4, 4 * INSTANCES - INSTANCES / 4);
}

static void nearest_cap_makes_no_more_buckets_than_asked(void **state) {
    (void)state;
    struct rng rng;
    struct bucket_item items[12];
    for (uint64_t i = 0; i < INSTANCES; i++) {
        rng_split(&rng, test_seed(), i);
        const uint32_t n = random_items(&rng, items, 12, 1), wanted = 1 + (uint32_t)rng_below(&rng, n);
        const enum bucket_rule rule = (enum bucket_rule)rng_below(&rng, 3);
        const uint64_t cap = buckets_nearest(rule, n, items, wanted), less = cap - 1;
        assert_true(buckets_fill(rule, n, items, 1, &cap) <= wanted);
        assert_true(!less || buckets_fill(rule, n, items, 1, &less) > wanted);
    }
}

static void rounded_numbers_stay_inside_and_are_the_roundest(void **state) {
    (void)state;
    struct rng rng;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        rng_split(&rng, test_seed(), i);
        const uint64_t base = rng_below(&rng, 2) ? 2 : 10, low = 1 + rng_below(&rng, 500);
        const uint64_t high = low + rng_below(&rng, 500), preferred = rng_below(&rng, 2000);
        const uint64_t got = export_round(low, high, preferred, base);
        assert_in_range(got, low, high);
        if (preferred >= low && preferred <= high) {
            assert_int_equal(got, preferred);
            continue;
        }
        for (uint64_t x = low; x <= high; x++)
            for (uint64_t unit = base; x % unit == 0; unit *= base)
                if (got % unit != 0)
                    fail_msg("%lu in [%lu, %lu] is rounder than %lu", (unsigned long)x, (unsigned long)low,
                             (unsigned long)high, (unsigned long)got);
    }
    assert_int_equal(export_round(1, UINT64_MAX, 25, 2), 25);
    assert_in_range(export_round(UINT64_MAX - 3, UINT64_MAX, 1, 2), UINT64_MAX - 3, UINT64_MAX);
}

/* ---- frameworks with a bucket size ---- */

/* The caps, in bytes, that ddp.json says. */
static uint32_t ddp_caps(const struct export *export, uint64_t *caps, uint32_t most) {
    cJSON *json = json_of(file_of(export, "ddp.json"));
    const cJSON *one = cJSON_GetObjectItem(json, "bucket_cap_mb"),
                *list = cJSON_GetObjectItem(json, "bucket_cap_mb_list");
    uint32_t n = 0;
    assert_true(cJSON_GetArraySize(json) <= 1);
    if (one) {
        caps[n++] = (uint64_t)(one->valuedouble * 1048576);
    } else if (!list) {
        caps[n++] = UINT64_C(1) << 20;
        caps[n++] = UINT64_C(25) << 20;
    }
    for (const cJSON *cap = list ? list->child : NULL; cap; cap = cap->next) {
        assert_true(n < most);
        caps[n++] = (uint64_t)(cap->valuedouble * 1048576);
    }
    cJSON_Delete(json);
    return n;
}

static void ddp_buckets_come_back_from_the_caps_that_are_written(void **state) {
    (void)state;
    struct error err = {0};
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s, again;
        struct export export;
        uint64_t caps[4], got[64];
        world_open(&w, i);
        const uint32_t n_caps = 1 + (uint32_t)rng_below(&w.rng, 4);
        for (uint32_t k = 0; k < n_caps; k++)
            caps[k] = (uint64_t)rng_log_between(&w.rng, 1, 2.0 * (double)w.model.bytes);
        strategy_open(&w, w.model.n_variables, &s);
        strategy_open(&w, w.model.n_variables, &again);
        pytorch_rule(&w, n_caps, caps, &s);
        export_to(&w, "pytorch-ddp", &s, &export);
        assert_int_equal(export.n_notes, 0);
        assert_int_equal(export.n_files, 1);
        const uint32_t n_got = ddp_caps(&export, got, 64);
        pytorch_rule(&w, n_got, got, &again);
        assert_same_groups(&s, &again);
        assert_true(n_caps > 1 || n_got <= 2); /* one cap made it, so one cap, or the default, is written */
        assert_false(err.status);
        export_release(&export);
        strategy_release(&again);
        strategy_release(&s);
        world_close(&w);
    }
}

static void tensorflow_packs_come_back_from_bytes_per_pack(void **state) {
    (void)state;
    uint32_t tried = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s, again;
        struct export export;
        world_open(&w, i);
        if (one_dtype(&w)) {
            const uint64_t bytes = (uint64_t)rng_log_between(&w.rng, 1, 2.0 * (double)w.model.bytes);
            strategy_open(&w, w.model.n_variables, &s);
            strategy_open(&w, w.model.n_variables, &again);
            tensorflow_rule(&w, bytes, &s);
            export_to(&w, "tensorflow", &s, &export);
            assert_int_equal(export.n_notes, 0);
            cJSON *json = json_of(&export.files[0]);
            tensorflow_rule(&w, (uint64_t)cJSON_GetObjectItem(json, "bytes_per_pack")->valuedouble, &again);
            assert_same_groups(&s, &again);
            cJSON_Delete(json);
            export_release(&export);
            strategy_release(&again);
            strategy_release(&s);
            tried++;
        }
        world_close(&w);
    }
    assert_true(tried > INSTANCES / 20);
}

static uint64_t xla_threshold(const struct export *export, const char *collective) {
    char flag[80];
    snprintf(flag, sizeof flag, "--xla_gpu_%s_combine_threshold_bytes=", collective);
    const char *at = strstr(export->files[0].text, flag);
    assert_non_null(at);
    return strtoull(at + strlen(flag), NULL, 10);
}

static struct xla_program gradients_of(const struct world *w) {
    struct xla_program p = {.order = w->ready};
    assert_true(w->model.n_variables <= 64);
    for (uint32_t v = 0; v < w->model.n_variables; v++) {
        p.size[v] = w->model.variables[v].bytes;
        p.kind[v] = w->model.variables[v].dtype;
    }
    return p;
}

static void xla_combinations_come_back_from_the_threshold(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s;
        struct export export;
        uint32_t label[64];
        world_open(&w, i);
        const uint32_t n = w.model.n_variables;
        const struct xla_program p = gradients_of(&w);
        const uint64_t bytes = (uint64_t)rng_log_between(&w.rng, 1, (double)w.model.bytes);
        strategy_open(&w, n, &s);
        xla_rule(&p, n, bytes, label);
        join_groups(&s, label, label);
        seal(&w, &s);
        export_to(&w, "xla", &s, &export);
        assert_int_equal(export.n_notes, 0);
        const uint64_t threshold = xla_threshold(&export, "all_reduce");
        assert_int_equal(xla_threshold(&export, "all_gather"), threshold);
        const uint64_t part = threshold / w.cluster.n_devices;
        assert_int_equal(xla_threshold(&export, "reduce_scatter"), part > 0 ? part : 1);
        xla_rule(&p, n, threshold, label);
        assert_true(same_partition(&s, label));
        export_release(&export);
        strategy_release(&s);
        world_close(&w);
    }
}

/* The sums and the gathers of a program where all is sharded among all devices. */
static void sharded_programs(const struct world *w, enum sharded sharded, const uint32_t *read,
                             struct xla_program *sums, struct xla_program *gathers) {
    *sums = gradients_of(w);
    *gathers = (struct xla_program){.order = sharded == SHARDED_parameters ? read : w->ready};
    for (uint32_t v = 0; v < w->model.n_variables; v++) {
        const uint64_t devices = w->cluster.n_devices, part = (w->model.variables[v].elements + devices - 1) / devices;
        sums->size[v] = part * dtype_bytes(w->model.variables[v].dtype);
        gathers->size[v] = devices * sums->size[v];
    }
}

/* The flags say what is combined, but not what is sharded. */
static void check_sharded_flags(const struct world *w, const struct strategy *s, const struct xla_program *sums,
                                const struct xla_program *gathers, bool fits) {
    struct export export;
    uint32_t label[64];
    export_to(w, "xla", s, &export);
    assert_true(has_note(&export, EXPORT_LOSS_SHARDED));
    assert_null(strstr(export.files[0].text, "all_reduce"));
    if (fits)
        assert_false(has_note(&export, EXPORT_LOSS_GROUPS));
    if (!has_note(&export, EXPORT_LOSS_GROUPS)) {
        xla_rule(sums, s->n_variables, xla_threshold(&export, "reduce_scatter"), label);
        assert_true(same_partition(s, label));
        xla_rule(gathers, s->n_variables, xla_threshold(&export, "all_gather"), label);
        assert_true(same_partition(s, label));
    }
    if (!has_note(&export, EXPORT_LOSS_GROUPS) && s->groups[0].sharded == SHARDED_parameters) {
        struct error err = {0};
        struct arena arena = {0};
        struct notes notes = {.arena = &arena};
        struct strategy again;
        const struct export_file *file = &export.files[0];
        const struct source source = {.name = file->name, .text = file->text, .n = file->n};
        assert_ok(import_strategy(&source, NULL, &w->model, &w->cluster, &notes, &again, &err));
        assert_string_equal(again.id.hex, s->id.hex);
        strategy_release(&again);
        arena_release(&arena);
    }
    export_release(&export);
}

static void xla_thresholds_of_what_is_sharded_make_the_groups_and_come_back(void **state) {
    (void)state;
    uint32_t fitting = 0, parted = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct error err = {0};
        struct world w;
        struct strategy s, built;
        struct xla_program sums, gathers;
        uint32_t of_sums[64], of_gathers[64], read[64];
        world_open(&w, i);
        const uint32_t n = w.model.n_variables;
        const enum sharded sharded = (enum sharded)(1 + rng_below(&w.rng, SHARDED_COUNT - 1));
        const double most = 2.0 * (double)w.model.bytes;
        const uint64_t gather = (uint64_t)rng_log_between(&w.rng, 1, most), scatter = gather / w.cluster.n_devices + 1;
        assert_ok(read_order(&w.model, read, &err));
        sharded_programs(&w, sharded, read, &sums, &gathers);
        xla_rule(&sums, n, scatter, of_sums);
        xla_rule(&gathers, n, gather, of_gathers);
        strategy_open(&w, n, &s);
        join_groups(&s, of_sums, of_gathers);
        for (uint32_t g = 0; g < s.n_groups; g++) {
            s.groups[g].sharded = sharded;
            s.groups[g].keeps_gathered = sharded == SHARDED_parameters;
        }
        seal(&w, &s);
        assert_ok(
            xla_build(&w.model, &w.cluster, &(struct xla_settings){sharded, {1, gather, scatter}}, "s", &built, &err));
        assert_string_equal(s.id.hex, built.id.hex);
        const bool fits = same_partition(&s, of_sums) && same_partition(&s, of_gathers);
        check_sharded_flags(&w, &s, &sums, &gathers, fits);
        fitting += fits && s.n_groups > 1 && s.n_groups < n;
        parted += !fits;
        strategy_release(&built);
        strategy_release(&s);
        world_close(&w);
    }
    print_message("# of %d: %u fit and combine some, %u are no thresholds'\n", INSTANCES, fitting, parted);
    assert_true(fitting > INSTANCES / 20 && parted > INSTANCES / 20);
}

static void deepspeed_buckets_come_back_from_reduce_bucket_size(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s, again;
        struct export export;
        world_open(&w, i);
        const uint64_t elements = (uint64_t)rng_log_between(&w.rng, 1, (double)w.model.bytes);
        strategy_open(&w, w.model.n_variables, &s);
        strategy_open(&w, w.model.n_variables, &again);
        deepspeed_rule(&w, elements, &s);
        export_to(&w, "deepspeed", &s, &export);
        assert_int_equal(export.n_notes, 0);
        cJSON *json = json_of(&export.files[0]);
        const cJSON *zero = cJSON_GetObjectItem(json, "zero_optimization");
        deepspeed_rule(&w, (uint64_t)cJSON_GetObjectItem(zero, "reduce_bucket_size")->valuedouble, &again);
        assert_same_groups(&s, &again);
        cJSON_Delete(json);
        export_release(&export);
        strategy_release(&again);
        strategy_release(&s);
        world_close(&w);
    }
}

/* ---- Horovod ---- */

/* What Horovod does with the settings that were exported. */
static void build_horovod(const struct world *w, const struct export *export, struct strategy *out) {
    struct error err = {0};
    const double cycle_us = 1e3 * (double)setting(export, "HOROVOD_CYCLE_TIME");
    assert_ok(horovod_build(&w->model, &w->cluster, setting(export, "HOROVOD_FUSION_THRESHOLD"), cycle_us, out, &err));
}

static void horovod_thresholds_and_cycles_come_back(void **state) {
    (void)state;
    struct error err = {0};
    uint32_t other_cycles = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s, again;
        struct export export;
        world_open(&w, i);
        const uint64_t bytes = (uint64_t)rng_log_between(&w.rng, 1, 2.0 * (double)w.model.bytes);
        const double cycle_us = horovod_cycles_us[rng_below(&w.rng, HOROVOD_CYCLES)];
        assert_ok(horovod_build(&w.model, &w.cluster, bytes, cycle_us, &s, &err));
        export_to(&w, "horovod", &s, &export);
        assert_int_equal(export.n_notes, 0);
        assert_null(file_of(&export, "horovod-groups.json"));
        build_horovod(&w, &export, &again);
        assert_string_equal(s.id.hex, again.id.hex);
        other_cycles += setting(&export, "HOROVOD_CYCLE_TIME") != 1;
        export_release(&export);
        strategy_release(&again);
        strategy_release(&s);
        world_close(&w);
    }
    assert_true(other_cycles > 0);
}

/* The groups of the file, as group numbers in s. */
static void read_groups(const struct world *w, const struct export *export, struct strategy *s) {
    cJSON *json = json_of(file_of(export, "horovod-groups.json"));
    uint32_t g = 0, named = 0;
    for (const cJSON *group = json->child; group; group = group->next, g++)
        for (const cJSON *name = group->child; name; name = name->next, named++) {
            const int64_t v = model_find_variable(&w->model, name->valuestring);
            assert_true(v >= 0);
            s->variables[v].group = g;
        }
    assert_int_equal(named, w->model.n_variables);
    cJSON_Delete(json);
    seal(w, s);
}

static void horovod_groups_are_written_exactly_when_no_threshold_makes_them(void **state) {
    (void)state;
    struct error err = {0};
    uint32_t with_groups = 0, without = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s, again;
        struct export export;
        world_open(&w, i);
        const uint32_t n = 1 + (uint32_t)rng_below(&w.rng, 3);
        strategy_open(&w, 2 * n * DTYPE_COUNT, &s);
        for (uint32_t v = 0; v < s.n_variables; v++) {
            s.variables[v].group = (uint32_t)rng_below(&w.rng, n) * DTYPE_COUNT + w.model.variables[v].dtype;
            if (w.model.variables[v].sparse_rows > 0)
                s.groups[s.variables[v].group += n * DTYPE_COUNT].algorithm = ALGORITHM_all_gather;
        }
        seal(&w, &s);
        export_to(&w, "horovod", &s, &export);
        const uint64_t got = setting(&export, "HOROVOD_FUSION_THRESHOLD");
        if (file_of(&export, "horovod-groups.json")) {
            strategy_open(&w, s.n_groups, &again);
            read_groups(&w, &export, &again);
            assert_same_groups(&s, &again);
            strategy_release(&again);
            for (int k = 0; k < 60; k++) {
                const uint64_t other = (uint64_t)rng_log_between(&w.rng, 1, 2.0 * (double)w.model.bytes);
                const double cycle_us = horovod_cycles_us[k % HOROVOD_CYCLES];
                assert_ok(horovod_build(&w.model, &w.cluster, k ? other : got, cycle_us, &again, &err));
                assert_string_not_equal(s.id.hex, again.id.hex);
                strategy_release(&again);
            }
            with_groups++;
        } else {
            build_horovod(&w, &export, &again);
            assert_string_equal(s.id.hex, again.id.hex);
            strategy_release(&again);
            without++;
        }
        export_release(&export);
        strategy_release(&s);
        world_close(&w);
    }
    assert_true(with_groups > INSTANCES / 10 && without > INSTANCES / 20);
}

/* ---- fully_shard ---- */

/* Variable "v7" becomes "m1.v7" of one of `modules` modules, wherever it is named. */
static void name_modules(cJSON *json, uint32_t modules) {
    char name[64];
    const char *old = cJSON_GetStringValue(json);
    if (old && old[0] == 'v' && strspn(old + 1, "0123456789") == strlen(old + 1)) {
        snprintf(name, sizeof name, "m%lu.%s", strtoul(old + 1, NULL, 10) % modules, old);
        assert_non_null(cJSON_SetValuestring(json, name));
    }
    for (cJSON *child = json->child; child; child = child->next)
        name_modules(child, modules);
}

static void world_open_in_modules(struct world *w, uint64_t number) {
    struct error err = {0};
    world_open(w, number);
    cJSON *json = model_write(&w->model);
    name_modules(json, 1 + (uint32_t)rng_below(&w->rng, w->model.n_variables));
    model_release(&w->model);
    assert_ok(model_read(json, "model", &w->model, &err));
    cJSON_Delete(json);
    assert_ok(ready_order(&w->model, w->ready, &err));
}

static uint32_t module_of(const struct world *w, uint32_t v) {
    return (uint32_t)strtoul(w->model.variables[v].name + 1, NULL, 10);
}

/* A number that divides n, from 2 on and below n; or 0, often. */
static uint32_t divisor(struct rng *rng, uint32_t n) {
    const uint32_t try = 2 + (uint32_t)rng_below(rng, n);
    return try < n && n % try == 0 ? try:
        0;
}

/* Replicas, parts that fewer keep, and micro-batches of a strategy that is sealed but for these. */
static void divide_at_random(struct world *w, struct strategy *s) {
    const uint32_t all = w->cluster.n_devices;
    s->shard_ranks = divisor(&w->rng, all);
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (!s->groups[g].keeps_gathered)
            s->groups[g].reshard_ranks = divisor(&w->rng, s->shard_ranks ? s->shard_ranks : all);
    s->micro_batches = 1 + (uint32_t)rng_below(&w->rng, 3);
    s->synchronize = rng_below(&w->rng, 2) ? SYNCHRONIZE_last
                     : s->shard_ranks      ? SYNCHRONIZE_each_all_reduce_last
                                           : SYNCHRONIZE_each;
}

/* Whole modules in groups for the most part; no group has two element types. */
static void shard_at_random(struct world *w, struct strategy *s) {
    const uint32_t n = 1 + (uint32_t)rng_below(&w->rng, 4), apart = (uint32_t)rng_below(&w->rng, 2);
    strategy_open(w, n * DTYPE_COUNT, s);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[g].sharded = SHARDED_parameters;
        s->groups[g].keeps_gathered = rng_below(&w->rng, 2);
        if (g % DTYPE_COUNT > DTYPE_f64)
            continue;
        s->groups[g].gathered_as = (enum carried)rng_below(&w->rng, CARRIED_COUNT);
        s->groups[g].summed_as = (enum carried)rng_below(&w->rng, CARRIED_COUNT);
    }
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const uint32_t choice = apart ? (uint32_t)rng_below(&w->rng, n) : module_of(w, v) % n;
        s->variables[v].group = choice * DTYPE_COUNT + w->model.variables[v].dtype;
    }
    seal(w, s);
    s->forward_prefetch = (uint32_t)rng_below(&w->rng, s->n_groups + 1);
    s->backward_prefetch = (uint32_t)rng_below(&w->rng, s->n_groups + 1);
    divide_at_random(w, s);
    seal(w, s);
}

static bool parts_a_module(const struct world *w, const struct strategy *s) {
    bool parts = false;
    for (uint32_t a = 0; a < s->n_variables; a++)
        for (uint32_t b = 0; b < a; b++)
            parts |= module_of(w, a) == module_of(w, b) && s->variables[a].group != s->variables[b].group;
    return parts;
}

static uint32_t first_read(const struct world *w, uint32_t v) {
    for (uint32_t i = 0; i < w->model.n_forward; i++)
        for (uint32_t r = 0; r < w->model.operators[w->model.order[i]].n_reads; r++)
            if (w->model.operators[w->model.order[i]].reads[r] == v)
                return i;
    return w->model.n_forward;
}

/* What the member says, if it is there; f64 is always the model's own type. */
static enum carried read_type(const cJSON *group, const char *name) {
    const char *word = cJSON_GetStringValue(cJSON_GetObjectItem(group, name));
    return !word || !strcmp(word, "f64") ? CARRIED_own
           : !strcmp(word, "f32")        ? CARRIED_f32
           : !strcmp(word, "f16")        ? CARRIED_f16
                                         : CARRIED_bf16;
}

static void read_schedule(const cJSON *json, struct strategy *s) {
    const cJSON *ranks = cJSON_GetObjectItem(json, "shard_ranks"),
                *accumulation = cJSON_GetObjectItem(json, "accumulation");
    const char *when = cJSON_GetStringValue(cJSON_GetObjectItem(accumulation, "synchronize"));
    s->forward_prefetch = (uint32_t)cJSON_GetObjectItem(json, "forward_prefetch")->valueint;
    s->backward_prefetch = (uint32_t)cJSON_GetObjectItem(json, "backward_prefetch")->valueint;
    s->shard_ranks = ranks ? (uint32_t)ranks->valueint : 0;
    if (accumulation)
        s->micro_batches = (uint32_t)cJSON_GetObjectItem(accumulation, "micro_batches")->valueint;
    for (int k = 0; k < SYNCHRONIZE_COUNT; k++)
        if (when && !strcmp(when, synchronize_name((enum synchronize)k)))
            s->synchronize = (enum synchronize)k;
}

/* Read the file; its groups are in the order of the forward pass. */
static void read_fsdp2(const struct world *w, const struct export *export, struct strategy *s) {
    cJSON *json = json_of(file_of(export, "fsdp2.json"));
    uint32_t g = 0, named = 0, before = 0;
    strategy_open(w, w->model.n_variables, s);
    read_schedule(json, s);
    for (const cJSON *group = cJSON_GetObjectItem(json, "groups")->child; group; group = group->next, g++) {
        uint32_t first = UINT32_MAX;
        s->groups[g].sharded = SHARDED_parameters;
        const cJSON *reshard = cJSON_GetObjectItem(group, "reshard_after_forward");
        s->groups[g].keeps_gathered = cJSON_IsFalse(reshard);
        s->groups[g].reshard_ranks = cJSON_IsNumber(reshard) ? (uint32_t)reshard->valueint : 0;
        s->groups[g].gathered_as = read_type(group, "param_dtype");
        s->groups[g].summed_as = read_type(group, "reduce_dtype");
        assert_true(!s->groups[g].gathered_as || cJSON_HasObjectItem(group, "reduce_dtype"));
        for (const cJSON *name = cJSON_GetObjectItem(group, "variables")->child; name; name = name->next, named++) {
            const int64_t v = model_find_variable(&w->model, name->valuestring);
            assert_true(v >= 0);
            s->variables[v].group = g;
            const uint32_t read = first_read(w, (uint32_t)v);
            first = read < first ? read : first;
        }
        assert_true(first >= before);
        before = first;
    }
    assert_int_equal(named, w->model.n_variables);
    cJSON_Delete(json);
}

/* The importer's strategy is what the file says, once sealed. A loss makes it note another id; whole modules of two
 * element types are no group. */
static void check_fsdp2_import(const struct world *w, const struct export *export, struct strategy *says,
                               const struct strategy *made_of) {
    struct error err = {0};
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    struct strategy imported;
    const struct export_file *file = file_of(export, "fsdp2.json");
    const struct source source = {.name = file->name, .text = file->text, .n = file->n};
    const enum status st = strategy_seal(says, &w->model, &w->cluster, &err);
    assert_int_equal(import_strategy(&source, NULL, &w->model, &w->cluster, &notes, &imported, &err), st);
    if (st) {
        assert_contains(ERROR_TEXT(&err), "fsdp2.json: ");
    } else {
        assert_string_equal(imported.id.hex, says->id.hex);
        assert_int_equal(notes.first != NULL, strcmp(imported.id.hex, made_of->id.hex) != 0);
        strategy_release(&imported);
    }
    arena_release(&arena);
}

static void fsdp2_groups_come_back_where_they_part_no_module(void **state) {
    (void)state;
    uint32_t whole = 0, replicas = 0, fewer = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s, again;
        struct export export;
        world_open_in_modules(&w, i);
        shard_at_random(&w, &s);
        export_to(&w, "fsdp2", &s, &export);
        read_fsdp2(&w, &export, &again);
        const bool parted = parts_a_module(&w, &s);
        assert_int_equal(has_note(&export, EXPORT_LOSS_GROUPS), parted);
        assert_int_equal(export.n_notes, parted);
        assert_false(parts_a_module(&w, &again));
        check_fsdp2_import(&w, &export, &again, &s);
        if (!parted)
            assert_string_equal(s.id.hex, again.id.hex);
        whole += !parted;
        replicas += !parted && s.shard_ranks;
        for (uint32_t g = 0; g < s.n_groups; g++)
            fewer += !parted && s.groups[g].reshard_ranks;
        export_release(&export);
        strategy_release(&s);
        strategy_release(&again);
        world_close(&w);
    }
    print_message("# %u part no module; %u of these have replicas, and %u groups parts that fewer keep\n", whole,
                  replicas, fewer);
    assert_true(whole > INSTANCES / 5 && whole < INSTANCES * 4 / 5);
    assert_true(replicas > INSTANCES / 50 && fewer > INSTANCES / 50);
}

/* ---- BytePS and ByteScheduler ---- */

static uint32_t count_servers(const struct strategy *s, const struct cluster *cluster) {
    uint32_t n = 0;
    for (uint32_t node = 0; node < cluster->n_nodes; node++) {
        bool serves = false;
        for (uint32_t v = 0; v < s->n_variables; v++)
            for (uint32_t i = 0; i < s->variables[v].n_servers; i++)
                serves |= s->variables[v].servers[i] == node;
        n += serves;
    }
    return n;
}

/* BytePS with as many servers as were exported puts partitions where the strategy does. */
static void check_byteps_servers(const struct world *w, const struct export *export, const struct strategy *s) {
    struct error err = {0};
    struct strategy again;
    const struct byteps_knobs knobs = {setting(export, "BYTEPS_PARTITION_BYTES"), 0,
                                       (uint32_t)setting(export, "DMLC_NUM_SERVER")};
    assert_ok(byteps_build(&w->model, &w->cluster, &knobs, &again, &err));
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const struct variable_sync *a = &s->variables[v], *b = &again.variables[v];
        assert_int_equal(a->n_servers, b->n_servers);
        assert_memory_equal(a->servers, b->servers, a->n_servers * sizeof *a->servers);
    }
    strategy_release(&again);
}

/* All servers come back even where few partitions leave some idle; fewer only where each has one. */
static void byteps_partition_credit_and_servers_come_back_exactly(void **state) {
    (void)state;
    struct error err = {0};
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s;
        struct export export;
        world_open(&w, i);
        const uint64_t partition = (uint64_t)rng_log_between(&w.rng, 1024, 1e8), credit = rng_below(&w.rng, 20);
        const uint32_t all = byteps_servers(&w.cluster), n = 1 + (uint32_t)rng_below(&w.rng, all);
        assert_ok(byteps_build(&w.model, &w.cluster, &(struct byteps_knobs){partition, 0, n}, &s, &err));
        s.policy = credit ? POLICY_priority : POLICY_fifo;
        s.credit_bytes = credit ? credit * partition : CREDIT_UNLIMITED;
        s.cross_iteration = rng_below(&w.rng, 2);
        seal(&w, &s);
        export_to(&w, "byteps", &s, &export);
        const bool shows = n == all || n == count_servers(&s, &w.cluster);
        if (shows) {
            assert_int_equal(export.n_notes, 0);
            check_byteps_servers(&w, &export, &s);
        }
        assert_int_equal(setting(&export, "BYTEPS_PARTITION_BYTES"), partition);
        assert_int_equal(setting(&export, "BYTEPS_SCHEDULING_CREDIT"), credit);
        export_release(&export);
        strategy_release(&s);
        world_close(&w);
    }
}

static void bytescheduler_partition_and_credit_come_back_exactly(void **state) {
    (void)state;
    struct error err = {0};
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s, again;
        struct export export;
        world_open(&w, i);
        const uint64_t partition = (uint64_t)rng_log_between(&w.rng, 1024, 1e7);
        const uint64_t credit = (uint64_t)rng_log_between(&w.rng, 1, 1e8);
        assert_ok(bytescheduler_all_reduce_build(&w.model, &w.cluster, partition, credit, &s, &err));
        export_to(&w, "bytescheduler", &s, &export);
        assert_int_equal(export.n_notes, 0);
        assert_int_equal(setting(&export, "BYTESCHEDULER_PARTITION"), partition);
        assert_int_equal(setting(&export, "BYTESCHEDULER_CREDIT"), credit);
        export_release(&export);
        strategy_release(&s);
        assert_ok(bytescheduler_ps_build(&w.model, &w.cluster, partition, credit, &s, &err));
        export_to(&w, "bytescheduler", &s, &export);
        assert_int_equal(export.n_notes, 0);
        const uint64_t got = setting(&export, "BYTESCHEDULER_PARTITION");
        assert_int_equal(setting(&export, "BYTESCHEDULER_CREDIT"), credit);
        assert_ok(bytescheduler_ps_build(&w.model, &w.cluster, got, credit, &again, &err));
        assert_string_equal(s.id.hex, again.id.hex);
        export_release(&export);
        strategy_release(&again);
        strategy_release(&s);
        world_close(&w);
    }
}

/* ---- any strategy, any form ---- */

static int wanted_by_nccl(enum algorithm algorithm) {
    return algorithm == ALGORITHM_ring                                         ? NCCL_TABLE_ALGO_ring
           : algorithm == ALGORITHM_tree || algorithm == ALGORITHM_double_tree ? NCCL_TABLE_ALGO_tree
                                                                               : -1;
}

static uint32_t devices_nodes(const struct cluster *cluster) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        n += cluster->nodes[i].devices > 0;
    return n;
}

/* Every message finds its group's algorithm in the table, and none where that is open. */
static void check_table(const struct world *w, const struct strategy *s, const struct export *export) {
    struct error err = {0};
    struct plan plan;
    struct nccl_table table = {0};
    const struct export_file *file = file_of(export, "nccl-tuner.csv");
    if (file)
        assert_ok(nccl_table_read(file->text, file->n, file->name, &table, &err));
    assert_ok(plan_lower(&w->model, &w->cluster, s, &plan, &err));
    for (uint32_t m = 0; m < plan.n_messages && !has_note(export, EXPORT_LOSS_ALGORITHM); m++) {
        const struct message *message = &plan.messages[m];
        const struct nccl_row *row = nccl_table_find(&table, NCCL_TABLE_allreduce, message->bytes,
                                                     devices_nodes(&w->cluster), w->cluster.n_devices);
        if (message->kind == SYNC_ALL_REDUCE && message->algorithm != ALGORITHM_all_gather && !message->half &&
            !message->encoder) /* other collectives */
            assert_int_equal(row ? row->algorithm : -1, wanted_by_nccl(message->algorithm));
    }
    plan_release(&plan);
    nccl_table_release(&table);
}

/* Comments and NAME=VALUE, as a shell reads them. */
static void check_environment(const struct export_file *file) {
    for (const char *line = file->text; *line; line = strchr(line, '\n') + 1) {
        assert_non_null(strchr(line, '\n'));
        const size_t n = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        const size_t value = strcspn(line + n, "\n");
        if (*line != '#')
            assert_true(n > 0 && line[n] == '=' && value > 1 && strcspn(line + n, " \"'$;&|<>()\\\n") == value);
    }
}

static void check_files(const struct export *export) {
    for (uint32_t i = 0; i < export->n_files; i++) {
        const struct export_file *file = &export->files[i];
        const char *end = strrchr(file->name, '.');
        if (!strcmp(end, ".json"))
            cJSON_Delete(json_of(file));
        else if (!strcmp(end, ".env"))
            check_environment(file);
    }
    for (uint32_t i = 1; i < export->n_notes; i++)
        assert_true(export->notes[i - 1].loss < export->notes[i].loss);
}

static void every_form_takes_every_strategy(void **state) {
    (void)state;
    struct error err = {0};
    size_t n;
    const struct exporter *rows = exporters_list(&n);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        struct strategy s;
        world_open(&w, i);
        assert_ok(any_strategy(&w.rng, &w.model, &w.cluster, &s, &err));
        seal(&w, &s);
        for (size_t k = 0; k < n; k++) {
            struct export export;
            export_to(&w, rows[k].name, &s, &export);
            check_files(&export);
            if (!strcmp(rows[k].name, "nccl"))
                check_table(&w, &s, &export);
            export_release(&export);
        }
        strategy_release(&s);
        world_close(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caps_that_filled_buckets_are_inferred_and_no_others),
        cmocka_unit_test(labels_fit_one_cap_exactly_when_some_cap_makes_them),
        cmocka_unit_test(nearest_cap_makes_no_more_buckets_than_asked),
        cmocka_unit_test(rounded_numbers_stay_inside_and_are_the_roundest),
        cmocka_unit_test(ddp_buckets_come_back_from_the_caps_that_are_written),
        cmocka_unit_test(tensorflow_packs_come_back_from_bytes_per_pack),
        cmocka_unit_test(xla_combinations_come_back_from_the_threshold),
        cmocka_unit_test(xla_thresholds_of_what_is_sharded_make_the_groups_and_come_back),
        cmocka_unit_test(deepspeed_buckets_come_back_from_reduce_bucket_size),
        cmocka_unit_test(horovod_thresholds_and_cycles_come_back),
        cmocka_unit_test(horovod_groups_are_written_exactly_when_no_threshold_makes_them),
        cmocka_unit_test(fsdp2_groups_come_back_where_they_part_no_module),
        cmocka_unit_test(byteps_partition_credit_and_servers_come_back_exactly),
        cmocka_unit_test(bytescheduler_partition_and_credit_come_back_exactly),
        cmocka_unit_test(every_form_takes_every_strategy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
