/* syncopate doctor: what is installed, reachable and permitted here, and what to do about the rest. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "trial-runner/lab.h"
#include "trial-runner/launch.h"
#include "trial-runner/process.h"
#include "trial-runner/slurm.h"

static unsigned problems;

static void line_ok(const char *what, const char *detail) {
    text_print(stdout, "ok       %-16s %s\n", what, detail);
}

static void line_missing(const char *what, const char *why, const char *remedy) {
    text_print(stdout, "missing  %-16s %s%s%s\n", what, why, remedy ? "\n                          -> " : "",
               remedy ? remedy : "");
    problems++;
}

/* Print a line about something that is missing and that only some need. */
static void line_without(const char *what, const char *why, const char *remedy) {
    text_print(stdout, "without  %-16s %s\n                          -> %s\n", what, why, remedy);
}

static bool keep_first_line(void *context, enum process_stream stream, const char *text, size_t n) {
    char *line = context;
    if (stream == PROCESS_STDOUT && !*line)
        snprintf(line, 128, "%.*s", (int)n, text);
    return true;
}

static void check_mpirun(void) {
    char line[128] = "";
    struct process_result result;
    struct error err;
    const struct process_options options = {.argv = (const char *const[]){"mpirun", "--version", NULL},
                                            .timeout_s = 10,
                                            .on_line = keep_first_line,
                                            .context = line};
    if (process_run(&options, &result, &err) || result.ending != PROCESS_EXITED || result.exit_code)
        line_missing("mpirun", "not found or not working", "apt-get install openmpi-bin");
    else
        line_ok("mpirun", line);
}

static void check_worker(void) {
    struct arena arena = {0};
    const char *path;
    struct error err;
    struct launcher launcher = {.kind = LAUNCHER_LOCAL};
    const struct cluster none = {0};
    if (launcher_choose(&launcher, NULL, &none, &err) || launch_worker_path(&launcher, &arena, &path, &err))
        line_missing("worker program", ERROR_TEXT(&err), NULL);
    else
        line_ok("worker program", path);
    arena_release(&arena);
}

static bool keep_object(void *context, enum process_stream stream, const char *text, size_t n) {
    cJSON **line = context;
    if (stream == PROCESS_STDOUT && !*line)
        *line = cJSON_ParseWithLength(text, n);
    return true;
}

/* Print what the NCCL worker's probe says of this machine's GPUs. */
static void check_gpus(const char *worker) {
    cJSON *line = NULL;
    char found[256];
    struct process_result result;
    struct error err = {.status = ST_OK};
    const struct process_options options = {.argv = (const char *const[]){worker, "probe", NULL},
                                            .timeout_s = 30,
                                            .on_line = keep_object,
                                            .context = &line};
    if (!process_run(&options, &result, &err))
        process_judge(&result, "the NCCL worker", &err);
    const char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "reason"));
    const char *nccl = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "nccl"));
    const cJSON *gpus = cJSON_GetObjectItemCaseSensitive(line, "gpus");
    const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(gpus, 0));
    if (nccl && name) {
        snprintf(found, sizeof found, "%d GPUs, the first a %s; NCCL %s", cJSON_GetArraySize(gpus), name, nccl);
        line_ok("NCCL worker", found);
    } else {
        line_without("NCCL worker", reason ? reason : ERROR_TEXT(&err),
                     "trials on GPUs need a GPU and a driver that is as new as the CUDA runtime; others do not");
    }
    cJSON_Delete(line);
}

static void check_nccl(void) {
    struct arena arena = {0};
    const char *path;
    struct error err;
    if (launch_worker_path(&(struct launcher){.worker = TRIAL_WORKER_NCCL}, &arena, &path, &err))
        line_without("NCCL worker", "GPUs are not used: it was not built, or is not beside this program",
                     "make CUDA_HOME=... NCCL_HOME=..., where there are nvcc, the CUDA runtime and nccl.h");
    else
        check_gpus(path);
    arena_release(&arena);
}

static void check_slurm(void) {
    char version[128];
    struct error err;
    if (slurm_check(version, sizeof version, &err))
        line_without("srun", ERROR_TEXT(&err), "only the runner slurm needs it");
    else if (!slurm_has_pmix())
        line_without("srun", "this Slurm has no PMIx, by which it starts ranks of Open MPI",
                     "--runner mpirun within an allocation; or another MPI and --launch-options --mpi=pmi2");
    else
        line_ok("srun", version);
}

static void check_lab(void) {
    struct error err;
    if (lab_check(&err))
        line_missing("lab", ERROR_TEXT(&err), NULL);
    else
        line_ok("lab", "network namespaces and rate-limited links work");
}

static void check_folder(void) {
    char folder[4096] = "";
    if (!getcwd(folder, sizeof folder) || access(".", W_OK))
        line_missing("this folder", "not writable: the dataset needs a place", "use --dataset FILE elsewhere");
    else
        line_ok("this folder", folder);
}

static void show_machine(void) {
    struct utsname name;
    struct sysinfo info;
    if (uname(&name) || sysinfo(&info))
        return;
    text_print(stdout, "machine  %-16s %s %s, %d cores, %.1f GiB of memory\n", "", name.sysname, name.release,
               get_nprocs(), (double)info.totalram * info.mem_unit / (1 << 30));
}

enum status cmd_doctor(int argc, char **argv, struct error *err) {
    const struct option options[] = {{0}};
    const struct command_line line = {.usage = "doctor",
                                      .about =
                                          "Looks at this machine and says what works, what does not, and what to do.\n"
                                          "Exit status 1 when something is missing.",
                                      .options = options};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    show_machine();
    check_mpirun();
    check_worker();
    check_nccl();
    check_slurm();
    check_lab();
    check_folder();
    return problems ? error_set(err, ST_ENVIRONMENT, "%u missing", problems) : ST_OK;
}
