/* See dataset.h. The strategies are the same in every run, so they are made again rather than read back. */
#include "tests/load/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"
#include "dataset/describe.h"
#include "dataset/ingest.h"
#include "dataset/query.h"
#include "strategy/space/space.h"

enum { PER_SESSION = 250, AT_ONCE = 20, BATCH = 1000 };

static struct error err;

static void must(enum status status) {
    if (!status)
        return;
    fprintf(stderr, "load: %s\n", ERROR_TEXT(&err));
    exit(1);
}

/* ---- descriptions ---- */

static cJSON *parse(const char *text) {
    cJSON *json = NULL;
    must(json_parse(text, strlen(text), "load", &json, &err));
    return json;
}

static void make_model(size_t i, struct model *out) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"schema\":\"syncopate.model/1\",\"name\":\"small-%zu\",\"batch_per_device\":8,\"variables\":["
             "{\"name\":\"a\",\"shape\":[64,64]},{\"name\":\"b\",\"shape\":[256,256]}],\"layers\":["
             "{\"name\":\"l1\",\"forward_us\":%zu,\"backward_us\":4000,\"variables\":[\"a\"]},"
             "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\"]}]}",
             i, 1000 + i);
    cJSON *json = parse(text);
    must(model_read(json, "load", out, &err));
    cJSON_Delete(json);
}

static void make_cluster(size_t i, struct cluster *out) {
    char text[256];
    snprintf(text, sizeof text,
             "{\"schema\":\"syncopate.cluster/1\",\"name\":\"nodes-%zu\",\"nodes\":[{\"name\":\"n\",\"count\":%zu,"
             "\"nic_gbit_per_s\":1,\"nic_latency_us\":50}]}",
             i + 2, i + 2);
    cJSON *json = parse(text);
    must(cluster_read(json, "load", out, &err));
    cJSON_Delete(json);
}

static void make_strategy(size_t i, const struct model *model, const struct cluster *cluster, struct strategy *out) {
    char text[512];
    snprintf(
        text, sizeof text,
        "{\"schema\":\"syncopate.strategy/1\",\"name\":\"ring-%zu\",\"schedule\":{\"policy\":\"fifo\"},\"groups\":[{"
        "\"id\":0,\"algorithm\":\"ring\",\"partition_bytes\":%zu}],\"variables\":[{\"name\":\"a\",\"sync\":{"
        "\"kind\":\"all_reduce\",\"group\":0}},{\"name\":\"b\",\"sync\":{\"kind\":\"all_reduce\",\"group\":0}}]}",
        i, 1024 * (i + 1));
    cJSON *json = parse(text);
    must(strategy_read(json, "load", model, cluster, out, &err));
    cJSON_Delete(json);
}

/* `store` NULL: only their names. */
static void small_ones(struct store *store, struct dataset_names *names) {
    struct model model;
    struct cluster cluster;
    for (size_t i = DATASET_MODELS; i-- > 0; i ? model_release(&model) : (void)0) {
        make_model(i, &model);
        names->models[i] = model.id;
        must(store ? store_put_model(store, &model, &err) : ST_OK);
    }
    for (size_t i = DATASET_CLUSTERS; i-- > 0; i ? cluster_release(&cluster) : (void)0) {
        make_cluster(i, &cluster);
        names->clusters[i] = cluster.id;
        must(store ? store_put_cluster(store, &cluster, &err) : ST_OK);
    }
    for (size_t i = 0; i < DATASET_SMALL; i++) {
        struct strategy strategy;
        make_strategy(i, &model, &cluster, &strategy);
        names->small[i] = strategy.id;
        must(store ? store_put_strategy(store, &strategy, &model, &cluster, &err) : ST_OK);
        strategy_release(&strategy);
    }
    model_release(&model);
    cluster_release(&cluster);
}

static void big_ones(struct store *store, struct dataset_names *names) {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct rng rng;
    const struct space_options options = space_default_options();
    must(model_read_file("examples/models/resnet50.json", &model, &err));
    must(cluster_read_file("examples/clusters/lab-4x1g.json", &cluster, &err));
    must(space_init(&space, &model, &cluster, &options, &err));
    snprintf(names->big_model, sizeof names->big_model, "%s", model.name);
    snprintf(names->big_cluster, sizeof names->big_cluster, "%s", cluster.name);
    must(store ? store_put_model(store, &model, &err) : ST_OK);
    must(store ? store_put_cluster(store, &cluster, &err) : ST_OK);
    rng_seed(&rng, 2);
    for (size_t i = 0; i < DATASET_BIG; i++) {
        struct strategy strategy;
        must(space_sample_guided(&space, &rng, &strategy, &err));
        names->big[i] = strategy.id;
        must(store ? store_put_strategy(store, &strategy, &model, &cluster, &err) : ST_OK);
        strategy_release(&strategy);
    }
    space_release(&space);
    model_release(&model);
    cluster_release(&cluster);
}

