/* See metrics.h. A row of atomic counters a route: one for each status that the service gives, and the cumulative
 * histogram of durations, which Prometheus wants with bounds in seconds. */
#include "service/http/transport/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "dataset/usage.h"
#include "service/http/transport/route.h"
#include "service/hub.h"

static const double bounds_s[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};
enum { BUCKETS = sizeof bounds_s / sizeof *bounds_s, LOWEST_STATUS = 200, STATUSES = 320 };

struct row {
    atomic_uint_fast64_t statuses[STATUSES];
    atomic_uint_fast64_t buckets[BUCKETS + 1], sum_ns;
};

struct metrics {
    size_t n_routes;
    const struct route *routes;
    struct row *rows; /* n_routes and one for what matched none */
    atomic_uint_fast64_t bytes_in, bytes_out, records;
    atomic_int gauges[METRICS_GAUGES];
    atomic_uint_fast64_t counters[METRICS_COUNTERS];
    double started;
};

struct metrics *metrics_new(size_t n_routes, const struct route *routes) {
    struct metrics *m = calloc(1, sizeof *m);
    if (m && !(m->rows = calloc(n_routes + 1, sizeof *m->rows))) {
        free(m);
        return NULL;
    }
    if (m) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        m->n_routes = n_routes;
        m->routes = routes;
        m->started = (double)now.tv_sec;
    }
    return m;
}

void metrics_free(struct metrics *m) {
    if (m)
        free(m->rows);
    free(m);
}

