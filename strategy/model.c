/* Reading, checking and writing model descriptions; their members are in strategy/model.h.
 *
 * Names are resolved through sorted indexes, so reading is O(n log n) in the size of the file. The execution order is
 * a depth-first topological sort that starts from the operators in file order: a file that is already in order keeps
 * it. The walk has its own stack, so that a chain of a million operators is no deeper for us than one of ten. */
#include "strategy/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char MODEL_SCHEMA[] = "syncopate.model/1";
static const double MAX_TIME_US = 1e12;
static const uint64_t MAX_AXIS = UINT64_C(1) << 40, MAX_ELEMENTS = UINT64_C(1) << 48, MAX_BYTES = UINT64_C(1) << 53;

enum { MAX_LAYER_NAME = 4000 }; /* base/json.h reads strings of up to 4096 bytes */

/* What reading needs beside the result. */
struct reader {
    struct model *model;
    struct variable *variables;
    struct operator* operators;
    struct names operator_names;
    const char **words;                   /* scratch for names */
    uint64_t n_forward, activation_bytes; /* of forward operators, so far */
};

static enum status read_shape(const struct json_at *at, struct arena *arena, struct variable *out, struct error *err) {
    struct json_at shape;
    size_t rank;
    enum status st = json_array(at, "shape", MODEL_MAX_RANK, &shape, &rank, err);
    if (st)
        return st;
    uint64_t *dims = arena_alloc(arena, rank, sizeof *dims);
    if (!dims)
        return error_no_memory(err);
    out->elements = 1;
    for (struct json_at e = json_first(&shape); e.node; e = json_next(&e)) {
        if ((st = json_integer_at(&e, 1, MAX_AXIS, &dims[e.index], err)))
            return st;
        if (__builtin_mul_overflow(out->elements, dims[e.index], &out->elements) || out->elements > MAX_ELEMENTS)
            return json_fail(&shape, err, "more than 2^48 elements");
    }
    out->rank = (uint32_t)rank;
    out->shape = dims;
    return ST_OK;
}

static enum status read_variable(const struct json_at *at, struct arena *arena, struct variable *out,
                                 struct error *err) {
    static const char *const known[] = {"name", "shape", "dtype", "sparse_rows", NULL};
    enum status st = json_expect_object(at, known, err);
    const char *name = NULL;
    size_t dtype = DTYPE_f32;
    if (!st)
        st = json_get_string(at, "name", JSON_REQUIRED, &name, err);
    if (!st)
        st = read_shape(at, arena, out, err);
    if (!st)
        st = json_get_word(at, "dtype", JSON_OPTIONAL, dtype_words, &dtype, err);
    if (!st && json_has(at, "sparse_rows", &(struct json_at){0}) && !out->rank)
        return json_fail(at, err, "\"sparse_rows\" needs an axis 0, but the shape is a scalar");
    if (!st)
        st = json_get_integer(at, "sparse_rows", JSON_OPTIONAL, 1, out->rank ? out->shape[0] : 0, &out->sparse_rows,
                              err);
    if (st)
        return st;
    out->dtype = (enum dtype)dtype;
    out->bytes = out->elements * dtype_bytes(out->dtype);
    out->producer = UINT32_MAX;
    out->name = arena_strdup(arena, name);
    return out->name ? ST_OK : error_no_memory(err);
}

static enum status read_variables(struct reader *r, const struct json_at *root, struct error *err) {
    struct model *model = r->model;
    struct json_at array;
    size_t n;
    enum status st = json_array(root, "variables", MODEL_MAX_VARIABLES, &array, &n, err);
    if (st)
        return st;
    if (!n)
        return json_fail(&array, err, "a model needs at least one variable");
    r->variables = arena_alloc(&model->arena, n, sizeof *r->variables);
    const char **names = arena_alloc(&model->arena, n, sizeof *names);
    if (!r->variables || !names)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e)) {
        if ((st = read_variable(&e, &model->arena, &r->variables[e.index], err)))
            return st;
        names[e.index] = r->variables[e.index].name;
        model->bytes += r->variables[e.index].bytes;
        if (model->bytes > MAX_BYTES)
            return json_fail(&array, err, "more than 2^53 bytes of variables");
    }
    model->variables = r->variables;
    model->n_variables = (uint32_t)n;
    int64_t duplicate;
    if (!names_build(&model->names, &model->arena, model->n_variables, names, &duplicate))
        return error_no_memory(err);
    if (duplicate >= 0) {
        struct json_at e = {array.node, &array, NULL, (size_t)duplicate};
        return json_fail(&e, err, "variable \"%s\" is described twice", names[duplicate]);
    }
    return ST_OK;
}

