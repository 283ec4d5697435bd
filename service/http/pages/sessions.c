/* The first page: what runs now, what was won so far, all sessions, newest first, and a form to open one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "dataset/pages.h"
#include "report/findings.h"
#include "report/html.h"
#include "service/http/api/api.h"
#include "service/http/api/lists.h"
#include "service/http/pages/home.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"

enum { SESSIONS_A_PAGE = 20, USUAL_TRIALS = 30 };

/* ---- the table ---- */

/* `f` is NULL where the session's descriptions cannot be read any more. */
static void session_row(struct request *rq, struct store *store, struct html_table *t, const struct findings *f,
                        const struct stored_session *s) {
    char text[32];
    html_cell_begin(t);
    page_link(t->m, page_name(rq, store, STORE_MODEL, s->model), "/sessions/%s", page_escape(rq, s->id));
    html_cell_end(t);
    html_cell(t, page_name(rq, store, STORE_CLUSTER, s->cluster));
    html_cell_begin(t);
    html_leaff(t->m, "span", arena_printf(&rq->arena, "state %s", stored_session_state_word(s->state)), "%s",
               stored_session_state_word(s->state));
    html_cell_end(t);
    html_cell_begin(t);
    home_progress(t->m, f, s);
    html_cell_end(t);
    html_cell(t, f && f->outcome.best != SIZE_MAX
                     ? units_format_known_time(f->outcome.rows[f->outcome.best].us, "", text, sizeof text)
                     : "");
    if (f && f->outcome.best != SIZE_MAX && isfinite(f->outcome.speedup))
        html_cellf(t, "%.2f×", f->outcome.speedup);
    else
        html_cell(t, "");
    html_cell(t, page_stamp(s->started, text));
    html_cell(t, s->team ? s->team : "");
}

static enum status sessions_table(struct request *rq, struct store *store, struct markup *m, size_t n,
                                  const struct stored_session *sessions, struct error *err) {
    static const char *const heads[] = {"Model",     "Cluster",     "State", ">Trials", ">Best iteration",
                                        ">Speed-up", "Begun (UTC)", "Team",  NULL};
    struct html_table t;
    markup_begin(m, "div");
    markup_attribute(m, "id", "sessions");
    markup_attribute(m, "data-live", "");
    html_section(m, "all", "All sessions");
    html_begin(m, "div", "rows");
    html_table_begin(&t, m, "Newest first; speed-up over the best baseline", heads);
    enum status st = ST_OK;
    for (size_t i = 0; i < n && st != ST_NO_MEMORY; i++) {
        struct findings f;
        st = findings_gather(store, sessions[i].id, FINDINGS_FIGURES, &f, err);
        session_row(rq, store, &t, st ? NULL : &f, &sessions[i]);
        if (!st)
            findings_release(&f);
    }
    html_table_end(&t);
    markup_end(m);
    markup_end(m);
    markup_end(m);
    return st == ST_NO_MEMORY ? st : ST_OK;
}

/* ---- the form ---- */

static void trials_input(struct request *rq, struct markup *m) {
    const char *before = rq->body ? form_field(rq, "trials") : NULL;
    html_begin(m, "label", "narrow");
    markup_leaf(m, "span", "Trials");
    markup_begin(m, "input");
    markup_attribute(m, "name", "trials");
    markup_attribute(m, "type", "number");
    markup_attribute(m, "min", "1");
    markup_attribute(m, "max", "100000");
    markup_attribute(m, "required", "");
    if (before)
        markup_attribute(m, "value", before);
    else
        markup_attributef(m, "value", "%d", USUAL_TRIALS);
    markup_end(m);
    markup_end(m);
}

struct option {
    const char *value, *text;
};

/* The usual one, unless the other was chosen before. */
static void choice_of_two(struct request *rq, struct markup *m, const char *label, const char *name,
                          struct option usual, struct option other) {
    const char *before = rq->body ? form_field(rq, name) : NULL;
    page_label_begin(m, label);
    markup_begin(m, "select");
    markup_attribute(m, "name", name);
    page_option(m, usual.value, usual.text, false);
    page_option(m, other.value, other.text, before && !strcmp(before, other.value));
    markup_end(m);
    markup_end(m);
}

