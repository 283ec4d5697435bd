/* A dataset of 100,000 trials, or as many as SYNCOPATE_BENCH_TRIALS says: how fast trials come in by batches, each
 * synced, and what a page of a query costs, the first and the last of its list. The file lies in TMPDIR and goes away.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dataset/ingest.h"
#include "dataset/query.h"
#include "tests/bench/bench.h"
#include "tests/support/dataset/put.h"

enum { MODELS = 20, CLUSTERS = 30, STRATEGIES = 100000, PER_SESSION = 250, BATCH = 1000, PAGE = 50, ROUNDS = 200 };

static struct id models[MODELS], clusters[CLUSTERS], strategies[STRATEGIES];
static struct error err;

static void must(enum status status) {
    bench_check(status, &err);
}

static void put(struct store *store, enum store_kind kind, const char *word, size_t n, struct id *ids) {
    char name[32], content[64];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s-%zu", word, i % 1000);
        snprintf(content, sizeof content, "{\"%s\":%zu}", word, i);
        must(put_object(store, kind, name, content, &ids[i], &err));
    }
}

static void put_objects(struct store *store) {
    must(store_begin(store, &err));
    put(store, STORE_MODEL, "model", MODELS, models);
    put(store, STORE_CLUSTER, "cluster", CLUSTERS, clusters);
    put(store, STORE_STRATEGY, "strategy", STRATEGIES, strategies);
    must(store_end(store, ST_OK, &err));
}

static double cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Sessions are interleaved, as when twenty teams work at once. */
static struct record make(struct rng *rng, size_t i, char session[32], char queued[32], const double *times,
                          size_t n_times) {
    const size_t s = i / (20 * PER_SESSION) * 20 + i % 20, seconds = i * 30;
    snprintf(session, 32, "session-%zu", s);
    snprintf(queued, 32, "2025-%02zu-%02zuT%02zu:%02zu:%02zu.000Z", 1 + seconds / 2592000 % 12,
             1 + seconds / 86400 % 28, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    const bool complete = rng_uniform(rng) < 0.92;
    const double us = rng_log_between(rng, 2e4, 2e6);
    return (struct record){
        .session = session,
        .seed = rng_next(rng),
        .model = models[s % MODELS].hex,
        .cluster = clusters[s % CLUSTERS].hex,
        .strategy = strategies[rng_below(rng, STRATEGIES)].hex,
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
        .n_iterations = complete ? n_times : 0,
        .iterations_us = times,
    };
}

static void begin_sessions(struct store *store, size_t first, size_t n) {
    char id[32];
    for (size_t s = first; s < first + n; s++) {
        snprintf(id, sizeof id, "session-%zu", s);
        const struct stored_session session = {
            .id = id, .model = models[s % MODELS].hex, .cluster = clusters[s % CLUSTERS].hex, .seed = s};
        must(store_session_begin(store, &session, &err));
    }
}

/* Trials `from` to `to`, PAGE at a time; the median of the iterations is that of the trial. */
static void ingest(struct store *store, struct rng *rng, size_t from, size_t to, size_t batch, size_t n_times) {
    static struct record records[BATCH];
    static char sessions[BATCH][32], stamps[BATCH][32];
    static double times[BATCH][16];
    struct import_report report;
    double *took = calloc((to - from) / batch + 1, sizeof *took), busy = 0, cpu = 0;
    size_t batches = 0;
    for (size_t i = from; i < to; i += batch) {
        if (i % (20 * PER_SESSION) == 0) {
            must(store_begin(store, &err));
            begin_sessions(store, i / PER_SESSION, 20);
            must(store_end(store, ST_OK, &err));
        }
        for (size_t k = 0; k < batch; k++) {
            records[k] = make(rng, i + k, sessions[k], stamps[k], times[k], n_times);
            for (size_t t = 0; t < n_times; t++)
                times[k][t] = records[k].median_us;
        }
        const double start = clock_now_us(), start_cpu = cpu_us();
        must(store_trials_import(store, batch, records, NULL, &report, &err));
        cpu += cpu_us() - start_cpu;
        took[batches] = clock_now_us() - start;
        busy += took[batches++];
    }
    printf(
        "ingest  %7zu trials at %7zu, batches of %4zu, %2zu iterations: %8.0f trials/s, %5.1f µs CPU a trial, median "
        "batch %6.1f ms, longest %6.1f ms\n",
        to - from, from, batch, n_times, (double)(to - from) / busy * 1e6, cpu / (double)(to - from),
        bench_median(batches, took) / 1e3, took[batches - 1] / 1e3);
    free(took);
}

static double percentile(const double *sorted, double p) {
    return sorted[(size_t)(p * (ROUNDS - 1))] / 1e3;
}

/* ROUNDS times the same page: sorted times in µs. */
static void time_page(struct store *store, const struct query *query, double *out) {
    struct arena arena = {0};
    char next[QUERY_CURSOR_ROOM];
    for (size_t i = 0; i < ROUNDS; i++) {
        struct record *records;
        size_t n;
        const double start = clock_now_us();
        must(query_page(store, query, &arena, &n, &records, next, &err));
        out[i] = clock_now_us() - start;
        arena_clear(&arena);
    }
    bench_median(ROUNDS, out);
    arena_release(&arena);
}

/* The cursor before the last page: the first page of the list walked the other way ends there. */
static bool last_page(struct store *store, const struct query *query, char cursor[QUERY_CURSOR_ROOM]) {
    struct arena arena = {0};
    struct query back = *query;
    struct record *records;
    size_t n;
    back.descending = !query->descending;
    back.limit = PAGE + 1;
    if (query->order == QUERY_BY_measured) /* those without a value come last either way */
        back.filter = query->filter ? "state = complete" : back.filter;
    must(query_collect(store, &back, &arena, &n, &records, &err));
    if (n > PAGE)
        must(query_cursor(query, &records[PAGE], cursor, &err));
    arena_release(&arena);
    return n > PAGE;
}

static void bench_query(struct store *store, const char *name, struct query query) {
    double first[ROUNDS], last[ROUNDS];
    char cursor[QUERY_CURSOR_ROOM];
    uint64_t n;
    query.limit = PAGE;
    must(query_count(store, &query, &n, &err));
    time_page(store, &query, first);
    if (last_page(store, &query, cursor))
        query.after = cursor;
    time_page(store, &query, last);
    printf("query   %-44s %8llu trials, page of %d: first p50 %6.2f p99 %6.2f ms, last p50 %6.2f p99 %6.2f ms\n", name,
           (unsigned long long)n, PAGE, percentile(first, 0.5), percentile(first, 0.99), percentile(last, 0.5),
           percentile(last, 0.99));
}

static void bench_queries(struct store *store) {
    static const enum record_state failed = RECORD_FAILED, complete = RECORD_COMPLETE;
    bench_query(store, "all, newest", (struct query){.descending = true});
    bench_query(store, "all, fastest", (struct query){.order = QUERY_BY_measured, .filter = "state = complete"});
    bench_query(store, "team vision's view, newest", (struct query){.descending = true, .viewer = "vision"});
    bench_query(store, "model, newest", (struct query){.model = "model-3", .descending = true});
    bench_query(store, "model and cluster, newest",
                (struct query){.model = "model-3", .cluster = "cluster-3", .descending = true});
    bench_query(
        store, "model and cluster, fastest",
        (struct query){.filter = "model=model-3 and cluster=cluster-3 and state=complete", .order = QUERY_BY_measured});
    bench_query(store, "cluster, newest", (struct query){.cluster = "cluster-7", .descending = true});
    bench_query(store, "strategy by id, fastest",
                (struct query){.strategy = strategies[42].hex, .order = QUERY_BY_measured});
    bench_query(store, "session, by number", (struct query){.session = "session-77", .order = QUERY_BY_number});
    bench_query(store, "session and complete, fastest",
                (struct query){.session = "session-77", .state = &complete, .order = QUERY_BY_measured});
    bench_query(store, "failed, newest", (struct query){.state = &failed, .descending = true});
    bench_query(store, "team speech, newest", (struct query){.filter = "team = speech", .descending = true});
    bench_query(store, "filter without an index, newest",
                (struct query){.filter = "(measured_us < 90000 OR proposer = byteps) AND NOT runner = lab",
                               .descending = true});
}

static void bench_open(const char *path) {
    double took[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        struct store *reader;
        const double start = clock_now_us();
        must(store_open(path, STORE_READ_ONLY, &reader, &err));
        took[i] = clock_now_us() - start;
        store_close(reader);
    }
    bench_median(ROUNDS, took);
    printf("open    a reader beside the writer: p50 %.3f ms, p99 %.3f ms\n", percentile(took, 0.5),
           percentile(took, 0.99));
}

static void bench_get(struct store *store) {
    enum { GETS = 100000 };
    struct arena arena = {0};
    struct stored_object object;
    const double start = clock_now_us();
    for (size_t i = 0; i < GETS; i++) {
        must(store_get(store, STORE_STRATEGY, strategies[i * 7919 % STRATEGIES].hex, &arena, &object, &err));
        arena_clear(&arena);
    }
    printf("get     a strategy by its id: %.0f/s\n", GETS / (clock_now_us() - start) * 1e6);
    arena_release(&arena);
}

int main(void) {
    const char *wanted = getenv("SYNCOPATE_BENCH_TRIALS"), *folder = getenv("TMPDIR");
    const size_t n = wanted ? strtoul(wanted, NULL, 10) / (20 * PER_SESSION) * (20 * PER_SESSION) : 100000;
    char path[512], side[600];
    struct rng rng;
    struct store *writer, *reader;
    struct stat at;
    setvbuf(stdout, NULL, _IOLBF, 0);
    rng_seed(&rng, 1);
    snprintf(path, sizeof path, "%s/bench-dataset-%ld.db", folder ? folder : "/tmp", (long)getpid());
    must(store_open(path, STORE_READ_WRITE, &writer, &err));
    put_objects(writer);
    ingest(writer, &rng, 0, n / 10, BATCH, 0);
    ingest(writer, &rng, n / 10, n, BATCH, 0);
    ingest(writer, &rng, n, n + 10000, 500, 0);
    ingest(writer, &rng, n + 10000, n + 20000, BATCH, 10);
    must(store_open(path, STORE_READ_ONLY, &reader, &err));
    bench_open(path);
    bench_get(reader);
    bench_queries(reader);
    if (stat(path, &at) == 0)
        printf("file    %.0f bytes a trial\n", (double)at.st_size / (double)(n + 20000));
    store_close(reader);
    store_close(writer);
    static const char *const tails[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(side, sizeof side, "%s%s", path, tails[i]);
        unlink(side);
    }
    return 0;
}
