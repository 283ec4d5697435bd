/* A session as files. The best strategy comes as `syncopate strategy export` writes it, byte for byte, or in the form
 * of a training framework (interop/export). The trials come as CSV or as JSON Lines. A page of JSON Lines also has the
 * model, cluster, strategies and session that its trials refer to, so `syncopate dataset import` reads each page, and
 * all of them in a row. Cost: the strategy as /best, a page O(page). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "base/text.h"
#include "dataset/export.h"
#include "interop/export/export.h"
#include "interop/export/limits.h"
#include "service/http/api/api.h"
#include "service/http/api/lists.h"
#include "service/http/api/sessions.h"

enum { PAGE_SIZE = 100, PAGE_MAX = 1000 };

enum file_form { FORM_STRATEGY, FORM_CSV, FORM_JSON_LINES, FORMS, FORM_FRAMEWORK = FORMS };

static const struct {
    const char *word, *media, *suffix;
} forms[FORMS] = {[FORM_STRATEGY] = {"strategy", "application/json", "best.json"},
                  [FORM_CSV] = {"csv", "text/csv; charset=utf-8; header=present", "trials.csv"},
                  [FORM_JSON_LINES] = {"jsonl", "application/jsonl", "trials.jsonl"}};

static enum status refuse_form(struct error *err) {
    char words[256];
    size_t n, used = 0;
    const struct exporter *rows = exporters_list(&n);
    for (size_t i = 0; i < n && used < sizeof words; i++)
        used += (size_t)snprintf(words + used, sizeof words - used, ", %s", rows[i].name);
    return error_set(err, ST_USAGE, "query parameter format: must be one of strategy, csv, jsonl%s", words);
}

/* *framework is of FORM_FRAMEWORK. */
static enum status read_form(const struct request *rq, enum file_form *out, const struct exporter **framework,
                             struct error *err) {
    const char *word = request_query(rq, "format");
    *out = FORM_STRATEGY;
    for (size_t i = 0; word && i < FORMS; i++)
        if (!strcmp(word, forms[i].word)) {
            *out = (enum file_form)i;
            return ST_OK;
        }
    *framework = word ? exporters_find(word) : NULL;
    *out = word ? FORM_FRAMEWORK : FORM_STRATEGY;
    return word && !*framework ? refuse_form(err) : ST_OK;
}

/* Answer with `text`, which is taken, as a file that browsers save; `name` is in the arena, or NULL for want of memory.
 */
static enum status answer_file(struct request *rq, const char *name, const char *media, char *text, size_t n,
                               struct response *rs, struct error *err) {
    const char *disposition = name ? arena_printf(&rq->arena, "attachment; filename=\"%s\"", name) : NULL;
    free(rs->owned);
    rs->owned = text;
    if (!disposition)
        return error_no_memory(err);
    response_bytes(rs, 200, media, text, n);
    response_header(rs, HEADER_CONTENT_DISPOSITION, disposition);
    return ST_OK;
}

static const char *session_file(struct request *rq, const char *session, const char *suffix) {
    return arena_printf(&rq->arena, "syncopate-%s-%s", session, suffix);
}

/* ---- the strategy ---- */

static enum status answer_strategy(struct request *rq, const char *session, struct response *rs, struct error *err) {
    struct session_outcome so;
    enum status st = request_best(rq, OUTCOME_STRATEGY, &so, err);
    if (st)
        return st;
    cJSON *json = strategy_write(&so.outcome.strategy, &so.model, &so.cluster);
    char *text = json ? json_pretty(json) : NULL;
    const size_t n = text ? strlen(text) : 0;
    char *line = text ? realloc(text, n + 2) : NULL;
    cJSON_Delete(json);
    session_outcome_release(&so);
    if (!line) {
        free(text);
        return error_no_memory(err);
    }
    memcpy(line + n, "\n", 2);
    return answer_file(rq, session_file(rq, session, forms[FORM_STRATEGY].suffix), forms[FORM_STRATEGY].media, line,
                       n + 1, rs, err);
}

/* ---- the strategy for a framework ---- */