/* The member `key` as a list of positions among `names`; `what` names their kind in messages. */
static enum status read_references(const struct json_at *at, const char *key, const struct names *names,
                                   const char *what, struct arena *arena, uint32_t *n, const uint32_t **out,
                                   struct error *err) {
    struct json_at array;
    size_t count = 0;
    *n = 0;
    *out = NULL;
    if (!json_has(at, key, &array))
        return ST_OK;
    enum status st = json_array(at, key, MODEL_MAX_OPERATORS, &array, &count, err);
    if (st)
        return st;
    uint32_t *positions = arena_alloc(arena, count, sizeof *positions);
    if (!positions)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e)) {
        const char *name;
        if ((st = json_string_at(&e, &name, err)))
            return st;
        int64_t found = names_find(names, name);
        if (found < 0)
            return json_fail(&e, err, "there is no %s \"%s\"", what, name);
        positions[e.index] = (uint32_t)found;
    }
    *n = (uint32_t)count;
    *out = positions;
    return ST_OK;
}

/* Mark the variables that operator `index` produces; each may be marked once. */
static enum status claim_variables(struct reader *r, const struct json_at *at, uint32_t index, struct error *err) {
    const struct operator* op = & r->operators[index];
    for (uint32_t i = 0; i < op->n_produces; i++) {
        struct variable *v = &r->variables[op->produces[i]];
        if (v->producer != UINT32_MAX)
            return json_fail(at, err, "variable \"%s\" is already produced by \"%s\"; one backward operator makes it",
                             v->name, r->operators[v->producer].name);
        v->producer = index;
    }
    return ST_OK;
}

/* Of an operator or a layer. All forward operators say what they leave, or none does: a sum of some would pass for the
 * whole. */
static enum status read_activation(struct reader *r, const struct json_at *at, struct operator* op, struct error *err) {
    const bool has = json_has(at, "activation_bytes", &(struct json_at){0});
    if (!op->backward && r->n_forward++ > 0 && has != r->model->knows_activations)
        return json_fail(at, err, "\"activation_bytes\" is %s here and %s before: give it to all or to none",
                         has ? "given" : "missing", has ? "missing" : "given");
    if (!op->backward)
        r->model->knows_activations = has;
    enum status st = json_get_integer(at, "activation_bytes", JSON_OPTIONAL, 0, MAX_BYTES, &op->activation_bytes, err);
    if (!st && (r->activation_bytes += op->activation_bytes) > MAX_BYTES)
        st = json_fail(at, err, "more than 2^53 bytes of activations");
    return st ? st : json_get_integer(at, "temporary_bytes", JSON_OPTIONAL, 0, MAX_BYTES, &op->temporary_bytes, err);
}

static enum status read_kept_for(struct reader *r, const struct json_at *at, struct operator* op, struct error *err) {
    const char *name;
    if (!op->activation_bytes) {
        if (json_has(at, "kept_for", &(struct json_at){0}))
            return json_fail(at, err, "\"kept_for\" belongs to \"activation_bytes\" above 0");
        return ST_OK;
    }
    enum status st = json_get_string(at, "kept_for", JSON_REQUIRED, &name, err);
    if (st)
        return st;
    const int64_t found = names_find(&r->operator_names, name);
    if (found < 0)
        return json_fail(at, err, "\"kept_for\": there is no operator \"%s\"", name);
    op->kept_for = (uint32_t)found;
    return ST_OK;
}

static enum status read_operator_memory(struct reader *r, const struct json_at *at, struct operator* op,
                                        struct error *err) {
    enum status st = read_activation(r, at, op, err);
    return st ? st : read_kept_for(r, at, op, err);
}

