/* syncopate serve: the HTTP service, and the tokens of who may use it. Signals are waited for by the main thread alone:
 * the first SIGTERM or SIGINT drains the service, a second one ends the process; SIGHUP has the certificate read again.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/serve_launchers.h"
#include "cli/table.h"
#include "dataset/store.h"
#include "service/http/http.h"
#include "service/service.h"

#define DEFAULT_LISTEN "127.0.0.1:8642"
enum { LEAST_MEMORY = 64 << 20 };

/* "HOST:PORT", "[::1]:PORT", "PORT". */
static enum status parse_listen(const char *text, char *host, size_t n, uint16_t *port, struct error *err) {
    const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
    const bool bracket = *text == '[' && colon > text && colon[-1] == ']';
    char *end;
    unsigned long number = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || number > 65535)
        return error_set(err, ST_USAGE, "--listen %s: must be ADDRESS:PORT, like " DEFAULT_LISTEN, text);
    const int length = !colon ? 0 : (int)(colon - text) - (bracket ? 2 : 0);
    snprintf(host, n, "%.*s", length, bracket ? text + 1 : text);
    if (!*host)
        snprintf(host, n, "127.0.0.1");
    *port = (uint16_t)number;
    return ST_OK;
}

/* Threads that libraries start before main do not block signals; a signal that comes to one of them is passed on. */
static pthread_t waiter;

static void pass_on(int number) {
    pthread_kill(waiter, number);
}

