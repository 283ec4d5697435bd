/* syncopate advise: which way of data-parallel training at which memory (tuner/predict/advice.h), for people, for
 * programs and as files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/front.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/table.h"
#include "tuner/predict/advice.h"

/* ---- for people ---- */

/* In weather the time to expect comes first; the other figures are those without it. */
static void print_candidates(const struct advice *a, const struct budgets *budgets) {
    static const char *const quiet[] = {"WAY",     "STRATEGY", "WRAPPED FOR", ">ITERATION", ">OVER BOUND",
                                        ">MEMORY", ">GROUPS",  "LIMITED BY",  "ID",         NULL};
    static const char *const weather[] = {"WAY",     "STRATEGY", "WRAPPED FOR", ">IN WEATHER", ">QUIET", ">OVER BOUND",
                                          ">MEMORY", ">GROUPS",  "LIMITED BY",  "ID",          NULL};
    struct table table;
    char text[64];
    table_init(&table, advice_in_weather(a) ? weather : quiet);
    for (size_t i = 0; i < a->n; i++) {
        const struct advised *c = &a->candidates[i];
        if (!advice_has_row(a, budgets, c))
            continue;
        table_cell(&table, "%s", c->kind);
        table_cell(&table, "%s", c->strategy.name);
        table_cell(&table, "%s", advised_wrapped_for(c, budgets, text, sizeof text));
        if (advice_in_weather(a))
            table_cell(&table, "%s", units_format_time(advised_us(c), text, sizeof text));
        table_cell(&table, "%s", units_format_time(c->row.prediction.iteration_us, text, sizeof text));
        table_cell(&table, "%.0f%%", advised_over_bound(a, c));
        table_cell(&table, "%s", units_format_bytes_finely(advised_bytes(c), text, sizeof text));
        table_cell(&table, "%s", front_groups(c->strategy.n_groups, text, sizeof text));
        table_cell(&table, "%s", advised_limit(c, text, sizeof text));
        table_cell(&table, "%.12s", c->strategy.id.hex);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_answers(const struct advice *a, const struct budgets *budgets) {
    struct advice_sentence s;
    text_print(stdout, "\n");
    for (size_t i = 0; advice_sentence(a, budgets, i, &s); i++)
        text_print(stdout, "%s%s%s\n", s.before, s.figures, s.after);
    if (budgets->n == 1 && budgets->of[0].bytes == UINT64_MAX)
        text_print(stdout,
                   "Nothing says what a device can hold: ask with --memory, as in --memory 16GB,80GB, or describe "
                   "\"device_memory_gbyte\" in the cluster.\n");
}

static void print_changes(const struct advice *a, const struct budgets *budgets, const struct change *changes) {
    const char *heads[MOST_BUDGETS + 3] = {">NICS", ">GBIT/S"};
    struct table table;
    struct arena arena = {0};
    char text[32];
    for (size_t i = 0; i < budgets->n; i++) {
        heads[i + 2] = budgets->of[i].bytes == UINT64_MAX ? "WITH ANY MEMORY"
                                                          : arena_printf(&arena, "WITH %s", budgets->of[i].words);
        heads[i + 2] = heads[i + 2] ? heads[i + 2] : "";
    }
    text_print(stdout, "\nAt other rates of the NICs:\n");
    table_init(&table, heads);
    for (size_t r = 0; r < ADVICE_RATES; r++) {
        table_cell(&table, "x%g", changes[r].factor);
        table_cell(&table, "%s", change_rates(&changes[r], text, sizeof text));
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
    if (changes_caveat(a))
        text_print(stdout, "%s\n", changes_caveat(a));
}

/* ---- files ---- */

static enum status write_candidate(struct advice *a, const struct advised *c, const char *folder, struct error *err) {
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
    char path[4096], title[256];
    struct front_point points[MOST_CANDIDATES];
    enum status st = paths_make_folder(folder, err);
    for (size_t i = 0; i < a->n && !st; i++)
        st = write_candidate(a, &a->candidates[i], folder, err);
    snprintf(path, sizeof path, "%s/front.svg", folder);
    snprintf(title, sizeof title, "%s on %s", a->simulation.model->name, a->simulation.cluster->name);
    if (!st)
        st = front_write_plot(advice_points(a, points), points, title, path, err);
    if (!st)
        text_print(stderr, "%zu strategies, each with its timeline, and front.svg in %s\n", a->n, folder);
    return st;
}

/* ---- the command ---- */

static enum status check_fit(const struct advice *a, const struct budgets *budgets, struct error *err) {
    char words[80], least[32];
    for (size_t i = 0; i < budgets->n; i++)
        if (advice_best_within(a, budgets->of[i].bytes))
            return ST_OK;
    return error_set(err, ST_INFEASIBLE, "nothing fits into %s: the least that any way needs is %s on a device",
                     budget_words(&budgets->of[budgets->n - 1], words, sizeof words),
                     units_format_bytes_finely(advised_bytes(advice_smallest(a)), least, sizeof least));
}

struct request {
    const char *memory, *out;
    bool json;
    struct remote_options remote;
};

static void show(const struct inputs *inputs, const struct budgets *budgets, const struct advice *a,
                 const struct change *changes) {
    struct front_point points[MOST_CANDIDATES];
    char bound[32];
    text_print(stdout, "%s on %s: %u devices, lower bound %s\n\n", inputs->model.name, inputs->cluster.name,
               inputs->cluster.n_devices, units_format_time(advice_bound_us(a), bound, sizeof bound));
    print_candidates(a, budgets);
    print_answers(a, budgets);
    text_print(stdout, "\n");
    front_print(advice_points(a, points), points);
    print_changes(a, budgets, changes);
}

static enum status answer(const struct inputs *inputs, const struct budgets *budgets, const struct request *r,
                          struct advice *a, const struct change *changes, struct error *err) {
    bool whole;
    enum status st = r->out ? write_all(a, r->out, err) : ST_OK;
    if (!st && r->json) {
        cJSON *json = advice_json(a, budgets, changes, &whole);
        st = output_line(json, whole, err);
    } else if (!st) {
        show(inputs, budgets, a, changes);
    }
    return st ? st : check_fit(a, budgets, err);
}

static enum status read_budgets(const struct request *r, const struct inputs *inputs, struct budgets *out,
                                struct error *err) {
    enum status st = budgets_read(r->memory, &inputs->cluster, out, err);
    return st ? error_prefix(err, st, "--memory") : ST_OK;
}

/* What comes after advice_init; each step is said on a terminal. */
enum { STEPS = ADVICE_RATES + 2 };
static enum status predict_more(const struct budgets *budgets, struct advice *a, struct change changes[ADVICE_RATES],
                                struct error *err) {
    progress_say("[2/%d] FSDP wrapped for memories between", STEPS);
    enum status st = advice_add_between(a, err);
    for (size_t i = 0; i < ADVICE_RATES && !st; i++) {
        progress_say("[%zu/%d] at other rates of the NICs", i + 3, STEPS);
        st = advice_change(a, budgets, i, &changes[i], err);
    }
    return st;
}

static enum status predict(const struct inputs *inputs, const struct budgets *budgets, struct advice *a,
                           struct change changes[ADVICE_RATES], struct error *err) {
    progress_say("[1/%d] each way of training", STEPS);
    enum status st = advice_init(a, &inputs->model, &inputs->cluster, budgets, err);
    if (!st) {
        st = predict_more(budgets, a, changes, err);
        if (st)
            advice_release(a);
    }
    progress_end();
    return st;
}

static enum status advise(const char *model, const char *cluster, const struct request *r, struct error *err) {
    struct inputs inputs;
    struct budgets budgets;
    struct advice a;
    struct change changes[ADVICE_RATES];
    enum status st = inputs_read(model, cluster, &inputs, err);
    if (st)
        return st;
    st = read_budgets(r, &inputs, &budgets, err);
    if (!st)
        st = predict(&inputs, &budgets, &a, changes, err);
    if (!st) {
        st = answer(&inputs, &budgets, r, &a, changes, err);
        advice_release(&a);
    }
    inputs_release(&inputs);
    return st;
}

/* ---- on a service ---- */

/* Without memories that somebody named it takes those of the cluster, as here. */
static cJSON *new_body(const struct inputs *inputs, const struct budgets *budgets, bool named, bool *whole) {
    cJSON *root = cJSON_CreateObject(), *list = NULL;
    *whole = root && cJSON_AddStringToObject(root, "model", inputs->model.id.hex) &&
             cJSON_AddStringToObject(root, "cluster", inputs->cluster.id.hex) &&
             (!named || (list = cJSON_AddArrayToObject(root, "memory_bytes")));
    for (size_t i = 0; named && i < budgets->n && *whole; i++) {
        cJSON *bytes = cJSON_CreateNumber((double)budgets->of[i].bytes);
        *whole = bytes && cJSON_AddItemToArray(list, bytes);
    }
    return root;
}

static enum status ask(struct client *client, const struct inputs *inputs, const struct request *r, struct error *err) {
    struct budgets budgets;
    struct advice a;
    struct change changes[ADVICE_RATES];
    cJSON *json = NULL;
    bool whole;
    enum status st = read_budgets(r, inputs, &budgets, err);
    if (st)
        return st;
    cJSON *body = new_body(inputs, &budgets, r->memory != NULL, &whole);
    const struct client_request request = {.method = "POST", .path = "/api/v1/advice", .body = body, .keyless = true};
    progress_say("the service predicts");
    st = whole ? client_call(client, &request, &json, err) : error_no_memory(err);
    progress_end();
    cJSON_Delete(body);
    if (st)
        return st;
    const struct json_at root = json_root(json, "the service's answer");
    st = advice_read(&root, &inputs->model, &inputs->cluster, &budgets, &a, changes, err);
    if (!st && !r->json)
        show(inputs, &budgets, &a, changes);
    if (!st && r->json) {
        cJSON *copy = cJSON_Duplicate(json, true);
        st = output_line(copy, copy != NULL, err);
    }
    if (!st)
        st = check_fit(&a, &budgets, err);
    cJSON_Delete(json);
    return st;
}

static enum status advise_remotely(const char *model, const char *cluster, const struct request *r, struct error *err) {
    struct client *client;
    struct inputs inputs;
    if (r->out)
        return error_set(err, ST_USAGE, "a service writes no files: drop --out, or --server");
    enum status st = remote_open(&r->remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    st = remote_inputs(client, model, cluster, &inputs, err);
    if (!st) {
        st = ask(client, &inputs, r, err);
        inputs_release(&inputs);
    }
    client_close(client);
    return st;
}

enum status cmd_advise(int argc, char **argv, struct error *err) {
    struct request r = {0};
    const struct option options[] = {
        {"memory", OPTION_TEXT, &r.memory, "SIZE[,SIZE]",
         "what a device may hold; default: what the cluster's description says, and any"},
        {"out", OPTION_TEXT, &r.out, "FOLDER",
         "write each strategy and a Chrome trace of its iteration there, and front.svg: time against memory"},
        {"json", OPTION_FLAG, &r.json, NULL, "print one JSON object"},
        REMOTE_OPTIONS(r.remote),
        {0}};
    const struct command_line line = {
        .usage = "advise MODEL CLUSTER [options]",
        .about =
            "Which way of training at which memory: plain data parallel, servers, ZeRO, FSDP or HSDP. Each way is\n"
            "predicted: its time, how far that is above the bound that none of them beats, the most memory that a\n"
            "device holds at once, and what limits it. In weather (syncopate weather) times are means there. FSDP is\n"
            "wrapped for each memory by itself, so that the iteration is shortest. Then the answer for each memory,\n"
            "which is the fastest that fits, or what takes at most 0.1% longer and needs the least; the smallest\n"
            "memory at which anything fits, the front of time against memory, and what changes where NICs are slower\n"
            "or faster. Measured curves hold for one rate and are left out there. If nothing fits into any of the\n"
            "memories the exit status is 3.",
        .examples = "  syncopate advise bert-large v100-16x10g --memory 1GB,2GB,16GB\n"
                    "  syncopate advise gpt2-small lab-4x1g --memory 600MB --out advice",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    return st ? st : (r.remote.server ? advise_remotely : advise)(arguments.items[0], arguments.items[1], &r, err);
}
