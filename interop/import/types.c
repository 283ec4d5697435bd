/* Groups whose parameters are not sharded stay as they are. */
#include "interop/import/types.h"

#include <string.h>

bool types_named(const char *word, enum carried *out) {
    static const struct {
        const char *word;
        enum carried carried;
    } names[] = {{"float32", CARRIED_f32}, {"fp32", CARRIED_f32},    {"bfloat16", CARRIED_bf16}, {"bf16", CARRIED_bf16},
                 {"bfp16", CARRIED_bf16},  {"float16", CARRIED_f16}, {"fp16", CARRIED_f16}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(word, names[i].word)) {
            *out = names[i].carried;
            return true;
        }
    return false;
}

enum status types_apply(const struct types *types, const struct strategy_for *wanted, struct strategy *strategy,
                        struct error *err) {
    if (!types->gathered && !types->summed)
        return ST_OK;
    for (uint32_t g = 0; g < strategy->n_groups; g++)
        if (strategy->groups[g].sharded == SHARDED_parameters) {
            strategy->groups[g].gathered_as = types->gathered;
            strategy->groups[g].summed_as = types->summed;
        }
    const enum status st = strategy_seal(strategy, wanted->model, wanted->cluster, err);
    if (st)
        strategy_release(strategy);
    return st;
}
