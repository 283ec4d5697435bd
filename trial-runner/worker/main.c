/* A worker program: one rank of a real run. Started by mpirun or the like, once a device and once a server.
 *
 *   syncopate-worker-X run --model FILE --cluster FILE --strategy FILE --iterations K --warmup W [--trace] [--verify]
 *                      [--weather SEED] [--train TASK --rate X --momentum X --target X] [--sockets]
 *   syncopate-worker-X bench --cluster FILE [--max-bytes N] [--time-limit S] [--sockets]
 *   syncopate-worker-X probe
 *
 * X is mpi or nccl: trial-runner/worker/backend.h says what differs. Rank 0 reads the files and shares their text;
 * every rank lowers the strategy itself. Device 0 reports by JSON lines on standard output: ready, iteration, step and
 * message (--trace), point, measurement, agreement, interference, runtime, updates, worker, done, and where workers
 * learn loss and training. A server that applies updates reports iteration in its place, and takeover. Any rank may
 * report infeasible or error, with a reason. probe says in one line what this machine has for the program; it is
 * run alone. --fault sum|kill|hang makes the last device fail at the second iteration and is there for tests. Exit
 * codes are the program syncopate's. */
#include <errno.h>
#include <malloc.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "base/units.h"
#include "trial-runner/worker/backend.h"
#include "trial-runner/worker/execute.h"
#include "trial-runner/worker/measure.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/world.h"

/* Open MPI keeps memory until the process ends; with it LeakSanitizer would end every run. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return 1;
}

struct options {
    bool bench;
    const char *model, *cluster, *strategy;
    struct execute_options execute;
    struct measure_options measure;
    bool sockets; /* all that ranks tell each other goes over sockets */
};

struct trial {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
    struct plan plan;
    struct world world;
};

static enum status parse_count(const char *text, uint32_t min, uint32_t *out, struct error *err) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || end == text || value < min || value > 1000000)
        return error_set(err, ST_USAGE, "expected a count from %u to 1000000, not \"%s\"", min, text);
    *out = (uint32_t)value;
    return ST_OK;
}

static enum status parse_seed(const char *text, uint64_t *out, struct error *err) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || *out == 0)
        return error_set(err, ST_USAGE, "--weather is a seed from 1, not \"%s\"", text);
    return ST_OK;
}

static enum status parse_fault(const char *text, enum execute_fault *out, struct error *err) {
    static const char *const words[] = {"none", "sum", "kill", "hang"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, words[i]) != 0)
            continue;
        *out = (enum execute_fault)i;
        return ST_OK;
    }
    return error_set(err, ST_USAGE, "--fault is none, sum, kill or hang, not \"%s\"", text);
}

static enum status parse_share(const char *text, double most, double *out, struct error *err) {
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 0 && *out <= most))
        return error_set(err, ST_USAGE, "expected a number from 0 to %g, not \"%s\"", most, text);
    return ST_OK;
}

static enum status parse_training(const char *name, const char *value, struct training_options *out,
                                  struct error *err) {
    if (strcmp(name, "--train") == 0)
        return training_parse(value, &out->task) ? ST_OK
                                                 : error_set(err, ST_USAGE, "--train is a task, not \"%s\"", value);
    if (strcmp(name, "--rate") == 0)
        return parse_share(value, 1e6, &out->rate, err);
    if (strcmp(name, "--momentum") == 0)
        return parse_share(value, 1, &out->momentum, err);
    if (strcmp(name, "--target") == 0)
        return parse_share(value, 1, &out->target, err);
    return error_set(err, ST_USAGE, "unknown option %s", name);
}

static enum status parse_seconds(const char *text, double *out, struct error *err) {
    double us;
    enum status status = units_parse_time(text, &us, err);
    if (!status)
        *out = us / 1e6;
    return status;
}

static bool parse_switch(const char *name, struct options *out) {
    if (strcmp(name, "--trace") == 0)
        return out->execute.trace = true;
    if (strcmp(name, "--verify") == 0)
        return out->execute.verify = true;
    if (strcmp(name, "--sockets") == 0)
        return out->sockets = true;
    return false;
}