struct framework {
    const struct exporter *exporter;
    struct export export;
    const char *strategy; /* its name */
    uint32_t accepted;    /* losses that refuse nothing: a set of 1u << EXPORT_LOSS_... */
};

/* "order, credit", without what is accepted; NULL when memory is out. */
static const char *losses_text(struct arena *arena, const struct export *export, uint32_t accepted) {
    const uint32_t losses = export_unaccepted(export_losses(export), accepted);
    char *text = arena_strdup(arena, "");
    for (uint32_t i = 0; i < export->n_notes && text; i++)
        if (losses >> export->notes[i].loss & 1)
            text = arena_printf(arena, "%s%s%s", text, *text ? ", " : "", export_loss_word(export->notes[i].loss));
    return text;
}

static bool is_text(const struct export_file *file) {
    for (const char *at = file->text, *end = at + file->n; at < end; at++) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((line ? line : end) - at);
        if (!text_is_clean(at, n))
            return false;
        at += n;
    }
    return true;
}

/* RFC 4648 section 4; malloc'd. */
static char *base64(const unsigned char *from, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc(4 * ((n + 2) / 3) + 1), *out = text;
    for (size_t i = 0; text && i < n; i += 3) {
        const size_t left = n - i;
        const unsigned word = (unsigned)from[i] << 16 | (left > 1 ? (unsigned)from[i + 1] << 8 : 0) |
                              (left > 2 ? (unsigned)from[i + 2] : 0);
        *out++ = digits[word >> 18];
        *out++ = digits[word >> 12 & 63];
        *out++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[word & 63] : '=';
    }
    if (text)
        *out = '\0';
    return text;
}

/* Add a file: a text as it is, other bytes as {"base64": "..."}. */
static bool add_file(cJSON *files, const struct export_file *file) {
    if (is_text(file))
        return cJSON_AddStringToObject(files, file->name, file->text) != NULL;
    char *text = base64((const unsigned char *)file->text, file->n);
    cJSON *item = text ? cJSON_AddObjectToObject(files, file->name) : NULL;
    const bool whole = item && cJSON_AddStringToObject(item, "base64", text);
    free(text);
    return whole;
}

static cJSON *files_json(const struct framework *f, bool *whole) {
    cJSON *root = cJSON_CreateObject();
    *whole = cJSON_AddStringToObject(root, "format", f->exporter->name) != NULL;
    cJSON *files = cJSON_AddObjectToObject(root, "files"), *losses = cJSON_AddArrayToObject(root, "losses");
    for (uint32_t i = 0; i < f->export.n_files; i++)
        *whole = add_file(files, &f->export.files[i]) && *whole;
    for (uint32_t i = 0; i < f->export.n_notes; i++) {
        const struct export_note *note = &f->export.notes[i];
        cJSON *loss = cJSON_CreateObject();
        *whole = cJSON_AddItemToArray(losses, loss) &&
                 cJSON_AddStringToObject(loss, "what", export_loss_word(note->loss)) &&
                 cJSON_AddStringToObject(loss, "why", note->text) && *whole;
    }
    return root;
}

/* Answer with a file under the name that its text and commands use. Several files become members of one JSON object. */
static enum status answer_files(struct request *rq, const char *session, const struct framework *f, struct response *rs,
                                struct error *err) {
    const struct export_file *first = &f->export.files[0];
    const size_t n = strlen(first->name);
    const bool one = f->export.n_files == 1, json = !one || (n > 5 && !strcmp(first->name + n - 5, ".json"));
    bool whole = true;
    cJSON *root = one ? NULL : files_json(f, &whole);
    char *text = one ? strdup(first->text) : whole ? json_line(root) : NULL;
    cJSON_Delete(root);
    if (!text)
        return error_no_memory(err);
    const char *suffix = one ? NULL : arena_printf(&rq->arena, "%s.json", f->exporter->name);
    const char *name = one ? arena_strdup(&rq->arena, first->name) : suffix ? session_file(rq, session, suffix) : NULL;
    return answer_file(rq, name, json ? "application/json" : "text/plain; charset=utf-8", text, strlen(text), rs, err);
}

/* Refuse, with all that the form cannot say. The reasons are copied, since the export is released before the answer is
 * written. */
