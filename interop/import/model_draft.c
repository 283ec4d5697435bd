/* The tree is built as cJSON, which is what is written, and then read by model_read, so that no importer can make what
 * the model reader would refuse. O(n log n). */
#include "interop/import/model_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void model_draft_init(struct model_draft *draft, struct arena *arena, const char *name, double batch,
                      enum draft_form form) {
    *draft = (struct model_draft){.arena = arena, .root = cJSON_CreateObject()};
    draft->ok = draft->root && cJSON_AddStringToObject(draft->root, "schema", "syncopate.model/1") &&
                cJSON_AddStringToObject(draft->root, "name", name) &&
                (batch <= 0 || cJSON_AddNumberToObject(draft->root, "batch_per_device", batch));
    draft->variables = draft->ok ? cJSON_AddArrayToObject(draft->root, "variables") : NULL;
    draft->items =
        draft->variables ? cJSON_AddArrayToObject(draft->root, form == DRAFT_LAYERS ? "layers" : "operators") : NULL;
    draft->ok = draft->items;
}

static cJSON *add_object(struct model_draft *draft, cJSON *array) {
    cJSON *object = draft->ok ? cJSON_CreateObject() : NULL;
    draft->ok = object && cJSON_AddItemToArray(array, object);
    return draft->ok ? object : NULL;
}

static bool keep_name(struct model_draft *draft, const char *name, size_t line) {
    if (!GROW(&draft->index, &draft->room, draft->n_variables + 1))
        return false;
    const size_t i = draft->n_variables;
    draft->index[i] = (struct draft_variable){arena_strdup(draft->arena, name), line, i};
    return draft->index[draft->n_variables++].name;
}

void model_draft_variable(struct model_draft *draft, const char *name, const struct shape *shape, enum dtype dtype,
                          size_t line) {
    cJSON *object = add_object(draft, draft->variables);
    if (!object)
        return;
    draft->ok = cJSON_AddStringToObject(object, "name", name) && keep_name(draft, name, line);
    cJSON *sizes = draft->ok ? cJSON_AddArrayToObject(object, "shape") : NULL;
    draft->ok = sizes && cJSON_AddStringToObject(object, "dtype", dtype_name(dtype));
    for (uint32_t i = 0; i < shape->rank && draft->ok; i++)
        draft->ok = cJSON_AddItemToArray(sizes, cJSON_CreateNumber((double)shape->sizes[i]));
}

static void add_names(struct model_draft *draft, cJSON *object, const char *key, size_t n, const char *const *names) {
    cJSON *array = draft->ok ? cJSON_AddArrayToObject(object, key) : NULL;
    draft->ok = array;
    for (size_t i = 0; i < n && draft->ok; i++)
        draft->ok = cJSON_AddItemToArray(array, cJSON_CreateString(names[i]));
}

void model_draft_layer(struct model_draft *draft, const char *name, double forward_us, double backward_us, size_t n,
                       const char *const *variables) {
    cJSON *object = add_object(draft, draft->items);
    if (!object)
        return;
    draft->ok = cJSON_AddStringToObject(object, "name", name) &&
                cJSON_AddNumberToObject(object, "forward_us", forward_us) &&
                cJSON_AddNumberToObject(object, "backward_us", backward_us);
    add_names(draft, object, "variables", n, variables);
}

void model_draft_operator(struct model_draft *draft, const char *name, bool backward, double time_us, size_t n_after,
                          const char *const *after, size_t n, const char *const *variables) {
    cJSON *object = add_object(draft, draft->items);
    if (!object)
        return;
    draft->ok = cJSON_AddStringToObject(object, "name", name) &&
                cJSON_AddStringToObject(object, "phase", backward ? "backward" : "forward") &&
                cJSON_AddNumberToObject(object, "time_us", time_us);
    add_names(draft, object, "after", n_after, after);
    if (n)
        add_names(draft, object, backward ? "produces" : "reads", n, variables);
}

static int compare_variables(const void *a, const void *b) {
    const struct draft_variable *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* The model reader would refuse a name that comes twice as well, but knows no lines. */
static enum status check_names(struct model_draft *draft, const struct source *source, struct error *err) {
    if (draft->n_variables)
        qsort(draft->index, draft->n_variables, sizeof *draft->index, compare_variables);
    for (size_t i = 1; i < draft->n_variables; i++) {
        const struct draft_variable *a = &draft->index[i - 1], *b = &draft->index[i];
        if (!strcmp(a->name, b->name) && b->line)
            return error_set(err, ST_INVALID, "%s:%zu: variable \"%.100s\" again; it stands in line %zu", source->name,
                             b->line, b->name, a->line);
    }
    return ST_OK;
}

enum status model_draft_finish(struct model_draft *draft, const struct source *source, cJSON **out, struct error *err) {
    struct model model;
    enum status st = draft->ok ? check_names(draft, source, err) : error_no_memory(err);
    if (!st)
        st = model_read(draft->root, source->name, &model, err);
    if (!st) {
        model_release(&model);
        *out = draft->root;
        draft->root = NULL;
    }
    model_draft_release(draft);
    return st;
}

void model_draft_release(struct model_draft *draft) {
    cJSON_Delete(draft->root);
    free(draft->index);
    *draft = (struct model_draft){0};
}
