/* Every setting here is for a problem that was seen with Open MPI 4.1.4; the comment at each says which. */
#include "trial-runner/mpirun.h"

#include <stdlib.h>
#include <unistd.h>

#include "trial-runner/words.h"

enum { GRACE_S = 5 }; /* for mpirun to end what it started on other machines */

static void words_mca(struct words *words, const char *name, const char *value) {
    words_add(words, "--mca");
    words_add(words, name);
    words_add(words, value);
}

static void add_common(struct words *words) {
    if (geteuid() == 0)
        words_add(words, "--allow-run-as-root");
    /* Ranks that outnumber the cores would spin in each other's way: a 1 KB all-reduce took 4 ms in place of 0.05. */
    words_mca(words, "mpi_yield_when_idle", "1");
    words_add(words, "--bind-to");
    words_add(words, "none");
    words_add(words, "--oversubscribe");
}

/* Only ob1 uses btls. Left to choose, each rank loads UCX first to look for InfiniBand: 0.25 s a start on two cores. */
static void words_btl(struct words *words, const char *btl) {
    words_mca(words, "pml", "ob1");
    words_mca(words, "btl", btl);
}

/* Shared memory is what joins processes of one host; TCP over lo would only add copies. CMA needs ptrace rights that
 * containers often refuse. */
static void add_local(struct words *words, const struct mpirun_config *config) {
    words_btl(words, "vader,self");
    words_mca(words, "btl_vader_single_copy_mechanism", "none");
    words_add(words, "-np");
    words_add(words, arena_printf(words->arena, "%u", hosts_ranks(config->n_hosts, config->hosts)));
}

static const char *host_list(struct arena *arena, size_t n, const struct host *hosts) {
    const char *list = "";
    for (size_t i = 0; i < n && list; i++)
        list = arena_printf(arena, "%s%s%s:%u", list, i ? "," : "", hosts[i].name, hosts[i].slots);
    return list;
}

static void add_hosts(struct words *words, const struct mpirun_config *config) {
    words_add(words, "--map-by");
    words_add(words, "slot");
    words_add(words, "--host");
    words_add(words, host_list(words->arena, config->n_hosts, config->hosts));
}

static void add_lab(struct words *words, const struct mpirun_config *config) {
    words_mca(words, "plm", "rsh");
    words_mca(words, "plm_rsh_agent", LAB_AGENT);
    words_mca(words, "plm_rsh_no_tree_spawn", "1"); /* the agent works from the head only */
    words_btl(words, "tcp,self");                   /* shared memory would go around the links */
    words_mca(words, "btl_tcp_if_include", LAB_SUBNET);
    words_mca(words, "oob_tcp_if_include", LAB_SUBNET);
    add_hosts(words, config);
}

static enum status validate(const struct mpirun_config *config, struct error *err) {
    if (words_count(config->argv) == 0)
        return error_set(err, ST_INVALID, "mpirun has no program to run");
    if (config->n_hosts == 0)
        return error_set(err, ST_INVALID, "mpirun has no hosts");
    enum status status = ST_OK;
    for (size_t i = 0; i < config->n_hosts && !status; i++)
        if (config->hosts[i].slots == 0)
            status = error_set(err, ST_INVALID, "host %zu has no slots", i);
        else if (config->place != MPIRUN_LOCAL)
            status = hosts_check_name(config->hosts[i].name, err);
    return status;
}

enum status mpirun_command(const struct mpirun_config *config, struct arena *arena, const char *const **out,
                           struct error *err) {
    enum status status = validate(config, err);
    if (status)
        return status;
    struct words words = {.arena = arena};
    words_add(&words, "mpirun");
    add_common(&words);
    switch (config->place) {
    case MPIRUN_LOCAL:
        add_local(&words, config);
        break;
    case MPIRUN_LAB:
        add_lab(&words, config);
        break;
    case MPIRUN_HOSTS:
        add_hosts(&words, config);
        break;
    }
    for (const char *const *name = config->export; name && *name; name++) {
        words_add(&words, "-x");
        words_add(&words, *name);
    }
    if (config->survives)
        words_add(&words, "--enable-recovery");
    words_add_text(&words, config->options);
    for (const char *const *word = config->argv; *word; word++)
        words_add(&words, *word);
    if (words.failed)
        return error_no_memory(err);
    *out = words.items;
    return ST_OK;
}

/* Segments of shared memory go to the run's own TMPDIR, where they vanish also after SIGKILL. */
static enum status keep_segments(void *context, struct error *err) {
    (void)context;
    const char *scratch = getenv("TMPDIR");
    if (scratch && setenv("OMPI_MCA_btl_vader_backing_directory", scratch, 1) != 0)
        return error_no_memory(err);
    return ST_OK;
}

/* Reading the PCI devices, as hwloc does to place ranks near a NIC, takes a third of a start; here and in the lab ranks
 * are placed nowhere. */
static const char *const no_devices[] = {"HWLOC_COMPONENTS=-pci,-linuxio", NULL};

static enum status run_once(const struct lab_config *lab, const struct process_options *options,
                            struct process_result *out, struct error *err) {
    return lab ? lab_run(lab, options, out, err) : process_run(options, out, err);
}

enum status mpirun_run(const struct mpirun_config *config, const char *const *command, const struct lab_config *lab,
                       const struct process_options *options, struct process_result *out, unsigned *starts,
                       struct error *err) {
    struct process_options mine = *options;
    struct process_hook hook = {.in_child = keep_segments};
    mine.scratch = true;
    if (config->place == MPIRUN_LOCAL)
        mine.hook = &hook;
    if (config->place == MPIRUN_HOSTS)
        mine.grace_s = GRACE_S;
    else if (!getenv("HWLOC_COMPONENTS"))
        mine.environment = no_devices;
    struct process_result result = {0};
    unsigned tries = 0;
    enum status status;
    mine.argv = command;
    do {
        status = run_once(config->place == MPIRUN_LAB ? lab : NULL, &mine, &result, err);
    } while (!status && ++tries < 2 && result.ending == PROCESS_SILENT);
    if (status)
        return status;
    *out = result;
    if (starts)
        *starts = tries;
    return ST_OK;
}
