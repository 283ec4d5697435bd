/* syncopate report: a session as one HTML file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/session_findings.h"
#include "report/report.h"

struct page {
    char *text; /* malloc'd */
    size_t length;
};

static enum status make_here(const char *dataset, const char *session, struct page *out, struct error *err) {
    struct findings f;
    char command[4400];
    enum status st = session_findings_here(dataset, session, FINDINGS_ALL, &f, err);
    if (st)
        return st;
    snprintf(command, sizeof command, "syncopate dataset show strategy %.12s --dataset %.4200s --out best.json",
             f.outcome.best != SIZE_MAX ? f.outcome.rows[f.outcome.best].strategy : "", dataset);
    st = report_write(&f, command, &out->text, &out->length, err);
    findings_release(&f);
    return st;
}

static enum status make_there(const struct remote_options *remote, const char *session, struct page *out,
                              struct error *err) {
    struct findings f;
    char command[512];
    enum status st = session_findings_there(remote, session, FINDINGS_ALL, &f, err);
    if (st)
        return st;
    snprintf(command, sizeof command, "syncopate --server %.250s strategy export %.64s --out best.json", remote->server,
             f.outcome.session.id);
    st = report_write(&f, command, &out->text, &out->length, err);
    findings_release(&f);
    return st;
}

static enum status report_to(const char *out, const struct remote_options *remote, const char *dataset,
                             const char *session, struct error *err) {
    struct page page = {0};
    const bool is_file = strcmp(out, "-") != 0;
    enum status st = is_file ? output_check(out, err) : ST_OK;
    if (!st)
        st = remote->server ? make_there(remote, session, &page, err) : make_here(dataset, session, &page, err);
    if (!st)
        st = json_write_file(out, page.text, err);
    if (!st && is_file)
        log_info("report written to %s (%zu KB); any browser opens it", out, (page.length + 999) / 1000);
    free(page.text);
    return st;
}

enum status cmd_report(int argc, char **argv, struct error *err) {
    const char *dataset = NULL, *out = NULL;
    struct remote_options remote = {0};
    const struct option options[] = {
        REMOTE_OPTIONS(remote),
        {"dataset", OPTION_ONE_OF, &dataset, "FILE", "the dataset that it is in (default " DEFAULT_DATASET ")"},
        {"out", OPTION_TEXT, &out, "FILE", "where to (default SESSION.html, here; - is standard output)"},
        {0}};
    const struct command_line line = {
        .usage = "report SESSION [options]",
        .about = "A session as one HTML file that needs nothing else: what to use and how sure that is, every trial,\n"
                 "predicted against measured, the best strategy next to the best baseline on one time axis, which\n"
                 "knobs mattered, and where it all comes from. A session may still run, or be a collection.\n"
                 "With --server it is one of the service's, and the file needs no service.",
        .examples = "  syncopate report 20261121-084117-3fa2n9kq4xw81d7v\n"
                    "  syncopate report 20261121-084117-3fa2n9kq4xw81d7v --out - | less\n"
                    "  syncopate report 20261121-084117-3fa2n9kq4xw81d7v --server https://tuner.example:8642",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    char path[256];
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = remote_or_here(&remote, dataset, err);
    if (st)
        return st;
    snprintf(path, sizeof path, "%.200s.html", arguments.items[0]);
    if (!out && !session_id_is_valid(arguments.items[0])) /* it may be a path */
        return error_at(err, ST_USAGE, arguments.items[0], "is no name of a file; give --out");
    return report_to(out ? out : path, &remote, dataset ? dataset : DEFAULT_DATASET, arguments.items[0], err);
}
