/* What came of a session: a row for each strategy, the best of the final, and what the trials teach. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/importance.h"
#include "tuner/session/session_internal.h"

static int compare_rows(const void *a, const void *b) {
    const struct tune_row *x = a, *y = b;
    if (x->baseline != y->baseline)
        return x->baseline ? -1 : 1;
    if (x->baseline || !x->measured.n || !y->measured.n)
        return 0;
    return (x->measured.median_us > y->measured.median_us) - (x->measured.median_us < y->measured.median_us);
}

void tuning_order_rows(size_t n, struct tune_row *rows) {
    qsort(rows, n, sizeof *rows, compare_rows);
}

/* A strategy that was in the final is measured by its rounds there alone: its first trial chose it. */
static enum status fill_row(struct tune_row *row, const struct entry *e, struct error *err) {
    const size_t first = e->n_rounds > 1;
    *row = (struct tune_row){.id = e->strategy.id,
                             .baseline = e->baseline,
                             .proposer = e->baseline ? e->baseline->name : NULL,
                             .final = e->n_rounds > 1,
                             .early = e->early && e->n_rounds == 1,
                             .state = e->n_rounds ? RECORD_COMPLETE : e->state,
                             .predicted_us = e->predicted_us};
    snprintf(row->name, sizeof row->name, "%s", e->strategy.name);
    snprintf(row->reason, sizeof row->reason, "%s", e->reason);
    return summary_of_rounds(e->n_rounds - first, e->counts + first, e->rounds + first, &row->measured, err);
}

/* The fastest row of those that were in the final, or of all when there was none. */
static size_t fastest(const struct tuning *t, bool baselines_only, bool any_final) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct tune_row *row = &t->rows[i];
        if (!row->measured.n || (baselines_only && !row->baseline) || (any_final && !row->final))
            continue;
        if (best == SIZE_MAX || row->measured.median_us < t->rows[best].measured.median_us)
            best = i;
    }
    return best;
}

/* False when the trials are too few to tell. */
static bool find_importance(struct session *s, const struct tried *tried, double importance[SKETCH_KNOBS]) {
    struct features *features = calloc(s->n, sizeof *features);
    struct advisor_observation *observed = calloc(s->n, sizeof *observed);
    size_t n = 0;
    s->predictor.brief = true;
    for (size_t i = 0; features && observed && i < s->n; i++)
        if (!predictor_features(&s->predictor, tried[i].strategy, &features[n], NULL, NULL)) {
            observed[n] = (struct advisor_observation){&features[n], tried[i].us};
            n++;
        }
    s->predictor.brief = false;
    bool found = features && observed && !importance_of(n, observed, importance, NULL);
    for (size_t i = 0; i < n; i++)
        features_release(&features[i]);
    free(features);
    free(observed);
    return found;
}

enum status session_answer(struct session *s, struct tuning *out, struct error *err) {
    bool any_final = false;
    struct tuning t = {.trials = s->trials,
                       .stop = s->stop,
                       .n_rows = s->n,
                       .hopeless = s->starts.hopeless,
                       .lower_bound_us = s->lower_bound_us};
    memcpy(t.session, s->id, sizeof t.session);
    t.rows = calloc(s->n ? s->n : 1, sizeof *t.rows);
    if (!t.rows)
        return error_no_memory(err);
    enum status st = ST_OK;
    for (size_t i = 0; i < s->n && !st; i++) {
        st = fill_row(&t.rows[i], s->entries[i], err);
        any_final |= t.rows[i].final;
    }
    if (st) {
        free(t.rows);
        return st;
    }
    tuning_order_rows(t.n_rows, t.rows);
    t.best = fastest(&t, false, any_final);
    t.best_baseline = fastest(&t, true, any_final);
    if (t.best == SIZE_MAX) {
        const char *reason = s->n ? s->entries[0]->reason : "none was run";
        error_set(err, ST_INFEASIBLE, "no trial of session %s completed; the first: %s", s->id, reason);
        free(t.rows);
        return ST_INFEASIBLE;
    }
    const struct summary *best = &t.rows[t.best].measured;
    t.gap = best->median_us / t.lower_bound_us - 1;
    t.speedup = NAN;
    if (t.best_baseline != SIZE_MAX) {
        const struct summary *baseline = &t.rows[t.best_baseline].measured;
        t.speedup = baseline->median_us / best->median_us;
        t.overlap = t.best_baseline != t.best && best->high_us >= baseline->low_us;
    }
    struct tried *tried = session_tried(s);
    if (!tried) {
        free(t.rows);
        return error_no_memory(err);
    }
    proposers_judge(s->n, tried, t.proposers);
    t.has_importance = find_importance(s, tried, t.importance);
    free(tried);
    const struct entry *e = session_find(s, &t.rows[t.best].id);
    st = strategy_copy(&e->strategy, e->strategy.name, &t.strategy, err);
    t.strategy.id = e->strategy.id;
    if (st)
        free(t.rows);
    else
        *out = t;
    return st;
}
