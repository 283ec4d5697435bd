/* Ranking a domain that was not trained on, then with a few trials of its own.
 *
 * Sources: each large domain by itself (pairs of source and target); and for each target all other domains, those of
 * other models (on the same cluster too), and those of other clusters (with the same model too), POOLED_TRIALS of a
 * domain at most, so that none drowns the others. Targets are the domains with LEAST_TRIALS or more. No trial of a
 * target chooses anything: rankers stop by a fifth of their source's trials.
 *
 * Then fine-tuning: a target's trials in a drawn order, of which the first k train on what all other domains taught,
 * and those after the first MOST_TUNING are ranked whatever k is. Beside it the same k trials without a source. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "tests/evaluate/evaluate.h"

enum { POOLED_TRIALS = 40, SEED = 1 };

/* Rows: the timeline, the closed form, the rankers, and the mean of the residual ones. */
enum { ROW_TIMELINE, ROW_CLOSED, ROW_LEARNED, ROW_MEAN = ROW_LEARNED + LEARNED, ROWS };
/* Sources of many domains. */
enum { POOL_ALL, POOL_MODELS, POOL_CLUSTERS, POOLS };

static const char *row_name(size_t r) {
    if (r == ROW_MEAN)
        return "mean of the four on the timeline";
    return r == ROW_TIMELINE ? timeline.name : r == ROW_CLOSED ? closed_form.name : learned[r - ROW_LEARNED].name;
}

/* A ranker of each kind from one source; those that a pool leaves out are NULL. */
struct taught {
    struct ranker *ranker[LEARNED];
};

static void taught_init(struct taught *out, const struct corpus *corpus, struct places training, size_t kinds) {
    *out = (struct taught){0};
    for (size_t k = 0; k < kinds; k++)
        out->ranker[k] = contender_train(corpus, &learned[k], training, SEED, NULL);
}

static void taught_release(struct taught *taught) {
    for (size_t k = 0; k < LEARNED; k++)
        ranker_free(taught->ranker[k]);
}

/* A row each on the examples `held`; NaN where there is no ranker. */
static void taught_rank(const struct taught *taught, const struct corpus *corpus, struct places held,
                        double out[ROWS]) {
    struct arena arena = {0};
    double *score = allocate(&arena, held.n, sizeof *score), *mean = allocate(&arena, held.n, sizeof *mean);
    contender_scores(corpus, &timeline, held, held, score);
    out[ROW_TIMELINE] = accuracy_of(corpus, held, score).of[0];
    contender_scores(corpus, &closed_form, held, held, score);
    out[ROW_CLOSED] = accuracy_of(corpus, held, score).of[0];
    for (size_t k = 0; k < LEARNED; k++) {
        out[ROW_LEARNED + k] = NAN;
        if (!taught->ranker[k])
            continue;
        ranker_scores(corpus, taught->ranker[k], held, score);
        out[ROW_LEARNED + k] = accuracy_of(corpus, held, score).of[0];
        for (size_t i = 0; learned[k].residual && i < held.n; i++)
            mean[i] += score[i];
    }
    out[ROW_MEAN] = accuracy_of(corpus, held, mean).of[0];
    arena_release(&arena);
}

/* ---- sources ---- */

static bool same_model(const struct corpus *corpus, size_t a, size_t b) {
    return strcmp(corpus_domain(corpus, a)->model.id.hex, corpus_domain(corpus, b)->model.id.hex) == 0;
}

static bool same_cluster(const struct corpus *corpus, size_t a, size_t b) {
    return strcmp(corpus_domain(corpus, a)->cluster.id.hex, corpus_domain(corpus, b)->cluster.id.hex) == 0;
}

/* Whether `pool` keeps domain `d` away from target `t`. */
static bool is_excluded(const struct corpus *corpus, size_t pool, size_t d, size_t t) {
    if (pool == POOL_MODELS)
        return same_model(corpus, d, t);
    return pool == POOL_CLUSTERS ? same_cluster(corpus, d, t) : d == t;
}

