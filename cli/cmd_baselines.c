/* syncopate baselines: the published systems and framework defaults, a line each. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "strategy/baselines/baselines.h"

static enum status print_line(const struct baseline *row, struct error *err) {
    cJSON *json = cJSON_CreateObject();
    bool ok = json && cJSON_AddStringToObject(json, "name", row->name) &&
              cJSON_AddStringToObject(json, "summary", row->summary) &&
              cJSON_AddStringToObject(json, "source", row->source);
    return output_line(json, ok, err);
}

enum status cmd_baselines(int argc, char **argv, struct error *err) {
    bool json = false;
    const struct option options[] = {{"json", OPTION_FLAG, &json, NULL, "print one JSON object a line"}, {0}};
    const struct command_line line = {
        .usage = "baselines [options]",
        .about =
            "The strategies of published systems and the defaults of frameworks. Each can be given to simulate, trial\n"
            "and strategy show as --baseline BASELINE, and tune tries them first. Of horovod-tuned and byteps-tuned\n"
            "the simulator searches the knobs; strategy export --to horovod and --to byteps say which it found.\n"
            "Those from async-ps on are built only where they are named, and tune does not try them: MLfabric's and "
            "what it\n"
            "is compared with, all-reduces in halves, and sharded optimizers, gradients and parameters.",
        .examples = "  syncopate simulate resnet50 v100-16x10g --all-baselines",
        .options = options};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    struct table table;
    table_init(&table, (const char *const[]){"NAME", "WHAT IT DOES", "SOURCE", NULL});
    size_t n, n_updates;
    const struct baseline *rows = baselines_list(&n), *by_name = baselines_by_name(&n_updates);
    for (size_t i = 0; i < n + n_updates && !st; i++) {
        const struct baseline *row = i < n ? &rows[i] : &by_name[i - n];
        if (json) {
            st = print_line(row, err);
            continue;
        }
        table_cell(&table, "%s", row->name);
        table_cell(&table, "%s", row->summary);
        table_cell(&table, "%s", row->source);
    }
    if (!json && !st)
        table_print(&table, stdout);
    table_release(&table);
    return st;
}
