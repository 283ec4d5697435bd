/* What was seen with Slurm 22.05:
 * - Only --distribution=arbitrary with a list of hosts, one entry a task, keeps the order of the nodes and gives some
 *   of them one task more. --nodes must say how many hosts these are, or else SLURM_JOB_NUM_NODES of the allocation
 *   counts.
 * - A step that shares nothing waits for the step before it, and for a shell that srun itself started: hence
 *   SLURM_OVERLAP.
 * - srun ends its step within 20 ms of SIGTERM. If srun is killed, a second process of its own ends the step, if that
 *   process still lives; else the step's time limit does. */
#include "trial-runner/slurm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/words.h"

enum { GRACE_S = 8, LONGEST_WORD = 128 << 10 };

bool slurm_allocated(void) {
    const char *job = getenv("SLURM_JOB_ID");
    return job && *job;
}

struct search {
    const char *word; /* NULL: any */
    char *line;       /* the first with that word */
    size_t n;
};

static bool search_line(void *context, enum process_stream stream, const char *text, size_t n) {
    struct search *search = context;
    (void)stream; /* 22.05 lists what it has on standard error */
    if (!*search->line && (!search->word || strstr(text, search->word)))
        snprintf(search->line, search->n, "%.*s", (int)n, text);
    return true;
}

static enum status ask(const char *option, struct search *search, struct process_result *result, struct error *err) {
    const struct process_options options = {.argv = (const char *const[]){"srun", option, NULL},
                                            .timeout_s = 20,
                                            .on_line = search_line,
                                            .context = search};
    *search->line = '\0';
    return process_run(&options, result, err);
}

enum status slurm_check(char *version, size_t n, struct error *err) {
    struct search search = {NULL, version, n};
    struct process_result result;
    enum status status = ask("--version", &search, &result, err);
    if (status || (result.ending == PROCESS_EXITED && result.exit_code == 0))
        return status;
    const char *last = strrchr(result.last_words, '\n');
    return error_set(err, ST_ENVIRONMENT, "srun does not work here: %s", last ? last + 1 : result.last_words);
}

bool slurm_has_pmix(void) {
    char line[128];
    struct search search = {"pmix", line, sizeof line};
    struct process_result result;
    return !ask("--mpi=list", &search, &result, &(struct error){0}) && *line;
}

static bool is_mentioned(const char *options, const char *name) {
    return options && strstr(options, name);
}

/* "n1,n1,n2" */
static const char *task_list(struct arena *arena, size_t n, const struct host *hosts) {
    size_t length = 1;
    for (size_t i = 0; i < n; i++)
        length += hosts[i].slots * (strlen(hosts[i].name) + 1);
    char *list = arena_alloc(arena, length, 1), *end = list;
    for (size_t i = 0; list && i < n; i++)
        for (unsigned k = 0; k < hosts[i].slots; k++) {
            end = stpcpy(end, end == list ? "" : ",");
            end = stpcpy(end, hosts[i].name);
        }
    return list;
}

/* Ranks get these variables and no others: PATH, HOME and USER, which programs expect; the one that keeps ranks from
 * spinning where there are more ranks than cores (trial-runner/mpirun.c); and `names`. */
static const char *export_list(struct arena *arena, const char *const *names) {
    const char *list = "PATH,HOME,USER,OMPI_MCA_mpi_yield_when_idle=1";
    for (; names && *names && list; names++)
        list = arena_printf(arena, "%s,%s", list, *names);
    return list;
}

static size_t count_hosts(const struct slurm_config *config) {
    size_t n = 0;
    for (size_t i = 0; i < config->n_hosts; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = strcmp(config->hosts[k].name, config->hosts[i].name) == 0;
        n += !seen;
    }
    return n;
}

static void add_format(struct words *words, const char *option, const char *value) {
    words_add(words, value ? arena_printf(words->arena, "--%s=%s", option, value) : NULL);
}

