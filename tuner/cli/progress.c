/* See progress.h. */
#include "tuner/cli/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

enum { BAR = 20 };

static bool on_terminal(void) {
    return isatty(STDERR_FILENO);
}

static const char *phase_words(enum tune_phase phase) {
    static const char *const words[] = {"baselines", "search", "final"};
    return words[phase];
}

static const char *time_or_dash(double us, char *out, size_t n) {
    return isfinite(us) && us > 0 ? units_format_time(us, out, n) : "-";
}

static void show_result(const struct tune_event *e) {
    char predicted[32], measured[32];
    fprintf(stderr, "\r\033[K%4lu  %-9s  %-20s predicted %10s  ", (unsigned long)e->number, phase_words(e->phase),
            e->name, time_or_dash(e->predicted_us, predicted, sizeof predicted));
    if (e->outcome->state == RECORD_COMPLETE)
        fprintf(stderr, "measured %10s%s%s\n", time_or_dash(e->median_us, measured, sizeof measured),
                e->median_us <= e->best_us ? "  *" : "", e->recorded ? "  (recorded)" : "");
    else
        fprintf(stderr, "%s: %s\n", record_state_word(e->outcome->state), e->outcome->reason ? e->outcome->reason : "");
}

static void show_bar(const struct tune_event *e) {
    char bar[BAR + 1], best[32];
    double done =
        e->budget ? (double)(e->number - 1) / (double)e->budget : e->elapsed_us / (e->elapsed_us + fmax(e->left_us, 1));
    int filled = (int)(done * BAR + 0.5);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR] = 0;
    fprintf(stderr, "\r\033[K[%s] %lu", bar, (unsigned long)e->number);
    if (e->budget)
        fprintf(stderr, "/%lu", (unsigned long)e->budget);
    fprintf(stderr, "  %s  best %s", e->name, time_or_dash(e->best_us, best, sizeof best));
    if (isfinite(e->left_us) && e->number > 1)
        fprintf(stderr, "  %.0f:%02.0f left", floor(e->left_us / 60e6), floor(fmod(e->left_us / 1e6, 60)));
    fflush(stderr);
}

void progress_listen(void *context, const struct tune_event *event) {
    (void)context;
    if (!on_terminal())
        return;
    if (event->outcome)
        show_result(event);
    else
        show_bar(event);
}

void progress_end(void) {
    if (on_terminal())
        fprintf(stderr, "\r\033[K");
}
