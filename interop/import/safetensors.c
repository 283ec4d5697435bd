/* The header of a safetensors file: an 8-byte little-endian length, and so many bytes of JSON that give each tensor's
 * dtype, shape and place. It has shapes and no times.
 *
 * Times are estimated (interop/import/weights.h). Tensors whose rows are looked up, by their name ("embed", "wte",
 * "wpe"), multiply nothing. The header does not have the order of the layers either, since writers sort it: look-ups
 * come first, then layers in the order of their names, where numbers compare as numbers. Statistics ("running_mean" and
 * the like) and integers are not variables. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "interop/import/model_draft.h"
#include "interop/import/model_kinds.h"
#include "interop/import/weights.h"

enum { HEADER_MAX_BYTES = 32 << 20, PREFIX_BYTES = 8 };

struct tensor {
    struct weight weight;
    bool left_out;
};

static uint64_t header_bytes(const struct source *source) {
    uint64_t n = 0;
    for (int i = PREFIX_BYTES; i--;)
        n = n << 8 | (unsigned char)source->text[i];
    return n;
}

bool safetensors_is(const struct source *source) {
    return source->n > PREFIX_BYTES && source->text[PREFIX_BYTES] == '{' && header_bytes(source) >= 2 &&
           header_bytes(source) < UINT64_C(1) << 40 && memchr(source->text, 0, PREFIX_BYTES);
}

static bool is_statistic(const char *name) {
    static const char *const ends[] = {"running_mean", "running_var", "num_batches_tracked", "position_ids"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(name), m = strlen(ends[i]);
        if (n >= m && !strcmp(name + n - m, ends[i]))
            return true;
    }
    return false;
}

static enum status read_dtype(const struct json_at *at, struct tensor *out, struct error *err) {
    static const struct {
        const char *name;
        enum dtype dtype;
        bool trainable;
    } types[] = {{"F64", DTYPE_f64, true},   {"F32", DTYPE_f32, true},     {"F16", DTYPE_f16, true},
                 {"BF16", DTYPE_bf16, true}, {"I64", DTYPE_i64, false},    {"I32", DTYPE_i32, false},
                 {"U8", DTYPE_u8, false},    {"I16", DTYPE_i32, false},    {"I8", DTYPE_u8, false},
                 {"BOOL", DTYPE_u8, false},  {"F8_E4M3", DTYPE_u8, false}, {"F8_E5M2", DTYPE_u8, false}};
    const char *word;
    enum status st = json_get_string(at, "dtype", JSON_REQUIRED, &word, err);
    if (st)
        return st;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(word, types[i].name)) {
            out->weight.dtype = types[i].dtype;
            out->left_out = !types[i].trainable || is_statistic(out->weight.name);
            return ST_OK;
        }
    return json_fail(at, err, "there is no dtype \"%s\"", word);
}

static enum status read_tensor(const struct json_at *at, struct tensor *out, struct error *err) {
    static const char *const known[] = {"dtype", "shape", "data_offsets", NULL};
    struct json_at shape;
    size_t rank;
    enum status st = json_expect_object(at, known, err);
    *out = (struct tensor){.weight = {.name = at->key}};
    if (!st)
        st = read_dtype(at, out, err);
    if (!st)
        st = json_array(at, "shape", MODEL_MAX_RANK, &shape, &rank, err);
    for (struct json_at e = st ? (struct json_at){0} : json_first(&shape); e.node && !st; e = json_next(&e))
        st = json_integer_at(&e, out->left_out ? 0 : 1, UINT64_C(1) << 40, &out->weight.shape.sizes[e.index], err);
    if (st)
        return st;
    const char *name = out->weight.name;
    out->weight.shape.rank = (uint32_t)rank;
    out->weight.lookup = strstr(name, "embed") || strstr(name, "wte") || strstr(name, "wpe");
    return ST_OK;
}

static int compare_weights(const void *a, const void *b) {
    const struct weight *x = a, *y = b;
    return x->lookup != y->lookup ? y->lookup - x->lookup : strverscmp(x->name, y->name);
}

static enum status read_header(const struct source *source, struct arena *arena, cJSON *json, struct weight **out,
                               size_t *n, size_t *n_left_out, struct error *err) {
    const struct json_at root = json_root(json, source->name);
    if (!cJSON_IsObject(json))
        return json_fail(&root, err, "the header is not an object");
    struct weight *weights = arena_alloc(arena, (size_t)cJSON_GetArraySize(json), sizeof *weights);
    *n = *n_left_out = 0;
    if (!weights)
        return error_no_memory(err);
    for (struct json_at e = json_first(&root); e.node; e = json_next(&e)) {
        struct tensor tensor;
        if (!strcmp(e.key, "__metadata__"))
            continue;
        enum status st = read_tensor(&e, &tensor, err);
        if (st)
            return st;
        *n_left_out += tensor.left_out;
        if (!tensor.left_out)
            weights[(*n)++] = tensor.weight;
    }
    if (!*n)
        return json_fail(&root, err, "no tensor of floating-point numbers");
    qsort(weights, *n, sizeof *weights, compare_weights);
    *out = weights;
    return ST_OK;
}

static bool add_notes(const struct source *source, const struct import_settings *settings, size_t n, size_t n_left_out,
                      struct notes *notes) {
    if (n_left_out && !notes_add(notes, "%s: %zu of %zu tensors are left out: integers, numbers of 8 bits, statistics",
                                 source->name, n_left_out, n + n_left_out))
        return false;
    return weights_note(source, settings, notes) &&
           notes_add(notes, "%s: a header has no order: look-ups first, then layers in the order of their names",
                     source->name);
}

static enum status check(const struct source *source, const struct import_settings *settings, struct error *err) {
    if (source->n < PREFIX_BYTES || header_bytes(source) > source->n - PREFIX_BYTES)
        return error_at(err, ST_INVALID, source->name,
                        "byte 0: the header ends behind the end of the file; fetch it again");
    if (header_bytes(source) > HEADER_MAX_BYTES)
        return error_at(err, ST_TOO_LARGE, source->name, "a header of over %d bytes", HEADER_MAX_BYTES);
    return weights_check(source, settings, err);
}

enum status safetensors_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                             cJSON **out, struct error *err) {
    cJSON *json;
    struct weight *weights = NULL;
    struct model_draft draft;
    size_t n = 0, n_left_out = 0;
    const char *name = import_name(source, settings, true, notes->arena);
    enum status st = check(source, settings, err);
    if (st || !name)
        return st ? st : error_no_memory(err);
    st = json_parse(source->text + PREFIX_BYTES, (size_t)header_bytes(source), source->name, &json, err);
    if (st)
        return st;
    st = read_header(source, notes->arena, json, &weights, &n, &n_left_out, err);
    if (!st && !add_notes(source, settings, n, n_left_out, notes))
        st = error_no_memory(err);
    if (!st) {
        model_draft_init(&draft, notes->arena, name, settings->batch, DRAFT_LAYERS);
        weights_draft(&draft, weights, n, '.', settings);
        st = model_draft_finish(&draft, source, out, err);
    }
    cJSON_Delete(json);
    return st;
}
