/* The program syncopate: a table of commands. Data goes to standard output, words to standard error. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tuner/cli/commands.h"
#include "tuner/cli/options.h"
#include "tuner/version.h"

static const struct command commands[] = {
    {"tune", cmd_tune, "search, try, record, and answer with the best strategy found"},
    {"simulate", cmd_simulate, "predict the iteration time of strategies and baselines"},
    {"compare", cmd_compare, "every baseline on several models and clusters, next to the best possible"},
    {"trial", cmd_trial, "run one strategy for real and report its iteration times"},
    {"collect", cmd_collect, "try strategies drawn over the whole space, for rankers to learn from"},
    {"train-ranker", cmd_train_ranker, "a learned ranker from recorded trials"},
    {"rank", cmd_rank, "rank strategies with a learned ranker"},
    {"bench", cmd_bench, "measure a cluster's all-reduce and push/pull costs into its description"},
    {"baselines", cmd_baselines, "list what published systems and framework defaults would do"},
    {"strategy", cmd_strategy, "show, check and compare strategy files"},
    {"dataset", cmd_dataset, "query, export, check, merge and back up recorded measurements"},
    {"report", cmd_report, "a session as one HTML file: the answer, charts, timelines, every trial"},
    {"serve", cmd_serve, "the HTTP service: a team's models, sessions and measurements"},
    {"agent", cmd_agent, "run a service's trials on the cluster that this machine belongs to"},
    {"sessions", cmd_sessions, "a service's tuning sessions: list, pause, resume, stop, cancel"},
    {"models", cmd_models, "the models that a service has: list, show, add"},
    {"clusters", cmd_clusters, "the clusters that a service has: list, show, add"},
    {"lab", cmd_lab, "emulate a cluster on this machine with rate-limited links"},
    {"doctor", cmd_doctor, "what is installed and permitted here, and what to do about the rest"},
    {0},
};

static const char about[] = "syncopate finds out how a data-parallel training job should synchronize its gradients:\n"
                            "it searches strategies, ranks them with a simulator and proves the best with real runs.";

static void list_commands(const struct command *rows, const char *group, const char *words, FILE *to) {
    fprintf(to, "usage: syncopate %s%sCOMMAND [options]\n\n%s\n\nCommands:\n", group, *group ? " " : "", words);
    for (; rows->name; rows++)
        fprintf(to, "  %-12s %s\n", rows->name, rows->summary);
    fprintf(to, "\n\"syncopate %s%sCOMMAND --help\" explains one.\n", group, *group ? " " : "");
}

enum status commands_run(const struct command *rows, const char *group, const char *words, int argc, char **argv,
                         struct error *err) {
    const char *name = argc > 1 ? argv[1] : "--help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        list_commands(rows, group, words, stdout);
        return ST_OK;
    }
    for (const struct command *row = rows; row->name; row++)
        if (!strcmp(row->name, name))
            return row->function(argc - 1, argv + 1, err);
    return error_set(err, ST_USAGE, "there is no command \"%s%s%s\"; see: syncopate %s%s--help", group,
                     *group ? " " : "", name, group, *group ? " " : "");
}

/* Data that could not be written is a failure, whatever the command returned. */
static enum status flush_output(enum status st, struct error *err) {
    if ((fflush(stdout) || ferror(stdout)) && !st)
        return error_set(err, ST_ENVIRONMENT, "standard output: %s", strerror(errno));
    return st;
}

int main(int argc, char **argv) {
    struct error err = {0};
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        puts("syncopate " SYNCOPATE_VERSION);
        return 0;
    }
    enum status st = options_take_server(&argc, &argv, &err);
    st = st ? st : flush_output(commands_run(commands, "", about, argc, argv, &err), &err);
    if (st)
        log_error("%s", err.message);
    return status_exit_code(st);
}
