/* Everybody's trials with a filter, page by page; and the models and clusters that are known. A filter that is wrong is
 * shown again with a mark at the place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "dataset/filter.h"
#include "dataset/pages.h"
#include "dataset/query.h"
#include "report/html.h"
#include "service/http/api/lists.h"
#include "service/http/api/records.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"

enum { RECORDS_A_PAGE = 50, OBJECTS_A_PAGE = 100 };

/* ---- asking ---- */

static const struct {
    const char *word, *text;
} orders[] = {{"-recorded", "newest first"},
              {"recorded", "oldest first"},
              {"measured", "fastest measured first"},
              {"-measured", "slowest first"},
              {"predicted", "fastest predicted first"}};

static void order_choice(struct markup *m, const char *chosen) {
    page_label_begin(m, "Order");
    markup_begin(m, "select");
    markup_attribute(m, "name", "order");
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        page_option(m, orders[i].word, orders[i].text, !strcmp(chosen, orders[i].word));
    markup_end(m);
    markup_end(m);
}

/* Each an example to click on, and what it teaches. */
static void filter_help(struct request *rq, struct markup *m) {
    static const struct {
        const char *filter, *about;
    } examples[] = {
        {"state = complete AND measured_us < 100000", "a measurement below 100 ms"},
        {"model = resnet50 AND cluster ~ lab", "of a model by name, on clusters whose names begin so"},
        {"proposer IN (horovod, byteps)", "one of several"},
        {"state = failed OR state = infeasible", "what went wrong"},
        {"NOT (proposer = genetic) AND queued ~ 2026", "brackets, NOT, and stamps by their beginning"},
    };
    markup_begin(m, "details");
    markup_leaf(m, "summary", "How to write a filter");
    html_leaff(m, "p", NULL,
               "Comparisons (= != < <= > >=, ~ for “begins with”, IN (a, b)) joined by AND, OR, NOT and brackets. "
               "Texts with blanks stand in quotes. Times are microseconds.");
    html_leaff(m, "p", "soft", "Columns:%s. States: waiting, running, complete, failed, infeasible, cancelled.",
               filter_column_names);
    markup_begin(m, "ul");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        markup_begin(m, "li");
        markup_begin(m, "code");
        page_link(m, examples[i].filter, "/dataset?filter=%s", page_escape(rq, examples[i].filter));
        markup_end(m);
        markup_textf(m, " – %s", examples[i].about);
        markup_end(m);
    }
    markup_end(m);
    markup_end(m);
}

/* Show what is wrong with the filter, with a mark under the byte where it is wrong. */
static void trouble(struct markup *m, const char *filter, const struct error *err) {
    const size_t at = filter ? err->position : 0;
    html_begin(m, "div", "trouble");
    markup_attribute(m, "role", "alert");
    if (at) {
        size_t before = 0; /* characters, not bytes */
        for (size_t i = 0; i + 1 < at; i++)
            before += ((unsigned char)filter[i] & 0xc0) != 0x80;
        markup_begin(m, "pre");
        markup_textf(m, "%s\n%*s^", filter, (int)before, "");
        markup_end(m);
    }
    markup_text(m, at ? err->message : ERROR_TEXT(err));
    markup_end(m);
}

static void filter_form(struct request *rq, struct markup *m, const char *filter, const char *order,
                        const struct error *wrong) {
    page_form_begin(m, "get", "/dataset", "fields unified");
    html_begin(m, "label", "wide");
    markup_leaf(m, "span", "Filter");
    markup_begin(m, "input");
    markup_attribute(m, "name", "filter");
    markup_attribute(m, "value", filter ? filter : "");
    markup_attribute(m, "maxlength", "4096");
    markup_attribute(m, "autocomplete", "off");
    markup_attribute(m, "autocapitalize", "off");
    markup_attribute(m, "spellcheck", "false");
    markup_attribute(m, "placeholder", "model = resnet50 AND state = complete");
    if (wrong)
        markup_attribute(m, "aria-invalid", "true");
    markup_end(m);
    markup_end(m);
    order_choice(m, order);
    page_button(m, "Show", NULL, NULL);
    markup_end(m);
    if (wrong)
        trouble(m, filter, wrong);
    filter_help(rq, m);
}

/* ---- records ---- */

