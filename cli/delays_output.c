/* Columns stand side by side, and below each other where the line ends. All have the same bars, and all bars the same
 * scale, so that they can be compared. */
#include "cli/delays_output.h"

#include <math.h>

#include "base/text.h"
#include "cli/picture.h"

enum { LABEL = 10, CELLS = 14, COLUMN = CELLS + 10 };

static double most_of(size_t n, const struct delay_counts *counts, const struct delay_bars *bars) {
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, delays_share_dropped(&counts[i]));
        for (size_t b = 0; b < bars->n; b++)
            most = fmax(most, delays_share(&counts[i], bars, b));
    }
    return most > 0 ? most : 1;
}

/* The bar after the last is what was dropped. */
static void print_bar(size_t n, const struct delay_counts *counts, const struct delay_bars *bars, size_t b,
                      double most) {
    char label[DELAY_BAR_TEXT] = "dropped", text[CELLS * PICTURE_BYTES + 1];
    if (b < bars->n)
        delays_bar_text(bars, b, label);
    text_print(stdout, "%-*s", LABEL, label);
    for (size_t i = 0; i < n; i++) {
        const double share = b < bars->n ? delays_share(&counts[i], bars, b) : delays_share_dropped(&counts[i]);
        text_print(stdout, "  %s %5.1f%%", picture_bar(share / most, CELLS, text), 100 * share);
    }
    text_print(stdout, "\n");
}

void delays_print(size_t n, const char *const *names, const struct delay_counts *counts) {
    const struct delay_bars bars = delays_bars(n, counts);
    const double most = most_of(n, counts, &bars);
    const size_t fit = (picture_width() - LABEL) / COLUMN;
    for (size_t first = 0; first < n; first += fit) {
        const size_t here = n - first < fit ? n - first : fit;
        text_print(stdout, "\n%-*s", LABEL, "DELAY");
        for (size_t i = 0; i < here; i++)
            text_print(stdout, "  %-*.*s", i + 1 < here ? COLUMN - 2 : 0, COLUMN - 3, names[first + i]);
        text_print(stdout, "\n");
        for (size_t b = 0; b <= bars.n; b++)
            print_bar(here, counts + first, &bars, b, most);
    }
}