static void open_form(struct request *rq, struct markup *m, const struct page_choices *models,
                      const struct page_choices *clusters, const char *trouble, bool open) {
    html_begin(m, "details", "opener");
    if (open || trouble)
        markup_attribute(m, "open", "");
    markup_leaf(m, "summary", "Open a session");
    if (trouble)
        html_leaff(m, "p", "trouble", "%s", trouble);
    page_form_begin(m, "post", "/sessions", "fields unified");
    page_choice(m, "Model", "model", models, rq->body ? form_field(rq, "model") : NULL);
    page_choice(m, "Cluster", "cluster", clusters, rq->body ? form_field(rq, "cluster") : NULL);
    choice_of_two(rq, m, "Its network", "weather", (struct option){"no", "is quiet"},
                  (struct option){"yes", "varies as the cluster says"});
    trials_input(rq, m);
    choice_of_two(rq, m, "Trials are run by", "mode", (struct option){"ask", "agents and clients that ask for them"},
                  (struct option){"own", "this service, on a registered cluster"});
    page_button(m, "Open", NULL, NULL);
    markup_end(m);
    markup_end(m);
}

/* ---- without anything yet ---- */

static void teach_objects(struct request *rq, struct markup *m) {
    const char *origin = page_origin(rq);
    html_begin(m, "div", "panel");
    markup_leaf(m, "p", "A session needs a model and a cluster. Put descriptions of yours, or take examples:");
    html_command(m, "%s -H 'Content-Type: application/json' --data @examples/models/resnet50.json %s/api/v1/models",
                 page_curl(rq), origin);
    html_command(m,
                 "%s -H 'Content-Type: application/json' --data @examples/clusters/lab-4x1g.json "
                 "%s/api/v1/clusters",
                 page_curl(rq), origin);
    markup_leaf(m, "p", "Then open a session here, or tune from a shell:");
    html_command(m, "syncopate --server %s tune resnet50 lab-4x1g --trials %d", origin, USUAL_TRIALS);
    markup_end(m);
}

/* ---- the page ---- */

static void page_body(struct request *rq, struct markup *m, const struct page_choices *models,
                      const struct page_choices *clusters, bool any, const char *trouble) {
    markup_begin(m, "header");
    markup_leaf(m, "h1", "Tuning sessions");
    if (!any)
        markup_leaf(m, "p", "A session finds the fastest way to synchronize a model’s gradients on a cluster.");
    markup_end(m);
    if (!models->n || !clusters->n)
        teach_objects(rq, m);
    else if (rq->principal.role >= ROLE_RUN)
        open_form(rq, m, models, clusters, trouble, !any);
}

/* A page of sessions, the newest first. On the first one what runs and what was won stands above them. */
struct listed {
    struct store *store;
    size_t n;
    struct stored_session *sessions;
    char next[PAGE_CURSOR_ROOM];
};

static enum status list_sessions(struct request *rq, const char *after, struct listed *out, struct error *err) {
    const struct session_list list = {.viewer = request_viewer(rq)};
    *out = (struct listed){.n = 0};
    enum status st = request_reader(rq, &out->store, err);
    if (!st)
        st = page_sessions(out->store, &list, after, SESSIONS_A_PAGE, &rq->arena, &out->n, &out->sessions, out->next,
                           err);
    return st ? list_fault(st, after, err) : st;
}

static enum status write_lists(struct request *rq, struct markup *m, const struct listed *l, bool first,
                               struct error *err) {
    enum status st = l->n && first ? home_won(rq, l->store, m, err) : ST_OK;
    if (!st && l->n)
        st = sessions_table(rq, l->store, m, l->n, l->sessions, err);
    html_begin(m, "p", "more");
    if (*l->next)
        page_link(m, "Older sessions", "/?page_token=%s", page_escape(rq, l->next));
    if (l->n > 1)
        page_link(m, "Compare two sessions", "/compare/sessions");
    markup_end(m);
    return st;
}

