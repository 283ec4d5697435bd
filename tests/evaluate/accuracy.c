/* Ranking within a domain: some trials train, the others are ranked.
 *
 * A row's figures are means over SPLITS splits, each drawn anew. The rankers stop by a fifth of their training trials
 * and never see the others; "chosen by its validation" takes, in each split, the ranker that did best on that fifth,
 * and "mean of four" averages the scores of the residual rankers, which are all logarithms of times: these two choose
 * nothing by the held-out trials, as picking the best row afterwards would. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/table.h"
#include "tests/evaluate/evaluate.h"

/* Rows: three that learn nothing of the features, the rankers, and two made of rankers. */
enum { ROW_TIMELINE, ROW_CLOSED, ROW_CORRECTED, ROW_LEARNED, ROW_CHOSEN = ROW_LEARNED + LEARNED, ROW_MEAN, ROWS };

struct row {
    struct accuracy split[SPLITS];
    double seconds; /* of training, summed over splits */
};

static void score_plain(const struct corpus *corpus, struct places training, struct places held, size_t split,
                        struct row rows[ROWS], double *score) {
    const struct contender *const plain[] = {&timeline, &closed_form, &corrected};
    for (size_t r = 0; r < ROW_LEARNED; r++) {
        const double start_us = clock_now_us();
        contender_scores(corpus, plain[r], training, held, score);
        rows[r].split[split] = accuracy_of(corpus, held, score);
        if (r == ROW_CORRECTED)
            rows[r].seconds += (clock_now_us() - start_us) * 1e-6;
    }
}

static void score_learned(const struct corpus *corpus, struct places training, struct places held, size_t split,
                          struct row rows[ROWS], double *score) {
    struct arena arena = {0};
    double *mean = allocate(&arena, held.n, sizeof *mean), best = -1, seconds = 0, residual = 0;
    for (size_t k = 0; k < LEARNED; k++) {
        struct row *row = &rows[ROW_LEARNED + k];
        struct ranker_report report;
        struct ranker *ranker = contender_train(corpus, &learned[k], training, split + 1, &report);
        ranker_scores(corpus, ranker, held, score);
        ranker_free(ranker);
        row->split[split] = accuracy_of(corpus, held, score);
        row->seconds += report.seconds;
        seconds += report.seconds;
        if (report.validation_accuracy > best) {
            best = report.validation_accuracy;
            rows[ROW_CHOSEN].split[split] = row->split[split];
        }
        for (size_t i = 0; learned[k].residual && i < held.n; i++)
            mean[i] += score[i];
        residual += learned[k].residual ? report.seconds : 0;
    }
    rows[ROW_CHOSEN].seconds += seconds;
    rows[ROW_MEAN].seconds += residual;
    rows[ROW_MEAN].split[split] = accuracy_of(corpus, held, mean);
    arena_release(&arena);
}

static double mean_of(const struct row *row, size_t margin) {
    double sum = 0;
    for (size_t s = 0; s < SPLITS; s++)
        sum += row->split[s].of[margin];
    return sum / SPLITS;
}

static double deviation_of(const struct row *row, size_t margin) {
    const double mean = mean_of(row, margin);
    double squares = 0;
    for (size_t s = 0; s < SPLITS; s++)
        squares += (row->split[s].of[margin] - mean) * (row->split[s].of[margin] - mean);
    return sqrt(squares / (SPLITS - 1));
}

static const char *row_name(size_t r) {
    static const char *const names[] = {"timeline, uncorrected", "AutoSync's closed form", "timeline, two factors"};
    if (r == ROW_CHOSEN)
        return "chosen by its validation";
    if (r == ROW_MEAN)
        return "mean of the four on the timeline";
    return r < ROW_LEARNED ? names[r] : learned[r - ROW_LEARNED].name;
}

static void print_row(struct table *table, size_t r, const struct row *row) {
    table_cell(table, "%s", row_name(r));
    table_cell(table, "%.3f", mean_of(row, 0));
    table_cell(table, "%.3f", deviation_of(row, 0));
    for (size_t m = 1; m < MARGINS; m++)
        table_cell(table, "%.3f", mean_of(row, m));
    if (row->seconds > 0)
        table_cell(table, "%.2f", row->seconds / SPLITS);
    else
        table_cell(table, "-");
}

