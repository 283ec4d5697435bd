/* The service under load: a real server on 127.0.0.1 with a dataset of a million trials, and one client on the same
 * machine. Prints one table: throughput, times and errors of each kind of request, each beside its goal, and what
 * memory the server has before and after a soak of mixed traffic. Server and client share the machine's cores; times
 * are the client's. With --postgresql a second server, over a dataset with the same trials at that address, takes its
 * turn in each row. The table says what processor time one unit took in the server, in the client and, with --database,
 * in PostgreSQL, whose first process that is. PostgreSQL's memory is not counted.
 *
 *     load [--trials N] [--seconds S] [--soak S] [--folder DIR] [--only WORD] [--postgresql ADDRESS --database PID]
 *          PROGRAM
 *     load [--trials N] --fill ADDRESS                       put the trials there, and end */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/load/dataset.h"
#include "tests/load/load.h"

enum {
    MOST_CONNECTIONS = 64,
    BATCH = 500,
    BODIES = 64,
    A_SESSION = 250,
    PAGE = 50,
    PREDICTED = 100,
    CLIENTS = 4,
    PATH_ROOM = 512
};

static struct {
    double seconds, soak_s;
    size_t trials;
    long database; /* PostgreSQL's first process; 0: none */
    const char *folder, *only, *postgresql, *fill, *program;
} options = {.seconds = 10, .soak_s = 60, .trials = 1000000, .folder = "build/load"};

static struct dataset_names names;
static struct rng rng;
static struct server {
    const char *engine, *dataset;
    uint16_t port;
    pid_t pid;
} servers[2], *server = servers; /* the first is over a file; `server` is the one that has its turn */
static size_t n_servers;
static uint64_t all_errors;

static void die(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    for (size_t i = 0; i < n_servers; i++)
        kill(servers[i].pid, SIGTERM);
    exit(1);
}

/* ---- the servers ---- */