static enum status refuse_losses(struct request *rq, const struct framework *f, const char *why, struct response *rs,
                                 struct error *err) {
    const size_t n = f->export.n_notes;
    struct problem_loss *losses = arena_alloc(&rq->arena, n, sizeof *losses);
    for (size_t i = 0; i < n && losses; i++) {
        losses[i].what = export_loss_word(f->export.notes[i].loss);
        losses[i].why = arena_strdup(&rq->arena, f->export.notes[i].text);
        losses = losses[i].why ? losses : NULL;
    }
    if (!losses)
        return error_no_memory(err);
    rs->n_losses = n;
    rs->losses = losses;
    return problem_fail(err, PROBLEM_NOT_EXPRESSED, "%s", why);
}

/* Refuse an export with which the job would need other memory. */
static enum status check_memory(struct request *rq, const struct framework *f, const struct session_outcome *so,
                                struct response *rs, struct error *err) {
    struct error why = {0};
    enum status st = export_check_accepted(f->exporter, &f->export, f->accepted, &so->outcome.strategy, &so->model,
                                           &so->cluster, &why);
    if (st == ST_INFEASIBLE)
        return refuse_losses(rq, f, ERROR_TEXT(&why), rs, err);
    return st ? error_pass(err, &why) : ST_OK;
}

static enum status answer_export(struct request *rq, const char *session, const struct framework *f, bool strict,
                                 struct response *rs, struct error *err) {
    const char *all = losses_text(&rq->arena, &f->export, 0);
    const char *losses = losses_text(&rq->arena, &f->export, f->accepted);
    if (!all || !losses)
        return error_no_memory(err);
    if (strict && *losses) {
        char why[ERROR_TEXT_ROOM];
        snprintf(why, sizeof why, "%s cannot say everything that %.64s does: %s", f->exporter->name, f->strategy,
                 losses);
        return refuse_losses(rq, f, why, rs, err);
    }
    enum status st = answer_files(rq, session, f, rs, err);
    if (!st && *all)
        response_header(rs, HEADER_NOT_EXPRESSED, all);
    return st;
}

/* Losses that refuse nothing: those of the parameter, and those that the session accepts in this form. */
static enum status read_accepted(struct request *rq, const struct stored_session *stored,
                                 const struct exporter *exporter, uint32_t *out, struct error *err) {
    const char *words = request_query(rq, "accept");
    struct session_options kept = {0};
    struct export_limits limits = {0};
    struct error wrong;
    *out = 0;
    if (words && export_losses_parse(words, out, &wrong))
        return error_set(err, ST_USAGE, "query parameter accept: %s", wrong.message);
    if (session_options_read(stored, &rq->arena, &kept, NULL)) /* damaged: it accepts nothing */
        return ST_OK;
    const char *named = kept.job.export_to ? kept.job.export_to : kept.job.export_env;
    if (named && !export_limits_parse(named, kept.job.accept, &limits, &wrong))
        *out |= export_limits_accepted(&limits, exporter);
    return ST_OK;
}

static enum status answer_framework(struct request *rq, const struct stored_session *stored,
                                    const struct exporter *exporter, bool strict, struct response *rs,
                                    struct error *err) {
    struct framework f = {.exporter = exporter};
    struct session_outcome so;
    enum status st = read_accepted(rq, stored, exporter, &f.accepted, err);
    if (!st)
        st = request_best(rq, OUTCOME_STRATEGY, &so, err);
    if (st)
        return st;
    f.strategy = so.outcome.strategy.name;
    st = export_build(exporter, &so.outcome.strategy, &so.model, &so.cluster, &f.export, err);
    if (!st)
        st = check_memory(rq, &f, &so, rs, err);
    if (!st)
        st = answer_export(rq, stored->id, &f, strict, rs, err);
    export_release(&f.export);
    session_outcome_release(&so);
    return st;
}

/* ---- the trials ---- */