static enum status read_operator(struct reader *r, const struct json_at *at, uint32_t index, struct error *err) {
    static const char *const known[] = {
        "name",     "phase",           "time_us", "after", "reads", "produces", "activation_bytes",
        "kept_for", "temporary_bytes", NULL};
    static const char *const phases[] = {"forward", "backward", NULL};
    struct operator* op = & r->operators[index];
    struct arena *arena = &r->model->arena;
    size_t phase = 0;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_word(at, "phase", JSON_REQUIRED, phases, &phase, err);
    if (!st)
        st = json_get_number(at, "time_us", JSON_REQUIRED, 0, MAX_TIME_US, &op->time_us, err);
    if (!st)
        st = read_references(at, "after", &r->operator_names, "operator", arena, &op->n_after, &op->after, err);
    if (!st)
        st = read_references(at, "reads", &r->model->names, "variable", arena, &op->n_reads, &op->reads, err);
    if (!st)
        st = read_references(at, "produces", &r->model->names, "variable", arena, &op->n_produces, &op->produces, err);
    if (st)
        return st;
    op->backward = phase == 1;
    if (op->backward && op->n_reads)
        return json_fail(at, err, "a backward operator has no \"reads\": it waits for no message");
    if (!op->backward && op->n_produces)
        return json_fail(at, err, "a forward operator has no \"produces\": gradients come from backward operators");
    op->kept_for = index;
    st = read_operator_memory(r, at, op, err);
    return st ? st : claim_variables(r, at, index, err);
}

/* Names first, because "after" may point forward. */
static enum status read_operator_names(struct reader *r, const struct json_at *array, uint32_t n, struct error *err) {
    for (struct json_at e = json_first(array); e.node; e = json_next(&e)) {
        const char *name;
        enum status st = json_get_string(&e, "name", JSON_REQUIRED, &name, err);
        if (st)
            return st;
        r->words[e.index] = r->operators[e.index].name = arena_strdup(&r->model->arena, name);
        if (!r->words[e.index])
            return error_no_memory(err);
    }
    int64_t duplicate;
    if (!names_build(&r->operator_names, &r->model->arena, n, r->words, &duplicate))
        return error_no_memory(err);
    if (duplicate >= 0) {
        struct json_at e = {array->node, array, NULL, (size_t)duplicate};
        return json_fail(&e, err, "operator \"%s\" is described twice", r->words[duplicate]);
    }
    return ST_OK;
}

static enum status alloc_operators(struct reader *r, size_t n, struct error *err) {
    struct model *model = r->model;
    r->operators = arena_alloc(&model->arena, n, sizeof *r->operators);
    r->words = arena_alloc(&model->arena, n, sizeof *r->words);
    model->operators = r->operators;
    model->n_operators = (uint32_t)n;
    return r->operators && r->words ? ST_OK : error_no_memory(err);
}

/* Once all phases are known. */
static enum status check_kept_for(const struct reader *r, const struct json_at *at, struct error *err) {
    const struct operator* op = & r->operators[at->index], *user = &r->operators[op->kept_for];
    if (op->activation_bytes && !user->backward)
        return json_fail(at, err, "\"kept_for\": \"%s\" is no backward operator", user->name);
    return ST_OK;
}

static enum status read_operators(struct reader *r, const struct json_at *root, struct error *err) {
    struct json_at array;
    size_t n;
    enum status st = json_array(root, "operators", MODEL_MAX_OPERATORS, &array, &n, err);
    if (!st)
        st = alloc_operators(r, n, err);
    if (!st)
        st = read_operator_names(r, &array, (uint32_t)n, err);
    if (st)
        return st;
    for (struct json_at e = json_first(&array); !st && e.node; e = json_next(&e))
        st = read_operator(r, &e, (uint32_t)e.index, err);
    for (struct json_at e = json_first(&array); !st && e.node; e = json_next(&e))
        st = check_kept_for(r, &e, err);
    return st;
}

/* Layer i of n becomes the forward operator i and the backward operator 2n-1-i, all in one chain. */
static enum status read_layer(struct reader *r, const struct json_at *at, uint32_t n, struct error *err) {
    static const char *const known[] = {
        "name", "forward_us", "backward_us", "variables", "activation_bytes", "temporary_bytes", NULL};
    struct arena *arena = &r->model->arena;
    uint32_t i = (uint32_t)at->index, last = 2 * n - 1;
    struct operator* forward = & r->operators[i], *backward = &r->operators[last - i];
    const char *name;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_string(at, "name", JSON_REQUIRED, &name, err);
    if (!st)
        st = json_get_number(at, "forward_us", JSON_REQUIRED, 0, MAX_TIME_US, &forward->time_us, err);
    if (!st)
        st = json_get_number(at, "backward_us", JSON_REQUIRED, 0, MAX_TIME_US, &backward->time_us, err);
    if (!st)
        st = read_references(at, "variables", &r->model->names, "variable", arena, &forward->n_reads, &forward->reads,
                             err);
    if (!st)
        st = read_activation(r, at, forward, err);
    if (st)
        return st;
    if (strlen(name) > MAX_LAYER_NAME)
        return json_fail(at, err, "a layer name of %zu bytes; at most %d, for \".grad\" is added", strlen(name),
                         MAX_LAYER_NAME);
    uint32_t *before = arena_alloc(arena, 2, sizeof *before);
    forward->name = arena_strdup(arena, name);
    backward->name = arena_printf(arena, "%s.grad", name);
    if (!before || !forward->name || !backward->name)
        return error_no_memory(err);
    before[0] = i ? i - 1 : 0;
    before[1] = last - i - 1;
    forward->after = &before[0];
    forward->n_after = i > 0;
    forward->kept_for = forward->activation_bytes ? last - i : i;
    backward->kept_for = last - i;
    backward->temporary_bytes = forward->temporary_bytes;
    backward->after = &before[1];
    backward->n_after = 1;
    backward->backward = true;
    backward->produces = forward->reads;
    backward->n_produces = forward->n_reads;
    r->words[i] = forward->name;
    r->words[last - i] = backward->name;
    return claim_variables(r, at, last - i, err);
}

