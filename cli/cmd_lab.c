/* syncopate lab: an emulated cluster that stays until it is taken down. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/table.h"
#include "strategy/cluster.h"
#include "trial-runner/lab.h"
#include "trial-runner/launch.h"

static const struct option no_options[] = {{0}};

static enum status lab_up_command(int argc, char **argv, struct error *err) {
    const struct command_line line = {
        .usage = "lab up CLUSTER",
        .about = "Make one network namespace a node of CLUSTER, joined by links at its rates, until \"lab down\".\n"
                 "Trials do not need it: they make a lab of their own and let it go. It is for looking around.",
        .examples = "  syncopate lab up lab-4x1g && syncopate lab exec lab-4x1g n1 ping -c 3 n2",
        .options = no_options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    char path[4096];
    struct cluster cluster = {0};
    struct arena arena = {0};
    struct lab_config lab;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = inputs_find(arguments.items[0], "clusters", path, sizeof path, err);
    if (!st)
        st = cluster_read_file(path, &cluster, err);
    if (!st)
        st = launch_lab_of(&cluster, &arena, &lab, err);
    if (!st)
        st = lab_up(&lab, err);
    if (!st)
        log_info("lab %s is up: %u nodes, 198.18.1.1 to 198.18.1.%u", cluster.name, cluster.n_nodes, cluster.n_nodes);
    arena_release(&arena);
    cluster_release(&cluster);
    return st;
}

static enum status lab_down_command(int argc, char **argv, struct error *err) {
    const struct command_line line = {.usage = "lab down NAME",
                                      .about = "End the lab NAME and everything that runs in it.",
                                      .options = no_options,
                                      .min_arguments = 1,
                                      .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    return st ? st : lab_down(arguments.items[0], err);
}

static enum status lab_status_command(int argc, char **argv, struct error *err) {
    const struct command_line line = {.usage = "lab status", .about = "The labs that are up.", .options = no_options};
    struct arguments arguments;
    struct arena arena = {0};
    struct lab_info *labs;
    size_t n;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = lab_list(&arena, &labs, &n, err);
    if (!st) {
        struct table table;
        table_init(&table, (const char *const[]){"LAB", ">NODES", ">PID", NULL});
        for (size_t i = 0; i < n; i++) {
            table_cell(&table, "%s", labs[i].name);
            table_cell(&table, "%zu", labs[i].n);
            table_cell(&table, "%d", (int)labs[i].pid);
        }
        table_print(&table, stdout);
        if (!n)
            log_info("no lab is up; make one: syncopate lab up CLUSTER");
        table_release(&table);
    }
    arena_release(&arena);
    return st;
}

static enum status lab_exec_command(int argc, char **argv, struct error *err) {
    const struct command_line line = {
        .usage = "lab exec LAB NODE COMMAND [ARGUMENT...]",
        .about = "Run a command on a node of a lab, or on its head, in the folder where this is called.",
        .examples = "  syncopate lab exec lab-4x1g n2 ip -brief address\n"
                    "  syncopate lab exec lab-4x1g head ping -c 3 n4",
        .options = no_options,
        .min_arguments = 3,
        .max_arguments = MAX_ARGUMENTS};
    /* Everything from the command on is the command's own. */
    struct arguments arguments;
    enum status st = options_parse(&line, argc < 4 ? argc : 4, argv, &arguments, err);
    if (st)
        return st;
    const char *node = arguments.items[1];
    bool head = !strcmp(node, LAB_HEAD);
    int code = 0;
    fflush(stdout);
    st = lab_exec(arguments.items[0], head ? NULL : node, (const char *const *)(argv + 3), &code, err);
    if (!st && code)
        exit(code);
    return st;
}

enum status cmd_lab(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {{"up", lab_up_command, "make a lab that stays"},
                                          {"down", lab_down_command, "end a lab"},
                                          {"status", lab_status_command, "list the labs that are up"},
                                          {"exec", lab_exec_command, "run a command on a node of a lab"},
                                          {0}};
    return commands_run(rows, "lab", "A cluster on this machine, for looking around. Needs root.", argc, argv, err);
}