static void add_count(struct words *words, const char *option, size_t value) {
    add_format(words, option, arena_printf(words->arena, "%zu", value));
}

static void add_step(struct words *words, const struct slurm_config *config) {
    words_add(words, "--job-name=syncopate");
    words_add(words, "--label");
    words_add(words, "--kill-on-bad-exit=1");
    if (!getenv("SLURM_MPI_TYPE"))
        words_add(words, "--mpi=pmix");
    /* A server's rank comes on top of the devices, and ranks pinned to one core would wait for their own helpers. */
    words_add(words, "--overcommit");
    words_add(words, "--cpu-bind=none");
    add_count(words, "nodes", count_hosts(config));
    add_count(words, "ntasks", hosts_ranks(config->n_hosts, config->hosts));
    words_add(words, "--distribution=arbitrary");
    add_format(words, "nodelist", task_list(words->arena, config->n_hosts, config->hosts));
    add_format(words, "export", export_list(words->arena, config->export));
    if (config->time_limit_s > 0)
        add_count(words, "time", (size_t)ceil((config->time_limit_s + GRACE_S) / 60) + 1);
}

/* Times mean little on nodes that others use too. */
static void add_allocation(struct words *words, const struct slurm_config *config) {
    words_add(words, "--exclusive");
    if (config->partition)
        add_format(words, "partition", config->partition);
    if (config->account)
        add_format(words, "account", config->account);
    if (config->gpus_per_node > 0 && !is_mentioned(config->options, "--gpus") &&
        !is_mentioned(config->options, "--gres"))
        add_count(words, "gpus-per-node", config->gpus_per_node);
}

static enum status validate(const struct slurm_config *config, struct error *err) {
    if (words_count(config->argv) == 0)
        return error_set(err, ST_INVALID, "srun has no program to run");
    if (config->n_hosts == 0)
        return error_set(err, ST_INVALID, "srun has no hosts");
    enum status status = ST_OK;
    for (size_t i = 0; i < config->n_hosts && !status; i++)
        if (config->hosts[i].slots == 0)
            status = error_set(err, ST_INVALID, "host %zu has no slots", i);
        else
            status = hosts_check_name(config->hosts[i].name, err);
    return status;
}

enum status slurm_command(const struct slurm_config *config, struct arena *arena, const char *const **out,
                          struct error *err) {
    enum status status = validate(config, err);
    if (status)
        return status;
    struct words words = {.arena = arena};
    words_add(&words, "srun");
    add_step(&words, config);
    if (!config->allocated)
        add_allocation(&words, config);
    words_add_text(&words, config->options);
    for (const char *const *word = config->argv; *word; word++)
        words_add(&words, *word);
    if (words.failed)
        return error_no_memory(err);
    for (size_t i = 0; i < words.n; i++)
        if (strlen(words.items[i]) >= LONGEST_WORD)
            return error_set(err, ST_INVALID, "%u ranks have too many names for srun's command line",
                             hosts_ranks(config->n_hosts, config->hosts));
    *out = words.items;
    return ST_OK;
}

enum status slurm_run(const struct slurm_config *config, const char *const *command,
                      const struct process_options *options, struct process_result *out, struct error *err) {
    static const char *const environment[] = {"SLURM_OVERLAP=1", NULL};
    struct process_options mine = *options;
    mine.argv = command;
    mine.environment = environment;
    mine.grace_s = GRACE_S;
    mine.scratch = false;
    if (!config->allocated) {
        mine.first_line_timeout_s = 0;
        mine.timeout_from_first_line = true;
    }
    return process_run(&mine, out, err);
}

size_t slurm_label_length(const char *line) {
    const size_t spaces = strspn(line, " "), digits = strspn(line + spaces, "0123456789");
    const char *end = line + spaces + digits;
    return digits > 0 && end[0] == ':' && end[1] == ' ' ? spaces + digits + 2 : 0;
}
