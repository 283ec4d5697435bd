/* See remote_query.h. */
#include "tuner/cli/remote_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tuner/cli/remote.h"

/* ---- the filter ---- */

/* In quotes, with \ before a quote and a \. */
static void put_text(FILE *to, const char *text) {
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        putc(*text, to);
    }
    putc('"', to);
}

static void put_condition(FILE *to, const char *column, const char *operation, const char *text) {
    if (!text)
        return;
    fprintf(to, "%s%s %s ", ftell(to) ? " AND " : "", column, operation);
    put_text(to, text);
}

static void put_bound(FILE *to, const char *column, const char *operation, double us) {
    char text[32];
    if (!(us > 0))
        return;
    json_format_number(us, text);
    fprintf(to, "%s%s %s %s", ftell(to) ? " AND " : "", column, operation, text);
}

static void put_query(FILE *to, const struct query *q) {
    put_condition(to, "model", "=", q->model);
    put_condition(to, "cluster", "=", q->cluster);
    put_condition(to, "strategy", "=", q->strategy);
    put_condition(to, "session", "=", q->session);
    put_condition(to, "runner", "=", q->runner);
    put_condition(to, "proposer", "=", q->proposer);
    put_condition(to, "state", "=", q->state ? record_state_word(*q->state) : NULL);
    put_condition(to, "queued", ">=", q->since);
    put_condition(to, "queued", "<", q->until);
    put_bound(to, "predicted_us", ">=", q->min_predicted_us);
    put_bound(to, "predicted_us", "<=", q->max_predicted_us);
    put_bound(to, "measured_us", ">=", q->min_measured_us);
    put_bound(to, "measured_us", "<=", q->max_measured_us);
    if (q->filter)
        fprintf(to, ftell(to) ? " AND (%s)" : "%s", q->filter);
}

enum status remote_query_filter(const struct query *query, struct arena *arena, const char **out, struct error *err) {
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return error_no_memory(err);
    put_query(to, query);
    const char *kept = fclose(to) ? NULL : arena_strdup(arena, text);
    free(text);
    if (!kept)
        return error_no_memory(err);
    *out = kept;
    return ST_OK;
}

/* ---- pages ---- */

enum { PAGE_MAX = 1000 };

struct window {
    size_t skip, left; /* left: SIZE_MAX for all */
    remote_visit *visit;
    void *context;
};

static enum status visit_within(void *context, const cJSON *item, bool *done, struct error *err) {
    struct window *w = context;
    if (w->skip) {
        w->skip--;
        return ST_OK;
    }
    enum status st = w->visit(w->context, item, done, err);
    w->left -= w->left != SIZE_MAX;
    *done = *done || !w->left;
    return st;
}

static enum status make_path(struct client *client, const struct query *q, struct arena *arena, const char **out,
                             struct error *err) {
    const char *filter;
    enum status st = remote_query_filter(q, arena, &filter, err);
    if (st)
        return st;
    const size_t wanted = q->limit + q->offset;
    const size_t size = q->limit && wanted < PAGE_MAX ? wanted : PAGE_MAX;
    char *escaped = client_escape(client, filter);
    *out = escaped ? arena_printf(arena, "/api/v1/records?page_size=%zu&order=%s%s%s%s%s", size,
                                  q->descending ? "-" : "", query_order_name(q->order),
                                  q->iterations ? "&iterations=true" : "", *filter ? "&filter=" : "", escaped)
                   : NULL;
    free(escaped);
    return *out ? ST_OK : error_no_memory(err);
}

enum status remote_query_run(struct client *client, const struct query *query, remote_visit *visit, void *context,
                             struct error *err) {
    struct arena arena = {0};
    struct window window = {query->offset, query->limit ? query->limit : SIZE_MAX, visit, context};
    const char *path;
    enum status st = make_path(client, query, &arena, &path, err);
    st = st ? st : remote_each(client, path, visit_within, &window, err);
    arena_release(&arena);
    return st;
}
