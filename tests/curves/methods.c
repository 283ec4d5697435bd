/* See methods.h. Cubic pieces take the harmonic mean of the slopes beside a point as its derivative, which keeps them
 * monotone; O(points) a question, since each is asked of another table. */
#include "tests/curves/methods.h"

#include <math.h>
#include <stdlib.h>

enum points { AS_MEASURED, RUNNING_MAXIMUM, ISOTONIC };

struct way {
    bool logs, cubic;
    enum points points;
};

struct points_room {
    double x[MEASURED_POINTS], y[MEASURED_POINTS];
};

/* ---- one line ---- */

/* Least squares with weight 1, or 1 / time² (relative). */
static double line_us(const void *context, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                      double bytes) {
    const bool *relative = context;
    const struct curve_table *t = &tables[which];
    double w = 0, x = 0, y = 0, xx = 0, xy = 0;
    (void)n_tables;
    for (uint32_t i = 0; i < t->n; i++) {
        double weight = *relative ? 1 / (t->time_us[i] * t->time_us[i]) : 1;
        w += weight;
        x += weight * t->bytes[i];
        y += weight * t->time_us[i];
        xx += weight * t->bytes[i] * t->bytes[i];
        xy += weight * t->bytes[i] * t->time_us[i];
    }
    double slope = (w * xy - x * y) / (w * xx - x * x);
    return (y - slope * x) / w + slope * bytes;
}

/* ---- pieces ---- */

static void take_points(const struct curve_table *table, const struct way *way, struct points_room *room) {
    struct arena arena = {0};
    struct error err;
    struct curve curve;
    const double *times = table->time_us;
    if (way->points == ISOTONIC) {
        if (curve_init(&curve, 1, table, 0, &arena, &err))
            abort();
        times = curve.time_us;
    }
    for (uint32_t i = 0; i < table->n; i++) {
        room->x[i] = way->logs ? log(table->bytes[i]) : table->bytes[i];
        room->y[i] = way->logs ? log(times[i]) : times[i];
        if (way->points == RUNNING_MAXIMUM && i > 0)
            room->y[i] = fmax(room->y[i], room->y[i - 1]);
    }
    arena_release(&arena);
}

static double slope_of(const struct points_room *p, uint32_t i) {
    return (p->y[i + 1] - p->y[i]) / (p->x[i + 1] - p->x[i]);
}

/* The derivative at point i: a weighted harmonic mean of the slopes beside it, 0 where they differ in sign; at an end
 * that of a parabola through three points, as far as it keeps the curve monotone. */
static double derivative_at(const struct points_room *p, uint32_t n, uint32_t i) {
    if (i > 0 && i + 1 < n) {
        double before = p->x[i] - p->x[i - 1], after = p->x[i + 1] - p->x[i];
        double a = slope_of(p, i - 1), b = slope_of(p, i), wa = 2 * after + before, wb = after + 2 * before;
        return a * b > 0 ? (wa + wb) / (wa / a + wb / b) : 0;
    }
    uint32_t near = i ? n - 2 : 0, next = i ? n - 3 : 1;
    if (n < 3)
        return slope_of(p, 0);
    double h = p->x[near + 1] - p->x[near], g = p->x[next + 1] - p->x[next];
    double a = slope_of(p, near), b = slope_of(p, next), end = ((2 * h + g) * a - h * b) / (h + g);
    if (end * a <= 0)
        return 0;
    return a * b <= 0 && fabs(end) > 3 * fabs(a) ? 3 * a : end;
}

static double cubic_at(const struct points_room *p, uint32_t n, uint32_t i, double x) {
    double h = p->x[i + 1] - p->x[i], t = (x - p->x[i]) / h, s = 1 - t;
    return s * s * (1 + 2 * t) * p->y[i] + t * t * (3 - 2 * t) * p->y[i + 1] +
           h * t * s * (s * derivative_at(p, n, i) - t * derivative_at(p, n, i + 1));
}

/* Between the first and the last point. */
static double pieces_us(const void *context, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                        double bytes) {
    static struct points_room room;
    const struct way *way = context;
    const struct curve_table *table = &tables[which];
    uint32_t i = 0;
    (void)n_tables;
    take_points(table, way, &room);
    double x = way->logs ? log(bytes) : bytes;
    while (i + 2 < table->n && room.x[i + 1] <= x)
        i++;
    double y = way->cubic ? cubic_at(&room, table->n, i, x) : room.y[i] + slope_of(&room, i) * (x - room.x[i]);
    return way->logs ? exp(y) : y;
}

static const bool plain = false, relative = true;

const struct method methods[N_METHODS] = {
    {"one line, least squares of times", {line_us, &plain}, false},
    {"one line, least squares of relative errors", {line_us, &relative}, true},
    {"straight in log-log, as measured", {pieces_us, &(struct way){true, false, AS_MEASURED}}, false},
    {"straight in log-log, running maximum", {pieces_us, &(struct way){true, false, RUNNING_MAXIMUM}}, true},
    {"straight in log-log, isotonic", {pieces_us, &(struct way){true, false, ISOTONIC}}, true},
    {"cubic in log-log, isotonic", {pieces_us, &(struct way){true, true, ISOTONIC}}, true},
    {"cubic in bytes, isotonic", {pieces_us, &(struct way){false, true, ISOTONIC}}, false},
    {"straight in bytes, as measured", {pieces_us, &(struct way){false, false, AS_MEASURED}}, false},
    {"straight in bytes, isotonic: the model", {guess_curve_us, NULL}, true},
};
