/* Encoders of a draft. Samplers and moves draw encodings without looking at what else they ask for. Settling then gives
 * each encoder a figure, takes back those that strategy_check refuses, and leaves the groups of the others without an
 * algorithm, since an encoder goes its own way. powersgd also needs whole matrices, in groups without partitions. */
#include <math.h>

#include "strategy/encoder.h"
#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

/* powersgd pays where both thin matrices have a quarter of the elements at most. Vectors go with others. */
static bool is_worth_rank(const struct variable *v, const struct variable_sync *part, double rank) {
    const struct encoder_matrix is = encoder_matrix(v);
    const double rows = (double)is.rows, columns = (double)is.columns;
    return !v->sparse_rows && part->shards == 1 &&
           (!is.columns || ((rows + columns) * rank < rows * columns / 4 && rank <= fmin(rows, columns)));
}

static bool may_stay(const struct strategy *s, const struct variable_sync *part) {
    if (part->kind == SYNC_PARAMETER_SERVER)
        return !encoding_is_encoder(part->encoding);
    const struct group *group = &s->groups[part->group];
    return !group->sharded && (!encoding_is_encoder(part->encoding) || group->algorithm != ALGORITHM_all_gather);
}

/* One of the usual ranks where the description has none. */
static double settled_figure(const struct encoder_figure *figure, const struct variable_sync *part, double rank) {
    const bool known = figure && part->figure >= figure->least && part->figure <= figure->most;
    const bool whole = known && (!figure->whole || part->figure == floor(part->figure));
    return !figure ? 0 : whole ? part->figure : part->encoding == ENCODING_powersgd ? rank : figure->usual;
}

/* `rank`: of all that get one now, so that they stay together. */
static void settle_part(const struct draft *d, uint32_t v, struct variable_sync *part, double rank) {
    if (!may_stay(&d->strategy, part))
        part->encoding = ENCODING_none;
    part->figure = settled_figure(encoder_figure(part->encoding), part, rank);
    if (part->encoding != ENCODING_powersgd || is_worth_rank(&d->space->model->variables[v], part, part->figure))
        return;
    part->encoding = ENCODING_none;
    part->figure = 0;
}

void encoders_settle(struct draft *d) {
    const bool draws = d->space->options.encodings >> ENCODING_powersgd & 1;
    const double rank = draws ? (double)(UINT64_C(1) << rng_below(d->rng, 3)) : 1; /* 1, 2 or 4 */
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++)
        for (uint32_t k = 0; k < sync_parts(&d->strategy.variables[v]); k++)
            settle_part(d, v, sync_edit_part(&d->strategy.variables[v], k), rank);
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
    strategy_leave_matrices_whole(&d->strategy);
}