static void print_ceiling(struct table *table, const char *name, const struct accuracy *a) {
    table_cell(table, "%s", name);
    table_cell(table, "%.3f", a->of[0]);
    table_cell(table, "-");
    for (size_t m = 1; m < MARGINS; m++)
        table_cell(table, "%.3f", a->of[m]);
    table_cell(table, "-");
}

static void print_domain(const struct corpus *corpus, size_t domain, const struct row rows[ROWS]) {
    static const char *const heads[] = {"ROW", ">ALL PAIRS", ">+-", ">APART 2%", ">APART 5%", ">TRAINING S", NULL};
    struct arena arena = {0};
    struct table table;
    const struct places all = domain_shuffled(corpus, domain, 0, &arena);
    const struct ceiling ceiling = noise_ceiling(corpus, all);
    printf("\n%s: %zu strategies, %u train, %zu held out\n", domain_words(corpus, domain, &arena), all.n,
           corpus->training, all.n - corpus->training);
    table_init(&table, heads);
    for (size_t r = 0; r < ROWS; r++)
        print_row(&table, r, &rows[r]);
    print_ceiling(&table, "ceiling: a second measurement", &ceiling.second);
    print_ceiling(&table, "ceiling: the true times", &ceiling.truth);
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&arena);
    fflush(stdout);
}

static void measure(const struct corpus *corpus, size_t domain, struct row rows[ROWS]) {
    struct arena arena = {0};
    memset(rows, 0, ROWS * sizeof *rows);
    for (size_t split = 0; split < SPLITS; split++) {
        const struct places all = domain_shuffled(corpus, domain, split + 1, &arena);
        const struct places training = places_head(all, corpus->training), held = places_tail(all, corpus->training);
        double *score = allocate(&arena, held.n, sizeof *score);
        score_plain(corpus, training, held, split, rows, score);
        score_learned(corpus, training, held, split, rows, score);
    }
    arena_release(&arena);
}

/* The last table: each row's means over all pairs, domain by domain, and the least of them. */
static void print_summary(const struct corpus *corpus, size_t n, const size_t *domains, struct row (*rows)[ROWS]) {
    struct arena arena = {0};
    struct table table;
    const char *heads[TABLE_MAX_COLUMNS] = {"ALL PAIRS"};
    for (size_t d = 0; d < n; d++) {
        const char *words = domain_words(corpus, domains[d], &arena);
        char *head = allocate(&arena, strlen(words) + 2, 1);
        snprintf(head, strlen(words) + 2, ">%s", words);
        heads[d + 1] = head;
    }
    heads[n + 1] = ">LEAST";
    table_init(&table, heads);
    for (size_t r = 0; r < ROWS; r++) {
        double least = 1;
        table_cell(&table, "%s", row_name(r));
        for (size_t d = 0; d < n; d++) {
            least = fmin(least, mean_of(&rows[d][r], 0));
            table_cell(&table, "%.3f", mean_of(&rows[d][r], 0));
        }
        table_cell(&table, "%.3f", least);
    }
    printf("\nAll large domains\n");
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&arena);
}

void table_accuracy(struct corpus *corpus) {
    struct arena arena = {0};
    size_t n = 0, *domains = allocate(&arena, corpus->examples.n_domains, sizeof *domains);
    struct row(*rows)[ROWS] = allocate(&arena, corpus->examples.n_domains, sizeof *rows);
    printf(
        "Pairs of held-out strategies of one domain that a score orders as their measured times do, of all pairs and\n"
        "of those further apart than 2%% and 5%%. Mean and deviation over %d splits, seeds 1 to %d.\n",
        SPLITS, SPLITS);
    for (size_t d = 0; d < corpus->examples.n_domains; d++) {
        if (!domain_is_large(corpus, d))
            continue;
        domains[n] = d;
        measure(corpus, d, rows[n]);
        print_domain(corpus, d, rows[n++]);
    }
    if (n > 0 && n + 2 < TABLE_MAX_COLUMNS)
        print_summary(corpus, n, domains, rows);
    arena_release(&arena);
}