static enum status read_layers(struct reader *r, const struct json_at *root, struct error *err) {
    struct json_at array;
    size_t n;
    int64_t duplicate;
    enum status st = json_array(root, "layers", MODEL_MAX_OPERATORS / 2, &array, &n, err);
    if (!st && !n)
        st = json_fail(&array, err, "a model needs at least one layer");
    if (!st)
        st = alloc_operators(r, 2 * n, err);
    if (st)
        return st;
    for (struct json_at e = json_first(&array); !st && e.node; e = json_next(&e))
        st = read_layer(r, &e, (uint32_t)n, err);
    if (st)
        return st;
    if (!names_build(&r->operator_names, &r->model->arena, (uint32_t)(2 * n), r->words, &duplicate))
        return error_no_memory(err);
    if (duplicate >= 0)
        return json_fail(&array, err, "operator \"%s\" is described twice", r->words[duplicate]);
    return ST_OK;
}

/* The depth-first walk: state 0 = not seen, 1 = on the stack, 2 = placed. */
struct walk {
    const struct model *model;
    const struct json_at *root;
    uint8_t *state;
    uint32_t *stack, *cursor, *order;
    uint32_t depth, n;
};

/* Element `index` of the root's array `key`, as a place for messages. */
#define AT_ELEMENT(root, key, index)                                                                                   \
    (&(struct json_at){(root)->node, &(struct json_at){(root)->node, (root), (key), 0}, NULL, (index)})

static enum status walk_from(struct walk *w, uint32_t start, struct error *err) {
    const struct operator* ops = w->model->operators;
    w->stack[0] = start;
    w->state[start] = 1;
    for (w->depth = 1; w->depth;) {
        uint32_t at = w->stack[w->depth - 1];
        if (w->cursor[at] == ops[at].n_after) {
            w->state[at] = 2;
            w->order[w->n++] = at;
            w->depth--;
            continue;
        }
        uint32_t before = ops[at].after[w->cursor[at]++];
        if (ops[before].backward && !ops[at].backward)
            return json_fail(AT_ELEMENT(w->root, "operators", at), err,
                             "forward operator \"%s\" waits for backward operator \"%s\"", ops[at].name,
                             ops[before].name);
        if (w->state[before] == 1)
            return json_fail(AT_ELEMENT(w->root, "operators", at), err,
                             "operators wait for each other in a cycle through \"%s\" and \"%s\"", ops[at].name,
                             ops[before].name);
        if (w->state[before] == 0) {
            w->state[before] = 1;
            w->stack[w->depth++] = before;
        }
    }
    return ST_OK;
}

static enum status find_order(struct model *model, const struct json_at *root, struct error *err) {
    uint32_t n = model->n_operators;
    struct walk w = {.model = model, .root = root, .order = arena_alloc(&model->arena, n, sizeof *w.order)};
    w.state = calloc(n ? n : 1, sizeof *w.state);
    w.stack = calloc(n ? n : 1, sizeof *w.stack);
    w.cursor = calloc(n ? n : 1, sizeof *w.cursor);
    enum status st = w.order && w.state && w.stack && w.cursor ? ST_OK : error_no_memory(err);
    for (int backward = 0; backward < 2 && !st; backward++) {
        for (uint32_t i = 0; i < n && !st; i++)
            if (model->operators[i].backward == backward && !w.state[i])
                st = walk_from(&w, i, err);
        if (!backward)
            model->n_forward = w.n;
    }
    model->order = w.order;
    free(w.state);
    free(w.stack);
    free(w.cursor);
    return st;
}

