/* syncopate advise: which way of data-parallel training at which memory. Every way is predicted once on the cluster as
 * it is, then the wrapping of FSDP once for each memory, and all of it again at other rates of the NICs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/memory_output.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/simulation.h"
#include "cli/sweep.h"
#include "cli/table.h"
#include "strategy/baselines/fsdp_optimal.h"

/* What people call it, and how it is done. */
static const struct way {
    const char *kind, *baseline;
} ways[] = {
    {"DDP", "pytorch-ddp"},
    {"DDP, merged", "merge-optimal"},
    {"servers", "byteps"},
    {"ZeRO-1", "dear"},
    {"ZeRO-1", "megatron-distributed-optimizer"},
    {"ZeRO-1", "zero-1"},
    {"ZeRO-2", "zero-2"},
    {"ZeRO-3", "zero-3"},
    {"FSDP", "fsdp-per-block"},
    {"FSDP", "fsdp-whole"},
    {"HSDP", "hsdp"},
};
enum { WAYS = sizeof ways / sizeof ways[0], MOST_BUDGETS = 8, MOST_CANDIDATES = WAYS + MOST_BUDGETS + 1 };

static const double rate_factors[] = {0.25, 0.5, 1, 2, 4};
enum { RATES = sizeof rate_factors / sizeof rate_factors[0] };

struct budgets {
    size_t n;
    uint64_t bytes[MOST_BUDGETS]; /* rising; UINT64_MAX: no limit */
};

struct candidate {
    const char *kind;
    struct strategy strategy;
    struct row row;
};

/* All candidates of one model and cluster. */
struct advice {
    struct simulation simulation;
    struct candidate candidates[MOST_CANDIDATES];
    size_t n;
};

/* ---- candidates ---- */

static enum status add(struct advice *a, const char *kind, struct strategy *strategy, struct error *err) {
    struct candidate *c = &a->candidates[a->n];
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->candidates[i].strategy.id.hex, strategy->id.hex)) {
            strategy_release(strategy);
            return ST_OK;
        }
    enum status st =
        simulation_predict(&a->simulation, &(struct contender){strategy->name, NULL, strategy}, NULL, &c->row, err);
    if (st) {
        strategy_release(strategy);
        return st;
    }
    c->kind = kind;
    c->strategy = *strategy;
    a->n++;
    return ST_OK;
}

static enum status add_ways(struct advice *a, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < WAYS && !st; i++) {
        struct strategy s;
        st = baselines_build(baselines_find(ways[i].baseline), a->simulation.model, a->simulation.cluster, &s, err);
        if (!st)
            st = add(a, ways[i].kind, &s, err);
    }
    return st;
}

/* FSDP wrapped for a memory; what does not fit is no candidate. */
static enum status add_wrapping(struct advice *a, uint64_t bytes, struct error *err) {
    struct strategy s;
    struct error infeasible;
    enum status st =
        fsdp_optimal_within(a->simulation.model, &a->simulation.cost, bytes == UINT64_MAX ? 0 : bytes, &s, &infeasible);
    if (st == ST_INFEASIBLE)
        return ST_OK;
    return st ? error_pass(err, &infeasible) : add(a, "FSDP", &s, err);
}

static enum status add_least(struct advice *a, struct error *err) {
    struct strategy s;
    enum status st = fsdp_least_memory(a->simulation.model, &a->simulation.cost, &s, err);
    return st ? st : add(a, "FSDP", &s, err);
}

static void advice_release(struct advice *a) {
    for (size_t i = 0; i < a->n; i++)
        strategy_release(&a->candidates[i].strategy);
    simulation_release(&a->simulation);
}

static enum status advice_init(struct advice *a, const struct model *model, const struct cluster *cluster,
                               const struct budgets *budgets, struct error *err) {
    a->n = 0;
    enum status st = simulation_init(&a->simulation, model, cluster, false, err);
    if (st)
        return st;
    st = add_ways(a, err);
    for (size_t i = budgets->n; i-- > 0 && !st;)
        st = add_wrapping(a, budgets->bytes[i], err);
    if (!st)
        st = add_least(a, err);
    if (st)
        advice_release(a);
    return st;
}

/* ---- answers ---- */

static uint64_t needs(const struct candidate *c) {
    return c->row.memory.peak_bytes;
}

/* The fastest that fits; NULL: none does. */
static const struct candidate *best_within(const struct advice *a, uint64_t bytes) {
    const struct candidate *best = NULL;
    for (size_t i = 0; i < a->n; i++) {
        const struct candidate *c = &a->candidates[i];
        if (needs(c) <= bytes && (!best || c->row.prediction.iteration_us < best->row.prediction.iteration_us))
            best = c;
    }
    return best;
}

