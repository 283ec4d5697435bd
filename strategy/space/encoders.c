/* Encoders of a draft. Samplers and moves draw encodings without looking at what else they ask for. Settling then gives
 * each encoder a figure, takes back those that strategy_check refuses, and leaves the groups of the others without an
 * algorithm, since an encoder goes its own way. */
#include "strategy/encoder.h"
#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

static bool may_stay(const struct strategy *s, const struct variable_sync *part) {
    if (part->kind == SYNC_PARAMETER_SERVER)
        return !encoding_is_encoder(part->encoding);
    const struct group *group = &s->groups[part->group];
    return !group->sharded && (!encoding_is_encoder(part->encoding) || group->algorithm != ALGORITHM_all_gather);
}

static void settle_part(const struct strategy *s, struct variable_sync *part) {
    if (!may_stay(s, part))
        part->encoding = ENCODING_none;
    const struct encoder_figure *figure = encoder_figure(part->encoding);
    if (!figure)
        part->figure = 0;
    else if (part->figure < figure->least || part->figure > figure->most)
        part->figure = figure->usual;
}

void encoders_settle(struct draft *d) {
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++)
        for (uint32_t k = 0; k < sync_parts(&d->strategy.variables[v]); k++)
            settle_part(&d->strategy, sync_edit_part(&d->strategy.variables[v], k));
}

/* A group that lost its encoder gets an algorithm where the space has no auto. */
static void draw_missing_algorithms(struct draft *d) {
    const struct space_options *o = &d->space->options;
    if (o->encodings >> ENCODING_int8 == 0 || o->algorithms >> ALGORITHM_auto & 1)
        return;
    for (uint32_t g = 0; g < d->strategy.n_groups; g++)
        if (d->strategy.groups[g].algorithm == ALGORITHM_auto)
            d->strategy.groups[g].algorithm = (enum algorithm)draw_bit(d->rng, space_all_reduces(o));
}

void encoders_settle_groups(struct draft *d) {
    draw_missing_algorithms(d);
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++)
        for (uint32_t k = 0; k < sync_parts(&d->strategy.variables[v]); k++) {
            const struct variable_sync *part = sync_part(&d->strategy.variables[v], k);
            if (encoding_is_encoder(part->encoding))
                d->strategy.groups[part->group].algorithm = ALGORITHM_auto;
        }
}