static enum status parse_option(const char *name, const char *value, struct options *out, struct error *err) {
    const struct {
        const char *name;
        const char **place;
    } files[] = {{"--model", &out->model}, {"--cluster", &out->cluster}, {"--strategy", &out->strategy}};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, files[i].name) != 0)
            continue;
        *files[i].place = value;
        return ST_OK;
    }
    if (strcmp(name, "--iterations") == 0)
        return parse_count(value, 1, &out->execute.iterations, err);
    if (strcmp(name, "--warmup") == 0)
        return parse_count(value, 0, &out->execute.warmup, err);
    if (strcmp(name, "--fault") == 0)
        return parse_fault(value, &out->execute.fault, err);
    if (strcmp(name, "--weather") == 0)
        return parse_seed(value, &out->execute.weather, err);
    if (strcmp(name, "--max-bytes") == 0)
        return units_parse_bytes(value, &out->measure.max_bytes, err);
    if (strcmp(name, "--time-limit") == 0)
        return parse_seconds(value, &out->measure.time_limit_s, err);
    return parse_training(name, value, &out->execute.training, err);
}

static enum status parse_options(int argc, char **argv, struct options *out, struct error *err) {
    *out = (struct options){.execute = {.iterations = 10, .warmup = 2, .report = true},
                            .measure = {.max_bytes = UINT64_C(16) << 20, .time_limit_s = 40}};
    if (argc < 2 || (strcmp(argv[1], "run") != 0 && strcmp(argv[1], "bench") != 0))
        return error_set(err, ST_USAGE, "the first argument is run, bench or probe; people want the program syncopate");
    out->bench = strcmp(argv[1], "bench") == 0;
    for (int i = 2; i < argc; i++) {
        if (parse_switch(argv[i], out))
            continue;
        if (i + 1 == argc)
            return error_set(err, ST_USAGE, "%s is unknown or needs a value", argv[i]);
        enum status status = parse_option(argv[i], argv[i + 1], out, err);
        if (status)
            return status;
        i++;
    }
    if (!out->cluster || (!out->bench && (!out->model || !out->strategy)))
        return error_set(err, ST_USAGE, "--cluster is needed, and for run --model and --strategy");
    return ST_OK;
}

/* The document in `path`, which only rank 0 can read; every rank gets the same tree or the same failure. */
static enum status share_document(const char *path, cJSON **out, struct error *err) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct error shared = {.status = ST_OK};
    cJSON *tree = NULL;
    char *text = NULL;
    if (rank == 0 && !json_read_file(path, &tree, &shared)) {
        text = json_line(tree);
        cJSON_Delete(tree);
        if (!text)
            error_no_memory(&shared);
    }
    MPI_Bcast(&shared, sizeof shared, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (shared.status)
        return error_pass(err, &shared);
    char *copy = world_share_text(text);
    free(text);
    enum status status = json_parse(copy, strlen(copy), path, out, err);
    free(copy);
    return status;
}

static enum status read_model(const char *path, struct model *out, struct error *err) {
    cJSON *tree;
    enum status status = share_document(path, &tree, err);
    if (status)
        return status;
    status = model_read(tree, path, out, err);
    cJSON_Delete(tree);
    return status;
}

static enum status read_cluster(const char *path, struct cluster *out, struct error *err) {
    cJSON *tree;
    enum status status = share_document(path, &tree, err);
    if (status)
        return status;
    status = cluster_read(tree, path, out, err);
    cJSON_Delete(tree);
    return status;
}

static enum status read_strategy(const char *path, struct trial *trial, struct error *err) {
    cJSON *tree;
    enum status status = share_document(path, &tree, err);
    if (status)
        return status;
    status = strategy_read(tree, path, &trial->model, &trial->cluster, &trial->strategy, err);
    cJSON_Delete(tree);
    return status;
}

