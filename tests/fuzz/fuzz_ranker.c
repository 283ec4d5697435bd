/* Text into the ranker reader. What is accepted scores strategies without harm, and is written, read and written again
 * without a change. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/learned/ranker.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Two variables, three rows, an edge. */
static void score(const struct ranker *ranker) {
    static double shards[3 * FEATURE_SHARD_COUNT], weight[3] = {1, 2, 1};
    static uint32_t variable[3] = {0, 0, 1};
    static struct feature_edge edge = {0, 1};
    struct features f = {.n_variables = 2,
                         .n_shards = 3,
                         .shards = shards,
                         .variable = variable,
                         .weight = weight,
                         .n_edges = 1,
                         .edges = &edge,
                         .partitions = 4,
                         .timeline_us = 1000};
    double out;
    struct error err;
    for (size_t i = 0; i < FEATURE_GLOBAL_COUNT; i++)
        f.global[i] = (double)(i % 7);
    (void)!ranker_score(ranker, &f, &out, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct ranker *ranker, *again = NULL;
    struct error err;
    char *text = malloc(n + 1);
    require(text != NULL, "memory");
    memcpy(text, data, n);
    text[n] = 0;
    if (!ranker_read(text, &ranker, &err)) {
        score(ranker);
        char *first = ranker_write(ranker);
        require(first && !ranker_read(first, &again, &err), "what was written is read");
        char *second = ranker_write(again);
        require(second && !strcmp(first, second), "and written again without a change");
        free(first);
        free(second);
        ranker_free(again);
        ranker_free(ranker);
    }
    free(text);
    return 0;
}