static struct places pool_places(const struct corpus *corpus, size_t pool, size_t target, struct arena *arena) {
    struct places out = {.n = 0, .place = allocate(arena, 0, sizeof *out.place)};
    for (size_t d = 0; d < corpus->examples.n_domains; d++)
        if (!is_excluded(corpus, pool, d, target))
            out = places_join(out, places_head(domain_shuffled(corpus, d, SEED, arena), POOLED_TRIALS), arena);
    return out;
}

/* A target whose pool is that of an earlier one needs no training of its own. */
static size_t pool_owner(const struct corpus *corpus, size_t pool, size_t target) {
    for (size_t d = 0; pool != POOL_ALL && d < target; d++)
        if (domain_is_enough(corpus, d) && is_excluded(corpus, pool, d, target))
            return d;
    return target;
}

/* ---- what is measured ---- */

enum { TUNINGS = 4, MOST_TUNING = 20 };
static const size_t TUNING[TUNINGS] = {0, 5, 10, MOST_TUNING};

struct measured_transfer {
    size_t n;                                      /* domains */
    double (*pair)[ROWS];                          /* [n * n]: source times n plus target; NaN where it is none */
    double (*pool[POOLS])[ROWS];                   /* [n] */
    double (*tuned)[TUNINGS][RANKER_KIND_COUNT];   /* [n] from all other domains */
    double (*scratch)[TUNINGS][RANKER_KIND_COUNT]; /* [n] from nothing; NaN for no trial */
    double (*corrected)[TUNINGS];                  /* [n] the timeline with two factors */
};

static double (*nan_rows(struct arena *arena, size_t n))[ROWS] {
    double(*rows)[ROWS] = allocate(arena, n, sizeof *rows);
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < ROWS; r++)
            rows[i][r] = NAN;
    return rows;
}

static void measure_pairs(const struct corpus *corpus, struct measured_transfer *m) {
    for (size_t s = 0; s < m->n; s++) {
        struct arena arena = {0};
        struct taught taught;
        if (!domain_is_large(corpus, s))
            continue;
        taught_init(&taught, corpus, domain_shuffled(corpus, s, SEED, &arena), LEARNED);
        for (size_t t = 0; t < m->n; t++)
            if (t != s && domain_is_enough(corpus, t))
                taught_rank(&taught, corpus, domain_shuffled(corpus, t, SEED, &arena), m->pair[s * m->n + t]);
        taught_release(&taught);
        arena_release(&arena);
    }
}

static struct ranker *tune(const struct corpus *corpus, const struct ranker *from, size_t kind, struct places few) {
    struct error err;
    struct arena arena = {0};
    struct ranker *out;
    struct ranker_options options = ranker_default_options(learned[kind].ranker);
    struct ranker_example *examples = allocate(&arena, few.n, sizeof *examples);
    for (size_t i = 0; i < few.n; i++)
        examples[i] = corpus->examples.examples[few.place[i]];
    options.seed = SEED;
    if (from)
        check(ranker_fine_tune(from, &options, few.n, examples, &out, NULL, &err), &err);
    else
        check(ranker_train(&options, few.n, examples, &out, NULL, &err), &err);
    arena_release(&arena);
    return out;
}

static double accuracy_tuned(const struct corpus *corpus, const struct ranker *from, size_t kind, struct places few,
                             struct places held, double *score) {
    if (few.n == 0 && !from)
        return NAN;
    struct ranker *ranker = few.n > 0 ? tune(corpus, from, kind, few) : NULL;
    ranker_scores(corpus, ranker ? ranker : from, held, score);
    ranker_free(ranker);
    return accuracy_of(corpus, held, score).of[0];
}

static void measure_tuning(const struct corpus *corpus, const struct taught *taught, size_t target,
                           struct measured_transfer *m) {
    struct arena arena = {0};
    const struct places all = domain_shuffled(corpus, target, SEED, &arena), held = places_tail(all, MOST_TUNING);
    double *score = allocate(&arena, held.n, sizeof *score);
    for (size_t i = 0; i < TUNINGS; i++) {
        const struct places few = places_head(all, TUNING[i]);
        contender_scores(corpus, few.n > 0 ? &corrected : &timeline, few, held, score);
        m->corrected[target][i] = accuracy_of(corpus, held, score).of[0];
        for (size_t k = 0; k < RANKER_KIND_COUNT; k++) {
            m->tuned[target][i][k] = accuracy_tuned(corpus, taught->ranker[k], k, few, held, score);
            m->scratch[target][i][k] = accuracy_tuned(corpus, NULL, k, few, held, score);
        }
    }
    arena_release(&arena);
}

