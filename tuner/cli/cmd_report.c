/* syncopate report: a session as one HTML file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "dataset/store.h"
#include "tuner/cli/commands.h"
#include "tuner/cli/options.h"
#include "tuner/cli/paths.h"
#include "tuner/report/report.h"

static enum status make(const char *dataset, const char *session, char **out, size_t *length, struct error *err) {
    struct store *store;
    struct findings f;
    if (access(dataset, F_OK))
        return error_set(err, ST_NOT_FOUND, "%s: no such dataset; --dataset names the one that the session is in",
                         dataset);
    enum status st = store_open(dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = findings_gather(store, session, FINDINGS_ALL, &f, err);
    store_close(store);
    if (st == ST_NOT_FOUND)
        return error_set(err, ST_NOT_FOUND,
                         "%s has no session %.80s; \"syncopate dataset sessions --dataset %s\" lists them", dataset,
                         session, dataset);
    if (st)
        return st;
    st = report_write(&f, dataset, out, length, err);
    findings_release(&f);
    return st;
}

enum status cmd_report(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET, *out = NULL;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset that it is in (default " DEFAULT_DATASET ")"},
        {"out", OPTION_TEXT, &out, "FILE", "where to (default SESSION.html; - is standard output)"},
        {0}};
    const struct command_line line = {
        .usage = "report SESSION [options]",
        .about = "A session as one HTML file that needs nothing else: what to use and how sure that is, every trial,\n"
                 "predicted against measured, the best strategy next to the best baseline on one time axis, which\n"
                 "knobs mattered, and where it all comes from. A session may still run, or be a collection.",
        .examples = "  syncopate report 20261121-084117-3fa2\n"
                    "  syncopate report 20261121-084117-3fa2 --out - | less",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    char path[256], *text = NULL;
    size_t length;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    snprintf(path, sizeof path, "%.200s.html", arguments.items[0]);
    out = out ? out : path;
    if (strcmp(out, "-") != 0)
        st = output_check(out, err);
    if (!st)
        st = make(dataset, arguments.items[0], &text, &length, err);
    if (!st)
        st = json_write_file(out, text, err);
    if (!st && strcmp(out, "-") != 0)
        log_info("report written to %s (%zu KB); any browser opens it", out, (length + 999) / 1000);
    free(text);
    return st;
}
