/* See commands.h. A walk calls every command in turn; each gets as far as options_parse, which shows its command line
 * and lets it end. So the tables stay where they are used, beside the variables that they fill. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

static const struct command commands[] = {
    {"tune", cmd_tune, "search, try, record, and answer with the best strategy found"},
    {"simulate", cmd_simulate, "predict the iteration time of strategies and baselines"},
    {"advise", cmd_advise,
     "say which of data parallel, servers, ZeRO, FSDP and HSDP is fastest within a device's memory"},
    {"compare", cmd_compare, "predict every baseline on several models and clusters, next to the best possible"},
    {"trial", cmd_trial, "run one strategy for real and report its iteration times"},
    {"collect", cmd_collect, "try strategies drawn over the whole space, for rankers to learn from"},
    {"train-ranker", cmd_train_ranker, "train a ranker on recorded trials"},
    {"rank", cmd_rank, "rank strategies with a learned ranker"},
    {"bench", cmd_bench, "measure a cluster's all-reduce and push/pull costs into its description"},
    {"baselines", cmd_baselines, "list what published systems and framework defaults would do"},
    {"strategy", cmd_strategy, "show, check and compare strategy files"},
    {"import", cmd_import, "read models, clusters and strategies from the files of other tools"},
    {"explain", cmd_explain, "say where an iteration's time went, from PyTorch profiler traces of all ranks"},
    {"dataset", cmd_dataset, "query, export, check, merge and back up recorded measurements"},
    {"report", cmd_report, "write a session as one HTML file: the answer, charts, timelines, every trial"},
    {"serve", cmd_serve, "serve a team's models, sessions and measurements over HTTP"},
    {"agent", cmd_agent, "run a service's trials on the cluster that this machine belongs to"},
    {"session", cmd_session, "run the trials of a session yourself: ask for one, tell what it measured"},
    {"sessions", cmd_sessions, "list, show, pause, resume, stop and cancel tuning sessions of a service"},
    {"models", cmd_models, "list, show and add the models that a service has"},
    {"clusters", cmd_clusters, "list, show and add the clusters that a service has"},
    {"weather", cmd_weather, "draw how the links and workers of a cluster vary"},
    {"lab", cmd_lab, "emulate a cluster on this machine with rate-limited links"},
    {"completion", cmd_completion, "print what a shell needs to complete command lines"},
    {"manual", cmd_manual, "print manual pages"},
    {"doctor", cmd_doctor, "say what is installed and permitted here, and what to do about the rest"},
    {0},
};

static const char about[] = "syncopate finds out how a data-parallel training job should synchronize its gradients:\n"
                            "it searches strategies, ranks them with a simulator and proves the best with real runs.";

static const char examples[] = "  syncopate doctor\n"
                               "  syncopate simulate resnet50 v100-16x10g\n"
                               "  syncopate tune cnn-small lab-4x1g --out best.json";

static struct walk {
    command_visitor *visit; /* NULL: nobody walks */
    void *context;
    const char *summary;               /* of the command that is called next */
    const struct command_line *parent; /* of it */
} walk;

static void visit_line(const struct command_line *line, void *context) {
    struct error ignored;
    const struct command_line *const parent = walk.parent;
    const struct command_page page = {line, parent, walk.summary};
    walk.visit(&page, context);
    walk.parent = line;
    for (const struct command *row = line->commands; row && row->name; row++) {
        char *argv[] = {(char *)row->name, NULL};
        walk.summary = row->summary;
        row->function(1, argv, &ignored);
    }
    walk.parent = parent;
}

static enum status run_group(const struct command_line *line, int argc, char **argv, struct error *err) {
    const char *name = argc > 1 ? argv[1] : "--help";
    const int n = options_name_length(line->usage);
    if (walk.visit) {
        visit_line(line, walk.context);
        return ST_CANCELLED;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        options_print_help(line);
        return ST_OK;
    }
    for (const struct command *row = line->commands; row->name; row++)
        if (!strcmp(row->name, name))
            return row->function(argc - 1, argv + 1, err);
    return error_set(err, ST_USAGE, "there is no command \"%.*s%s%s\"; see: syncopate %.*s%s--help", n, line->usage,
                     n ? " " : "", name, n, line->usage, n ? " " : "");
}

enum status commands_run(const struct command *rows, const char *group, const char *words, int argc, char **argv,
                         struct error *err) {
    static const struct option none[] = {{0}};
    char usage[64];
    snprintf(usage, sizeof usage, "%s COMMAND [options]", group);
    const struct command_line line = {.usage = usage, .about = words, .options = none, .commands = rows, .group = true};
    return run_group(&line, argc, argv, err);
}

enum status commands_main(int argc, char **argv, struct error *err) {
    const struct command_line line = {.usage = "COMMAND [options]",
                                      .about = about,
                                      .examples = examples,
                                      .options = options_leading,
                                      .commands = commands,
                                      .group = true};
    return run_group(&line, argc, argv, err);
}

void commands_walk(command_visitor *visit, void *context) {
    struct error ignored;
    walk = (struct walk){visit, context, "choose how data-parallel training synchronizes its gradients", NULL};
    options_listen(visit_line, context);
    commands_main(0, NULL, &ignored);
    options_listen(NULL, NULL);
    walk = (struct walk){0};
}
