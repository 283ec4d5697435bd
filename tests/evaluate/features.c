/* What the features are worth, as AutoSync's table 3 asks it: rankers that know nothing of the timeline but what the
 * features say (none is residual), trained within a domain on some of the features, the others being 0 everywhere.
 *
 * Raw are what a strategy chooses and what a shard is; predefined the terms of equation 2 over shards, and beside each
 * shard its own; plan and timeline terms are ours. The same splits as in the table of accuracy, SPLITS of them for
 * linear and trees, whose global features are all they have, and NETWORK_SPLITS for the LSTM, which reads shards too.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "tests/evaluate/evaluate.h"
#include "tests/support/feature_columns.h"

enum { NETWORK_SPLITS = 2 };

#define GLOBAL(kind) (1u << FEATURE_KIND_##kind)
enum { ALL_GLOBAL = GLOBAL(timeline) | GLOBAL(predefined) | GLOBAL(plan) | GLOBAL(knob) | GLOBAL(domain) };

static const struct variant {
    const char *name;
    unsigned global;                  /* kinds of global features that stay */
    bool shard_raw, shard_predefined; /* columns of shards that stay */
} VARIANTS[] = {
    {"all features", ALL_GLOBAL, true, true},
    {"raw and predefined: AutoSync's", GLOBAL(predefined) | GLOBAL(knob) | GLOBAL(domain), true, true},
    {"raw only", GLOBAL(knob) | GLOBAL(domain), true, false},
    {"predefined only", GLOBAL(predefined), false, true},
    {"all but the timeline's", ALL_GLOBAL & ~(unsigned)GLOBAL(timeline), true, true},
    {"all but the plan's", ALL_GLOBAL & ~(unsigned)GLOBAL(plan), true, true},
    {"all but the knobs", ALL_GLOBAL & ~(unsigned)GLOBAL(knob), true, true},
    {"the timeline's only", GLOBAL(timeline), false, false},
};
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof VARIANTS[0] };

static const struct column {
    const char *head;
    struct contender contender;
    size_t splits;
} COLUMNS[] = {
    {">linear", {.kind = CONTENDER_RANKER, .ranker = RANKER_linear}, SPLITS},
    {">trees", {.kind = CONTENDER_RANKER, .ranker = RANKER_trees}, SPLITS},
    {">rnn", {.kind = CONTENDER_RANKER, .ranker = RANKER_rnn}, NETWORK_SPLITS},
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof COLUMNS[0] };

static bool shard_is_predefined(size_t column) {
    return column >= FEATURE_SHARD_log2_ps_transfer_us && column <= FEATURE_SHARD_log2_cc_messages;
}

static struct features mask(const struct features *from, const struct variant *variant, struct arena *arena) {
    struct features out = *from;
    out.shards = allocate(arena, from->n_shards, FEATURE_SHARD_COUNT * sizeof *out.shards);
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        if (!(variant->global >> GLOBAL_KINDS[k] & 1))
            out.global[k] = 0;
    for (size_t i = 0; i < from->n_shards * FEATURE_SHARD_COUNT; i++)
        if (shard_is_predefined(i % FEATURE_SHARD_COUNT) ? variant->shard_predefined : variant->shard_raw)
            out.shards[i] = from->shards[i];
    return out;
}

/* The corpus with the features of one domain masked, for as long as `arena`. */
static struct corpus masked_corpus(const struct corpus *corpus, size_t domain, const struct variant *variant,
                                   struct arena *arena) {
    struct corpus out = *corpus;
    const struct domain *d = corpus_domain(corpus, domain);
    out.examples.examples = allocate(arena, out.examples.n, sizeof *out.examples.examples);
    out.examples.features = allocate(arena, out.examples.n, sizeof *out.examples.features);
    for (size_t i = d->first; i < d->first + d->n; i++) {
        out.examples.features[i] = mask(&corpus->examples.features[i], variant, arena);
        out.examples.examples[i] = corpus->examples.examples[i];
        out.examples.examples[i].features = &out.examples.features[i];
    }
    return out;
}

/* Mean over splits. */
static double accuracy_within(const struct corpus *corpus, size_t domain, const struct column *column) {
    double sum = 0;
    for (size_t split = 0; split < column->splits; split++) {
        struct arena arena = {0};
        const struct places all = domain_shuffled(corpus, domain, split + 1, &arena);
        const struct places held = places_tail(all, corpus->training);
        double *score = allocate(&arena, held.n, sizeof *score);
        struct ranker *ranker =
            contender_train(corpus, &column->contender, places_head(all, corpus->training), split + 1, NULL);
        ranker_scores(corpus, ranker, held, score);
        sum += accuracy_of(corpus, held, score).of[0];
        ranker_free(ranker);
        arena_release(&arena);
    }
    return sum / (double)column->splits;
}

void table_features(struct corpus *corpus) {
    double sum[VARIANT_COUNT][COLUMN_COUNT] = {{0}};
    size_t n = 0;
    for (size_t d = 0; d < corpus->examples.n_domains; d++) {
        if (!domain_is_large(corpus, d))
            continue;
        n++;
        for (size_t v = 0; v < VARIANT_COUNT; v++) {
            struct arena arena = {0};
            const struct corpus masked = masked_corpus(corpus, d, &VARIANTS[v], &arena);
            for (size_t c = 0; c < COLUMN_COUNT; c++)
                sum[v][c] += accuracy_within(&masked, d, &COLUMNS[c]);
            arena_release(&arena);
        }
    }
    const char *heads[COLUMN_COUNT + 2] = {"FEATURES"};
    struct table table;
    for (size_t c = 0; c < COLUMN_COUNT; c++)
        heads[c + 1] = COLUMNS[c].head;
    printf("Held-out pairs ordered as measured, by rankers that are not residual and read some of the features only.\n"
           "%u trials train; mean over %zu large domains and %d splits (rnn: %d), seeds from 1.\n",
           corpus->training, n, SPLITS, NETWORK_SPLITS);
    table_init(&table, heads);
    for (size_t v = 0; v < VARIANT_COUNT; v++) {
        table_cell(&table, "%s", VARIANTS[v].name);
        for (size_t c = 0; c < COLUMN_COUNT; c++)
            table_cell(&table, "%.3f", sum[v][c] / (double)n);
    }
    table_print(&table, stdout);
    table_release(&table);
}