static void record_row(struct request *rq, struct html_table *t, const struct record *r) {
    char text[32];
    t->row_class = r->state == RECORD_COMPLETE ? NULL : "bad";
    html_cell(t, r->model_name ? r->model_name : "");
    html_cell(t, r->cluster_name ? r->cluster_name : "");
    html_cell_begin(t);
    page_link(t->m, r->strategy_name && *r->strategy_name ? r->strategy_name : r->strategy,
              "/strategies/%.16s?model=%.16s&cluster=%.16s", r->strategy, r->model, r->cluster);
    html_cell_end(t);
    html_cell(t, units_format_known_time(r->predicted_us, "", text, sizeof text));
    html_cell(t, units_format_known_time(r->median_us, "", text, sizeof text));
    html_cell(t, record_state_word(r->state));
    html_cell(t, r->proposer ? r->proposer : "");
    html_cell_begin(t);
    if (r->session)
        page_link(t->m, r->session, "/sessions/%s", page_escape(rq, r->session));
    html_cell_end(t);
    html_cell(t, page_stamp(r->queued, text));
}

static void records_table(struct request *rq, struct markup *m, size_t n, const struct record *records) {
    static const char *const heads[] = {"Model", "Cluster",  "Strategy", ">Predicted",   ">Measured",
                                        "State", "Proposer", "Session",  "Queued (UTC)", NULL};
    struct html_table t;
    html_begin(m, "div", "rows");
    html_table_begin(&t, m, "Trials; times are medians of an iteration", heads);
    for (size_t i = 0; i < n; i++)
        record_row(rq, &t, &records[i]);
    html_table_end(&t);
    markup_end(m);
}

static void record_links(struct request *rq, struct markup *m, const char *filter, const char *order,
                         const char *next) {
    const char *f = page_escape(rq, filter ? filter : "");
    const char *and_filter = *f ? "&filter=" : "";
    html_begin(m, "p", "more");
    if (*next)
        page_link(m, "Next page", "/dataset?order=%s%s%s&page_token=%s", order, and_filter, f, page_escape(rq, next));
    page_link(m, "CSV", "/api/v1/records?format=csv&page_size=1000&order=%s%s%s", order, and_filter, f);
    page_link(m, "JSON Lines", "/api/v1/records?format=jsonl&page_size=1000&iterations=true&order=%s%s%s", order,
              and_filter, f);
    markup_end(m);
}

static void nothing(struct request *rq, struct markup *m, const char *filter) {
    html_begin(m, "div", "panel");
    if (filter) {
        markup_leaf(m, "p", "No trial fits this filter.");
    } else {
        markup_leaf(
            m, "p",
            "No trials yet. They come from sessions, or, by an administrator, from a dataset file of earlier ones:");
        html_command(m, "syncopate dataset export --dataset FILE --references --iterations --out trials.jsonl");
        html_command(m, "syncopate --server %s dataset import trials.jsonl", page_origin(rq));
    }
    markup_end(m);
}

/* ---- the page ---- */

struct page_query {
    struct query query;
    const char *filter, *order;
};

static enum status read_page_query(struct request *rq, struct page_query *out, struct error *err) {
    const char *filter = request_query(rq, "filter"), *order = request_query(rq, "order");
    *out = (struct page_query){.filter = filter && filter[strspn(filter, " ")] ? filter : NULL,
                               .order = order ? order : "-recorded"};
    out->query = (struct query){.filter = out->filter,
                                .after = request_query(rq, "page_token"),
                                .viewer = request_viewer(rq),
                                .limit = RECORDS_A_PAGE,
                                .descending = *out->order == '-'};
    if (!query_order_parse(out->order + out->query.descending, &out->query.order))
        return error_set(err, ST_USAGE, "query parameter order: must be recorded, number, predicted or measured");
    return ST_OK;
}

