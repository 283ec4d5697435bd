/* See front.h. Sorted by memory, a point is on the front if it is faster than the last one that was kept. */
#include "tuner/predict/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_points(const void *a, const void *b) {
    const struct front_point *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->iteration_us < y->iteration_us || x->iteration_us > y->iteration_us)
        return x->iteration_us < y->iteration_us ? -1 : 1;
    return strcmp(x->id, y->id);
}

void front_sort(size_t n, struct front_point *points) {
    qsort(points, n, sizeof *points, compare_points);
}

size_t front_keep(size_t n, struct front_point *points) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || points[i].iteration_us < points[kept - 1].iteration_us)
            points[kept++] = points[i];
    return kept;
}

size_t front_thin(size_t n, struct front_point *points) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || (double)points[i + 1].bytes > (double)points[i].bytes * (1 + FRONT_NEAR))
            points[kept++] = points[i];
    return kept;
}

const char *front_groups(uint32_t n_groups, char *out, size_t room) {
    if (n_groups > 0)
        snprintf(out, room, "%u", n_groups);
    else
        snprintf(out, room, "-");
    return out;
}

static bool add_point(const struct front_point *point, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "id", point->id) &&
           cJSON_AddNumberToObject(object, "peak_bytes", (double)point->bytes) &&
           cJSON_AddNumberToObject(object, "iteration_us", point->iteration_us);
}

bool front_write(size_t n, const struct front_point *points, cJSON *to) {
    cJSON *array = cJSON_AddArrayToObject(to, "front");
    bool ok = array != NULL;
    for (size_t i = 0; i < n && ok; i++)
        ok = add_point(&points[i], array);
    return ok;
}
