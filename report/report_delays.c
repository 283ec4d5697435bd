/* How late updates come, in a picture and a table for each strategy: predicted beside measured. */
#include <stdio.h>

#include "report/charts.h"
#include "report/html.h"
#include "report/report.h"

/* A strategy's counts as shares of bars. */
struct shares {
    struct delay_bars bars;
    char texts[DELAY_BARS][DELAY_BAR_TEXT];
    const char *labels[DELAY_BARS];
    size_t n_series; /* 2: the second is measured */
    double shares[2][DELAY_BARS], dropped[2];
};

static void shares_of(const struct delays *d, struct shares *out) {
    const struct delay_counts counts[2] = {d->predicted, d->measured};
    out->n_series = d->trials ? 2 : 1;
    out->bars = delays_bars(out->n_series, counts);
    for (size_t b = 0; b < out->bars.n; b++)
        out->labels[b] = delays_bar_text(&out->bars, b, out->texts[b]);
    for (size_t s = 0; s < out->n_series; s++) {
        for (size_t b = 0; b < out->bars.n; b++)
            out->shares[s][b] = delays_share(&counts[s], &out->bars, b);
        out->dropped[s] = delays_share_dropped(&counts[s]);
    }
}

static void table(struct markup *m, const struct shares *s) {
    const char *const heads[] = {"Delay", ">Predicted", s->n_series > 1 ? ">Measured" : NULL, NULL};
    struct html_table t;
    markup_begin(m, "details");
    markup_leaf(m, "summary", "As a table");
    html_table_begin(&t, m, "Shares of all updates", heads);
    for (size_t b = 0; b <= s->bars.n; b++) {
        html_cell(&t, b < s->bars.n ? s->labels[b] : "dropped");
        for (size_t k = 0; k < s->n_series; k++)
            html_cellf(&t, "%.1f%%", 100 * (b < s->bars.n ? s->shares[k][b] : s->dropped[k]));
    }
    html_table_end(&t);
    markup_end(m);
}

static void figure(struct markup *m, size_t k, const struct delays *d) {
    struct shares s;
    char id[32], title[128];
    shares_of(d, &s);
    snprintf(id, sizeof id, "chart-delays-%zu", k + 1);
    snprintf(title, sizeof title, "Delays of the updates of %.60s", d->name);
    const struct chart_delays chart = {
        .title = title,
        .n = s.bars.n,
        .labels = s.labels,
        .n_series = s.n_series,
        .series = {{"predicted", s.shares[0], s.dropped[0]}, {"measured", s.shares[1], s.dropped[1]}}};
    markup_begin(m, "figure");
    markup_leaf(m, "h3", d->name);
    chart_delays(m, id, &chart);
    markup_begin(m, "figcaption");
    markup_textf(m, "%.1f%% of the updates are predicted to be dropped", 100 * s.dropped[0]);
    if (d->trials)
        markup_textf(m, ", %.1f%% were dropped in %zu trial%s", 100 * s.dropped[1], d->trials,
                     d->trials > 1 ? "s" : "");
    markup_text(m, d->trials ? "." : "; no trial has measured it.");
    markup_end(m);
    table(m, &s);
    markup_end(m);
}

void report_delays(struct markup *m, size_t n, const struct delays *delays) {
    if (!n)
        return;
    html_section(m, "delays", "How late updates come");
    html_leaff(m, "p", NULL,
               "An update’s delay is how many versions of the model lie between the one that it was computed from and "
               "its own.");
    html_begin(m, "div", "even");
    for (size_t k = 0; k < n; k++)
        figure(m, k, &delays[k]);
    markup_end(m);
    markup_end(m);
}
