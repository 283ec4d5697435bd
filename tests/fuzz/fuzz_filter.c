/* Filters as clients send them: what is taken must become SQL that SQLite prepares and runs over a small dataset, what
 * is refused must say where. The first bytes choose order and direction. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataset/filter.h"
#include "dataset/query.h"
#include "tests/fuzz/require.h"
#include "tests/support/dataset/put.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char path[64];
static struct store *store;

static void leave(void) {
    static const char *const tails[] = {"", "-wal", "-shm", ".lock"};
    char side[80];
    store_close(store);
    for (size_t i = 0; i < 4; i++) {
        snprintf(side, sizeof side, "%s%s", path, tails[i]);
        unlink(side);
    }
}

/* One trial of one model is enough for every path. */
static void open_store(void) {
    struct error err = {0};
    struct id model, cluster, strategy;
    int64_t trial;
    snprintf(path, sizeof path, "/tmp/fuzz-filter-%ld.db", (long)getpid());
    require(store_open(path, STORE_READ_WRITE, &store, &err) == ST_OK, ERROR_TEXT(&err));
    atexit(leave);
    require(put_object(store, STORE_MODEL, "m", "{}", &model, &err) == ST_OK, ERROR_TEXT(&err));
    require(put_object(store, STORE_CLUSTER, "c", "{}", &cluster, &err) == ST_OK, ERROR_TEXT(&err));
    require(put_object(store, STORE_STRATEGY, "s", "{}", &strategy, &err) == ST_OK, ERROR_TEXT(&err));
    const struct new_trial request = {.model = model.hex,
                                      .cluster = cluster.hex,
                                      .strategy = strategy.hex,
                                      .proposer = "p",
                                      .runner = "r",
                                      .predicted_us = 5};
    require(store_trial_begin(store, &request, &trial, &err) == ST_OK, ERROR_TEXT(&err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    struct arena arena = {0};
    struct record *records;
    size_t found;
    if (!store)
        open_store();
    if (n < 1)
        return 0;
    char *text = malloc(n);
    if (!text)
        return 0;
    memcpy(text, data + 1, n - 1);
    text[n - 1] = '\0';
    const enum status checked = filter_check(text, &err);
    require(checked == ST_OK || (checked == ST_USAGE && !strncmp(ERROR_TEXT(&err), "filter: ", 8)),
            "a refusal says where");
    const struct query query = {
        .filter = text, .order = (enum query_order)(data[0] % QUERY_ORDER_COUNT), .descending = data[0] & 128};
    const enum status run = query_collect(store, &query, &arena, &found, &records, &err);
    require(*text ? run == checked : run == ST_OK, "what is a filter can be run, and nothing else");
    arena_release(&arena);
    free(text);
    return 0;
}