static void start_server(const char *engine, const char *dataset) {
    int ends[2];
    char line[256];
    if (pipe2(ends, O_CLOEXEC))
        die("pipe");
    server = &servers[n_servers];
    *server = (struct server){.engine = engine, .dataset = dataset, .pid = fork()};
    if (server->pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(options.program, options.program, "serve", "--open", "--listen", "127.0.0.1:0", "--no-access-log",
              "--dataset", dataset, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (server->pid < 0 || !from || !fgets(line, sizeof line, from))
        die("the server did not start");
    fclose(from);
    server->port = (uint16_t)atoi(strrchr(line, ':') + 1);
    n_servers++;
}

static void stop_servers(void) {
    for (; n_servers > 0; n_servers--) {
        kill(servers[n_servers - 1].pid, SIGTERM);
        waitpid(servers[n_servers - 1].pid, NULL, 0);
    }
}

/* The next server that has its turn; false after the last. */
static bool next_turn(bool *begun) {
    server = *begun ? server + 1 : servers;
    *begun = true;
    return server < servers + n_servers;
}

/* What the server has of its own, in MiB. */
static double server_mib(void) {
    char path[64], line[256];
    double kib = NAN;
    snprintf(path, sizeof path, "/proc/%d/status", (int)server->pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "RssAnon:", 8))
            kib = strtod(line + 8, NULL);
    if (file)
        fclose(file);
    return kib / 1024;
}

/* Processor time that was used, in microseconds: of the server, of this client, and of PostgreSQL's processes. */
struct used {
    double server_us, client_us, database_us;
};

static double process_us(pid_t pid) {
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
        die("a process's clock");
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

/* Of one process of PostgreSQL, and of those of its children that have ended; 0 for processes of others. */
static double ticks_of(const char *pid) {
    char path[64], line[1024] = "";
    long parent;
    unsigned long used[2];
    long ended[2];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "r");
    const bool read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    const char *at = read ? strrchr(line, ')') : NULL; /* a name may hold anything */
    if (!at || sscanf(at, ") %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &parent, &used[0], &used[1],
                      &ended[0], &ended[1]) != 5)
        return 0;
    const bool own = atol(pid) == options.database || parent == options.database;
    return own ? (double)used[0] + (double)used[1] + (double)ended[0] + (double)ended[1] : 0;
}

static double database_us(void) {
    double ticks = 0;
    DIR *processes = options.database ? opendir("/proc") : NULL;
    for (const struct dirent *entry; processes && (entry = readdir(processes));)
        if (atol(entry->d_name) > 0)
            ticks += ticks_of(entry->d_name);
    if (processes)
        closedir(processes);
    return ticks * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

static struct used used_now(void) {
    return (struct used){process_us(server->pid), process_us(getpid()), server == servers ? 0 : database_us()};
}

static struct used used_since(struct used before) {
    const struct used now = used_now();
    return (struct used){now.server_us - before.server_us, now.client_us - before.client_us,
                         now.database_us - before.database_us};
}

/* ---- the table ---- */

static void print_head(void) {
    printf("%-58s %-10s %9s %9s %9s %9s %9s %9s %9s %6s  %s\n", "WHAT", "DATASET", "A SECOND", "SERVER US", "CLIENT US",
           "DB US", "P50 MS", "P99 MS", "MAX MS", "ERRORS", "GOAL");
}

/* `each` is how many things a unit counts as, `used` what was used for them all; goals of 0 are none. */
static void print_row(const char *what, const struct load_result *r, struct used used, double each, const char *thing,
                      double goal_per_s, double goal_p99_ms) {
    const double n = (double)r->units * each, per_s = n / r->seconds;
    printf("%-58s %-10s %9.0f %9.1f %9.1f %9.1f %9.3f %9.3f %9.3f %6lu ", what, server->engine, per_s,
           used.server_us / n, used.client_us / n, used.database_us / n, r->p50_ms, r->p99_ms, r->max_ms,
           (unsigned long)r->errors);
    if (goal_per_s > 0)
        printf(" >= %.0f %s/s: %s", goal_per_s, thing, per_s >= goal_per_s ? "met" : "missed");
    if (goal_p99_ms > 0)
        printf(" p99 <= %g ms: %s", goal_p99_ms, r->p99_ms <= goal_p99_ms ? "met" : "missed");
    printf("\n");
    fflush(stdout);
    all_errors += r->errors;
}

static bool wanted(const char *what) {
    return !options.only || strstr(what, options.only);
}

/* ---- kinds of requests ---- */

static enum load_turn expect(int status, int want) {
    return status == want ? LOAD_DONE : LOAD_WRONG;
}

static enum load_turn take_200(void *context, unsigned connection, int status, char *body, size_t n) {
    (void)context, (void)connection, (void)body;
    return n ? expect(status, 200) : LOAD_WRONG;
}

static enum load_turn take_304(void *context, unsigned connection, int status, char *body, size_t n) {
    (void)context, (void)connection, (void)body, (void)n;
    return expect(status, 304);
}

static enum load_turn take_201(void *context, unsigned connection, int status, char *body, size_t n) {
    (void)context, (void)connection, (void)body, (void)n;
    return expect(status, 201);
}

static void get(struct load_text *to, const char *path, const char *headers) {
    load_request(to, "GET", path, headers, 0, "");
}

static void get_strategy(struct load_text *to, const struct id *id, bool had) {
    char path[PATH_ROOM], header[128] = "";
    snprintf(path, sizeof path, "/api/v1/strategies/%s", id->hex);
    if (had)
        snprintf(header, sizeof header, "If-None-Match: \"%s\"\r\n", id->hex);
    get(to, path, header);
}

static void make_get_small(void *context, unsigned connection, struct load_text *to) {
    (void)context, (void)connection;
    get_strategy(to, &names.small[rng_below(&rng, DATASET_SMALL)], false);
}

static void make_get_big(void *context, unsigned connection, struct load_text *to) {
    (void)context, (void)connection;
    get_strategy(to, &names.big[rng_below(&rng, DATASET_BIG)], false);
}

static void make_get_had(void *context, unsigned connection, struct load_text *to) {
    (void)context, (void)connection;
    get_strategy(to, &names.big[rng_below(&rng, DATASET_BIG)], true);
}

static void make_path(void *context, unsigned connection, struct load_text *to) {
    (void)connection;
    get(to, context, "");
}

/* PREDICTED strategies of ResNet-50 from the given place on. */
static void predict(struct load_text *to, size_t first) {
    struct load_text body = {0};
    load_printf(&body, "{\"model\":\"%s\",\"cluster\":\"%s\",\"strategies\":[", names.big_model, names.big_cluster);
    for (size_t i = 0; i < PREDICTED; i++)
        load_printf(&body, "%s\"%s\"", i ? "," : "", names.big[(first + i) % DATASET_BIG].hex);
    load_printf(&body, "]}");
    load_request(to, "POST", "/api/v1/predictions", "", body.n, body.bytes);
    load_text_release(&body);
}

static void make_new_predictions(void *context, unsigned connection, struct load_text *to) {
    size_t *next = context;
    (void)connection;
    predict(to, *next);
    *next += PREDICTED;
}

static void make_predictions(void *context, unsigned connection, struct load_text *to) {
    (void)context, (void)connection;
    predict(to, rng_below(&rng, DATASET_BIG / PREDICTED) * PREDICTED);
}

/* ---- batches of records ---- */

/* Of one session each: its model, its cluster, its strategies; or scattered over all that there are, which is the worst
 * for the indexes. */
enum spread { ONE_SESSION, SCATTERED, SPREADS };

static struct load_text batches[SPREADS][BODIES];

struct names {
    const struct id *model, *cluster, *strategy;
};

static struct names choose(enum spread spread, size_t body) {
    const size_t first = body * A_SESSION % (DATASET_SMALL - A_SESSION);
    if (spread == ONE_SESSION)
        return (struct names){&names.models[body % DATASET_MODELS], &names.clusters[body % DATASET_CLUSTERS],
                              &names.small[first + rng_below(&rng, A_SESSION)]};
    return (struct names){&names.models[rng_below(&rng, DATASET_MODELS)],
                          &names.clusters[rng_below(&rng, DATASET_CLUSTERS)],
                          &names.small[rng_below(&rng, DATASET_SMALL)]};
}

static void add_record(struct load_text *to, struct names of, size_t i) {
    const double us = rng_log_between(&rng, 2e4, 2e6);
    load_printf(to,
                "%s{\"model\":\"%s\",\"cluster\":\"%s\",\"strategy\":\"%s\",\"proposer\":\"neighbour\","
                "\"runner\":\"mpirun\",\"seed\":%zu,\"predicted_us\":%.17g,\"median_us\":%.17g,\"mean_us\":%.17g,"
                "\"low_us\":%.17g,\"high_us\":%.17g,\"queued\":\"2026-11-21T08:41:17.123Z\","
                "\"started\":\"2026-11-21T08:41:17.200Z\",\"ended\":\"2026-11-21T08:42:17.123Z\","
                "\"environment_details\":{\"host\":\"node17\",\"mpi\":\"4.1\"}}",
                i ? "," : "", of.model->hex, of.cluster->hex, of.strategy->hex, i, us * 1.1, us, us * 1.01, us * 0.99,
                us * 1.02);
}

/* Without uids, so that each time one is sent its trials are new. */
static void make_batches(enum spread spread) {
    for (size_t b = 0; b < BODIES; b++) {
        struct load_text body = {0};
        load_printf(&body, "{\"records\":[");
        for (size_t i = 0; i < BATCH; i++)
            add_record(&body, choose(spread, b), i);
        load_printf(&body, "]}");
        load_request(&batches[spread][b], "POST", "/api/v1/records:batchCreate", "", body.n, body.bytes);
        load_text_release(&body);
    }
}

static void make_batch(void *context, unsigned connection, struct load_text *to) {
    const enum spread *spread = context;
    const struct load_text *batch = &batches[*spread][rng_below(&rng, BODIES)];
    (void)connection;
    load_put(to, batch->bytes, batch->n);
}

/* ---- ask and tell ---- */

struct asking {
    char session[MOST_CONNECTIONS][128];
    bool telling[MOST_CONNECTIONS]; /* what the connection's next request is */
    unsigned number[MOST_CONNECTIONS];
};

static const char *after(const char *text, const char *part) {
    const char *at = strstr(text, part);
    return at ? at + strlen(part) : NULL;
}

static void open_session(const char *model, const char *cluster, char href[128]) {
    struct load_text body = {0}, request = {0}, answer = {0};
    load_printf(&body, "{\"model\":\"%s\",\"cluster\":\"%s\",\"ranker\":\"none\",\"budget\":{\"trials\":2000}}", model,
                cluster);
    load_request(&request, "POST", "/api/v1/sessions", "", body.n, body.bytes);
    const int status = load_once(server->port, &request, &answer);
    const char *at = status == 201 ? after(answer.bytes, "\"href\":\"") : NULL;
    if (!at) {
        fprintf(stderr, "load: no session: %d %s\n", status, answer.bytes ? answer.bytes : "");
        die("sessions");
    }
    snprintf(href, 128, "%.*s", (int)strcspn(at, "\""), at);
    load_text_release(&body);
    load_text_release(&request);
    load_text_release(&answer);
}

static void make_turn(void *context, unsigned c, struct load_text *to) {
    const struct asking *a = context;
    char path[256], body[256];
    if (a->telling[c]) {
        snprintf(path, sizeof path, "%s/trials/%u:complete", a->session[c], a->number[c]);
        const double us = rng_between(&rng, 2e4, 3e4);
        snprintf(body, sizeof body, "{\"client\":\"load-%u\",\"attempt\":1,\"iterations_us\":[%.6g,%.6g,%.6g]}", c, us,
                 us * 1.01, us * 0.99);
    } else {
        snprintf(path, sizeof path, "%s/trials:suggest", a->session[c]);
        snprintf(body, sizeof body, "{\"client\":\"load-%u\"}", c);
    }
    load_request(to, "POST", path, "", strlen(body), body);
}

static enum load_turn take_turn(void *context, unsigned c, int status, char *body, size_t n) {
    struct asking *a = context;
    (void)n;
    if (status != 200)
        return LOAD_WRONG;
    if (a->telling[c]) {
        a->telling[c] = false;
        return LOAD_DONE;
    }
    const char *number = after(body, "\"number\":");
    if (!number)
        return strstr(body, "\"next\":\"over\"") ? LOAD_OVER : LOAD_WRONG;
    a->number[c] = (unsigned)atoi(number);
    a->telling[c] = true;
    return LOAD_MORE;
}

static void row_of_asking(const char *what, const char *model, const char *cluster) {
    static struct asking a;
    struct load_result result;
    for (bool begun = false; wanted(what) && next_turn(&begun);) {
        memset(&a, 0, sizeof a);
        for (unsigned c = 0; c < CLIENTS; c++)
            open_session(model, cluster, a.session[c]);
        const struct load_plan plan = {.port = server->port,
                                       .connections = CLIENTS,
                                       .seconds = options.seconds,
                                       .make = make_turn,
                                       .take = take_turn,
                                       .context = &a};
        const struct used before = used_now();
        load_run(&plan, &result);
        print_row(what, &result, used_since(before), 1, "", 0, 0);
    }
}

/* ---- rows ---- */

/* Of the server that has its turn. */
static void row_of_one(const char *what, struct load_plan plan, double each, const char *thing, double goal_per_s,
                       double goal_p99_ms) {
    struct load_result result;
    plan.port = server->port;
    plan.seconds = plan.seconds > 0 ? plan.seconds : options.seconds;
    const struct used before = used_now();
    load_run(&plan, &result);
    print_row(what, &result, used_since(before), each, thing, goal_per_s, goal_p99_ms);
}

static void row(const char *what, struct load_plan plan, double each, const char *thing, double goal_per_s,
                double goal_p99_ms) {
    for (bool begun = false; wanted(what) && next_turn(&begun);)
        row_of_one(what, plan, each, thing, goal_per_s, goal_p99_ms);
}

static void rows_of_gets(void) {
    row("GET a strategy of a small model, 32 connections",
        (struct load_plan){.connections = 32, .make = make_get_small, .take = take_200}, 1, "", 20000, 0);
    row("GET a strategy of ResNet-50, 32 connections",
        (struct load_plan){.connections = 32, .make = make_get_big, .take = take_200}, 1, "", 0, 0);
    row("GET a strategy that is had already (304), 32 connections",
        (struct load_plan){.connections = 32, .make = make_get_had, .take = take_304}, 1, "", 20000, 0);
}

static void rows_of_predictions(void) {
    size_t next = 0; /* from DATASET_BIG on they begin again, for the next server */
    row("predict 100 new strategies of ResNet-50, one at a time",
        (struct load_plan){.connections = 1,
                           .most = DATASET_BIG / PREDICTED,
                           .seconds = 60,
                           .make = make_new_predictions,
                           .take = take_200,
                           .context = &next},
        1, "", 0, 0);
    row("predict 100 strategies of ResNet-50, at 50 a second",
        (struct load_plan){.connections = 16, .rate = 50, .make = make_predictions, .take = take_200}, 1, "", 0, 20);
}

/* The first and the last page of one list, at a constant rate. */
static void rows_of_query(const char *what, const char *filter, const char *escaped, const char *order) {
    char text[96], path[PATH_ROOM], token[64];
    int n = snprintf(path, sizeof path, "/api/v1/records?order=%s&page_size=%d%s%s", order, PAGE,
                     escaped ? "&filter=" : "", escaped ? escaped : "");
    const struct load_plan plan = {
        .connections = 16, .rate = 100, .make = make_path, .take = take_200, .context = path};
    snprintf(text, sizeof text, "records: %s, first page, at 100 a second", what);
    row(text, plan, 1, "", 0, 20);
    snprintf(text, sizeof text, "records: %s, last page", what);
    for (bool begun = false; wanted(text) && next_turn(&begun);) {
        dataset_last_page(server->dataset, filter, order, PAGE, token);
        snprintf(path + n, sizeof path - (size_t)n, "&page_token=%s", token);
        row_of_one(text, plan, 1, "", 0, 20);
    }
}

static void rows_of_queries(void) {
    rows_of_query("all, newest", NULL, NULL, "-recorded");
    rows_of_query("state, fastest", "state = complete", "state+%3D+complete", "measured");
    rows_of_query("model, cluster, fastest", "model = small-3 AND cluster = nodes-5 AND state = complete",
                  "model+%3D+small-3+AND+cluster+%3D+nodes-5+AND+state+%3D+complete", "measured");
    rows_of_query("no index, newest", "(measured_us < 90000 OR proposer = wfbp) AND NOT runner = lab",
                  "(measured_us+%3C+90000+OR+proposer+%3D+wfbp)+AND+NOT+runner+%3D+lab", "-recorded");
}

static void row_of_ingest(const char *what, enum spread spread) {
    static const double goals[] = {20000, 15000}; /* of a file, of PostgreSQL */
    const struct load_plan plan = {.connections = 4, .make = make_batch, .take = take_201, .context = &spread};
    for (bool begun = false; wanted(what) && next_turn(&begun);)
        row_of_one(what, plan, BATCH, "records", goals[server - servers], 0);
}

/* ---- the soak ---- */

/* Of 100 units: reads mostly, a few pages and predictions, now and then a batch. */
static void make_mixed(void *context, unsigned c, struct load_text *to) {
    enum spread spread = ONE_SESSION;
    const uint64_t kind = rng_below(&rng, 100);
    char path[PATH_ROOM];
    if (kind < 60) {
        make_get_small(context, c, to);
    } else if (kind < 80) {
        make_get_big(context, c, to);
    } else if (kind < 94) {
        snprintf(path, sizeof path, "/api/v1/records?page_size=%d&order=-recorded&filter=model+%%3D+small-%u", PAGE,
                 (unsigned)rng_below(&rng, DATASET_MODELS));
        get(to, path, "");
    } else if (kind < 99) {
        make_predictions(context, c, to);
    } else {
        make_batch(&spread, c, to);
    }
}

static enum load_turn take_mixed(void *context, unsigned connection, int status, char *body, size_t n) {
    (void)context, (void)connection, (void)body;
    return n && (status == 200 || status == 201) ? LOAD_DONE : LOAD_WRONG;
}

/* The first half fills caches: what grows in the second would grow for ever. */
static void soak(void) {
    enum { PARTS = 10 };
    double mib[PARTS];
    struct load_result result, sum = {0};
    const struct used before = used_now();
    for (int part = 0; part < PARTS; part++) {
        const struct load_plan plan = {.port = server->port,
                                       .connections = 16,
                                       .rate = 400,
                                       .seconds = options.soak_s / PARTS,
                                       .make = make_mixed,
                                       .take = take_mixed};
        load_run(&plan, &result);
        sum.units += result.units;
        sum.errors += result.errors;
        sum.seconds += result.seconds;
        sum.p50_ms = fmax(sum.p50_ms, result.p50_ms);
        sum.p99_ms = fmax(sum.p99_ms, result.p99_ms);
        sum.max_ms = fmax(sum.max_ms, result.max_ms);
        mib[part] = server_mib();
    }
    print_row("soak: mixed, at 400 a second (times of the worst tenth)", &sum, used_since(before), 1, "", 0, 0);
    const double grown = mib[PARTS - 1] - mib[PARTS / 2 - 1];
    printf("memory of the server (anonymous) over the soak, MiB:");
    for (int part = 0; part < PARTS; part++)
        printf(" %.1f", mib[part]);
    printf("; grown by %.1f in the second half\n", grown);
}

/* ---- the whole ---- */

static void copy_file(const char *from, const char *to) {
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t n = 1;
    if (in < 0 || out < 0)
        die(to);
    while (n > 0)
        n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0);
    if (n < 0)
        die(to);
    close(in);
    close(out);
}

static void remove_dataset(const char *path) {
    static const char *const tails[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char side[PATH_ROOM + 8];
        snprintf(side, sizeof side, "%s%s", path, tails[i]);
        unlink(side);
    }
}

static void usage(void) {
    fputs("usage: load [--trials N] [--seconds S] [--soak S] [--folder DIR] [--only WORD] [--postgresql ADDRESS "
          "--database PID] PROGRAM\n"
          "       load [--trials N] --fill ADDRESS\n",
          stderr);
    exit(2);
}

static void parse_options(int argc, char **argv) {
    static const struct option list[] = {{"trials", required_argument, NULL, 't'},
                                         {"seconds", required_argument, NULL, 's'},
                                         {"soak", required_argument, NULL, 'k'},
                                         {"folder", required_argument, NULL, 'f'},
                                         {"only", required_argument, NULL, 'o'},
                                         {"postgresql", required_argument, NULL, 'p'},
                                         {"fill", required_argument, NULL, 'i'},
                                         {"database", required_argument, NULL, 'd'},
                                         {0}};
    for (int c; (c = getopt_long(argc, argv, "", list, NULL)) != -1;)
        switch (c) {
        case 't':
            options.trials = strtoul(optarg, NULL, 10);
            break;
        case 's':
            options.seconds = strtod(optarg, NULL);
            break;
        case 'k':
            options.soak_s = strtod(optarg, NULL);
            break;
        case 'f':
            options.folder = optarg;
            break;
        case 'o':
            options.only = optarg;
            break;
        case 'p':
            options.postgresql = optarg;
            break;
        case 'd':
            options.database = strtol(optarg, NULL, 10);
            break;
        case 'i':
            options.fill = optarg;
            break;
        default:
            usage();
        }
    if (optind != argc - !options.fill || options.trials < DATASET_ROUND || !(options.seconds > 0))
        usage();
    options.trials -= options.trials % DATASET_ROUND;
    options.program = argv[optind];
}

static void rows(void) {
    print_head();
    rows_of_gets();
    rows_of_predictions();
    rows_of_queries();
    row_of_ingest("records:batchCreate, 500 of a session, 4 connections", ONE_SESSION);
    row_of_ingest("records:batchCreate, 500 of anything, 4 connections", SCATTERED);
    row_of_asking("suggest and complete, small model, 4 sessions", "small-0", "nodes-4");
    row_of_asking("suggest and complete, ResNet-50, 4 sessions", names.big_model, names.big_cluster);
    for (bool begun = false; options.soak_s > 0 && wanted("soak") && next_turn(&begun);)
        soak();
}

int main(int argc, char **argv) {
    char kept[PATH_ROOM], used[PATH_ROOM];
    parse_options(argc, argv);
    if (options.fill) {
        dataset_fill(options.fill, options.trials, &names);
        return 0;
    }
    if (mkdir(options.folder, 0755) && errno != EEXIST)
        die(options.folder);
    snprintf(kept, sizeof kept, "%s/trials-%zu.db", options.folder, options.trials);
    snprintf(used, sizeof used, "%s/used-%ld.db", options.folder, (long)getpid());
    rng_seed(&rng, 3);
    dataset_make(kept, options.trials, &names);
    copy_file(kept, used);
    make_batches(ONE_SESSION);
    make_batches(SCATTERED);
    start_server("file", used);
    if (options.postgresql)
        start_server("PostgreSQL", options.postgresql);
    for (bool begun = false; next_turn(&begun);)
        printf("%zu trials; the server of the %s has %.1f MiB\n", options.trials, server->engine, server_mib());
    rows();
    stop_servers();
    remove_dataset(used);
    return all_errors != 0;
}