static void measure_pool(const struct corpus *corpus, size_t pool, struct measured_transfer *m) {
    for (size_t owner = 0; owner < m->n; owner++) {
        struct arena arena = {0};
        struct taught taught;
        if (!domain_is_enough(corpus, owner) || pool_owner(corpus, pool, owner) != owner)
            continue;
        taught_init(&taught, corpus, pool_places(corpus, pool, owner, &arena), RANKER_KIND_COUNT);
        for (size_t t = owner; t < m->n; t++)
            if (domain_is_enough(corpus, t) && pool_owner(corpus, pool, t) == owner)
                taught_rank(&taught, corpus, domain_shuffled(corpus, t, SEED, &arena), m->pool[pool][t]);
        if (pool == POOL_ALL)
            measure_tuning(corpus, &taught, owner, m);
        taught_release(&taught);
        arena_release(&arena);
    }
}

static void measure(const struct corpus *corpus, struct arena *arena, struct measured_transfer *m) {
    const size_t n = corpus->examples.n_domains;
    m->n = n;
    m->pair = nan_rows(arena, n * n);
    m->tuned = allocate(arena, n, sizeof *m->tuned);
    m->scratch = allocate(arena, n, sizeof *m->scratch);
    m->corrected = allocate(arena, n, sizeof *m->corrected);
    measure_pairs(corpus, m);
    for (size_t pool = 0; pool < POOLS; pool++) {
        m->pool[pool] = nan_rows(arena, n);
        measure_pool(corpus, pool, m);
    }
}

/* ---- printing ---- */

/* Mean and least of those of x[0], x[stride], ... that are numbers. */
struct digest {
    size_t n;
    double mean, least, most;
};
static struct digest digest_of(size_t n, const double *x, size_t stride) {
    struct digest out = {.least = INFINITY, .most = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i * stride]))
            continue;
        out.n++;
        out.mean += x[i * stride];
        out.least = fmin(out.least, x[i * stride]);
        out.most = fmax(out.most, x[i * stride]);
    }
    out.mean = out.n ? out.mean / (double)out.n : NAN;
    return out;
}

static void number_cell(struct table *table, double x) {
    if (isfinite(x))
        table_cell(table, "%.3f", x);
    else
        table_cell(table, "-");
}

static void print_zero(const struct corpus *corpus, const struct measured_transfer *m) {
    struct arena arena = {0};
    struct table table;
    const char *heads[TABLE_MAX_COLUMNS] = {"ROW"};
    size_t n = 1;
    for (size_t s = 0; s < m->n; s++) {
        const char *words = domain_words(corpus, s, &arena);
        char *head = allocate(&arena, strlen(words) + 2, 1);
        snprintf(head, strlen(words) + 2, ">%s", words);
        if (domain_is_large(corpus, s) && n < TABLE_MAX_COLUMNS - 7)
            heads[n++] = head;
    }
    const char *const last[] = {">PAIRS", ">LEAST", ">OTHERS", ">LEAST", ">OTHER MODELS", ">OTHER CLUSTERS"};
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++)
        heads[n + i] = last[i];
    table_init(&table, heads);
    for (size_t r = 0; r < ROWS; r++) {
        const struct digest pairs = digest_of(m->n * m->n, &m->pair[0][r], ROWS);
        const struct digest others = digest_of(m->n, &m->pool[POOL_ALL][0][r], ROWS);
        table_cell(&table, "%s", row_name(r));
        for (size_t s = 0, column = 1; s < m->n && column < n; s++)
            if (domain_is_large(corpus, s)) {
                number_cell(&table, digest_of(m->n, &m->pair[s * m->n][r], ROWS).mean);
                column++;
            }
        number_cell(&table, pairs.mean);
        number_cell(&table, pairs.least);
        number_cell(&table, others.mean);
        number_cell(&table, others.least);
        number_cell(&table, digest_of(m->n, &m->pool[POOL_MODELS][0][r], ROWS).mean);
        number_cell(&table, digest_of(m->n, &m->pool[POOL_CLUSTERS][0][r], ROWS).mean);
    }
    printf("\nWithout trials of the target: accuracy by source, mean over targets; over all %zu pairs mean and least.\n"
           "Then by pooled sources, at most %d trials of a domain: all other domains, other models, other clusters.\n",
           digest_of(m->n * m->n, &m->pair[0][0], ROWS).n, POOLED_TRIALS);
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&arena);
}

