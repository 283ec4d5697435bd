/* Blocks of an eighth, U+2581 to U+258F, are what terminals' fonts have. */
#include "cli/picture.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { EIGHTHS = 8, LEAST = 50, MOST = 240, NO_TERMINAL = 100 };

size_t picture_width(void) {
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return NO_TERMINAL;
    return size.ws_col < LEAST ? LEAST : size.ws_col > MOST ? MOST : size.ws_col;
}

/* By the first of these that is set, as the C library has it. */
static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *locale = getenv(names[i]);
        if (locale && *locale)
            return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
    }
    return false;
}

static double within(double share) {
    return share > 0 ? fmin(share, 1) : 0; /* 0 for a NaN */
}

const char *picture_column(double share) {
    static const char *const blocks[EIGHTHS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[EIGHTHS] = {".", ":", "-", "=", "+", "*", "%", "#"};
    const size_t k = (size_t)fmin(fmax(within(share) * EIGHTHS - 0.5, 0), EIGHTHS - 1);
    return is_utf8() ? blocks[k] : letters[k];
}

const char *picture_shade(unsigned shade) {
    static const char *const blocks[PICTURE_SHADES] = {" ", "░", "▒", "█"};
    static const char *const letters[PICTURE_SHADES] = {" ", ".", "=", "#"};
    return is_utf8() ? blocks[shade] : letters[shade];
}

const char *picture_bar(double share, size_t cells, char *out) {
    static const char *const blocks[EIGHTHS] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const bool fine = is_utf8();
    const size_t parts = fine ? EIGHTHS : 1, filled = (size_t)(within(share) * (double)(cells * parts) + 0.5);
    char *at = out;
    for (size_t i = 0; i < cells; i++) {
        const size_t here = filled > i * parts ? filled - i * parts : 0;
        const char *cell = here >= parts ? (fine ? "█" : "#") : blocks[here];
        at = stpcpy(at, cell);
    }
    return out;
}
