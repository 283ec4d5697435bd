/* Do learned rankers rank? The tables of `make evaluate`, from recorded trials alone;
 * `bayes` needs none.
 *
 *     evaluate DATASET [--training N] [TABLE...]
 *
 * N trials train where a table trains within one domain (200); a dataset that is still growing wants less. Every
 * random choice comes from fixed seeds: the same dataset gives the same tables, but for the seconds. */
#include "tests/evaluate/evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const struct {
    const char *name;
    void (*print)(struct corpus *corpus);
} TABLES[] = {
    {"accuracy", table_accuracy}, {"transfer", table_transfer}, {"features", table_features}, {"search", table_search},
    {"ablation", table_ablation}, {"bayes", table_bayes},       {"bound", table_bound},
};
enum { N_TABLES = sizeof TABLES / sizeof TABLES[0] };

static void print_usage(void) {
    fprintf(stderr, "usage: evaluate DATASET [--training N] [TABLE...]\ntables:");
    for (size_t i = 0; i < N_TABLES; i++)
        fprintf(stderr, " %s", TABLES[i].name);
    fprintf(stderr, "\n");
}

static void load(struct corpus *corpus, const char *path) {
    struct error err;
    struct store *store;
    size_t skipped, large = 0, enough = 0;
    check(store_open(path, STORE_READ_ONLY, &store, &err), &err);
    check(examples_load(store, &(struct query){0}, &corpus->examples, &skipped, &err), &err);
    noise_estimate(corpus, store);
    constraints_load(corpus, store);
    closed_form_all(corpus);
    store_close(store);
    for (size_t i = 0; i < corpus->examples.n_domains; i++) {
        large += domain_is_large(corpus, i);
        enough += domain_is_enough(corpus, i);
    }
    printf(
        "Corpus: %zu strategies measured in %zu domains (model on cluster), %zu of these with %d or more, %zu large.\n"
        "%zu strategies were measured more than once; %zu trials could not be predicted and are left out.\n",
        corpus->examples.n, corpus->examples.n_domains, enough, LEAST_TRIALS, large, corpus->repeated, skipped);
}

static void run_table(struct corpus *corpus, size_t i) {
    const double start_us = clock_now_us();
    printf("\n== %s ==\n", TABLES[i].name);
    TABLES[i].print(corpus);
    printf("(%s took %.0f s)\n", TABLES[i].name, (clock_now_us() - start_us) * 1e-6);
    fflush(stdout);
}

/* Whether the words are tables' names; which ones in *chosen, all for no word. */
static bool choose(int n, char **words, bool chosen[N_TABLES]) {
    for (size_t i = 0; i < N_TABLES; i++)
        chosen[i] = n == 0;
    for (int w = 0; w < n; w++) {
        size_t i = 0;
        while (i < N_TABLES && strcmp(words[w], TABLES[i].name) != 0)
            i++;
        if (i == N_TABLES)
            return false;
        chosen[i] = true;
    }
    return true;
}

int main(int argc, char **argv) {
    struct corpus corpus = {.training = 200};
    bool chosen[N_TABLES];
    int words = 2;
    if (argc > 3 && strcmp(argv[2], "--training") == 0) {
        corpus.training = (uint32_t)strtoul(argv[3], NULL, 10);
        words = 4;
    }
    if (argc < 2 || corpus.training < 2 || !choose(argc - words > 0 ? argc - words : 0, argv + words, chosen)) {
        print_usage();
        return 2;
    }
    load(&corpus, argv[1]);
    for (size_t i = 0; i < N_TABLES; i++)
        if (chosen[i])
            run_table(&corpus, i);
    examples_release(&corpus.examples);
    arena_release(&corpus.arena);
    return 0;
}