static void add_processor(cJSON *line) {
    char text[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(text, sizeof text, file)) {
        char *colon = strchr(text, ':');
        if (strncmp(text, "model name", 10) != 0 || !colon)
            continue;
        text[strcspn(text, "\n")] = '\0';
        cJSON_AddStringToObject(line, "processor", colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

static void report_ready(const struct world *world) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    struct utsname host;
    cJSON *line = report_event("ready");
    MPI_Get_library_version(text, &n);
    text[strcspn(text, ",")] = '\0';
    cJSON_AddStringToObject(line, "mpi", text);
    cJSON_AddNumberToObject(line, "ranks", world->size);
    if (uname(&host) == 0) {
        cJSON_AddStringToObject(line, "host", host.nodename);
        cJSON_AddStringToObject(line, "kernel", host.release);
    }
    add_processor(line);
    backend_describe(world, line);
    report_send(line);
}

static bool is_speaker(const struct world *world) {
    return !world->is_server && world->device == 0;
}

static void execute(const struct options *options, struct trial *trial) {
    struct execute_result result = {0};
    if (is_speaker(&trial->world))
        report_ready(&trial->world);
    execute_run(&trial->plan, &trial->world, &options->execute, &result);
    if (is_speaker(&trial->world)) {
        cJSON *line = report_event("done");
        cJSON_AddNumberToObject(line, "iterations", options->execute.iterations);
        cJSON_AddNumberToObject(line, "checked", (double)result.checked);
        if (result.grown_bytes > 0) {
            cJSON_AddNumberToObject(line, "buffers_bytes", (double)result.buffers_bytes);
            cJSON_AddNumberToObject(line, "grown_bytes", (double)result.grown_bytes);
        }
        if (result.compute_us > 0)
            cJSON_AddNumberToObject(line, "compute_us", result.compute_us);
        report_send(line);
    }
    free(result.time_us);
}

static enum status run(const struct options *options, struct trial *trial, struct error *err) {
    enum status status = plan_lower(&trial->model, &trial->cluster, &trial->strategy, &trial->plan, err);
    if (status)
        return status;
    status = backend_check_plan(&trial->plan, err);
    if (!status)
        status = world_init(&trial->world, &trial->plan, err);
    if (status)
        goto release_plan;
    status = backend_join(&trial->world, err);
    if (status)
        goto release_world;
    execute(options, trial);
    backend_leave(&trial->world);
release_world:
    world_release(&trial->world);
release_plan:
    plan_release(&trial->plan);
    return status;
}

static enum status read_and_run(const struct options *options, struct error *err) {
    struct trial trial = {0};
    enum status status = read_cluster(options->cluster, &trial.cluster, err);
    if (status)
        return status;
    if (options->bench) {
        status = measure_cluster(&trial.cluster, &options->measure, report_ready, err);
        goto release_cluster;
    }
    status = read_model(options->model, &trial.model, err);
    if (status)
        goto release_cluster;
    status = read_strategy(options->strategy, &trial, err);
    if (status)
        goto release_model;
    status = run(options, &trial, err);
    strategy_release(&trial.strategy);
release_model:
    model_release(&trial.model);
release_cluster:
    cluster_release(&trial.cluster);
    return status;
}

#ifdef __SANITIZE_ADDRESS__
/* Memory that Open MPI and its unloaded components keep to the end looks like leaks of ours. CUDA needs the addresses
 * between the parts of the sanitizer's shadow memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0:protect_shadow_gap=0";
}
#endif

/* Sleeps end when they should, and large buffers of MPI's own are kept instead of mapped anew for each message. */
static void prepare_process(void) {
    prctl(PR_SET_TIMERSLACK, 1UL);
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

static int probe(void) {
    struct error err = {.status = ST_OK};
    enum status status = backend_probe(&err);
    if (status)
        report_error(&err);
    return status_exit_code(status);
}

int main(int argc, char **argv) {
    struct options options;
    struct error err = {.status = ST_OK};
    int provided, rank;
    if (argc == 2 && strcmp(argv[1], "probe") == 0)
        return probe();
    prepare_process();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    enum status status = parse_options(argc, argv, &options, &err);
    if (!status && options.sockets)
        pause_watch_sockets();
    if (!status)
        status = backend_open(&err);
    if (!status)
        status = read_and_run(&options, &err);
    if (status && rank == 0)
        report_error(&err);
    MPI_Finalize();
    return status_exit_code(status);
}
