/* An advice for programs, written and read (advice.h). */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "tuner/predict/advice.h"

/* ---- written ---- */

static bool add_candidate(const struct advised *c, const struct cluster *cluster, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "way", c->kind) &&
           cJSON_AddStringToObject(object, "strategy", c->strategy.name) &&
           cJSON_AddStringToObject(object, "id", c->strategy.id.hex) &&
           cJSON_AddNumberToObject(object, "iteration_us", c->row.prediction.iteration_us) &&
           cJSON_AddNumberToObject(object, "exposed_us", c->row.prediction.exposed_us) &&
           cJSON_AddNumberToObject(object, "lower_bound_us", c->row.bound_us) &&
           cJSON_AddNumberToObject(object, "groups", c->strategy.n_groups) &&
           (c->wrapped_for == UINT64_MAX ||
            cJSON_AddNumberToObject(object, "wrapped_for_bytes", (double)c->wrapped_for)) &&
           (!c->between || cJSON_AddTrueToObject(object, "between")) &&
           (c->row.expected.seeds == 0 || expectation_write(&c->row.expected, object)) &&
           memory_write(&c->row.memory, cluster, object) &&
           (!advised_is_over(c) || cJSON_AddFalseToObject(cJSON_GetObjectItem(object, "memory"), "fits"));
}

static bool add_front(const struct advice *a, cJSON *to) {
    struct front_point points[MOST_CANDIDATES];
    const size_t n = advice_points(a, points);
    return front_write(front_keep(n, points), points, to);
}

static bool add_answer(const struct advised *best, uint64_t bytes, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) &&
           (bytes == UINT64_MAX || cJSON_AddNumberToObject(object, "memory_bytes", (double)bytes)) &&
           (!best || cJSON_AddStringToObject(object, "id", best->strategy.id.hex)) &&
           (best || cJSON_AddNullToObject(object, "id"));
}

static bool add_change(const struct change *change, const struct budgets *budgets, cJSON *array) {
    bool ok = true;
    for (size_t i = 0; i < budgets->n && ok; i++) {
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) &&
             cJSON_AddNumberToObject(object, "nic_factor", change->factor) &&
             (change->slowest < change->fastest || cJSON_AddNumberToObject(object, "gbit_per_s", change->fastest)) &&
             (budgets->of[i].bytes == UINT64_MAX ||
              cJSON_AddNumberToObject(object, "memory_bytes", (double)budgets->of[i].bytes)) &&
             (isfinite(change->us[i]) ? cJSON_AddStringToObject(object, "way", change->kind[i]) &&
                                            cJSON_AddNumberToObject(object, "iteration_us", change->us[i])
                                      : cJSON_AddNullToObject(object, "way") != NULL);
    }
    return ok;
}

cJSON *advice_json(const struct advice *a, const struct budgets *budgets, const struct change *changes, bool *whole) {
    cJSON *root = cJSON_CreateObject(), *list;
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.advice/1") &&
              cJSON_AddStringToObject(root, "model", a->simulation.model->name) &&
              cJSON_AddStringToObject(root, "cluster", a->simulation.cluster->name) &&
              (!a->simulation.model->activations_estimated || cJSON_AddTrueToObject(root, "activations_estimated")) &&
              cJSON_AddNumberToObject(root, "lower_bound_us", advice_bound_us(a)) &&
              (list = cJSON_AddArrayToObject(root, "candidates"));
    for (size_t i = 0; i < a->n && ok; i++)
        ok = add_candidate(&a->candidates[i], a->simulation.cluster, list);
    ok = ok && (list = cJSON_AddArrayToObject(root, "answers"));
    for (size_t i = 0; i < budgets->n && ok; i++)
        ok = add_answer(advice_best_within(a, budgets->of[i].bytes), budgets->of[i].bytes, list);
    ok = ok && cJSON_AddNumberToObject(root, "smallest_memory_bytes", (double)advised_bytes(advice_smallest(a))) &&
         add_front(a, root) && (list = cJSON_AddArrayToObject(root, "at_other_rates"));
    for (size_t r = 0; r < ADVICE_RATES && ok; r++)
        ok = add_change(&changes[r], budgets, list);
    *whole = ok;
    return root;
}

/* ---- read ---- */

static const double MOST_US = 1e18, MOST_BYTES = 0x1p53;

static enum status read_memory(const struct json_at *at, const struct cluster *cluster, struct row *out,
                               struct error *err) {
    struct json_at member;
    enum status st = json_member(at, "memory", &member, err);
    out->has_memory = !st;
    if (!st)
        st = memory_read(&member, cluster, &out->memory, err);
    out->over = !st && memory_check(&out->memory, cluster, 0, &(struct error){0});
    return st;
}

