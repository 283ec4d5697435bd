/* Only the code of a form says what the form can express. So the options of a space are narrowed by exporting probes: a
 * probe is a strategy with one property, and without any other property that would lose the same word. */
#include "interop/export/limits.h"

#include <stdio.h>
#include <string.h>

#include "interop/export/export_internal.h"
#include "strategy/encoder.h"

/* ---- words ---- */

static const struct exporter *form_called(const char *word, size_t n) {
    size_t count;
    const struct exporter *rows = exporters_list(&count);
    for (size_t i = 0; i < count; i++)
        if (strlen(rows[i].name) == n && !memcmp(rows[i].name, word, n))
            return &rows[i];
    return NULL;
}

static int loss_called(const char *word, size_t n) {
    for (int i = 0; i < EXPORT_LOSS_COUNT; i++) {
        const char *name = export_loss_word((enum export_loss)i);
        if (strlen(name) == n && !memcmp(name, word, n))
            return i;
    }
    return -1;
}

enum status export_losses_parse(const char *words, uint32_t *out, struct error *err) {
#define X(name, word) " " word
    static const char known[] = EXPORT_LOSS_TABLE(X);
#undef X
    uint32_t losses = 0;
    for (const char *word = words; *word;) {
        const size_t n = strcspn(word, ",");
        const int loss = loss_called(word, n);
        if (loss < 0)
            return error_set(err, ST_USAGE, "there is no loss \"%.*s\"; losses are%s", (int)(n < 60 ? n : 60), word,
                             known);
        losses |= 1u << loss;
        word += n + (word[n] == ',');
    }
    *out = losses;
    return ST_OK;
}

enum status export_limits_parse(const char *forms, const char *accepted, struct export_limits *out, struct error *err) {
    struct export_limits limits = {0};
    for (const char *word = forms; *word;) {
        const size_t n = strcspn(word, ",");
        const struct exporter *form = form_called(word, n);
        if (!form)
            return error_set(err, ST_USAGE, "there is no form \"%.*s\"; see: syncopate strategy export --help", (int)n,
                             word);
        bool is_new = limits.n < EXPORT_LIMITS_MAX;
        for (size_t i = 0; i < limits.n; i++)
            is_new = is_new && limits.forms[i] != form;
        if (is_new)
            limits.forms[limits.n++] = form;
        word += n + (word[n] == ',');
    }
    if (!limits.n)
        return error_set(err, ST_USAGE, "name at least one form; see: syncopate strategy export --help");
    enum status st = accepted ? export_losses_parse(accepted, &limits.accepted, err) : ST_OK;
    if (!st)
        *out = limits;
    return st;
}

const char *export_limits_names(const struct export_limits *limits, char out[EXPORT_LIMITS_ROOM]) {
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < limits->n && n < EXPORT_LIMITS_ROOM; i++)
        n += (size_t)snprintf(out + n, EXPORT_LIMITS_ROOM - n, "%s%s", i ? "," : "", limits->forms[i]->name);
    return out;
}

/* ---- what is accepted ---- */

bool export_limits_include(const struct export_limits *limits, const struct exporter *form) {
    bool included = limits->n && form->parts == EXPORT_PARTS_beside;
    for (size_t i = 0; i < limits->n; i++)
        included |= limits->forms[i] == form;
    return included;
}

uint32_t export_limits_accepted(const struct export_limits *limits, const struct exporter *form) {
    const uint32_t algorithm = 1u << EXPORT_LOSS_ALGORITHM;
    bool others = false, beside = false; /* forms beside this one; one that says algorithms */
    for (size_t i = 0; i < limits->n; i++) {
        others |= limits->forms[i] != form;
        beside |= limits->forms[i] != form && limits->forms[i]->parts == EXPORT_PARTS_beside;
    }
    if (!export_limits_include(limits, form))
        return 0;
    return limits->accepted | (form->parts == EXPORT_PARTS_beside && others ? ~algorithm : beside ? algorithm : 0);
}

