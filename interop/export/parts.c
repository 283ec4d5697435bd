/* Which losses change the memory of a job, and the refusal of an export that has one of them.
 *
 * Devices keep parts of parameters, gradients and the optimizer's states where a strategy says so. A form that says
 * less makes all of it whole on each device, and the job may not fit into the devices for which the strategy was
 * chosen. fully_shard makes parts of what the strategy leaves whole. Both are losses that a form notes as any other;
 * the table says which count, by who decides about parts in the form. Other losses change memory too (made.c,
 * "memory"). That is refused only where the cluster says what its devices have, and it is less. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "interop/export/export.h"
#include "interop/export/export_internal.h"
#include "strategy/optimizer.h"

enum {
    PARTS = 1u << EXPORT_LOSS_SHARDED | 1u << EXPORT_LOSS_REPLICAS,
    WAYS = 1u << EXPORT_LOSS_ALL_REDUCE | 1u << EXPORT_LOSS_PARAMETER_SERVER, /* fully_shard has neither */
    TIME = 1u << EXPORT_LOSS_ORDER | 1u << EXPORT_LOSS_PREEMPTION | 1u << EXPORT_LOSS_ALGORITHM |
           1u << EXPORT_LOSS_PLACEMENT | 1u << EXPORT_LOSS_LOCAL_REDUCTION, /* cost nothing else */
};

static const uint32_t changing[] = {
    [EXPORT_PARTS_by_form] = PARTS,
    [EXPORT_PARTS_always] = PARTS | WAYS,
    [EXPORT_PARTS_by_program] = 0,
    [EXPORT_PARTS_beside] = PARTS,
};

/* Nothing but the optimizer's states is in parts, and the model's optimizer has none. Where the model does not say what
 * its optimizer is, there may be some. */
static bool parts_are_work_alone(const struct strategy *s, const struct model *m) {
    if (m->optimizer.kind == OPTIMIZER_unknown)
        return false;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&s->variables[v], k);
            const enum sharded sharded = part->kind == SYNC_ALL_REDUCE ? s->groups[part->group].sharded : SHARDED_none;
            const struct variable *variable = &m->variables[v];
            if (sharded > SHARDED_optimizer ||
                (sharded && optimizer_bytes(&m->optimizer, variable, variable->elements) > 0))
                return false;
        }
    return true;
}

bool parts_change_memory(enum export_parts parts, uint32_t noted, const struct strategy *strategy,
                         const struct model *model) {
    const bool work = parts != EXPORT_PARTS_always && parts_are_work_alone(strategy, model);
    return (noted & changing[parts]) && !work;
}

/* How many bytes of the text to print: at most `most`, and whole characters. */
static int fitting(const char *text, size_t most) {
    return (int)text_clean_length(text, strnlen(text, most));
}

uint32_t export_unaccepted(uint32_t losses, uint32_t accepted) {
    const uint32_t left = losses & ~accepted, memory = 1u << EXPORT_LOSS_MEMORY, done = losses & accepted;
    return done & PARTS || (done && !(left & ~(TIME | memory))) ? left & ~memory : left;
}

/* The note that refuses: about parts, or "memory". */
static const char *reason(const struct exporter *exporter, const struct export *built, const struct strategy *strategy,
                          const struct model *model) {
    const bool parts = parts_change_memory(exporter->parts, export_losses(built), strategy, model);
    const uint32_t counts = parts ? changing[exporter->parts] : 1u << EXPORT_LOSS_MEMORY;
    for (uint32_t i = 0; i < built->n_notes; i++)
        if (counts >> built->notes[i].loss & 1)
            return built->notes[i].text;
    return "";
}

/* Whether the form keeps to the strategy's memory: the form says which parts devices keep, and moves everything in the
 * strategy's ways. `closely`: the form loses nothing that could take more memory. */
static enum status keeps_memory(const struct exporter *exporter, bool closely, const struct strategy *strategy,
                                const struct model *model, const struct cluster *cluster, bool *out,
                                struct error *err) {
    const uint32_t counts = closely ? ~(uint32_t)TIME : WAYS;
    struct export export;
    *out = exporter->parts == EXPORT_PARTS_by_form || exporter->parts == EXPORT_PARTS_always;
    if (!*out)
        return ST_OK;
    enum status st = export_build(exporter, strategy, model, cluster, &export, err);
    if (st)
        return st;
    *out = !export.changes_memory && !(export_losses(&export) & counts);
    export_release(&export);
    return ST_OK;
}

enum status export_check_memory(const struct exporter *exporter, const struct export *built,
                                const struct strategy *strategy, const struct model *model,
                                const struct cluster *cluster, struct error *err) {
    char able[ERROR_TEXT_ROOM / 2] = "";
    size_t n;
    const struct exporter *forms = exporters_list(&n);
    if (!built->changes_memory)
        return ST_OK;
    for (size_t i = 0; i < n; i++) {
        bool keeps = false;
        enum status st = keeps_memory(&forms[i], built->over_memory, strategy, model, cluster, &keeps, err);
        if (st)
            return st;
        if (keeps)
            snprintf(able + strlen(able), sizeof able - strlen(able), "%s%s", *able ? ", " : "", forms[i].name);
    }
    const char *why = reason(exporter, built, strategy, model);
    return error_set(err, ST_INFEASIBLE, "%s would change the memory that %.*s needs: %.*s; %s%s", exporter->name,
                     fitting(strategy->name, 64), strategy->name, fitting(why, 240), why,
                     *able ? "forms that keep to it: " : "no form keeps to it by itself", able);
}