static void make_objects(struct store *store, struct dataset_names *names) {
    small_ones(store, names);
    big_ones(store, names);
}

/* ---- trials ---- */

/* Sessions are interleaved, as when twenty teams work at once. */
static struct record make_trial(struct rng *rng, const struct dataset_names *names, size_t i, char session[32],
                                char queued[32]) {
    const size_t s = i / DATASET_ROUND * AT_ONCE + i % AT_ONCE, seconds = i * 30;
    snprintf(session, 32, "session-%zu", s);
    snprintf(queued, 32, "2025-%02zu-%02zuT%02zu:%02zu:%02zu.000Z", 1 + seconds / 2592000 % 12,
             1 + seconds / 86400 % 28, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    const bool complete = rng_uniform(rng) < 0.92;
    const double us = rng_log_between(rng, 2e4, 2e6);
    return (struct record){
        .session = session,
        .seed = s,
        .model = names->models[s % DATASET_MODELS].hex,
        .cluster = names->clusters[s % DATASET_CLUSTERS].hex,
        .strategy = names->small[rng_below(rng, DATASET_SMALL)].hex,
        .proposer = "neighbour",
        .runner = "mpirun",
        .state = complete ? RECORD_COMPLETE : RECORD_FAILED,
        .reason = complete ? NULL : "rank 3 exited with status 1",
        .queued = queued,
        .started = queued,
        .ended = queued,
        .predicted_us = us * rng_between(rng, 0.8, 1.2),
        .mean_us = complete ? us * 1.01 : (double)NAN,
        .median_us = complete ? us : (double)NAN,
        .low_us = complete ? us * 0.99 : (double)NAN,
        .high_us = complete ? us * 1.02 : (double)NAN,
        .environment_json = "{\"cpu\":\"some\",\"host\":\"node17\",\"kernel\":\"6.1\",\"mpi\":\"4.1\"}",
        .team = s % 5 ? "vision" : "speech",
        .shared = s % 7 ? "*" : "",
    };
}

static void begin_sessions(struct store *store, const struct dataset_names *names, size_t first) {
    char id[32];
    for (size_t s = first; s < first + AT_ONCE; s++) {
        snprintf(id, sizeof id, "session-%zu", s);
        const struct stored_session session = {.id = id,
                                               .model = names->models[s % DATASET_MODELS].hex,
                                               .cluster = names->clusters[s % DATASET_CLUSTERS].hex,
                                               .seed = s,
                                               .budget = "{\"trials\":250}"};
        must(store_session_begin(store, &session, &err));
        must(store_session_update(store, id, STORED_SESSION_DONE, "the trials are used up", &err));
    }
}

/* One transaction a round: the file is only kept when it is whole. */
static void make_round(struct store *store, struct rng *rng, const struct dataset_names *names, size_t from) {
    static struct record records[BATCH];
    static char sessions[BATCH][32], stamps[BATCH][32];
    struct import_report report;
    must(store_begin(store, &err));
    begin_sessions(store, names, from / PER_SESSION);
    for (size_t i = from; i < from + DATASET_ROUND; i += BATCH) {
        for (size_t k = 0; k < BATCH; k++)
            records[k] = make_trial(rng, names, i + k, sessions[k], stamps[k]);
        must(store_trials_import(store, BATCH, records, NULL, &report, &err));
    }
    must(store_end(store, ST_OK, &err));
}

void dataset_fill(const char *path, size_t n, struct dataset_names *out) {
    struct store *store;
    struct rng rng;
    rng_seed(&rng, 1);
    must(store_open(path, STORE_READ_WRITE, &store, &err));
    must(store_begin(store, &err));
    make_objects(store, out);
    must(store_end(store, ST_OK, &err));
    for (size_t i = 0; i < n; i += DATASET_ROUND)
        make_round(store, &rng, out, i);
    store_close(store);
}

void dataset_make(const char *path, size_t n, struct dataset_names *out) {
    char half[4096];
    if (access(path, F_OK) == 0) {
        make_objects(NULL, out);
        return;
    }
    fprintf(stderr, "making %s with %zu trials\n", path, n);
    snprintf(half, sizeof half, "%s.half", path);
    unlink(half);
    dataset_fill(half, n, out);
    if (rename(half, path)) {
        perror(path);
        exit(1);
    }
}

void dataset_last_page(const char *path, const char *filter, const char *order, size_t page_size, char out[64]) {
    struct arena arena = {0};
    struct store *store;
    struct record *records;
    size_t n;
    struct query query = {.filter = filter, .descending = *order == '-'};
    query_order_parse(order + query.descending, &query.order);
    struct query back = query;
    back.descending = !query.descending;
    back.limit = page_size + 1;
    must(store_open(path, STORE_READ_ONLY, &store, &err));
    must(query_collect(store, &back, &arena, &n, &records, &err));
    out[0] = '\0';
    if (n > page_size)
        must(query_cursor(&query, &records[page_size], out, &err));
    store_close(store);
    arena_release(&arena);
}