enum status export_check_accepted(const struct exporter *exporter, const struct export *built, uint32_t accepted,
                                  const struct strategy *strategy, const struct model *model,
                                  const struct cluster *cluster, struct error *err) {
    struct export left = *built; /* with the other notes; the texts are borrowed */
    const uint32_t losses = export_unaccepted(export_losses(built), accepted);
    left.n_notes = 0;
    for (uint32_t i = 0; i < built->n_notes; i++)
        if (losses >> built->notes[i].loss & 1)
            left.notes[left.n_notes++] = built->notes[i];
    left.over_memory &= losses >> EXPORT_LOSS_MEMORY & 1;
    left.changes_memory = left.over_memory || parts_change_memory(exporter->parts, losses, strategy, model);
    return export_check_memory(exporter, &left, strategy, model, cluster, err);
}

/* ---- what gets lost ---- */

/* Beside other forms one with nothing but algorithms need not say the rest. */
static bool says_algorithms_alone(const struct export_limits *limits, size_t i) {
    return limits->n > 1 && limits->forms[i]->parts == EXPORT_PARTS_beside;
}

static enum status find_losses(const struct export_limits *limits, const struct strategy *strategy,
                               const struct model *model, const struct cluster *cluster, uint32_t *out,
                               struct error *err) {
    const uint32_t algorithm = 1u << EXPORT_LOSS_ALGORITHM;
    uint32_t any = 0, algorithms = algorithm;
    for (size_t i = 0; i < limits->n; i++) {
        struct export export;
        enum status st = export_build(limits->forms[i], strategy, model, cluster, &export, err);
        if (st)
            return st;
        any |= says_algorithms_alone(limits, i) ? 0 : export_losses(&export);
        algorithms &= export_losses(&export);
        export_release(&export);
    }
    *out = export_unaccepted((any & ~algorithm) | algorithms, limits->accepted);
    return ST_OK;
}

enum status export_limits_check(const struct export_limits *limits, const struct strategy *strategy,
                                const struct model *model, const struct cluster *cluster, struct error *err) {
    uint32_t losses = 0;
    char words[256] = "";
    enum status st = find_losses(limits, strategy, model, cluster, &losses, err);
    if (st || !losses)
        return st;
    for (int i = 0; i < EXPORT_LOSS_COUNT; i++)
        if (losses >> i & 1)
            snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", *words ? ", " : "",
                     export_loss_word((enum export_loss)i));
    return error_set(err, ST_INFEASIBLE, "%s cannot say everything that %s does: %s", limits->forms[0]->name,
                     strategy->name, words);
}

/* ---- narrowing ---- */

struct probing {
    const struct export_limits *limits;
    const struct model *model;
    const struct cluster *cluster;
    enum status st; /* the first failure */
    struct error *err;
};

/* A plain strategy with one property that is to be tried. Plain is: all-reduced in a merge group for each dtype, one
 * message at a time; or served by the first node, without a limit. */
struct probe {
    bool served, shared, cross_iteration, pulls_by_priority, cut, each_shard; /* each_shard: of what is cut */
    enum policy policy;
    uint64_t credit_bytes, partition_bytes;
    enum algorithm algorithm;
    enum encoding encoding;
    enum sharded sharded;
};

/* Returns what it cut, or NULL. */
static struct variable_sync *cut_something(const struct model *model, struct strategy *s) {
    for (uint32_t v = 0; v < model->n_variables; v++)
        for (uint32_t a = 0; a < model->variables[v].rank; a++)
            if (model->variables[v].shape[a] >= 2) {
                s->variables[v].axis = a;
                s->variables[v].shards = 2;
                return &s->variables[v];
            }
    return NULL;
}

/* Two shards that differ in group, or in the largest push. False when memory is out. */
static bool part_shards(struct strategy *s, struct variable_sync *sync) {
    struct variable_sync *each = arena_alloc(&s->arena, 2, sizeof *each);
    if (!each)
        return false;
    each[0] = each[1] = *sync;
    each[1].group += DTYPE_COUNT;
    each[1].partition_bytes = STRATEGY_MIN_PARTITION_BYTES;
    sync->each = each;
    return true;
}

/* Merge groups: one for each dtype, and behind them one for each dtype of what is gathered. Empty ones go when the
 * strategy is sealed. */
static void set_groups(const struct probe *probe, struct strategy *s) {
    const bool gathers = probe->algorithm == ALGORITHM_all_gather;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[g].id = g;
        s->groups[g].algorithm = gathers && g < DTYPE_COUNT ? ALGORITHM_auto : probe->algorithm;
        s->groups[g].partition_bytes = probe->partition_bytes;
        s->groups[g].sharded = probe->sharded;
    }
}