static const struct candidate *smallest(const struct advice *a) {
    const struct candidate *least = &a->candidates[0];
    for (size_t i = 1; i < a->n; i++)
        if (needs(&a->candidates[i]) < needs(least))
            least = &a->candidates[i];
    return least;
}

/* Computing, or messages that computing does not hide. */
static const char *limit_of(const struct candidate *c, char *out, size_t room) {
    const struct prediction *p = &c->row.prediction;
    const double exposed = p->iteration_us > 0 ? 100 * p->exposed_us / p->iteration_us : 0;
    snprintf(out, room, exposed < 5 ? "computing" : "messages, %.0f%% of the time", exposed);
    return out;
}

static int compare_candidates(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    const double left = x->row.prediction.iteration_us, right = y->row.prediction.iteration_us;
    return (left > right) - (left < right);
}

/* ---- for people ---- */

static const char *budget_text(uint64_t bytes, char *out, size_t room) {
    return bytes == UINT64_MAX ? "any memory" : units_format_bytes(bytes, out, room);
}

static void print_candidates(const struct advice *a) {
    struct table table;
    char text[64];
    table_init(&table, (const char *const[]){"WAY", "STRATEGY", ">ITERATION", ">OVER BOUND", ">MEMORY", ">GROUPS",
                                             "LIMITED BY", NULL});
    for (size_t i = 0; i < a->n; i++) {
        const struct candidate *c = &a->candidates[i];
        const double us = c->row.prediction.iteration_us;
        table_cell(&table, "%s", c->kind);
        table_cell(&table, "%s", c->strategy.name);
        table_cell(&table, "%s", units_format_time(us, text, sizeof text));
        table_cell(&table, "%.0f%%", c->row.bound_us > 0 ? fmax(us / c->row.bound_us - 1, 0) * 100 : 0);
        table_cell(&table, "%s", units_format_bytes(needs(c), text, sizeof text));
        table_cell(&table, "%u", c->strategy.n_groups);
        table_cell(&table, "%s", limit_of(c, text, sizeof text));
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_answers(const struct advice *a, const struct budgets *budgets) {
    char room[32], us[32], memory[32];
    text_print(stdout, "\n");
    for (size_t i = 0; i < budgets->n; i++) {
        const struct candidate *best = best_within(a, budgets->bytes[i]);
        const char *budget = budget_text(budgets->bytes[i], room, sizeof room);
        if (best)
            text_print(stdout, "With %s: %s (%s), %s, and %s of memory.\n", budget, best->kind, best->strategy.name,
                       units_format_time(best->row.prediction.iteration_us, us, sizeof us),
                       units_format_bytes(needs(best), memory, sizeof memory));
        else
            text_print(stdout, "With %s: nothing fits.\n", budget);
    }
    const struct candidate *least = smallest(a);
    text_print(stdout, "The smallest memory at which anything fits: %s (%s, %u groups, %s).\n",
               units_format_bytes(needs(least), memory, sizeof memory), least->kind, least->strategy.n_groups,
               units_format_time(least->row.prediction.iteration_us, us, sizeof us));
    if (!least->row.memory.knows_optimizer)
        text_print(stdout, "Memory is without the optimizer's states: the model has no \"optimizer\".\n");
    if (!least->row.memory.knows_activations)
        text_print(stdout, "Memory is without activations: the model's operators have no \"activation_bytes\".\n");
}

/* ---- other rates ---- */

/* The fastest NIC of a node with devices. */
static double rate_of(const struct cluster *cluster) {
    double rate = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices > 0)
            rate = fmax(rate, cluster->nodes[i].nic_gbit_per_s);
    return rate;
}

struct change {
    double gbit_per_s;
    char kind[MOST_BUDGETS][24];
    double us[MOST_BUDGETS]; /* INFINITY: nothing fits */
};

static enum status change_at(const struct inputs *inputs, const struct budgets *budgets, double gbit_per_s,
                             struct change *out, struct error *err) {
    const struct sweep sweep = {.axis = SWEEP_BANDWIDTH, .n = 1, .values = {gbit_per_s}};
    struct sweep_point point;
    struct advice a;
    enum status st = sweep_apply(&sweep, gbit_per_s, ALGORITHM_auto, &inputs->model, &inputs->cluster, &point, err);
    if (st)
        return st;
    st = advice_init(&a, &point.model, &point.cluster, budgets, err);
    *out = (struct change){.gbit_per_s = gbit_per_s};
    for (size_t i = 0; i < budgets->n && !st; i++) {
        const struct candidate *best = best_within(&a, budgets->bytes[i]);
        out->us[i] = best ? best->row.prediction.iteration_us : INFINITY;
        snprintf(out->kind[i], sizeof out->kind[i], "%s", best ? best->kind : "nothing fits");
    }
    if (!st)
        advice_release(&a);
    sweep_point_release(&point);
    return st;
}

static void print_changes(const struct budgets *budgets, const struct change *changes) {
    const char *heads[MOST_BUDGETS + 2] = {">GBIT/S"};
    struct table table;
    struct arena arena = {0};
    char text[32];
    for (size_t i = 0; i < budgets->n; i++) {
        heads[i + 1] = arena_printf(&arena, "WITH %s", budget_text(budgets->bytes[i], text, sizeof text));
        heads[i + 1] = heads[i + 1] ? heads[i + 1] : "";
    }
    text_print(stdout, "\nAt other rates of the NICs:\n");
    table_init(&table, heads);
    for (size_t r = 0; r < RATES; r++) {
        table_cell(&table, "%g", changes[r].gbit_per_s);
        for (size_t i = 0; i < budgets->n; i++)
            if (isfinite(changes[r].us[i]))
                table_cell(&table, "%s, %s", changes[r].kind[i],
                           units_format_time(changes[r].us[i], text, sizeof text));
            else
                table_cell(&table, "nothing fits");
    }
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&arena);
}