static enum status read_wrapped_for(const struct json_at *at, struct advised *out, struct error *err) {
    double bytes = -1;
    enum status st = json_get_number(at, "wrapped_for_bytes", JSON_OPTIONAL, 0, MOST_BYTES, &bytes, err);
    out->wrapped_for = bytes < 0 ? UINT64_MAX : (uint64_t)bytes;
    return st ? st : json_get_bool(at, "between", JSON_OPTIONAL, &out->between, err);
}

static enum status read_candidate(const struct json_at *at, const struct cluster *cluster, struct advised *out,
                                  struct error *err) {
    const char *id;
    uint64_t groups;
    struct json_at weather;
    struct row *row = &out->row;
    *out = (struct advised){.kind = NULL};
    enum status st = json_get_string(at, "way", JSON_REQUIRED, &out->kind, err);
    if (!st)
        st = json_get_string(at, "strategy", JSON_REQUIRED, &out->strategy.name, err);
    if (!st)
        st = json_get_string(at, "id", JSON_REQUIRED, &id, err);
    if (!st)
        st = json_get_number(at, "iteration_us", JSON_REQUIRED, 0, MOST_US, &row->prediction.iteration_us, err);
    if (!st)
        st = json_get_number(at, "exposed_us", JSON_REQUIRED, -MOST_US, MOST_US, &row->prediction.exposed_us, err);
    if (!st)
        st = json_get_number(at, "lower_bound_us", JSON_REQUIRED, 0, MOST_US, &row->bound_us, err);
    if (!st)
        st = json_get_integer(at, "groups", JSON_REQUIRED, 0, UINT32_MAX, &groups, err);
    if (!st && json_has(at, "in_weather", &weather))
        st = expectation_read(&weather, &row->expected, err);
    if (!st)
        st = read_wrapped_for(at, out, err);
    if (!st)
        st = read_memory(at, cluster, row, err);
    if (st)
        return st;
    snprintf(out->strategy.id.hex, sizeof out->strategy.id.hex, "%s", id);
    out->strategy.n_groups = (uint32_t)groups;
    return ST_OK;
}

/* What stands for one memory at one rate. */
static enum status read_change(const struct json_at *at, const struct cluster *cluster, size_t i, struct change *out,
                               struct error *err) {
    struct json_at way;
    double factor;
    enum status st = json_get_number(at, "nic_factor", JSON_REQUIRED, 0, MOST_US, &factor, err);
    if (st)
        return st;
    if (i == 0)
        *out = change_begin(cluster, factor);
    out->us[i] = INFINITY;
    if (json_has(at, "way", &way) && cJSON_IsNull(way.node))
        return ST_OK;
    st = json_get_string(at, "way", JSON_REQUIRED, &out->kind[i], err);
    return st ? st : json_get_number(at, "iteration_us", JSON_REQUIRED, 0, MOST_US, &out->us[i], err);
}

static enum status read_changes(const struct json_at *root, const struct cluster *cluster,
                                const struct budgets *budgets, struct change out[ADVICE_RATES], struct error *err) {
    struct json_at list;
    size_t n, k = 0;
    enum status st = json_array(root, "at_other_rates", ADVICE_RATES * MOST_BUDGETS, &list, &n, err);
    if (!st && n != ADVICE_RATES * budgets->n)
        return json_fail(&list, err, "has %zu elements in place of %zu", n, ADVICE_RATES * budgets->n);
    for (struct json_at e = json_first(&list); !st && e.node; e = json_next(&e), k++)
        st = read_change(&e, cluster, k % budgets->n, &out[k / budgets->n], err);
    return st;
}

enum status advice_read(const struct json_at *root, const struct model *model, const struct cluster *cluster,
                        const struct budgets *budgets, struct advice *out, struct change changes[ADVICE_RATES],
                        struct error *err) {
    struct json_at list;
    size_t n;
    *out = (struct advice){.simulation = {.model = model, .cluster = cluster}};
    enum status st = json_array(root, "candidates", MOST_CANDIDATES, &list, &n, err);
    if (!st && n == 0)
        return json_fail(&list, err, "is empty");
    for (struct json_at e = json_first(&list); !st && e.node; e = json_next(&e))
        st = read_candidate(&e, cluster, &out->candidates[out->n++], err);
    if (!st && !advice_smallest(out))
        return json_fail(&list, err, "has none that fits");
    return st ? st : read_changes(root, cluster, budgets, changes, err);
}
