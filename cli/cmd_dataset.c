/* syncopate dataset: query, export, show, check, back up and prune what was measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stream.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/remote.h"
#include "cli/remote_query.h"
#include "cli/table.h"
#include "dataset/check.h"
#include "dataset/describe.h"
#include "dataset/events.h"
#include "dataset/export.h"
#include "dataset/query.h"
#include "dataset/requests.h"
#include "dataset/store.h"
#include "tuner/session/trials.h"

/* The options that say which trials; query, export share them. */
struct filter {
    const char *dataset, *state, *order; /* dataset NULL: not said */
    struct remote_options remote;
    uint64_t limit, offset;
    double faster_us, slower_us;
    struct query query;
    enum record_state wanted;
};

#define FILTER_OPTIONS(f)                                                                                              \
    {"dataset", OPTION_ONE_OF, &(f).dataset, "FILE",                                                                   \
     "the dataset, or postgresql://... (default: " DEFAULT_DATASET ")"},                                               \
        {"model", OPTION_TEXT, &(f).query.model, "MODEL", "only this model: a name or the beginning of an id"},        \
        {"cluster", OPTION_TEXT, &(f).query.cluster, "CLUSTER", "only this cluster"},                                  \
        {"strategy", OPTION_TEXT, &(f).query.strategy, "STRATEGY",                                                     \
         "only this strategy: a name or the beginning of an id"},                                                      \
        {"session", OPTION_TEXT, &(f).query.session, "ID", "only this session"},                                       \
        {"runner", OPTION_TEXT, &(f).query.runner, "lab|local|mpirun|slurm",                                           \
         "only trials of this runner, or of another that records name, such as command or ask"},                       \
        {"proposer", OPTION_TEXT, &(f).query.proposer, "PROPOSER",                                                     \
         "only trials of this proposer: a baseline's name, guided, neighbour or another"},                             \
        {"state", OPTION_TEXT, &(f).state, "waiting|running|complete|failed|infeasible|cancelled",                     \
         "only trials in this state"},                                                                                 \
        {"since", OPTION_TEXT, &(f).query.since, "UTC", "only from this time on: 2026-11-21 or 2026-11-21T08:00"},     \
        {"until", OPTION_TEXT, &(f).query.until, "UTC", "only before this time"},                                      \
        {"faster-than", OPTION_TIME, &(f).faster_us, "T", "only with a measured median of at most T: 40ms, 1.5s"},     \
        {"slower-than", OPTION_TIME, &(f).slower_us, "T", "only with a measured median of at least T"},                \
        {"filter", OPTION_TEXT, &(f).query.filter, "F",                                                                \
         "only trials that fit this filter: 'proposer != wfbp AND (measured_us < 90000 OR team = red)'"},              \
        {"order", OPTION_TEXT, &(f).order, "recorded|number|predicted|measured",                                       \
         "what they are sorted by (default recorded)"},                                                                \
        {"descending", OPTION_FLAG, &(f).query.descending, NULL, "sort the other way round"},                          \
        {"limit", OPTION_INTEGER, &(f).limit, "N", "print at most N"},                                                 \
        {"offset", OPTION_INTEGER, &(f).offset, "N", "leave out the first N"}, REMOTE_OPTIONS((f).remote)

static enum status finish_filter(struct filter *f, struct error *err) {
    enum status st = remote_or_here(&f->remote, f->dataset, err);
    if (st)
        return st;
    f->dataset = f->dataset ? f->dataset : DEFAULT_DATASET;
    f->query.limit = f->limit;
    f->query.offset = f->offset;
    f->query.max_measured_us = f->faster_us;
    f->query.min_measured_us = f->slower_us;
    if (f->state) {
        if (!record_state_parse(f->state, &f->wanted))
            return error_set(err, ST_USAGE, "--state: there is no state \"%s\"", f->state);
        f->query.state = &f->wanted;
    }
    if (f->order && !query_order_parse(f->order, &f->query.order))
        return error_set(err, ST_USAGE, "--order: \"%s\" is none of recorded, number, predicted, measured", f->order);
    return ST_OK;
}

static enum status show_record(void *context, const struct record *r, struct error *err) {
    (void)err;
    struct table *table = context;
    char predicted[32], measured[32];
    table_cell(table, "%.16s", r->queued ? r->queued : "");
    table_cell(table, "%s", r->session ? r->session : "");
    table_cell(table, "%s", r->model_name);
    table_cell(table, "%s", r->cluster_name);
    table_cell(table, "%s", r->strategy_name);
    table_cell(table, "%.12s", r->strategy);
    table_cell(table, "%s", units_format_known_time(r->predicted_us, "", predicted, sizeof predicted));
    table_cell(table, "%s", units_format_known_time(r->median_us, "", measured, sizeof measured));
    table_cell(table, "%s%s%.80s%s", record_state_word(r->state), r->reason ? ": " : "", r->reason ? r->reason : "",
               trial_ended_early(r) ? ", ended early" : "");
    return ST_OK;
}