static uint32_t first_of_type(const struct model *model, uint32_t v) {
    uint32_t first = 0;
    while (model->variables[first].dtype != model->variables[v].dtype)
        first++;
    return first;
}

static void set_encoding(struct variable_sync *sync, enum encoding encoding) {
    const struct encoder_figure *figure = encoder_figure(encoding);
    sync->encoding = encoding;
    sync->figure = figure ? figure->usual : 0;
}

static enum status build_probe(const struct probing *p, const struct probe *probe, struct strategy *out) {
    static const uint32_t first = 0;
    struct strategy s;
    enum status st = strategy_init(&s, "probe", p->model, 2 * DTYPE_COUNT, p->err);
    if (st)
        return st;
    s.policy = probe->policy;
    s.credit_bytes = probe->credit_bytes;
    s.cross_iteration = probe->cross_iteration;
    s.pulls_by_priority = probe->pulls_by_priority;
    set_groups(probe, &s);
    for (uint32_t v = 0; v < s.n_variables; v++) {
        struct variable_sync *sync = &s.variables[v];
        const bool thin =
            probe->encoding == ENCODING_powersgd && p->model->variables[v].sparse_rows; /* has no matrix */
        if ((p->model->variables[v].dtype == DTYPE_f32 || p->model->variables[v].dtype == DTYPE_f64) && !thin)
            set_encoding(sync, probe->encoding);
        sync->group = p->model->variables[v].dtype;
        if (probe->algorithm == ALGORITHM_all_gather && p->model->variables[v].sparse_rows)
            sync->group += DTYPE_COUNT;
        if (!probe->served)
            continue;
        sync->kind = SYNC_PARAMETER_SERVER;
        sync->n_servers = 1;
        sync->servers = &first;
        sync->local_reduction = true;
        sync->partition_bytes = probe->partition_bytes;
        if (probe->shared)
            sync->push = 1 + first_of_type(p->model, v);
    }
    struct variable_sync *cut = probe->cut ? cut_something(p->model, &s) : NULL;
    if (cut && probe->each_shard && !part_shards(&s, cut))
        st = error_no_memory(p->err);
    if (!st)
        st = strategy_seal(&s, p->model, p->cluster, p->err);
    if (st)
        strategy_release(&s);
    else
        *out = s;
    return st;
}

/* Whether the forms say this property of the probe. */
static bool can(struct probing *p, enum export_loss loss, struct probe probe) {
    struct strategy strategy;
    uint32_t losses = 0;
    if (p->st)
        return false;
    p->st = build_probe(p, &probe, &strategy);
    if (p->st)
        return false;
    p->st = find_losses(p->limits, &strategy, p->model, p->cluster, &losses, p->err);
    strategy_release(&strategy);
    return !(losses >> loss & 1);
}

static uint64_t half_of_largest(const struct model *model) {
    uint64_t most = SPACE_MIN_BYTES;
    for (uint32_t v = 0; v < model->n_variables; v++)
        most = model->variables[v].bytes > most ? model->variables[v].bytes : most;
    return most / 2 / 8 * 8;
}

static void narrow_schedule(struct probing *p, struct space_options *o) {
    const bool served = !o->all_reduce;
    const uint64_t usual = served ? CREDIT_UNLIMITED : 0, part = half_of_largest(p->model);
    struct probe probe = {.served = served, .credit_bytes = usual};
    probe.cross_iteration = true;
    o->cross_iteration = o->cross_iteration && can(p, EXPORT_LOSS_CROSS_ITERATION, probe);
    probe = (struct probe){.served = served, .policy = POLICY_priority, .credit_bytes = 4 * part};
    if (!can(p, EXPORT_LOSS_ORDER, probe))
        o->policies &= ~(1u << POLICY_priority);
    probe.served = o->parameter_server;
    probe.pulls_by_priority = true;
    o->order_pulls = o->order_pulls && can(p, EXPORT_LOSS_ORDER, probe);
    probe = (struct probe){.served = served, .credit_bytes = 4 * part, .partition_bytes = part};
    o->usual_credit = o->usual_credit || !can(p, EXPORT_LOSS_CREDIT, probe);
    if (!can(p, EXPORT_LOSS_SHARDS,
             (struct probe){.served = o->parameter_server, .credit_bytes = CREDIT_UNLIMITED, .cut = true}))
        o->max_shards = 1;
    o->each_shard = o->each_shard && o->max_shards > 1 &&
                    can(p, EXPORT_LOSS_SHARDS, (struct probe){.served = served, .cut = true, .each_shard = true});
    o->whole_messages = o->whole_messages || !can(p, EXPORT_LOSS_PARTITION, probe);
}