/* Write what the records of the page refer to. The records are in the order of their numbers. */
static enum status write_references(struct store *store, const char *session, const char *viewer, size_t n,
                                    const struct record *records, FILE *to, struct error *err) {
    char filter[96];
    const struct query query = {.session = session, .filter = filter, .viewer = viewer};
    if (!n)
        return ST_OK;
    snprintf(filter, sizeof filter, "number >= %lu AND number <= %lu", (unsigned long)records[0].number,
             (unsigned long)records[n - 1].number);
    return export_shared_references(store, &query, to, err);
}

static void write_records(enum file_form form, size_t n, const struct record *records, FILE *to) {
    if (form == FORM_CSV)
        export_csv_header(to);
    for (size_t i = 0; i < n; i++) {
        (form == FORM_CSV ? export_csv : export_json)(&records[i], to);
        if (form == FORM_JSON_LINES)
            putc('\n', to);
    }
}

static enum status answer_page(struct request *rq, struct store *store, const char *session, enum file_form form,
                               size_t n, const struct record *records, struct response *rs, struct error *err) {
    char *text;
    size_t length;
    FILE *to = stream_open(&text, &length);
    if (!to)
        return error_no_memory(err);
    enum status st =
        form == FORM_JSON_LINES ? write_references(store, session, request_viewer(rq), n, records, to, err) : ST_OK;
    write_records(form, n, records, to);
    st = stream_close(to, st, &text, err);
    return st ? st
              : answer_file(rq, session_file(rq, session, forms[form].suffix), forms[form].media, text, length, rs,
                            err);
}

static enum status answer_trials(struct request *rq, const struct stored_session *session, enum file_form form,
                                 struct response *rs, struct error *err) {
    struct query query = {.session = session->id,
                          .order = QUERY_BY_number,
                          .iterations = true,
                          .after = request_query(rq, "page_token"),
                          .viewer = request_viewer(rq)};
    struct store *store;
    struct record *records;
    uint64_t size = PAGE_SIZE;
    size_t n;
    char *next = arena_alloc(&rq->arena, QUERY_CURSOR_ROOM, 1);
    enum status st = next ? request_query_integer(rq, "page_size", 1, PAGE_MAX, &size, err) : error_no_memory(err);
    query.limit = (size_t)size;
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = list_fault(query_page(store, &query, &rq->arena, &n, &records, next, err), query.after, err);
    if (st)
        return st;
    if (*next)
        response_header(rs, HEADER_NEXT_PAGE_TOKEN, next);
    if (!n)
        response_header(rs, HEADER_NOTE, list_note(query.after, false, "", session_note(session)));
    return answer_page(rq, store, session->id, form, n, records, rs, err);
}

/* Refuse parameters that the form does not use, so that nobody thinks that they had an effect. */
static enum status check_query(const struct request *rq, enum file_form form, bool strict, struct error *err) {
    const bool pages = form == FORM_CSV || form == FORM_JSON_LINES;
    const char *paging = request_query(rq, "page_size")    ? "page_size"
                         : request_query(rq, "page_token") ? "page_token"
                                                           : NULL;
    if (strict && form != FORM_FRAMEWORK)
        return error_set(err, ST_USAGE, "query parameter strict: only with the format of a framework");
    if (request_query(rq, "accept") && form != FORM_FRAMEWORK)
        return error_set(err, ST_USAGE, "query parameter accept: only with the format of a framework");
    if (paging && !pages)
        return error_set(err, ST_USAGE, "query parameter %s: only with format=csv or jsonl; this is one file", paging);
    return ST_OK;
}

enum status api_sessions_export(struct request *rq, struct response *rs, struct error *err) {
    struct stored_session stored;
    const struct exporter *framework = NULL;
    enum file_form form;
    bool strict = false;
    enum status st = read_form(rq, &form, &framework, err);
    if (!st)
        st = request_query_bool(rq, "strict", &strict, err);
    if (!st)
        st = check_query(rq, form, strict, err);
    if (!st)
        st = request_session(rq, false, &stored, err);
    if (st)
        return st;
    if (form == FORM_FRAMEWORK)
        return answer_framework(rq, &stored, framework, strict, rs, err);
    return form == FORM_STRATEGY ? answer_strategy(rq, stored.id, rs, err) : answer_trials(rq, &stored, form, rs, err);
}