static void init_table(struct table *table) {
    table_init(table, (const char *const[]){"WHEN", "SESSION", "MODEL", "CLUSTER", "STRATEGY", "ID", ">PREDICTED",
                                            ">MEASURED", "STATE", NULL});
}

/* No trial was shown: say why. */
static void tell_none(const char *where, bool any) {
    if (any)
        log_info("no trial of %.200s fits: leave out a condition (it has others)", where);
    else
        log_info("%.200s has no trials yet that you may see; to record some: syncopate tune MODEL CLUSTER", where);
}

/* ---- a service's trials ---- */

static enum status show_item(void *context, const cJSON *item, bool *done, struct error *err) {
    struct arena arena = {0};
    struct record record;
    (void)done;
    enum status st = remote_record(item, &arena, &record, err);
    if (!st)
        st = show_record(context, &record, err);
    arena_release(&arena);
    return st;
}

static enum status see_item(void *context, const cJSON *item, bool *done, struct error *err) {
    (void)item;
    (void)err;
    *(bool *)context = *done = true;
    return ST_OK;
}

static enum status tell_none_there(const struct filter *f, struct client *client, struct error *err) {
    bool any = false;
    const enum status st = remote_query_run(client, &(struct query){.limit = 1}, see_item, &any, err);
    if (!st)
        tell_none(f->remote.server, any);
    return st;
}