/* A form may say sharded groups alone; the space then has none too, which export_limits_check refuses. */
static void narrow_groups(struct probing *p, struct space_options *o) {
    bool any = can(p, EXPORT_LOSS_ALL_REDUCE, (struct probe){0});
    for (uint32_t k = SHARDED_none + 1; k < SHARDED_COUNT; k++) {
        const struct probe probe = {.sharded = (enum sharded)k};
        if (!(o->sharded >> k & 1))
            continue;
        if (can(p, EXPORT_LOSS_SHARDED, probe) && can(p, EXPORT_LOSS_ALL_REDUCE, probe))
            any = true;
        else
            o->sharded &= ~(1u << k);
    }
    o->all_reduce = o->all_reduce && any;
}

static void narrow_kinds(struct probing *p, struct space_options *o) {
    const struct probe served = {.served = true, .credit_bytes = CREDIT_UNLIMITED};
    const struct probe shared = {.served = true, .shared = true, .credit_bytes = CREDIT_UNLIMITED};
    narrow_groups(p, o);
    o->parameter_server = o->parameter_server && can(p, EXPORT_LOSS_PARAMETER_SERVER, served);
    o->share_pushes = o->share_pushes && o->parameter_server && can(p, EXPORT_LOSS_GROUPS, shared);
    for (uint32_t a = 0; a < ALGORITHM_COUNT; a++)
        if (o->algorithms >> a & 1 && !can(p, EXPORT_LOSS_ALGORITHM, (struct probe){.algorithm = (enum algorithm)a}))
            o->algorithms &= ~(1u << a);
    if (!space_all_reduces(o) && can(p, EXPORT_LOSS_ALGORITHM, (struct probe){.algorithm = ALGORITHM_auto}))
        o->algorithms |= 1u << ALGORITHM_auto; /* which every runner has, and a search of named ones leaves out */
    for (uint32_t e = ENCODING_none + 1; e < ENCODING_COUNT; e++)
        if (o->encodings >> e & 1 && !can(p, EXPORT_LOSS_ENCODING, (struct probe){.encoding = (enum encoding)e}))
            o->encodings &= ~(1u << e);
}

/* Nothing is left. What the form says of sharding that is not among the `allowed` is named. */
static enum status refuse(struct probing *p, uint32_t allowed) {
    const struct exporter *form = p->limits->forms[0];
    for (uint32_t k = SHARDED_none + 1; k < SHARDED_COUNT; k++) {
        const struct probe probe = {.sharded = (enum sharded)k};
        if (!(allowed >> k & 1) && can(p, EXPORT_LOSS_SHARDED, probe) && can(p, EXPORT_LOSS_ALL_REDUCE, probe))
            return error_set(p->err, ST_INFEASIBLE,
                             "no strategy can be said whole in the form %s: it has sharded ones, so allow them "
                             "(--allow-sharded %s; HTTP: \"allow_sharded\":\"%s\")",
                             form->name, sharded_name((enum sharded)k), sharded_name((enum sharded)k));
    }
    return p->st ? p->st : error_set(p->err, ST_INFEASIBLE, "no strategy can be said whole in the form %s", form->name);
}

enum status export_limits_narrow(const struct export_limits *limits, const struct model *model,
                                 const struct cluster *cluster, struct space_options *options, struct error *err) {
    struct probing p = {.limits = limits, .model = model, .cluster = cluster, .err = err};
    struct space_options o = *options;
    narrow_kinds(&p, &o);
    narrow_schedule(&p, &o);
    if (p.st)
        return p.st;
    if ((!o.all_reduce && !o.parameter_server) || (o.all_reduce && !space_all_reduces(&o)) || !o.policies)
        return refuse(&p, options->sharded);
    if (!space_all_reduces(&o))
        o.algorithms = options->algorithms;
    *options = o;
    return ST_OK;
}