static void add(atomic_uint_fast64_t *counter, uint64_t by) {
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

void metrics_count(struct metrics *m, const struct route *route, unsigned status, double seconds, uint64_t bytes_in,
                   uint64_t bytes_out) {
    struct row *row = &m->rows[route ? (size_t)(route - m->routes) : m->n_routes];
    size_t bucket = 0;
    while (bucket < BUCKETS && seconds > bounds_s[bucket])
        bucket++;
    if (status >= LOWEST_STATUS && status < LOWEST_STATUS + STATUSES)
        add(&row->statuses[status - LOWEST_STATUS], 1);
    add(&row->buckets[bucket], 1);
    add(&row->sum_ns, (uint64_t)(seconds * 1e9));
    add(&m->bytes_in, bytes_in);
    add(&m->bytes_out, bytes_out);
}

void metrics_add(struct metrics *m, enum metrics_gauge gauge, int by) {
    atomic_fetch_add_explicit(&m->gauges[gauge], by, memory_order_relaxed);
}

void metrics_increment(struct metrics *m, enum metrics_counter counter) {
    add(&m->counters[counter], 1);
}

void metrics_add_records(struct metrics *m, uint64_t n) {
    add(&m->records, n);
}

static uint64_t get(const atomic_uint_fast64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void write_head(FILE *out, const char *name, const char *type, const char *help) {
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* `route="GET /api/v1/models"`: patterns hold no character that would need an escape. */
static void write_route(FILE *out, const struct metrics *m, size_t i) {
    if (i == m->n_routes)
        fprintf(out, "route=\"none\"");
    else
        fprintf(out, "route=\"%s %s\"", m->routes[i].method, m->routes[i].pattern);
}

static void write_requests(FILE *out, const struct metrics *m) {
    write_head(out, "syncopate_http_requests_total", "counter", "Answered requests by route and status.");
    for (size_t i = 0; i <= m->n_routes; i++)
        for (unsigned s = 0; s < STATUSES; s++) {
            uint64_t n = get(&m->rows[i].statuses[s]);
            if (!n)
                continue;
            fprintf(out, "syncopate_http_requests_total{");
            write_route(out, m, i);
            fprintf(out, ",status=\"%u\"} %" PRIu64 "\n", s + LOWEST_STATUS, n);
        }
}

static void write_durations(FILE *out, const struct metrics *m) {
    static const char name[] = "syncopate_http_request_duration_seconds";
    write_head(out, name, "histogram", "From the last byte of the headers to the last byte of the answer.");
    for (size_t i = 0; i <= m->n_routes; i++) {
        uint64_t below[BUCKETS + 1], sum = 0;
        for (size_t b = 0; b <= BUCKETS; b++)
            below[b] = sum += get(&m->rows[i].buckets[b]);
        if (!sum)
            continue;
        for (size_t b = 0; b <= BUCKETS; b++) {
            fprintf(out, "%s_bucket{", name);
            write_route(out, m, i);
            if (b < BUCKETS)
                fprintf(out, ",le=\"%g\"} %" PRIu64 "\n", bounds_s[b], below[b]);
            else
                fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", below[b]);
        }
        fprintf(out, "%s_sum{", name);
        write_route(out, m, i);
        fprintf(out, "} %.9g\n%s_count{", (double)get(&m->rows[i].sum_ns) * 1e-9, name);
        write_route(out, m, i);
        fprintf(out, "} %" PRIu64 "\n", sum);
    }
}

static void write_process(FILE *out, const struct metrics *m) {
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    write_head(out, "process_cpu_seconds_total", "counter", "Processor time of the process.");
    fprintf(out, "process_cpu_seconds_total %.3f\n", (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9);
    write_head(out, "process_start_time_seconds", "gauge", "When the service started.");
    fprintf(out, "process_start_time_seconds %.0f\n", m->started);
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm && fscanf(statm, "%*d %ld", &pages) == 1) {
        write_head(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
        fprintf(out, "process_resident_memory_bytes %ld\n", pages * sysconf(_SC_PAGESIZE));
    }
    if (statm)
        fclose(statm);
    write_head(out, "syncopate_build_info", "gauge", "The version, as a label.");
    fprintf(out, "syncopate_build_info{version=\"%s\"} 1\n", SYNCOPATE_VERSION);
}

void metrics_write(struct metrics *m, FILE *out) {
    static const struct {
        const char *name, *help;
    } gauges[METRICS_GAUGES] = {
        [METRICS_CONNECTIONS] = {"syncopate_http_connections", "Open connections."},
        [METRICS_IN_FLIGHT] = {"syncopate_http_requests_in_flight", "Requests being answered."},
        [METRICS_STREAMS] = {"syncopate_http_event_streams", "Open streams of events."},
    };
    static const struct {
        const char *name, *help;
    } counters[METRICS_COUNTERS] = {
        [METRICS_DEADLINES] = {"syncopate_http_deadlines_total", "Connections cut because they were slow."},
        [METRICS_REFUSED] = {"syncopate_http_refused_total", "Requests refused for ambiguous framing."},
        [METRICS_OVERLOADS] = {"syncopate_http_overloads_total", "Requests refused because the queue was full."},
    };
    write_requests(out, m);
    write_durations(out, m);
    for (size_t i = 0; i < METRICS_GAUGES; i++) {
        write_head(out, gauges[i].name, "gauge", gauges[i].help);
        fprintf(out, "%s %d\n", gauges[i].name, atomic_load(&m->gauges[i]));
    }
    for (size_t i = 0; i < METRICS_COUNTERS; i++) {
        write_head(out, counters[i].name, "counter", counters[i].help);
        fprintf(out, "%s %" PRIu64 "\n", counters[i].name, get(&m->counters[i]));
    }
    write_head(out, "syncopate_http_received_bytes_total", "counter", "Bytes of request bodies.");
    fprintf(out, "syncopate_http_received_bytes_total %" PRIu64 "\n", get(&m->bytes_in));
    write_head(out, "syncopate_http_sent_bytes_total", "counter", "Bytes of answers' bodies.");
    fprintf(out, "syncopate_http_sent_bytes_total %" PRIu64 "\n", get(&m->bytes_out));
    write_head(out, "syncopate_records_added_total", "counter", "Trials that were added as records.");
    fprintf(out, "syncopate_records_added_total %" PRIu64 "\n", get(&m->records));
    write_process(out, m);
}

void metrics_write_held(uint64_t bytes, FILE *out) {
    write_head(out, "syncopate_http_held_bytes", "gauge", "What requests hold as bodies and answers.");
    fprintf(out, "syncopate_http_held_bytes %" PRIu64 "\n", bytes);
}

/* ---- what the service does ---- */

static void write_sessions(FILE *out, struct service *service) {
    static const char name[] = "syncopate_sessions";
    uint64_t counts[STORED_SESSION_STATE_COUNT];
    struct error err;
    struct store *store;
    if (access_read(service->access, &store, &err) || store_session_counts(store, counts, &err)) {
        log_error("metrics: %s", ERROR_TEXT(&err));
        return;
    }
    write_head(out, name, "gauge", "Sessions in the dataset by state.");
    for (size_t i = 0; i < STORED_SESSION_STATE_COUNT; i++)
        fprintf(out, "%s{state=\"%s\"} %" PRIu64 "\n", name, stored_session_state_word((enum stored_session_state)i),
                counts[i]);
}

static void write_in_memory(FILE *out, struct service *service) {
    write_head(out, "syncopate_sessions_in_memory", "gauge",
               "Sessions in memory: in use, or used within the last minute.");
    fprintf(out, "syncopate_sessions_in_memory %zu\n", hub_in_memory(service->hub));
}

static void write_trials(FILE *out, struct service *service) {
    static const char name[] = "syncopate_trials_total";
    static const char *const words[] = {
        [HUB_COMPLETE] = "complete",   [HUB_FAILED] = "failed", [HUB_INFEASIBLE] = "infeasible",
        [HUB_CANCELLED] = "cancelled", [HUB_LOST] = "lost",     [HUB_RETURNED] = NULL};
    uint64_t ends[HUB_ENDS];
    hub_ends(service->hub, ends);
    write_head(out, name, "counter", "Trials of sessions that ended, by how.");
    for (size_t i = 0; i < HUB_ENDS; i++)
        if (words[i])
            fprintf(out, "%s{state=\"%s\"} %" PRIu64 "\n", name, words[i], ends[i]);
    write_head(out, "syncopate_trials_returned_total", "counter",
               "Trials that were given back or whose lease ran out, and which were offered again.");
    fprintf(out, "syncopate_trials_returned_total %" PRIu64 "\n", ends[HUB_RETURNED]);
}

static void write_dataset(FILE *out, struct service *service) {
    const char *dataset = access_path(service->access);
    char log[4200];
    struct stat file, wal = {0};
    struct statvfs disk;
    snprintf(log, sizeof log, "%.4096s-wal", dataset);
    if (stat(log, &wal))
        wal.st_size = 0;
    if (!stat(dataset, &file)) {
        write_head(out, "syncopate_dataset_bytes", "gauge", "The dataset's file and its write-ahead log.");
        fprintf(out, "syncopate_dataset_bytes %lld\n", (long long)file.st_size + (long long)wal.st_size);
    }
    if (!statvfs(dataset, &disk)) {
        write_head(out, "syncopate_dataset_free_bytes", "gauge", "What its disk has room for.");
        fprintf(out, "syncopate_dataset_free_bytes %llu\n", (unsigned long long)disk.f_bavail * disk.f_frsize);
    }
}

static void write_tokens(FILE *out, struct service *service) {
    static const char name[] = "syncopate_tokens_unreadable_total";
    write_head(out, name, "counter", "How often the file of tokens became unreadable, so that nobody was let in.");
    fprintf(out, "%s %" PRIu64 "\n", name, tokens_faults(service->tokens));
}

/* Names of teams hold no character that would need an escape. */
static void write_usage(FILE *out, struct service *service, const char *team) {
    struct arena arena = {0};
    struct usage *used;
    struct error err;
    struct store *store;
    size_t n;
    if (access_read(service->access, &store, &err) || usage_list(store, team, &arena, &n, &used, &err)) {
        log_error("metrics: %s", ERROR_TEXT(&err));
        n = 0;
    }
    write_head(out, "syncopate_team_rows", "gauge", "Rows in the dataset because of a team; --team-rows bounds them.");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "syncopate_team_rows{team=\"%s\"} %" PRId64 "\n", used[i].team, used[i].rows);
    write_head(out, "syncopate_team_bytes", "gauge", "Bytes by which a team made the dataset grow (--team-bytes).");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "syncopate_team_bytes{team=\"%s\"} %" PRId64 "\n", used[i].team, used[i].bytes);
    arena_release(&arena);
}

void metrics_write_service(struct service *service, const char *team, FILE *out) {
    write_usage(out, service, team);
    write_tokens(out, service);
    write_sessions(out, service);
    write_in_memory(out, service);
    write_trials(out, service);
    write_dataset(out, service);
}
