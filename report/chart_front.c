/* Memory is logarithmic where it differs much, and so is time. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "report/charts.h"
#include "report/svg.h"

static const double WIDTH = 720, HEIGHT = 400, LEFT = 64, RIGHT = 706, TOP = 34, BOTTOM = 336, AIR = 0.08, LOG_FROM = 4;

struct front {
    struct svg_axis x, y; /* of x: in the unit of memory, so that round values are round there */
    struct svg_unit time;
    const char *memory_word;
    double memory; /* bytes of that word */
};

static struct front front_of(size_t n, const struct chart_point *points) {
    struct front f = {.x = {.low = INFINITY, .high = -INFINITY, .from = LEFT, .to = RIGHT},
                      .y = {.low = INFINITY, .high = -INFINITY, .from = BOTTOM, .to = TOP}};
    const double most = n ? points[n - 1].bytes : 0;
    f.memory_word = most >= 0x1p30 ? "GiB" : most >= 0x1p20 ? "MiB" : "KiB";
    f.memory = most >= 0x1p30 ? 0x1p30 : most >= 0x1p20 ? 0x1p20 : 0x1p10;
    for (size_t i = 0; i < n; i++) {
        svg_axis_include(&f.x, points[i].bytes / f.memory);
        svg_axis_include(&f.y, points[i].us);
    }
    f.time = svg_time_unit(f.y.high);
    f.x.log = f.x.low > 0 && f.x.high / f.x.low > LOG_FROM;
    f.y.log = f.y.low > 0 && f.y.high / f.y.low > LOG_FROM;
    svg_axis_finish(&f.x, AIR);
    svg_axis_finish(&f.y, AIR);
    return f;
}

/* From each point of the front to the right, until a faster one begins. */
static void steps(struct markup *m, const struct front *f, size_t n, const struct chart_point *points) {
    double best = INFINITY;
    svg_path_begin(m, "best");
    for (size_t i = 0; i < n; i++) {
        if (!(points[i].us < best))
            continue;
        const double x = svg_axis_place(&f->x, points[i].bytes / f->memory), y = svg_axis_place(&f->y, points[i].us);
        if (isfinite(best)) {
            svg_path_to(m, 'H', x, 0);
            svg_path_to(m, 'V', y, 0);
        } else {
            svg_path_to(m, 'M', x, y);
        }
        best = points[i].us;
    }
    if (isfinite(best))
        svg_path_to(m, 'H', RIGHT, 0);
    else
        svg_path_to(m, 'M', LEFT, BOTTOM);
    svg_path_end(m);
    markup_end(m);
}

static void dot(struct markup *m, const struct front *f, const struct chart_point *point, bool on_front) {
    char time[32], memory[32];
    svg_circle_begin(m, on_front ? "dot" : "dot baseline", svg_axis_place(&f->x, point->bytes / f->memory),
                     svg_axis_place(&f->y, point->us), 4.5);
    markup_begin(m, "title");
    markup_textf(m, "%s: %s, %s", point->words, units_format_time(point->us, time, sizeof time),
                 units_format_bytes_finely((uint64_t)point->bytes, memory, sizeof memory));
    markup_end(m);
    markup_end(m);
}

static void legend(struct markup *m) {
    svg_circle_begin(m, "dot", LEFT + 14, 12, 4.5);
    markup_end(m);
    svg_text(m, "note", LEFT + 24, 16, SVG_START, "on the front");
    svg_circle_begin(m, "dot baseline", LEFT + 156, 12, 4.5);
    markup_end(m);
    svg_text(m, "note", LEFT + 166, 16, SVG_START, "others");
    svg_line(m, "best", LEFT + 256, 12, LEFT + 276, 12);
    svg_text(m, "note", LEFT + 282, 16, SVG_START, "fastest so far");
}

void chart_front(struct markup *m, const char *id, size_t n, const struct chart_point *points) {
    const struct front f = front_of(n, points);
    char words[128];
    double best = INFINITY;
    snprintf(words, sizeof words, "%zu strategies by the memory that they need of a device; lower is faster.", n);
    svg_begin(m, id, "chart wide", WIDTH, HEIGHT, "Time against memory", words);
    svg_axis_y(m, &f.y, f.time.us, LEFT, RIGHT, 7);
    svg_axis_x(m, &f.x, 1, BOTTOM, BOTTOM + 4, 7, false);
    svg_text(m, "label", LEFT - 8, 16, SVG_END, "%s", f.time.word);
    svg_text(m, "label", (LEFT + RIGHT) / 2, HEIGHT - 16, SVG_MIDDLE, "memory of a device, %s", f.memory_word);
    legend(m);
    steps(m, &f, n, points);
    for (size_t i = 0; i < n; i++) {
        dot(m, &f, &points[i], points[i].us < best);
        best = fmin(best, points[i].us);
    }
    markup_end(m);
}
