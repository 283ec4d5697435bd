/* See memory_output.h. */
#include "cli/memory_output.h"

#include "base/text.h"
#include "base/units.h"
#include "cli/table.h"
#include "simulator/tuned.h"
#include "strategy/plan.h"

/* Parts that no row has are left out, so that the table stays narrow. */
static bool any_has(const struct row *rows, size_t n, enum memory_part part) {
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || rows[i].memory.part_bytes[part] > 0;
    return any;
}

static bool is_shown(const struct row *rows, size_t n, enum memory_part part) {
    return any_has(rows, n, part) || part == MEMORY_optimizer || part == MEMORY_activations;
}

static void begin_table(struct table *table, const struct simulation *s, const struct row *rows, size_t n) {
    static const char *const parts[MEMORY_PARTS] = {
        [MEMORY_parameters] = ">PARAMETERS",   [MEMORY_gradients] = ">GRADIENTS", [MEMORY_optimizer] = ">OPTIMIZER",
        [MEMORY_gathered] = ">GATHERED",       [MEMORY_buffers] = ">BUFFERS",     [MEMORY_encoding] = ">ENCODING",
        [MEMORY_activations] = ">ACTIVATIONS", [MEMORY_temporary] = ">TEMPORARY"};
    const char *heads[MEMORY_PARTS + 5] = {"MEMORY", ">PEAK"};
    size_t k = 2;
    for (int p = 0; p < MEMORY_PARTS; p++)
        if (is_shown(rows, n, (enum memory_part)p))
            heads[k++] = parts[p];
    if (s->memory_bytes > 0)
        heads[k++] = ">LEFT";
    heads[k] = "AT";
    table_init(table, heads);
}

static void print_left(struct table *table, uint64_t budget, const struct memory *m) {
    char text[32];
    const bool over = m->peak_bytes > budget;
    units_format_bytes(over ? m->peak_bytes - budget : budget - m->peak_bytes, text, sizeof text);
    table_cell(table, "%s%s", over ? "OVER by " : "", text);
}

static void print_row(struct table *table, const struct simulation *s, const struct row *rows, size_t n,
                      const struct row *row) {
    char text[32];
    table_cell(table, "%s", row->name);
    table_cell(table, "%s", units_format_bytes(row->memory.peak_bytes, text, sizeof text));
    for (int p = 0; p < MEMORY_PARTS; p++) {
        if (!is_shown(rows, n, (enum memory_part)p))
            continue;
        if (memory_knows(&row->memory, (enum memory_part)p))
            table_cell(table, "%s", units_format_bytes(row->memory.part_bytes[p], text, sizeof text));
        else
            table_cell(table, "unknown");
    }
    if (s->memory_bytes > 0)
        print_left(table, s->memory_bytes, &row->memory);
    table_cell(table, "%s", row->memory.place);
}

static void print_servers(const struct simulation *s, const struct row *rows, size_t n) {
    char text[32];
    for (size_t i = 0; i < n; i++) {
        const struct memory *m = &rows[i].memory;
        if (m->server_bytes > 0)
            text_print(stdout, "The server on %s of %s needs up to %s%s.\n", s->cluster->nodes[m->server].name,
                       rows[i].name, units_format_bytes(m->server_bytes, text, sizeof text),
                       rows[i].over && m->peak_bytes <= s->memory_bytes ? ", more than the node has" : "");
    }
}

void memory_output_print_unknown(const struct model *model) {
    if (model->optimizer.kind == OPTIMIZER_unknown)
        text_print(stdout, "Without the optimizer's states: the model has no \"optimizer\".\n");
    if (!model->knows_activations)
        text_print(stdout, "Without activations: the model's operators have no \"activation_bytes\".\n");
    if (model->activations_estimated)
        text_print(stdout, "Activations are estimated from the model's architecture, not from a profile.\n");
}

static void print_others(const struct row *rows, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!rows[i].has_memory)
            text_print(stdout, "Of %s no memory is known: its workers do not wait for each other.\n", rows[i].name);
}

void memory_output_print(const struct simulation *s, const struct row *rows, size_t n) {
    struct table table;
    const struct memory *any = NULL;
    text_print(stdout, "\n");
    begin_table(&table, s, rows, n);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].has_memory)
            continue;
        any = &rows[i].memory;
        print_row(&table, s, rows, n, &rows[i]);
    }
    if (any)
        table_print(&table, stdout);
    table_release(&table);
    if (any) {
        text_print(stdout,
                   "\nPEAK: the most that a device holds at once, however slow the network is; without what operators "
                   "need while they run,\nwhat libraries keep for themselves and what an allocator loses.\n");
        memory_output_print_unknown(s->model);
    }
    print_servers(s, rows, n);
    print_others(rows, n);
}

/* What a device needs under "fsdp-optimal", wrapped for the budget or, where that is too small, as small as it can be.
 */
static enum status sharded_bytes(const struct model *model, const struct cluster *cluster, uint64_t budget_bytes,
                                 uint64_t *out, struct error *err) {
    struct strategy strategy;
    struct plan plan;
    struct memory memory;
    enum status st = tuned_build_for(baselines_find("fsdp-optimal"), model, cluster, budget_bytes, &strategy, err);
    if (st)
        return st;
    st = plan_lower(model, cluster, &strategy, &plan, err);
    strategy_release(&strategy);
    if (st)
        return st;
    st = memory_of_plan(&plan, &memory, err);
    plan_release(&plan);
    if (!st)
        *out = memory.peak_bytes;
    return st;
}

enum status memory_output_nothing_fits(const struct model *model, const struct cluster *cluster, uint64_t budget_bytes,
                                       const char *least, uint64_t least_bytes, struct error *err) {
    uint64_t sharded;
    char need[32], other[32];
    enum status st = sharded_bytes(model, cluster, budget_bytes, &sharded, err);
    if (st)
        return st;
    units_format_bytes(least_bytes, need, sizeof need);
    if (sharded >= least_bytes)
        return error_set(err, ST_INFEASIBLE, "nothing fits: of these %s needs least, %s on a device", least, need);
    return error_set(err, ST_INFEASIBLE, "nothing fits: of these %s needs least, %s on a device; fsdp-optimal %s %s",
                     least, need, sharded <= budget_bytes ? "would fit, with" : "would need",
                     units_format_bytes(sharded, other, sizeof other));
}

enum status memory_output_check(const struct simulation *s, const struct row *rows, size_t n, struct error *err) {
    const struct row *least = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].over)
            return ST_OK;
        if (!least || rows[i].memory.peak_bytes < least->memory.peak_bytes)
            least = &rows[i];
    }
    if (!least)
        return ST_OK;
    if (n == 1 || least->memory.peak_bytes <= s->memory_bytes)
        return error_set(err, ST_INFEASIBLE, "%s %s", least->name, least->too_much);
    return memory_output_nothing_fits(s->model, s->cluster, s->memory_bytes, least->name, least->memory.peak_bytes,
                                      err);
}