static enum status query_remotely(const struct filter *f, bool json, struct error *err) {
    struct client *client;
    struct table table;
    uint64_t n = 0;
    enum status st = remote_open(&f->remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    if (json) {
        st = remote_query_export(client, &f->query, EXPORT_JSON_LINES, false, stdout, &n, err);
    } else {
        init_table(&table);
        st = remote_query_run(client, &f->query, show_item, &table, err);
        n = table.n_rows;
        if (!st)
            table_print(&table, stdout);
        table_release(&table);
    }
    if (!st && !n)
        st = tell_none_there(f, client, err);
    client_close(client);
    return st;
}

/* Write the service's trials to `path`: whole or not at all. */
static enum status export_remotely(const struct filter *f, enum export_format format, bool references, const char *path,
                                   uint64_t *n, struct error *err) {
    struct client *client;
    char *text;
    size_t size;
    enum status st = remote_open(&f->remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    FILE *out = strcmp(path, "-") != 0 ? stream_open(&text, &size) : stdout;
    if (out)
        st = remote_query_export(client, &f->query, format, references, out, n, err);
    if (out != stdout)
        st = stream_save(out, st, &text, &size, path, err);
    if (!st && !*n)
        st = tell_none_there(f, client, err);
    client_close(client);
    return st;
}

/* ---- trials here ---- */

static enum status tell_none_here(struct store *store, struct error *err) {
    uint64_t all;
    const enum status st = query_count(store, &(struct query){0}, &all, err);
    if (!st)
        tell_none("the dataset", all > 0);
    return st;
}

static enum status dataset_query(int argc, char **argv, struct error *err) {
    struct filter f = {0};
    bool json = false;
    const struct option options[] = {
        FILTER_OPTIONS(f), {"json", OPTION_FLAG, &json, NULL, "print one JSON object a line"}, {0}};
    const struct command_line line = {
        .usage = "dataset query [filters]",
        .about = "Trials, a line each; every filter narrows.",
        .examples = "  syncopate dataset query --model resnet18 --state complete --order measured --limit 10",
        .options = options};
    struct arguments arguments;
    struct store *store;
    uint64_t n = 0;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = finish_filter(&f, err);
    if (!st && f.remote.server)
        return query_remotely(&f, json, err);
    if (!st)
        st = store_open(f.dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    if (json) {
        st = export_run(store, &f.query, EXPORT_JSON_LINES, stdout, &n, err);
    } else {
        struct table table;
        init_table(&table);
        st = query_run(store, &f.query, show_record, &table, err);
        n = table.n_rows;
        if (!st)
            table_print(&table, stdout);
        table_release(&table);
    }
    if (!st && !n)
        st = tell_none_here(store, err);
    store_close(store);
    return st;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A file is written whole or not at all, and is never the dataset itself. */
static enum status export_text(struct store *store, const struct query *query, enum export_format format,
                               bool references, FILE *out, uint64_t *n, struct error *err) {
    enum status st = references ? export_references(store, query, out, err) : ST_OK;
    return st ? st : export_run(store, query, format, out, n, err);
}

static enum status export_to(struct store *store, const struct query *query, enum export_format format, bool references,
                             const char *path, uint64_t *n, struct error *err) {
    char *text;
    size_t size;
    if (!strcmp(path, "-"))
        return export_text(store, query, format, references, stdout, n, err);
    if (same_file(path, store_path(store)))
        return error_set(err, ST_USAGE, "--out: %s is the dataset itself", path);
    FILE *memory = stream_open(&text, &size);
    enum status st = memory ? export_text(store, query, format, references, memory, n, err) : ST_OK;
    return stream_save(memory, st, &text, &size, path, err);
}

static enum status dataset_export(int argc, char **argv, struct error *err) {
    struct filter f = {0};
    const char *format = "jsonl", *out = "-";
    bool references = false;
    const struct option options[] = {
        FILTER_OPTIONS(f),
        {"format", OPTION_TEXT, &format, "jsonl|csv", "JSON Lines (default) or CSV"},
        {"out", OPTION_TEXT, &out, "FILE", "where to (default: standard output)"},
        {"iterations", OPTION_FLAG, &f.query.iterations, NULL, "write every iteration's time as well"},
        {"references", OPTION_FLAG, &references, NULL,
         "write the descriptions and sessions as well, for \"dataset import\""},
        {0}};
    const struct command_line line = {
        .usage = "dataset export [filters]",
        .about = "Trials for other programs, as JSON Lines or CSV (RFC 4180). In CSV a text that a\n"
                 "spreadsheet would take for a formula has a ' before it.",
        .examples = "  syncopate dataset export --format csv --out trials.csv",
        .options = options};
    struct arguments arguments;
    struct store *store;
    uint64_t n = 0;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = finish_filter(&f, err);
    bool csv = !strcmp(format, "csv");
    if (!st && !csv && strcmp(format, "jsonl"))
        st = error_set(err, ST_USAGE, "--format: \"%s\" is neither jsonl nor csv", format);
    if (!st && csv && references)
        st = error_set(err, ST_USAGE, "--references: only JSON Lines can hold them");
    if (!st && !f.remote.server)
        st = store_open(f.dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    if (f.remote.server) {
        st = export_remotely(&f, csv ? EXPORT_CSV : EXPORT_JSON_LINES, references, out, &n, err);
    } else {
        st = export_to(store, &f.query, csv ? EXPORT_CSV : EXPORT_JSON_LINES, references, out, &n, err);
        if (!st && !n)
            st = tell_none_here(store, err);
        store_close(store);
    }
    if (!st && strcmp(out, "-"))
        log_info("%lu trials written to %s", (unsigned long)n, out);
    return st;
}

static void print_problem(void *context, const char *problem) {
    (void)context;
    text_print(stdout, "%s\n", problem);
}

static enum status dataset_check(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"}, {0}};
    const struct command_line line = {
        .usage = "dataset check",
        .about = "Check that the file is whole: pages, references, every description and its hash, names and ids,\n"
                 "every median. Exit status 1 when something is wrong, each problem on a line.",
        .options = options};
    struct arguments arguments;
    struct store *store;
    struct check_report report;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = store_open(dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = check_run(store, print_problem, NULL, &report, err);
    store_close(store);
    if (!st && report.problems)
        return error_at(err, ST_CONFLICT, dataset, "%lu problems", (unsigned long)report.problems);
    if (!st)
        log_info("%s: %lu descriptions, %lu trials and %lu iterations are as they should be", dataset,
                 (unsigned long)report.objects, (unsigned long)report.trials, (unsigned long)report.iterations);
    return st;
}

/* Parse the arguments (NULL: the command takes none), then open the dataset, which an option may have named, for
 * reading. */
static enum status parse_and_open(const struct command_line *line, int argc, char **argv, struct arguments *arguments,
                                  const char *const *dataset, struct store **store, struct error *err) {
    struct arguments none;
    enum status st = options_parse(line, argc, argv, arguments ? arguments : &none, err);
    return st ? st : store_open(*dataset, STORE_READ_ONLY, store, err);
}

static enum status dataset_backup(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"}, {0}};
    const struct command_line line = {.usage = "dataset backup FILE",
                                      .about = "A consistent copy in one new file, also while a session is writing.",
                                      .options = options,
                                      .min_arguments = 1,
                                      .max_arguments = 1};
    struct arguments arguments;
    struct store *store;
    enum status st = parse_and_open(&line, argc, argv, &arguments, &dataset, &store, err);
    if (st)
        return st;
    st = store_backup(store, arguments.items[0], err);
    store_close(store);
    return st;
}

/* Like event_prune: a thousand at most. */
typedef enum status prune_some(struct store *store, const char *before, uint64_t *n, struct error *err);

/* All that is older than `age_us`; nothing where no age was given. */
static enum status prune_all(struct store *store, prune_some *prune, double age_us, uint64_t *total,
                             struct error *err) {
    char before[32];
    uint64_t n = 1;
    enum status st = ST_OK;
    if (isnan(age_us))
        return ST_OK;
    clock_utc_after(-age_us, before, sizeof before);
    while (!st && n) {
        st = prune(store, before, &n, err);
        *total += st ? 0 : n;
    }
    return st;
}

static enum status dataset_prune(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    double events_us = NAN, audit_us = NAN, answers_us = NAN;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"},
        {"events", OPTION_TIME, &events_us, "TIME", "forget events of sessions that have ended, older than this"},
        {"audit", OPTION_TIME, &audit_us, "TIME", "forget audit entries, who changed what, older than this"},
        {"answers", OPTION_TIME, &answers_us, "TIME",
         "forget answers that a service keeps for repeated requests, older than this"},
        {0}};
    const struct command_line line = {
        .usage = "dataset prune [options]",
        .about =
            "Delete old events, audit entries and stored answers. Trials, sessions and descriptions stay. The file\n"
            "does not shrink: new rows take the room. A service does the same by itself: see serve --keep-events,\n"
            "--keep-audit and --keep-answers.",
        .examples = "  syncopate dataset prune --events 90d --audit 365d",
        .options = options};
    struct arguments arguments;
    struct store *store;
    uint64_t events = 0, entries = 0, answers = 0;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && isnan(events_us) && isnan(audit_us) && isnan(answers_us))
        return error_set(err, ST_USAGE, "say what: --events, --audit or --answers, each with an age like 90d");
    if (!st)
        st = store_open(dataset, STORE_READ_WRITE, &store, err);
    if (st)
        return st;
    st = prune_all(store, event_prune, events_us, &events, err);
    if (!st)
        st = prune_all(store, audit_prune, audit_us, &entries, err);
    if (!st)
        st = prune_all(store, response_prune, answers_us, &answers, err);
    store_close(store);
    if (!st)
        log_info("%s: %lu events, %lu audit entries and %lu answers forgotten", dataset, (unsigned long)events,
                 (unsigned long)entries, (unsigned long)answers);
    return st;
}

static enum status show_sessions(struct store *store, struct error *err) {
    struct arena arena = {0};
    struct stored_session *sessions;
    size_t n;
    enum status st = store_session_list(store, 0, 0, &arena, &n, &sessions, err);
    if (!st) {
        struct table table;
        table_init(&table,
                   (const char *const[]){"SESSION", "STATE", ">TRIALS", ">COMPLETE", "STARTED", "WHY IT ENDED", NULL});
        for (size_t i = 0; i < n; i++) {
            table_cell(&table, "%s", sessions[i].id);
            table_cell(&table, "%s", stored_session_state_word(sessions[i].state));
            table_cell(&table, "%lu", (unsigned long)sessions[i].trials);
            table_cell(&table, "%lu", (unsigned long)sessions[i].complete);
            table_cell(&table, "%.16s", sessions[i].started);
            table_cell(&table, "%s", sessions[i].reason ? sessions[i].reason : "");
        }
        table_print(&table, stdout);
        if (!n)
            log_info("the dataset has no sessions yet; to run one: syncopate tune MODEL CLUSTER");
        table_release(&table);
    }
    arena_release(&arena);
    return st;
}

static enum status dataset_sessions(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"}, {0}};
    const struct command_line line = {
        .usage = "dataset sessions", .about = "Tuning sessions, newest first.", .options = options};
    struct store *store;
    enum status st = parse_and_open(&line, argc, argv, NULL, &dataset, &store, err);
    if (st)
        return st;
    st = show_sessions(store, err);
    store_close(store);
    return st;
}

/* ---- show ---- */

struct show {
    const char *dataset, *word, *out; /* word: a name or the beginning of an id; NULL lists what there is */
    bool canonical;
    enum store_kind kind;
};

static enum status list_objects(struct store *store, enum store_kind kind, struct error *err) {
    struct arena arena = {0};
    struct stored_object *objects;
    size_t n;
    enum status st = store_list(store, kind, &arena, &n, &objects, err);
    if (!st) {
        struct table table;
        table_init(&table, (const char *const[]){"NAME", "ID", "RECORDED", NULL});
        for (size_t i = 0; i < n; i++) {
            table_cell(&table, "%s", objects[i].name);
            table_cell(&table, "%.12s", objects[i].id.hex);
            table_cell(&table, "%.16s", objects[i].created);
        }
        table_print(&table, stdout);
        if (!n)
            log_info("the dataset has none yet; commands that record trials, such as syncopate tune, add them");
        table_release(&table);
    }
    arena_release(&arena);
    return st;
}

static void move_to_front(cJSON *object, const char *key) {
    cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(object, key);
    if (member)
        cJSON_InsertItemInArray(object, 0, member);
}

/* The object's text as people read it, with its name: the stored text of a strategy has no name. malloc'd, NULL when
 * memory is out. */
static char *text_for_people(const struct stored_object *object) {
    cJSON *json = cJSON_Parse(object->content);
    bool named = json && (cJSON_HasObjectItem(json, "name") || cJSON_AddStringToObject(json, "name", object->name));
    move_to_front(json, "name");
    move_to_front(json, "schema");
    char *text = named ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static enum status print_object(struct store *store, const struct show *show, struct error *err) {
    struct arena arena = {0};
    struct stored_object object;
    struct id id;
    enum status st = store_find(store, show->kind, show->word, &id, err);
    if (!st)
        st = store_get(store, show->kind, id.hex, &arena, &object, err);
    if (!st && show->canonical && !strcmp(show->out, "-") && !text_is_clean(object.content, strlen(object.content)))
        st = error_set(err, ST_USAGE, "%s %.12s holds characters that a terminal obeys; write it to a file by --out",
                       show->word, id.hex);
    if (!st && show->canonical) {
        st = json_write_file(show->out, object.content, err);
    } else if (!st) {
        char *text = text_for_people(&object);
        st = text ? json_write_file(show->out, text, err) : error_no_memory(err);
        free(text);
    }
    arena_release(&arena);
    return st;
}

static enum status parse_show(const struct arguments *arguments, struct show *show, struct error *err) {
    static const char *const words[] = {"model", "cluster", "strategy"};
    static const enum store_kind kinds[] = {STORE_MODEL, STORE_CLUSTER, STORE_STRATEGY};
    size_t k = 0;
    while (k < 3 && strcmp(words[k], arguments->items[0]))
        k++;
    if (k == 3)
        return error_set(err, ST_USAGE, "\"%s\" is none of model, cluster, strategy", arguments->items[0]);
    show->kind = kinds[k];
    show->word = arguments->n > 1 ? arguments->items[1] : NULL;
    if (same_file(show->out, show->dataset))
        return error_set(err, ST_USAGE, "--out: %s is the dataset itself", show->out);
    return output_check(show->out, err);
}

static enum status dataset_show(int argc, char **argv, struct error *err) {
    struct show show = {.dataset = DEFAULT_DATASET, .out = "-"};
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &show.dataset, "FILE", "the dataset (default: " DEFAULT_DATASET ")"},
        {"out", OPTION_TEXT, &show.out, "FILE", "where to (default: standard output)"},
        {"canonical", OPTION_FLAG, &show.canonical, NULL, "write the very text whose SHA-256 is the id, on one line"},
        {0}};
    const struct command_line line = {
        .usage = "dataset show (model|cluster|strategy) [ID]",
        .about = "A recorded description as a JSON file that every command reads back. ID: a name or the beginning of\n"
                 "an id. Without it, what there is, a line each.",
        .examples = "  syncopate dataset show cluster\n"
                    "  syncopate dataset show cluster my-lab --out my-lab.json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 2};
    struct arguments arguments;
    struct store *store;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = parse_show(&arguments, &show, err);
    if (!st)
        st = store_open(show.dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = show.word ? print_object(store, &show, err) : list_objects(store, show.kind, err);
    store_close(store);
    return st;
}

enum status cmd_dataset(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {
        {"query", dataset_query, "print trials, by any filter"},
        {"sessions", dataset_sessions, "list tuning sessions"},
        {"show", dataset_show, "write recorded models, clusters and strategies as files again"},
        {"export", dataset_export, "write trials as CSV or JSON Lines"},
        {"import", dataset_import, "read what export wrote"},
        {"merge", dataset_merge, "add another dataset"},
        {"check", dataset_check, "check that the file is whole"},
        {"backup", dataset_backup, "make a consistent copy"},
        {"prune", dataset_prune, "forget old events, audit entries and answers"},
        {0}};
    return commands_run(
        rows, "dataset",
        "Every model, cluster, strategy, session and trial, in one SQLite file or a PostgreSQL database.", argc, argv,
        err);
}