static enum status sessions_page(struct request *rq, unsigned status, const char *trouble, struct response *rs,
                                 struct error *err) {
    const char *after = request_query(rq, "page_token");
    struct markup m = {0};
    struct page_choices models = {0}, clusters = {0};
    struct listed l;
    enum status st = list_sessions(rq, after, &l, err);
    if (!st)
        st = page_choices_read(rq, STORE_MODEL, &models, err);
    if (!st)
        st = page_choices_read(rq, STORE_CLUSTER, &clusters, err);
    if (st)
        return st;
    page_begin(rq, &m, "Tuning sessions", PAGE_SESSIONS);
    page_body(rq, &m, &models, &clusters, l.n, trouble);
    if (l.n && !after)
        st = home_running(rq, l.store, &m, err);
    if (!st)
        st = write_lists(rq, &m, &l, !after, err);
    if (!st)
        return page_answer(rq, &m, status, rs, err);
    markup_release(&m);
    return st;
}

/* What was won stays until the page is loaded again: it needs the most reading. */
enum status page_home_live(struct request *rq, struct response *rs, struct error *err) {
    struct markup m = {0};
    struct listed l;
    enum status st = list_sessions(rq, NULL, &l, err);
    if (st)
        return st;
    page_begin(rq, &m, "Tuning sessions", PAGE_SESSIONS);
    st = home_running(rq, l.store, &m, err);
    if (!st && l.n)
        st = sessions_table(rq, l.store, &m, l.n, l.sessions, err);
    if (!st)
        return page_answer(rq, &m, 200, rs, err);
    markup_release(&m);
    return st;
}

enum status page_home(struct request *rq, struct response *rs, struct error *err) {
    return sessions_page(rq, 200, NULL, rs, err);
}

/* ---- opening ---- */

/* Make the body of POST /api/v1/sessions from the form. */
static cJSON *form_body(struct request *rq) {
    const char *model = form_field(rq, "model"), *cluster = form_field(rq, "cluster"), *mode = form_field(rq, "mode");
    const char *trials = form_field(rq, "trials"), *weather = form_field(rq, "weather");
    char *end = NULL;
    const double number = trials ? strtod(trials, &end) : 0;
    cJSON *body = cJSON_CreateObject(), *budget = body ? cJSON_AddObjectToObject(body, "budget") : NULL;
    const bool whole = budget && cJSON_AddStringToObject(body, "model", model ? model : "") &&
                       cJSON_AddStringToObject(body, "cluster", cluster ? cluster : "") &&
                       cJSON_AddStringToObject(body, "mode", mode ? mode : "ask") &&
                       cJSON_AddBoolToObject(body, "weather", weather && !strcmp(weather, "yes")) &&
                       (end && *end ? cJSON_AddStringToObject(budget, "trials", trials)
                                    : cJSON_AddNumberToObject(budget, "trials", number));
    if (whole)
        return body;
    cJSON_Delete(body);
    return NULL;
}

/* The page of the new session. The interface says by Location where the session is. */
static const char *new_page(struct request *rq, const struct response *rs) {
    static const char prefix[] = "/api/v1";
    for (size_t i = 0; i < rs->n_headers; i++)
        if (rs->headers[i].header == HEADER_LOCATION && !strncmp(rs->headers[i].value, prefix, sizeof prefix - 1))
            return arena_strdup(&rq->arena, rs->headers[i].value + sizeof prefix - 1);
    return "/";
}

/* Mistakes in the form are shown beside the form. */
static bool is_about_the_form(enum status st) {
    return st == ST_INVALID || st == ST_USAGE || st == ST_NOT_FOUND || st == ST_CONFLICT || st == ST_INFEASIBLE;
}

enum status page_home_open(struct request *rq, struct response *rs, struct error *err) {
    struct error why = {0};
    rq->json = form_body(rq);
    if (!rq->json)
        return error_no_memory(err);
    enum status st = api_sessions_create(rq, rs, &why);
    if (is_about_the_form(st)) {
        char detail[ERROR_TEXT_ROOM];
        response_clear(rs);
        return sessions_page(rq, 422, problem_detail(&why, detail), rs, err);
    }
    if (st)
        return error_pass(err, &why);
    const char *to = new_page(rq, rs);
    response_clear(rs);
    return to ? page_redirect(rs, to) : error_no_memory(err);
}