/* An operator leaves its activations to one that runs after it. */
static enum status check_activations(const struct model *model, const struct json_at *root, struct error *err) {
    uint32_t *place = calloc(model->n_operators, sizeof *place);
    enum status st = place ? ST_OK : error_no_memory(err);
    if (!st && model->activations_estimated && !model->knows_activations)
        st = json_fail(root, err, "\"activations_estimated\" belongs to operators with \"activation_bytes\"");
    for (uint32_t i = 0; i < model->n_operators && !st; i++)
        place[model->order[i]] = i;
    for (uint32_t i = 0; i < model->n_operators && !st; i++) {
        const struct operator* op = & model->operators[i];
        if (op->activation_bytes && !model->knows_activations)
            st = json_fail(AT_ELEMENT(root, "operators", i), err,
                           "a backward operator has \"activation_bytes\" only where forward operators have them");
        else if (op->activation_bytes && place[op->kept_for] <= place[i])
            st = json_fail(AT_ELEMENT(root, "operators", i), err, "\"kept_for\": \"%s\" runs before \"%s\" ends",
                           model->operators[op->kept_for].name, op->name);
    }
    free(place);
    return st;
}

static double updated_elements(const struct variable *v) {
    const double rows = v->sparse_rows ? (double)v->sparse_rows / (double)v->shape[0] : 1;
    return rows * (double)v->elements;
}

double model_update_us(const struct model *model, const struct variable *variable) {
    return model->update_us > 0 ? model->update_us * updated_elements(variable) / model->updated_elements : 0;
}

static enum status check_whole(struct model *model, const struct json_at *root, struct error *err) {
    for (uint32_t i = 0; i < model->n_variables; i++)
        if (model->variables[i].producer == UINT32_MAX)
            return json_fail(AT_ELEMENT(root, "variables", i), err, "no backward operator produces variable \"%s\"",
                             model->variables[i].name);
    for (uint32_t i = 0; i < model->n_variables; i++)
        model->updated_elements += updated_elements(&model->variables[i]);
    if (!model->n_forward)
        return json_fail(root, err, "a model needs at least one forward operator");
    for (uint32_t i = 0; i < model->n_operators; i++) {
        const struct operator* op = & model->operators[i];
        *(op->backward ? &model->backward_us : &model->forward_us) += op->time_us;
    }
    return ST_OK;
}

static enum status seal(struct model *model, struct error *err) {
    cJSON *json = model_write(model);
    char *text = json ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return error_no_memory(err);
    enum status st = id_of(text, strlen(text), &model->id, err);
    free(text);
    return st;
}

static enum status read_whole(struct reader *r, const struct json_at *root, struct error *err) {
    static const char *const known[] = {
        "schema",    "name",      "batch_per_device", "optimizer", "update_us", "activations_estimated",
        "variables", "operators", "layers",           NULL};
    struct model *model = r->model;
    struct json_at ignored;
    const char *name;
    enum status st = json_expect_schema(root, MODEL_SCHEMA, err);
    if (!st)
        st = json_expect_object(root, known, err);
    if (!st)
        st = json_get_string(root, "name", JSON_REQUIRED, &name, err);
    if (!st)
        st = json_get_number(root, "batch_per_device", JSON_OPTIONAL, 1e-6, 1e9, &model->batch_per_device, err);
    if (!st)
        st = optimizer_read(root, &model->optimizer, err);
    if (!st)
        st = json_get_number(root, "update_us", JSON_OPTIONAL, 0, MAX_TIME_US, &model->update_us, err);
    if (!st)
        st = json_get_bool(root, "activations_estimated", JSON_OPTIONAL, &model->activations_estimated, err);
    if (!st)
        st = read_variables(r, root, err);
    if (st)
        return st;
    if (!(model->name = arena_strdup(&model->arena, name)))
        return error_no_memory(err);
    bool layers = json_has(root, "layers", &ignored), operators = json_has(root, "operators", &ignored);
    if (layers && operators)
        return json_fail(root, err, "give \"operators\" or \"layers\", not both");
    st = layers ? read_layers(r, root, err) : read_operators(r, root, err);
    if (!st)
        st = find_order(model, root, err);
    if (!st)
        st = check_whole(model, root, err);
    if (!st)
        st = check_activations(model, root, err);
    return st ? st : seal(model, err);
}