/* Hold signals back until this thread takes them by wait_for_signal. */
static void hold_signals(sigset_t *signals) {
    static const int numbers[] = {SIGHUP, SIGTERM, SIGINT};
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    waiter = pthread_self();
    sigemptyset(signals);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(signals, numbers[i]);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* SIGHUP: a renewed certificate is taken up; tokens are read again whenever their file changes. */
static void reload(struct server *server) {
    struct error err;
    if (server_reload(server, &err))
        log_error("asked to read the certificate again, and it stays as it was: %s", ERROR_TEXT(&err));
    else if (server_is_tls(server))
        log_info("asked to read the certificate again: done");
    else
        log_info("asked to read the certificate again; there is none, and tokens are read when their file changes");
}

static void wait_for_signal(const sigset_t *signals, struct server *server) {
    int number = SIGHUP;
    while (sigwait(signals, &number) || number == SIGHUP)
        if (number == SIGHUP)
            reload(server);
    log_info("%s: no new requests; waiting for those that run", number == SIGINT ? "interrupted" : "asked to end");
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}

struct serve {
    const char *listen, *launchers;
    struct service_options service;
    struct server_options server;
    uint64_t threads, workers, computers, connections, per_address;
    double drain_us, compute_us;
    bool no_access_log;
};

static enum status set_limits(struct serve *s, struct error *err) {
    if (s->server.memory_bytes && s->server.memory_bytes < LEAST_MEMORY)
        return error_set(err, ST_USAGE, "--memory: at least 64M");
    if (s->threads > 256 || s->workers > 256 || s->computers > 256 || s->connections > 1000000 ||
        s->per_address > 1000000)
        return error_set(err, ST_USAGE, "at most 256 threads, workers and computers, and 1000000 connections");
    s->server.threads = (unsigned)s->threads;
    s->server.workers = (unsigned)s->workers;
    s->server.computers = (unsigned)s->computers;
    s->server.compute_s = s->compute_us * 1e-6;
    s->server.connections = (unsigned)s->connections;
    s->server.connections_per_address = (unsigned)s->per_address;
    s->server.access_log = !s->no_access_log;
    return ST_OK;
}

static enum status serve(struct serve *s, struct error *err) {
    char host[64];
    struct service *service;
    struct server *server;
    sigset_t signals;
    s->server.host = host;
    enum status st = parse_listen(s->listen, host, sizeof host, &s->server.port, err);
    hold_signals(&signals);
    if (!st)
        st = service_open(&s->service, &service, err);
    if (st)
        return st;
    if (!s->server.certificate && strncmp(host, "127.", 4) && strcmp(host, "::1") && strcmp(host, "localhost"))
        log_warn("without --tls-cert, tokens go over the network in clear");
    st = s->launchers ? serve_launchers(s->launchers, service->access, service->hub, err) : ST_OK;
    if (!st)
        st = hub_start(service->hub, err);
    if (!st)
        st = http_start(&s->server, service, &server, err);
    if (!st) {
        text_print(stdout, "syncopate serves %s at %s\n", s->service.access.dataset, server_url(server));
        fflush(stdout);
        wait_for_signal(&signals, server);
        server_stop(server, s->drain_us * 1e-6);
    }
    service_close(service);
    return st;
}

static command_function token_command;

static enum status serve_command(int argc, char **argv, struct error *err) {
    struct serve s = {.listen = DEFAULT_LISTEN,
                      .service = {.access.dataset = DEFAULT_DATASET,
                                  .limits = {.sessions = 64, .rows = 20000000, .bytes = UINT64_C(4) << 30}},
                      .drain_us = 30e6};
    const struct option options[] = {
        {"listen", OPTION_TEXT, &s.listen, "ADDRESS:PORT",
         "where to listen (default: " DEFAULT_LISTEN "; port 0: any free one)"},
        {"dataset", OPTION_TEXT, &s.service.access.dataset, "FILE",
         "the dataset, or postgresql://... (default: " DEFAULT_DATASET ")"},
        {"open", OPTION_FLAG, &s.service.open, NULL, "from this machine no token is needed, and everything is allowed"},
        {"launchers", OPTION_TEXT, &s.launchers, "FILE",
         "on which clusters the service runs trials itself, and how, as JSON (see examples/launchers.json); a cluster "
         "is "
         "a \"file\" beside FILE, or \"cluster\", a whole id"},
        {"tls-cert", OPTION_TEXT, &s.server.certificate, "FILE",
         "serve https, TLS 1.2 and up, with this PEM certificate chain"},
        {"tls-key", OPTION_TEXT, &s.server.key, "FILE", "the certificate's PEM key"},
        {"threads", OPTION_INTEGER, &s.threads, "N", "how many threads serve connections (default: one a core)"},
        {"workers", OPTION_INTEGER, &s.workers, "N",
         "how many threads read and write the dataset (default: two a core, at least 4)"},
        {"computers", OPTION_INTEGER, &s.computers, "N",
         "how many threads predict and search (default: one a core, and one more)"},
        {"compute", OPTION_TIME, &s.compute_us, "TIME",
         "processor time of a request that needs the role read or submit (default: 20s)"},
        {"memory", OPTION_BYTES, &s.server.memory_bytes, "SIZE",
         "memory of all requests together: a quarter for bodies and answers, the rest for computing "
         "(default: 256M, and as much again for each of --computers)"},
        {"connections", OPTION_INTEGER, &s.connections, "N", "how many connections there may be (default: 1024)"},
        {"connections-per-address", OPTION_INTEGER, &s.per_address, "N",
         "how many connections an address may have, an IPv6 /64 being one (default: 256)"},
        {"drain", OPTION_TIME, &s.drain_us, "TIME", "how long requests may take to end when it stops (default: 30s)"},
        {"team-sessions", OPTION_INTEGER, &s.service.limits.sessions, "N",
         "how many sessions a team may have open, 0: any number (default: 64)"},
        {"team-rows", OPTION_INTEGER, &s.service.limits.rows, "N",
         "how many rows a team may write into the dataset, 0: any number (default: 20000000)"},
        {"team-bytes", OPTION_BYTES, &s.service.limits.bytes, "SIZE",
         "by how much a team may make the dataset grow, 0: any (default: 4GiB)"},
        {"keep-events", OPTION_TIME, &s.service.access.keep_events_us, "TIME",
         "forget events of sessions that have ended after so long, 90d say (default: never)"},
        {"keep-audit", OPTION_TIME, &s.service.access.keep_audit_us, "TIME",
         "forget the audit, who changed what, after so long (default: 730d)"},
        {"keep-answers", OPTION_TIME, &s.service.access.keep_answers_us, "TIME",
         "forget answers kept for repeated requests after so long (default: 1d)"},
        {"no-access-log", OPTION_FLAG, &s.no_access_log, NULL, "do not log a line a request"},
        {0}};
    static const struct command groups[] = {
        {"token", token_command, "make, list and revoke the tokens of those who may use the service"}, {0}};
    const struct command_line line = {
        .usage = "serve [options]",
        .about =
            "The HTTP service: models, clusters, strategies, predictions and measurements of a team. It prints a line\n"
            "with its URL when it is ready. It ends in order on SIGTERM, and reads its certificate again on SIGHUP.\n"
            "/openapi.json describes it.\n"
            "Without --open every request needs a token.",
        .examples = "  syncopate serve --open\n"
                    "  syncopate serve token create alice --role admin && syncopate serve --listen 0.0.0.0:8642 \\\n"
                    "      --tls-cert cert.pem --tls-key key.pem",
        .options = options,
        .commands = groups};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = set_limits(&s, err);
    return st ? st : serve(&s, err);
}

/* Tokens. */

static enum status tokens_path(const char *dataset, char *out, size_t n, struct error *err) {
    return store_beside(dataset, "tokens", out, n, err);
}

struct create_options {
    const char *role, *team;
    double expires_us; /* from now; NaN: never */
};

static enum status describe_token(const struct create_options *o, const char *name, struct token *wanted,
                                  struct error *err) {
    if (!role_parse(o->role, &wanted->principal.role))
        return error_set(err, ST_USAGE, "--role %s: must be read, submit, run or admin", o->role);
    if (!token_name_valid(name) || (o->team && !token_name_valid(o->team)))
        return error_set(err, ST_USAGE, "names of tokens and teams are 1 to 64 letters, digits and . _ -");
    snprintf(wanted->name, sizeof wanted->name, "%s", name);
    snprintf(wanted->principal.team, sizeof wanted->principal.team, "%s", o->team ? o->team : "");
    if (o->expires_us <= 0)
        return error_set(err, ST_USAGE, "--expires: must be over 0; without it the token is good until it is revoked");
    if (!(wanted->principal.requests_per_s >= 0))
        return error_set(err, ST_USAGE, "--requests-per-s: must be 0 (any number) or more");
    if (isfinite(o->expires_us))
        clock_utc_after(o->expires_us, wanted->expires, sizeof wanted->expires);
    return ST_OK;
}

static enum status create_command(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    struct create_options o = {.role = "submit", .expires_us = NAN};
    struct token wanted = {.principal.requests_per_s = 500}, made;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"},
        {"role", OPTION_TEXT, &o.role, "read|submit|run|admin", "what it may do (default: submit)"},
        {"team", OPTION_TEXT, &o.team, "TEAM", "the team that owns what it adds (default: " TOKEN_TEAM ")"},
        {"expires", OPTION_TIME, &o.expires_us, "TIME",
         "how long it is good for, 720h say (default: until it is revoked)"},
        {"requests-per-s", OPTION_NUMBER, &wanted.principal.requests_per_s, "N",
         "how many requests a second it may make, 0: any number (default: 500)"},
        {"trials-per-day", OPTION_INTEGER, &wanted.principal.trials_per_day, "N",
         "how many trials a day it may ask for, 0: any number (default: 0)"},
        {0}};
    const struct command_line line = {
        .usage = "serve token create NAME [options]",
        .about =
            "Make a token and print it. It cannot be printed again, since only its hash is kept. A running service\n"
            "knows it within a second. Roles: read looks; submit also adds descriptions and measurements; run also\n"
            "opens sessions; admin may do everything.",
        .examples = "  syncopate serve token create ci --role run --team vision --expires 720h",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    char path[4096], secret[TOKEN_LENGTH + 1];
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = tokens_path(dataset, path, sizeof path, err);
    if (!st)
        st = describe_token(&o, arguments.items[0], &wanted, err);
    if (!st)
        st = tokens_create(path, &wanted, &made, secret, err);
    if (!st)
        text_print(stdout, "%s\n", secret);
    return st;
}

static enum status print_token(const struct token *t, struct quota *quota, struct error *err) {
    const struct principal *p = &t->principal;
    cJSON *json = cJSON_CreateObject();
    bool ok =
        json && cJSON_AddStringToObject(json, "id", t->id) && cJSON_AddStringToObject(json, "name", t->name) &&
        cJSON_AddStringToObject(json, "team", p->team) && cJSON_AddStringToObject(json, "role", role_word(p->role)) &&
        cJSON_AddStringToObject(json, "created", t->created) &&
        (*t->expires ? cJSON_AddStringToObject(json, "expires", t->expires) : cJSON_AddNullToObject(json, "expires")) &&
        cJSON_AddNumberToObject(json, "requests_per_s", p->requests_per_s) &&
        cJSON_AddNumberToObject(json, "trials_per_day", (double)p->trials_per_day) &&
        cJSON_AddNumberToObject(json, "trials_used", (double)quota_used(quota, t->id));
    return output_line(json, ok, err);
}

static void add_token(struct table *table, const struct token *t, struct quota *quota) {
    table_cell(table, "%s", t->id);
    table_cell(table, "%s", t->name);
    table_cell(table, "%s", t->principal.team);
    table_cell(table, "%s", role_word(t->principal.role));
    table_cell(table, "%.10s", t->created);
    table_cell(table, "%.10s", *t->expires ? t->expires : "never");
    if (t->principal.trials_per_day)
        table_cell(table, "%llu of %llu", (unsigned long long)quota_used(quota, t->id),
                   (unsigned long long)t->principal.trials_per_day);
    else
        table_cell(table, "no limit");
}

static enum status list_command(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    bool json = false;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"},
        {"json", OPTION_FLAG, &json, NULL, "print one JSON object a line"},
        {0}};
    const struct command_line line = {
        .usage = "serve token list [options]", .about = "Every token, without its secret.", .options = options};
    struct arguments arguments;
    struct arena arena = {0};
    struct token *tokens;
    struct quota *quota = NULL;
    struct table table;
    char path[4096];
    size_t n = 0;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = tokens_path(dataset, path, sizeof path, err);
    if (!st)
        st = tokens_read(path, &arena, &n, &tokens, err);
    if (!st)
        st = store_beside(dataset, "usage", path, sizeof path, err);
    if (!st)
        st = quota_open(path, &quota, err);
    table_init(&table, (const char *const[]){"ID", "NAME", "TEAM", "ROLE", "CREATED", "EXPIRES", "TRIALS TODAY", NULL});
    for (size_t i = 0; i < n && !st; i++)
        if (json)
            st = print_token(&tokens[i], quota, err);
        else
            add_token(&table, &tokens[i], quota);
    if (!st && !json)
        table_print(&table, stdout);
    if (!st && !n)
        log_info("there are no tokens yet; make one: syncopate serve token create NAME");
    table_release(&table);
    quota_close(quota);
    arena_release(&arena);
    return st;
}

static enum status revoke_command(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"}, {0}};
    const struct command_line line = {.usage = "serve token revoke (ID|NAME) [options]",
                                      .about = "Take a token away. A service that runs refuses it within a second.",
                                      .options = options,
                                      .min_arguments = 1,
                                      .max_arguments = 1};
    struct arguments arguments;
    char path[4096];
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = tokens_path(dataset, path, sizeof path, err);
    return st ? st : tokens_revoke(path, arguments.items[0], err);
}

static enum status token_command(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {{"create", create_command, "make a token and print it, once"},
                                          {"list", list_command, "list every token, without its secret"},
                                          {"revoke", revoke_command, "take a token away"},
                                          {0}};
    return commands_run(rows, "serve token",
                        "Who may use the service. Tokens stand in DATASET.tokens, which only its owner can read.", argc,
                        argv, err);
}

enum status cmd_serve(int argc, char **argv, struct error *err) {
    if (argc > 1 && !strcmp(argv[1], "token"))
        return token_command(argc - 1, argv + 1, err);
    return serve_command(argc, argv, err);
}