/* ---- for programs ---- */

static bool add_candidate(const struct candidate *c, const struct cluster *cluster, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "way", c->kind) &&
           cJSON_AddStringToObject(object, "strategy", c->strategy.name) &&
           cJSON_AddStringToObject(object, "id", c->strategy.id.hex) &&
           cJSON_AddNumberToObject(object, "iteration_us", c->row.prediction.iteration_us) &&
           cJSON_AddNumberToObject(object, "exposed_us", c->row.prediction.exposed_us) &&
           cJSON_AddNumberToObject(object, "lower_bound_us", c->row.bound_us) &&
           cJSON_AddNumberToObject(object, "groups", c->strategy.n_groups) &&
           memory_write(&c->row.memory, cluster, object);
}

static bool add_answer(const struct candidate *best, uint64_t bytes, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) &&
           (bytes == UINT64_MAX || cJSON_AddNumberToObject(object, "memory_bytes", (double)bytes)) &&
           (!best || cJSON_AddStringToObject(object, "id", best->strategy.id.hex)) &&
           (best || cJSON_AddNullToObject(object, "id"));
}

static bool add_change(const struct change *change, const struct budgets *budgets, cJSON *array) {
    bool ok = true;
    for (size_t i = 0; i < budgets->n && ok; i++) {
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) &&
             cJSON_AddNumberToObject(object, "gbit_per_s", change->gbit_per_s) &&
             (budgets->bytes[i] == UINT64_MAX ||
              cJSON_AddNumberToObject(object, "memory_bytes", (double)budgets->bytes[i])) &&
             (isfinite(change->us[i]) ? cJSON_AddStringToObject(object, "way", change->kind[i]) &&
                                            cJSON_AddNumberToObject(object, "iteration_us", change->us[i])
                                      : cJSON_AddNullToObject(object, "way") != NULL);
    }
    return ok;
}

static enum status print_json(const struct advice *a, const struct budgets *budgets, const struct change *changes,
                              struct error *err) {
    cJSON *root = cJSON_CreateObject(), *list;
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.advice/1") &&
              cJSON_AddStringToObject(root, "model", a->simulation.model->name) &&
              cJSON_AddStringToObject(root, "cluster", a->simulation.cluster->name) &&
              (list = cJSON_AddArrayToObject(root, "candidates"));
    for (size_t i = 0; i < a->n && ok; i++)
        ok = add_candidate(&a->candidates[i], a->simulation.cluster, list);
    ok = ok && (list = cJSON_AddArrayToObject(root, "answers"));
    for (size_t i = 0; i < budgets->n && ok; i++)
        ok = add_answer(best_within(a, budgets->bytes[i]), budgets->bytes[i], list);
    ok = ok && cJSON_AddNumberToObject(root, "smallest_memory_bytes", (double)needs(smallest(a))) &&
         (list = cJSON_AddArrayToObject(root, "at_other_rates"));
    for (size_t r = 0; r < RATES && ok; r++)
        ok = add_change(&changes[r], budgets, list);
    return output_line(root, ok, err);
}

/* ---- files ---- */

