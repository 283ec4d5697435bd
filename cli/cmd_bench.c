/* syncopate bench: a cluster's costs, measured into its description. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/runner_options.h"
#include "strategy/cluster.h"
#include "trial-runner/bench.h"

static void show(void *context, const char *what, uint64_t bytes, double time_us) {
    (void)context;
    char size[32], time[32];
    progress_say("%s of %s: %s", what, units_format_bytes(bytes, size, sizeof size),
                 units_format_time(time_us, time, sizeof time));
}

static void tell_agreement(const struct bench_agreement *a) {
    if (a->points == 0)
        return;
    log_info("passes over %u sizes differ by %.0f%% in the median; %u measurements were repeated", a->points,
             a->difference * 100, a->redone);
    if (a->unsettled)
        log_warn("%u sizes took another time in every pass: something else uses this machine or network; measure again "
                 "when it is quiet",
                 a->unsettled);
}

static void warn_clamped(const char *part, const char *what, const struct share *share) {
    if (share->clamped)
        log_warn("%s: %s came out faster beside the other than alone, with a share of %.2f (%.2f..%.2f), which counts "
                 "as 1: something else uses this machine or network",
                 part, what, share->value, share->low, share->high);
}

/* Whether both shares of the part are known. */
static bool tell_part(const struct shares *shares, enum shares_part part) {
    const struct share *compute = &shares->parts[part].compute, *traffic = &shares->parts[part].traffic;
    const char *name = shares_part_name(part);
    if (!compute->known || !traffic->known)
        return false;
    log_info("%s: computing keeps %.0f%% of its speed (%.0f..%.0f%%), a message %.0f%% (%.0f..%.0f%%)", name,
             compute->value * 100, compute->low * 100, compute->high * 100, traffic->value * 100, traffic->low * 100,
             traffic->high * 100);
    warn_clamped(name, "computing", compute);
    warn_clamped(name, "a message", traffic);
    return true;
}

/* With one device there are no messages. */
static void tell_shares(const struct shares *shares, uint32_t n_devices) {
    bool all = true, any = false;
    for (int part = 0; part < SHARES_PARTS && n_devices > 1; part++) {
        all &= tell_part(shares, (enum shares_part)part);
        any |= shares->parts[part].compute.kept || shares->parts[part].traffic.kept;
    }
    if (!all)
        log_info(
            "how computing and messages slow each other was not measured in full: that takes more time (--time) or "
            "larger messages (--max-bytes)");
    else if (!any && n_devices > 1)
        log_info("computing and messages do not measurably slow each other");
}

static enum status measure(const char *path, const struct runner_options *runner, struct bench_options *o,
                           const char *out, struct error *err) {
    struct cluster cluster = {0};
    struct bench_findings findings = {0};
    cJSON *json = NULL, *measured = NULL;
    enum status st = json_read_file(path, &json, err);
    if (!st)
        st = cluster_read(json, path, &cluster, err);
    if (!st)
        st = runner_place(runner, &cluster, &o->launcher, err);
    if (!st) {
        runner_tell(&o->launcher);
        st = bench_run(json, path, o, &measured, &findings, err);
    }
    progress_end();
    if (!st) {
        tell_agreement(&findings.agreement);
        tell_shares(&findings.shares, cluster.n_devices);
    }
    char *text = st ? NULL : json_pretty(measured);
    if (!st)
        st = text ? json_write_file(out, text, err) : error_no_memory(err);
    if (!st && strcmp(out, "-"))
        log_info("%s: measured, written to %s", cluster.name, out);
    free(text);
    cJSON_Delete(measured);
    cJSON_Delete(json);
    cluster_release(&cluster);
    return st;
}

enum status cmd_bench(int argc, char **argv, struct error *err) {
    struct runner_options words = {.runner = "lab"};
    const char *out = "-";
    struct bench_options o = {.cancel = interrupt_flag(), .on_measurement = show};
    double limit_us = 0;
    const struct option options[] = {
        {"runner", OPTION_TEXT, &words.runner, RUNNER_NAMES, "where messages are timed (default lab)"},
        RUNNER_OPTIONS(words),
        {"logs", OPTION_TEXT, &words.logs, "DIR", "keep what the ranks say in a file there"},
        {"max-bytes", OPTION_BYTES, &o.max_bytes, "N", "time messages of up to N bytes (default 16M)"},
        {"time", OPTION_TIME, &limit_us, "T", "end within about T (default 40s)"},
        {"out", OPTION_TEXT, &out, "FILE", "where the new description goes (default: standard output)"},
        {0}};
    const struct command_line line = {
        .usage = "bench CLUSTER [options]",
        .about =
            "Measure what messages really cost on CLUSTER: all-reduce curves by algorithm, over MPI also those of\n"
            "reduce-scatters and all-gathers as sharded strategies send them, pushes and pulls, launch\n"
            "and coordination. Every size is timed in two passes, and again where these differ; at the end it is said\n"
            "how well they agree. Sizes grow by 4; where a curve bends, others between are timed as time allows.\n"
            "Then messages and a trial's computing are timed alone and together, while messages start up and while\n"
            "their bytes move. What is slowed for certain is written as \"interference\".\n"
            "The result is CLUSTER's description with these figures in it, each time with its interval, and with\n"
            "the worker's \"transport\"; give it to tune, simulate and trial in place of the old one.",
        .examples = "  syncopate bench lab-4x1g --out my-lab.json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    char path[4096];
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = output_check(out, err);
    if (!st && o.max_bytes > 1 << 30)
        st = error_set(err, ST_USAGE, "--max-bytes must be at most 1G");
    if (!st)
        st = inputs_find(arguments.items[0], "clusters", path, sizeof path, err);
    o.time_limit_s = limit_us / 1e6;
    return st ? st : measure(path, &words, &o, out, err);
}