enum status page_dataset(struct request *rq, struct response *rs, struct error *err) {
    struct markup m = {0};
    struct page_query wanted;
    struct store *store;
    struct record *records = NULL;
    struct error why = {0};
    size_t n = 0;
    bool again;
    char next[QUERY_CURSOR_ROOM] = "";
    enum status st = read_page_query(rq, &wanted, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (st)
        return st;
    st = records_page(rq, store, &wanted.query, &n, &records, next, &again, &why);
    if (again)
        return ST_OK;
    if (st == ST_TIMEOUT)
        error_set(&why, st, RECORDS_NO_INDEX);
    else if (st && st != ST_USAGE && st != ST_INVALID)
        return error_pass(err, &why);
    page_begin(rq, &m, "Dataset", PAGE_DATASET);
    markup_leaf(&m, "h1", "Dataset");
    filter_form(rq, &m, wanted.filter, wanted.order, st ? &why : NULL);
    if (n)
        records_table(rq, &m, n, records);
    else if (!st)
        nothing(rq, &m, wanted.filter);
    if (!st)
        record_links(rq, &m, wanted.filter, wanted.order, next);
    return page_answer(rq, &m, st == ST_TIMEOUT ? 504 : st ? 400 : 200, rs, err);
}

/* ---- models and clusters ---- */

struct shelf {
    enum store_kind kind;
    enum page_place place;
    const char *title, *about, *path, *column, *example;
};

static void objects_table(struct request *rq, struct markup *m, const struct shelf *shelf, size_t n,
                          const struct stored_object *objects) {
    static const char *const heads[] = {"Name", "Id", "Put (UTC)", "Trials", NULL};
    struct html_table t;
    char text[96];
    html_begin(m, "div", "rows");
    html_table_begin(&t, m, "Newest first", heads);
    for (size_t i = 0; i < n; i++) {
        html_cell_begin(&t);
        page_link(m, objects[i].name, "/api/v1%s/%s", shelf->path, objects[i].id.hex);
        html_cell_end(&t);
        html_cellf(&t, "%.12s", objects[i].id.hex);
        html_cell(&t, page_stamp(objects[i].created, text));
        html_cell_begin(&t);
        snprintf(text, sizeof text, "%s = %.64s", shelf->column, objects[i].id.hex);
        page_link(m, "its trials", "/dataset?filter=%s", page_escape(rq, text));
        html_cell_end(&t);
    }
    html_table_end(&t);
    markup_end(m);
}

static void teach_shelf(struct request *rq, struct markup *m, const struct shelf *shelf, bool empty) {
    html_begin(m, "div", "panel");
    markup_leaf(m, "p", empty ? "None yet. Put one:" : "Put another; the same one again is the same resource:");
    html_command(m, "%s -H 'Content-Type: application/json' --data @%s %s/api/v1%s", page_curl(rq), shelf->example,
                 page_origin(rq), shelf->path);
    markup_end(m);
}

static enum status shelf_page(struct request *rq, const struct shelf *shelf, struct response *rs, struct error *err) {
    const struct viewer asker = request_asker(rq);
    const struct object_list list = {.kind = shelf->kind, .descending = true, .asker = &asker};
    struct markup m = {0};
    struct store *store;
    struct stored_object *objects;
    char next[PAGE_CURSOR_ROOM];
    size_t n;
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = page_objects(store, &list, request_query(rq, "page_token"), OBJECTS_A_PAGE, &rq->arena, &n, &objects, next,
                          err);
    if (st)
        return list_fault(st, request_query(rq, "page_token"), err);
    page_begin(rq, &m, shelf->title, shelf->place);
    markup_leaf(&m, "h1", shelf->title);
    html_leaff(&m, "p", "soft", "%s", shelf->about);
    if (n)
        objects_table(rq, &m, shelf, n, objects);
    if (*next) {
        html_begin(&m, "p", "more");
        page_link(&m, "Older", "%s?page_token=%s", shelf->path, page_escape(rq, next));
        markup_end(&m);
    }
    teach_shelf(rq, &m, shelf, !n);
    return page_answer(rq, &m, 200, rs, err);
}

enum status page_models(struct request *rq, struct response *rs, struct error *err) {
    static const struct shelf shelf = {STORE_MODEL,
                                       PAGE_MODELS,
                                       "Models",
                                       "Layers, their compute times and gradients.",
                                       "/models",
                                       "model",
                                       "examples/models/resnet50.json"};
    return shelf_page(rq, &shelf, rs, err);
}

enum status page_clusters(struct request *rq, struct response *rs, struct error *err) {
    static const struct shelf shelf = {STORE_CLUSTER,
                                       PAGE_CLUSTERS,
                                       "Clusters",
                                       "Nodes, devices and links.",
                                       "/clusters",
                                       "cluster",
                                       "examples/clusters/lab-4x1g.json"};
    return shelf_page(rq, &shelf, rs, err);
}