enum status model_read(const cJSON *json, const char *name, struct model *out, struct error *err) {
    struct model model = {.batch_per_device = 1};
    struct reader reader = {.model = &model};
    struct json_at root = json_root(json, name);
    enum status st = read_whole(&reader, &root, err);
    if (st)
        model_release(&model);
    else
        *out = model;
    return st;
}

enum status model_read_file(const char *path, struct model *out, struct error *err) {
    cJSON *json;
    enum status st = json_read_file(path, &json, err);
    if (st)
        return st;
    st = model_read(json, path, out, err);
    cJSON_Delete(json);
    return st;
}

/* cJSON reports a failed addition by NULL; `ok` gathers them so that one check at the end is enough. */
static void add_names(cJSON *object, const char *key, uint32_t n, const uint32_t *positions, const void *items,
                      size_t stride, bool *ok) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    *ok = *ok && array;
    for (uint32_t i = 0; i < n && *ok; i++) {
        /* Variables and operators both begin with their name. */
        const char *const *name = (const void *)((const char *)items + stride * positions[i]);
        *ok = cJSON_AddItemToArray(array, cJSON_CreateString(*name));
    }
}

static void add_variable(cJSON *array, const struct variable *v, bool *ok) {
    cJSON *object = cJSON_CreateObject();
    *ok = *ok && object && cJSON_AddItemToArray(array, object);
    cJSON *shape = *ok ? cJSON_AddArrayToObject(object, "shape") : NULL;
    *ok = *ok && shape && cJSON_AddStringToObject(object, "name", v->name) &&
          cJSON_AddStringToObject(object, "dtype", dtype_name(v->dtype));
    for (uint32_t i = 0; i < v->rank && *ok; i++)
        *ok = cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)v->shape[i]));
    if (*ok && v->sparse_rows)
        *ok = cJSON_AddNumberToObject(object, "sparse_rows", (double)v->sparse_rows);
}

static void add_operator(cJSON *array, const struct model *model, const struct operator* op, bool *ok) {
    cJSON *object = cJSON_CreateObject();
    *ok = *ok && object && cJSON_AddItemToArray(array, object);
    *ok = *ok && cJSON_AddStringToObject(object, "name", op->name) &&
          cJSON_AddStringToObject(object, "phase", op->backward ? "backward" : "forward") &&
          cJSON_AddNumberToObject(object, "time_us", op->time_us);
    if (!*ok)
        return;
    add_names(object, "after", op->n_after, op->after, model->operators, sizeof *model->operators, ok);
    if (*ok && op->backward)
        add_names(object, "produces", op->n_produces, op->produces, model->variables, sizeof *model->variables, ok);
    if (*ok && !op->backward)
        add_names(object, "reads", op->n_reads, op->reads, model->variables, sizeof *model->variables, ok);
    if (*ok && model->knows_activations && (!op->backward || op->activation_bytes))
        *ok = cJSON_AddNumberToObject(object, "activation_bytes", (double)op->activation_bytes);
    if (*ok && op->activation_bytes)
        *ok = cJSON_AddStringToObject(object, "kept_for", model->operators[op->kept_for].name);
    if (*ok && op->temporary_bytes)
        *ok = cJSON_AddNumberToObject(object, "temporary_bytes", (double)op->temporary_bytes);
}

cJSON *model_write(const struct model *model) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "schema", MODEL_SCHEMA) &&
              cJSON_AddStringToObject(root, "name", model->name) &&
              cJSON_AddNumberToObject(root, "batch_per_device", model->batch_per_device) &&
              optimizer_write(&model->optimizer, root) &&
              (model->update_us <= 0 || cJSON_AddNumberToObject(root, "update_us", model->update_us)) &&
              (!model->activations_estimated || cJSON_AddTrueToObject(root, "activations_estimated"));
    cJSON *variables = ok ? cJSON_AddArrayToObject(root, "variables") : NULL;
    cJSON *operators = ok ? cJSON_AddArrayToObject(root, "operators") : NULL;
    ok = ok && variables && operators;
    for (uint32_t i = 0; i < model->n_variables && ok; i++)
        add_variable(variables, &model->variables[i], &ok);
    for (uint32_t i = 0; i < model->n_operators && ok; i++)
        add_operator(operators, model, &model->operators[i], &ok);
    if (ok)
        return root;
    cJSON_Delete(root);
    return NULL;
}

int64_t model_find_variable(const struct model *model, const char *name) {
    return names_find(&model->names, name);
}

void model_release(struct model *model) {
    arena_release(&model->arena);
    *model = (struct model){0};
}