static void print_tuned(const struct measured_transfer *m, const bool *target) {
    static const char *const heads[] = {"ROW", ">0", ">5", ">10", ">20", NULL};
    struct table table;
    table_init(&table, heads);
    for (size_t r = 0; r < 1 + 2 * RANKER_KIND_COUNT; r++) {
        const size_t k = r ? (r - 1) / 2 : 0;
        const bool tuned = r % 2;
        if (r == 0)
            table_cell(&table, "timeline, two factors fitted");
        else
            table_cell(&table, "%s, %s", learned[k].name, tuned ? "from all others" : "from nothing");
        for (size_t i = 0; i < TUNINGS; i++) {
            double sum = 0, count = 0;
            for (size_t t = 0; t < m->n; t++) {
                if (!target[t])
                    continue;
                sum += r == 0 ? m->corrected[t][i] : tuned ? m->tuned[t][i][k] : m->scratch[t][i][k];
                count++;
            }
            number_cell(&table, sum / count);
        }
    }
    printf("\nWith 0, 5, 10 and 20 trials of the target: accuracy on those after its first %d, mean over targets.\n",
           MOST_TUNING);
    table_print(&table, stdout);
    table_release(&table);
}

/* For each target the large sources: the nearest's accuracy, and mean, least and most over them. */
static void print_distance(const struct corpus *corpus, const struct measured_transfer *m) {
    static const char *const heads[] = {"ROW", ">NEAREST", ">AVERAGE", ">WORST", ">BEST", NULL};
    struct table table;
    table_init(&table, heads);
    for (size_t r = ROW_LEARNED; r < ROWS; r++) {
        double sum[4] = {0}, count = 0;
        for (size_t t = 0; t < m->n; t++) {
            const struct digest all = digest_of(m->n, &m->pair[t][r], m->n * ROWS);
            double nearest = INFINITY, near = NAN;
            for (size_t s = 0; s < m->n; s++) {
                const double d = domain_distance(corpus_domain(corpus, s), corpus_domain(corpus, t));
                if (!isnan(m->pair[s * m->n + t][r]) && d < nearest) {
                    nearest = d;
                    near = m->pair[s * m->n + t][r];
                }
            }
            if (all.n < 2)
                continue;
            const double figures[4] = {near, all.mean, all.least, all.most};
            for (size_t i = 0; i < 4; i++)
                sum[i] += figures[i];
            count++;
        }
        table_cell(&table, "%s", row_name(r));
        for (size_t i = 0; i < 4; i++)
            number_cell(&table, sum[i] / count);
    }
    printf("\nWhich large domain to learn from: the nearest by domain distance, the average, worst and best of them,\n"
           "mean over targets. Worst and best are known afterwards only.\n");
    table_print(&table, stdout);
    table_release(&table);
}

void table_transfer(struct corpus *corpus) {
    struct arena arena = {0};
    struct measured_transfer m;
    size_t n_large = 0, n_targets = 0;
    measure(corpus, &arena, &m);
    bool *target = allocate(&arena, m.n, sizeof *target);
    for (size_t d = 0; d < m.n; d++) {
        n_large += domain_is_large(corpus, d);
        n_targets += target[d] = domain_is_enough(corpus, d);
    }
    printf("Pairs of strategies of a domain ordered as measured, by rankers that saw other domains only: %zu large\n"
           "sources, %zu targets with %d trials or more. Seed %d.\n",
           n_large, n_targets, LEAST_TRIALS, SEED);
    print_zero(corpus, &m);
    print_tuned(&m, target);
    print_distance(corpus, &m);
    arena_release(&arena);
}
