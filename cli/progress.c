/* See progress.h. */
#include "cli/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"

/* NAME: the least and the most columns for the name of a strategy. FIXED: how many columns the rest of the line takes,
 * with words and without. */
enum { BAR = 20, NAME_LEAST = 8, NAME_MOST = 32, FIXED_WORDY = 57, FIXED_TERSE = 41, USUAL_COLUMNS = 80 };

static bool on_terminal(void) {
    return isatty(STDERR_FILENO);
}

static size_t terminal_columns(void) {
    const char *said = getenv("COLUMNS");
    struct winsize size;
    long n = said ? strtol(said, NULL, 10) : 0;
    if (n <= 0 && !ioctl(STDERR_FILENO, TIOCGWINSZ, &size))
        n = size.ws_col;
    return n > 0 ? (size_t)n : USUAL_COLUMNS;
}

static const char *phase_words(enum tune_phase phase) {
    static const char *const words[] = {"baselines", "search", "stale", "final"};
    return words[phase];
}

/* Append to the line; what does not fit into it is left out. */
static void put(char out[PROGRESS_LINE], const char *format, ...) {
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    text_vformat(out + used, PROGRESS_LINE - used, format, arguments);
    va_end(arguments);
}

/* Cut a text of UTF-8 to so many columns, a character being one column. */
static void cut(char out[PROGRESS_LINE], size_t columns) {
    size_t seen = 0;
    for (char *p = out; *p; p++) {
        bool begins = ((unsigned char)*p & 0xc0) != 0x80;
        if (begins && seen++ == columns) {
            *p = 0;
            return;
        }
    }
}

void progress_result(const struct tune_event *e, size_t columns, char out[PROGRESS_LINE]) {
    char predicted[32], measured[32];
    bool wordy = columns >= FIXED_WORDY + 20;
    size_t fixed = wordy ? FIXED_WORDY : FIXED_TERSE, left = columns > fixed ? columns - fixed : 0;
    int name = (int)(left < NAME_LEAST ? NAME_LEAST : left > NAME_MOST ? NAME_MOST : left);
    const struct tune_outcome *outcome = e->outcome;
    *out = 0;
    put(out, "%4lu  %-9s %-*.*s %s%9s ", (unsigned long)e->number, phase_words(e->phase), name, name, e->name,
        wordy ? "predicted " : "", units_format_known_time(e->predicted_us, "-", predicted, sizeof predicted));
    if (outcome->state == RECORD_COMPLETE)
        put(out, "%s %9s%s%s%s", wordy ? "measured" : "->",
            units_format_known_time(e->median_us, "-", measured, sizeof measured),
            e->median_us <= e->best_us ? " *" : "", outcome->early ? "  (ended early)" : "",
            e->recorded ? "  (recorded)" : "");
    else
        put(out, "%s: %s", record_state_word(outcome->state), outcome->reason ? outcome->reason : "");
    cut(out, columns);
}

void progress_bar(const struct tune_event *e, size_t columns, char out[PROGRESS_LINE]) {
    char bar[BAR + 1], best[32];
    double done =
        e->budget ? (double)(e->number - 1) / (double)e->budget : e->elapsed_us / (e->elapsed_us + fmax(e->left_us, 1));
    int filled = (int)(done * BAR + 0.5);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR] = 0;
    *out = 0;
    put(out, "[%s] %lu", bar, (unsigned long)e->number);
    if (e->budget)
        put(out, "/%lu", (unsigned long)e->budget);
    put(out, "  best %s", units_format_known_time(e->best_us, "-", best, sizeof best));
    if (isfinite(e->left_us) && e->number > 1)
        put(out, "  %.0f:%02.0f left", floor(e->left_us / 60e6), floor(fmod(e->left_us / 1e6, 60)));
    put(out, "  %s", e->name);
    cut(out, columns);
}

/* The last column stays free: some terminals go to the next line when it is written. */
static size_t usable_columns(void) {
    const size_t columns = terminal_columns();
    return columns - (columns > 1);
}

void progress_listen(void *context, const struct tune_event *event) {
    (void)context;
    char line[PROGRESS_LINE];
    const size_t columns = usable_columns();
    if (!on_terminal())
        return;
    if (event->outcome)
        progress_result(event, columns, line);
    else
        progress_bar(event, columns, line);
    text_print(stderr, "\r\033[K%s%s", line, event->outcome ? "\n" : "");
    fflush(stderr);
}

void progress_say(const char *format, ...) {
    char line[PROGRESS_LINE];
    va_list arguments;
    if (!on_terminal())
        return;
    va_start(arguments, format);
    text_vformat(line, sizeof line, format, arguments);
    va_end(arguments);
    cut(line, usable_columns());
    text_print(stderr, "\r\033[K%s", line);
    fflush(stderr);
}

void progress_end(void) {
    if (on_terminal())
        text_print(stderr, "\r\033[K");
}
