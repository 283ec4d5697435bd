/* syncopate sessions: a service's tuning sessions, looked at and steered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cmd_sessions_show.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/remote.h"
#include "cli/remote_records.h"
#include "cli/table.h"

static enum status need_service(const struct remote_options *remote, struct error *err) {
    if (remote->server)
        return ST_OK;
    return error_set(
        err, ST_USAGE,
        "sessions is about a service: say which with --server URL or SYNCOPATE_SERVER. Those of a dataset "
        "here: \"dataset sessions\" lists them, \"sessions show\" and \"session show\" have what one found");
}

/* ---- list ---- */

struct listing {
    struct table table;
    bool json;
    uint64_t n, most;
};

static const char *name_of(const cJSON *session, const char *key) {
    return remote_text(cJSON_GetObjectItemCaseSensitive(session, key), "name");
}

static enum status list_session(void *context, const cJSON *s, bool *done, struct error *err) {
    struct listing *l = context;
    *done = ++l->n == l->most;
    if (l->json) {
        cJSON *copy = cJSON_Duplicate(s, true);
        return output_line(copy, copy != NULL, err);
    }
    const uint64_t budget = remote_count(cJSON_GetObjectItemCaseSensitive(s, "budget"), "trials");
    table_cell(&l->table, "%s", remote_text(s, "id"));
    table_cell(&l->table, "%s", remote_text(s, "state"));
    table_cell(&l->table, "%s", strcmp(remote_text(s, "mode"), "own") != 0 ? "agents" : "the service");
    table_cell(&l->table, "%s", name_of(s, "model"));
    table_cell(&l->table, "%s", name_of(s, "cluster"));
    if (budget)
        table_cell(&l->table, "%lu/%lu", (unsigned long)remote_count(s, "complete"), (unsigned long)budget);
    else
        table_cell(&l->table, "%lu", (unsigned long)remote_count(s, "complete"));
    table_cell(&l->table, "%.16s", remote_text(s, "started"));
    table_cell(&l->table, "%s", remote_text(s, "reason"));
    return ST_OK;
}

static enum status list_sessions(const struct remote_options *remote, const char *state, struct listing *l,
                                 struct error *err) {
    struct client *client;
    char path[256];
    enum status st = remote_open(remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    char *escaped = client_escape(client, state ? state : "");
    snprintf(path, sizeof path, "/api/v1/sessions?page_size=100%s%.60s", state ? "&state=" : "",
             escaped ? escaped : "");
    table_init(&l->table, (const char *const[]){"SESSION", "STATE", "RUN BY", "MODEL", "CLUSTER", ">COMPLETE",
                                                "STARTED", "WHY IT ENDED", NULL});
    st = escaped ? remote_each(client, path, list_session, l, err) : error_no_memory(err);
    if (!st && !l->json && l->n)
        table_print(&l->table, stdout);
    if (!st && !l->n)
        log_info("no sessions%s; open one: syncopate --server %s tune MODEL CLUSTER", state ? " in this state" : " yet",
                 remote->server);
    table_release(&l->table);
    free(escaped);
    client_close(client);
    return st;
}

static enum status sessions_list(int argc, char **argv, struct error *err) {
    struct remote_options remote = {0};
    struct listing listing = {.most = 50};
    const char *state = NULL;
    const struct option options[] = {
        REMOTE_OPTIONS(remote),
        {"state", OPTION_TEXT, &state, "running|paused|done|stopped|failed|cancelled", "only sessions in this state"},
        {"limit", OPTION_INTEGER, &listing.most, "N", "print at most N; 0 is all (default 50)"},
        {"json", OPTION_FLAG, &listing.json, NULL, "print one JSON object a line"},
        {0}};
    const struct command_line line = {.usage = "sessions list [options]",
                                      .about = "A service's tuning sessions, newest first.",
                                      .examples = "  syncopate sessions list --server http://127.0.0.1:8642",
                                      .options = options};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = need_service(&remote, err);
    return st ? st : list_sessions(&remote, state, &listing, err);
}

/* ---- steering ---- */

static enum status steer(const struct remote_options *remote, const char *id, const char *verb, struct error *err) {
    struct client *client;
    cJSON *answer = NULL;
    char path[256];
    enum status st = remote_open(remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    char *escaped = client_escape(client, id);
    snprintf(path, sizeof path, "/api/v1/sessions/%.150s:%s", escaped ? escaped : "", verb);
    st = remote_post(client, path, NULL, escaped != NULL, &answer, err);
    if (!st)
        log_info("session %s is %s", remote_text(answer, "id"), remote_text(answer, "state"));
    cJSON_Delete(answer);
    free(escaped);
    client_close(client);
    return st;
}

static enum status steer_command(const char *verb, const char *about, int argc, char **argv, struct error *err) {
    struct remote_options remote = {0};
    char usage[64];
    const struct option options[] = {REMOTE_OPTIONS(remote), {0}};
    snprintf(usage, sizeof usage, "sessions %s ID [options]", verb);
    const struct command_line line = {
        .usage = usage, .about = about, .options = options, .min_arguments = 1, .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = need_service(&remote, err);
    return st ? st : steer(&remote, arguments.items[0], verb, err);
}

static enum status sessions_pause(int argc, char **argv, struct error *err) {
    return steer_command("pause", "Suggest no more of its trials until it is resumed.", argc, argv, err);
}
static enum status sessions_resume(int argc, char **argv, struct error *err) {
    return steer_command("resume", "Go on with a session that was paused.", argc, argv, err);
}
static enum status sessions_stop(int argc, char **argv, struct error *err) {
    return steer_command("stop", "End it; what was found so far is its answer.", argc, argv, err);
}
static enum status sessions_cancel(int argc, char **argv, struct error *err) {
    return steer_command("cancel", "End it as a mistake.", argc, argv, err);
}

enum status cmd_sessions(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {
        {"list", sessions_list, "list sessions, newest first"},
        {"show", sessions_show, "show the state and findings of a session of a service, or of a dataset here"},
        {"pause", sessions_pause, "suggest no more trials of a session until it is resumed"},
        {"resume", sessions_resume, "go on with a paused session"},
        {"stop", sessions_stop, "end a session; what was found so far is its answer"},
        {"cancel", sessions_cancel, "end a session as a mistake"},
        {0}};
    return commands_run(rows, "sessions",
                        "The tuning sessions of a service. \"syncopate tune --server URL\" opens one and shows it.",
                        argc, argv, err);
}