static enum status write_candidate(struct advice *a, const struct candidate *c, const char *folder, struct error *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%.12s.json", folder, c->strategy.id.hex);
    cJSON *json = strategy_write(&c->strategy, a->simulation.model, a->simulation.cluster);
    char *text = json ? json_pretty(json) : NULL;
    enum status st = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    cJSON_Delete(json);
    struct row row;
    snprintf(path, sizeof path, "%s/%.12s-timeline.json", folder, c->strategy.id.hex);
    return st ? st
              : simulation_predict(&a->simulation, &(struct contender){c->strategy.name, NULL, &c->strategy}, path,
                                   &row, err);
}

static enum status write_all(struct advice *a, const char *folder, struct error *err) {
    enum status st = paths_make_folder(folder, err);
    for (size_t i = 0; i < a->n && !st; i++)
        st = write_candidate(a, &a->candidates[i], folder, err);
    if (!st)
        text_print(stderr, "%zu strategies, each with its timeline, in %s\n", a->n, folder);
    return st;
}

/* ---- the command ---- */

static int compare_bytes(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* "24GB,80GB"; NULL: what the cluster's description says, and any. */
static enum status read_budgets(const char *list, const struct cluster *cluster, struct budgets *out,
                                struct error *err) {
    *out = (struct budgets){.n = 0};
    enum status st = ST_OK;
    for (const char *at = list; at && !st; at = strchr(at, ',')) {
        char word[64];
        at += *at == ',';
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (out->n == MOST_BUDGETS)
            return error_set(err, ST_USAGE, "--memory: at most %d sizes", MOST_BUDGETS);
        st = units_parse_bytes(word, &out->bytes[out->n++], err);
    }
    if (!list && memory_of_devices(cluster) > 0)
        out->bytes[out->n++] = memory_of_devices(cluster);
    if (!list)
        out->bytes[out->n++] = UINT64_MAX;
    qsort(out->bytes, out->n, sizeof *out->bytes, compare_bytes);
    return st;
}

struct request {
    const char *memory, *out;
    bool json;
};

static enum status answer(const struct inputs *inputs, const struct budgets *budgets, const struct request *r,
                          struct advice *a, struct error *err) {
    struct change changes[RATES];
    const double rate = rate_of(&inputs->cluster);
    enum status st = ST_OK;
    for (size_t i = 0; i < RATES && !st; i++)
        st = change_at(inputs, budgets, rate * rate_factors[i], &changes[i], err);
    if (!st && r->out)
        st = write_all(a, r->out, err);
    if (st)
        return st;
    if (r->json)
        return print_json(a, budgets, changes, err);
    text_print(stdout, "%s on %s: %u devices\n\n", inputs->model.name, inputs->cluster.name, inputs->cluster.n_devices);
    print_candidates(a);
    print_answers(a, budgets);
    print_changes(budgets, changes);
    return ST_OK;
}

static enum status advise(const char *model, const char *cluster, const struct request *r, struct error *err) {
    struct inputs inputs;
    struct budgets budgets;
    struct advice a;
    enum status st = inputs_read(model, cluster, &inputs, err);
    if (st)
        return st;
    st = read_budgets(r->memory, &inputs.cluster, &budgets, err);
    if (!st)
        st = advice_init(&a, &inputs.model, &inputs.cluster, &budgets, err);
    if (!st) {
        qsort(a.candidates, a.n, sizeof *a.candidates, compare_candidates);
        st = answer(&inputs, &budgets, r, &a, err);
        advice_release(&a);
    }
    inputs_release(&inputs);
    return st;
}

enum status cmd_advise(int argc, char **argv, struct error *err) {
    struct request r = {0};
    const struct option options[] = {
        {"memory", OPTION_TEXT, &r.memory, "SIZE[,SIZE]",
         "what a device may hold; default: what the cluster's description says, and any"},
        {"out", OPTION_TEXT, &r.out, "FOLDER", "write each strategy, and a Chrome trace of its iteration, there"},
        {"json", OPTION_FLAG, &r.json, NULL, "print one JSON object"},
        {0}};
    const struct command_line line = {
        .usage = "advise MODEL CLUSTER [options]",
        .about =
            "Which way of training at which memory: plain data parallel, servers, ZeRO or FSDP. Each way is "
            "predicted:\n"
            "its time, how far that is above the bound, the most memory that a device holds at once, and what limits\n"
            "it. FSDP is wrapped for each memory by itself, so that the iteration is shortest. Then the answer for\n"
            "each memory, the smallest memory at which anything fits, and what changes where NICs are slower or\n"
            "faster; measured curves hold for one rate and are left out there.",
        .examples = "  syncopate advise bert-large v100-16x10g --memory 1GB,2GB,16GB\n"
                    "  syncopate advise gpt2-small lab-4x1g --memory 400MB --out advice",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    return st ? st : advise(arguments.items[0], arguments.items[1], &r, err);
}
