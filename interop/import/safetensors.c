/* The header of a safetensors file: an 8-byte little-endian length, and so many bytes of JSON that give each tensor's
 * dtype, shape and place. It has shapes and no times. The places must cover the data exactly, each tensor's as many
 * bytes as its shape and dtype make, as the format's own reader demands: a file of which a part is missing shows by
 * that.
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
static const uint64_t MAX_OFFSET = UINT64_C(1) << 53;

struct tensor {
    struct weight weight;
    bool left_out;
    double element_bytes;
};

/* Where a tensor's data lie: bytes [begin, end) behind the header. */
struct span {
    struct json_at at; /* the tensor, for messages */
    uint64_t begin, end;
};

struct header {
    struct weight *weights;
    struct span *spans; /* of all tensors */
    size_t n_weights, n_spans;
};

/* How many bytes stand behind the header. */
struct data {
    uint64_t bytes;
    bool known; /* not of standard input that is longer than what is read of it */
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
        enum dtype dtype; /* of those that are trained */
        double bytes;
        bool trainable;
    } types[] = {{"F64", DTYPE_f64, 8, true},   {"F32", DTYPE_f32, 4, true},     {"F16", DTYPE_f16, 2, true},
                 {"BF16", DTYPE_bf16, 2, true}, {"I64", DTYPE_i64, 8, false},    {"I32", DTYPE_i32, 4, false},
                 {"I16", DTYPE_i32, 2, false},  {"I8", DTYPE_u8, 1, false},      {"U64", DTYPE_i64, 8, false},
                 {"U32", DTYPE_i32, 4, false},  {"U16", DTYPE_i32, 2, false},    {"U8", DTYPE_u8, 1, false},
                 {"BOOL", DTYPE_u8, 1, false},  {"F8_E4M3", DTYPE_u8, 1, false}, {"F8_E5M2", DTYPE_u8, 1, false}};
    const char *word;
    enum status st = json_get_string(at, "dtype", JSON_REQUIRED, &word, err);
    if (st)
        return st;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(word, types[i].name)) {
            out->weight.dtype = types[i].dtype;
            out->left_out = !types[i].trainable || is_statistic(out->weight.name);
            out->element_bytes = types[i].bytes;
            return ST_OK;
        }
    return json_fail(at, err, "there is no dtype \"%s\"", word);
}

static enum status read_offsets(const struct json_at *at, const struct tensor *tensor, struct span *out,
                                struct error *err) {
    struct json_at offsets;
    double bytes = tensor->element_bytes;
    size_t n;
    enum status st = json_array(at, "data_offsets", 2, &offsets, &n, err);
    if (!st && n != 2)
        st = json_fail(&offsets, err, "where the data begin and where they end are 2 numbers");
    *out = (struct span){.at = *at};
    for (struct json_at e = st ? (struct json_at){0} : json_first(&offsets); e.node && !st; e = json_next(&e))
        st = json_integer_at(&e, 0, MAX_OFFSET, e.index ? &out->end : &out->begin, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < tensor->weight.shape.rank; i++)
        bytes *= (double)tensor->weight.shape.sizes[i];
    if (out->end < out->begin || (double)(out->end - out->begin) != bytes)
        return json_fail(&offsets, err, "bytes %lu to %lu, but shape and dtype make %.0f bytes; fetch or save it again",
                         (unsigned long)out->begin, (unsigned long)out->end, bytes);
    return ST_OK;
}

static enum status read_tensor(const struct json_at *at, struct tensor *out, struct span *span, struct error *err) {
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
    return read_offsets(at, out, span, err);
}

static int compare_spans(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* In the order of their places each tensor must begin where the one before ends, and the last one end with the file. */
static enum status check_spans(const struct json_at *root, const struct header *header, struct data data,
                               struct error *err) {
    uint64_t end = 0;
    if (header->n_spans)
        qsort(header->spans, header->n_spans, sizeof *header->spans, compare_spans);
    for (size_t i = 0; i < header->n_spans; i++) {
        const struct span *span = &header->spans[i];
        if (span->begin < end)
            return json_fail(&span->at, err, "its data begin at byte %lu, inside those of \"%.100s\"",
                             (unsigned long)span->begin, header->spans[i - 1].at.key);
        if (span->begin > end)
            return json_fail(&span->at, err, "its data begin at byte %lu, and bytes %lu to %lu belong to no tensor",
                             (unsigned long)span->begin, (unsigned long)end, (unsigned long)span->begin);
        if (data.known && span->end > data.bytes)
            return json_fail(&span->at, err, "its data end at byte %lu, but the file has %lu; fetch it again",
                             (unsigned long)span->end, (unsigned long)data.bytes);
        end = span->end;
    }
    return !data.known || end == data.bytes
               ? ST_OK
               : json_fail(root, err, "the last %lu bytes of data belong to no tensor; fetch or save it again",
                           (unsigned long)(data.bytes - end));
}

static int compare_weights(const void *a, const void *b) {
    const struct weight *x = a, *y = b;
    return x->lookup != y->lookup ? y->lookup - x->lookup : strverscmp(x->name, y->name);
}

static enum status read_header(const struct json_at *root, struct arena *arena, struct data data, struct header *out,
                               struct error *err) {
    if (!cJSON_IsObject(root->node))
        return json_fail(root, err, "the header is not an object");
    const size_t n = (size_t)cJSON_GetArraySize(root->node);
    *out = (struct header){.weights = arena_alloc(arena, n, sizeof *out->weights),
                           .spans = arena_alloc(arena, n, sizeof *out->spans)};
    if (!out->weights || !out->spans)
        return error_no_memory(err);
    for (struct json_at e = json_first(root); e.node; e = json_next(&e)) {
        struct tensor tensor;
        if (!strcmp(e.key, "__metadata__"))
            continue;
        enum status st = read_tensor(&e, &tensor, &out->spans[out->n_spans++], err);
        if (st)
            return st;
        if (!tensor.left_out)
            out->weights[out->n_weights++] = tensor.weight;
    }
    if (!out->n_weights)
        return json_fail(root, err, "no tensor of floating-point numbers");
    qsort(out->weights, out->n_weights, sizeof *out->weights, compare_weights);
    return check_spans(root, out, data, err);
}

static bool add_notes(const struct source *source, const struct import_settings *settings, const struct header *header,
                      struct notes *notes) {
    const size_t n_left_out = header->n_spans - header->n_weights;
    if (n_left_out && !notes_add(notes, "%s: %zu of %zu tensors are left out: integers, numbers of 8 bits, statistics",
                                 source->name, n_left_out, header->n_spans))
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

static enum status find_data(const struct source *source, struct data *out, struct error *err) {
    struct source whole = *source;
    *out = (struct data){.known = !source->cut || !source_is_standard_input(source)};
    if (source->cut && out->known) {
        enum status st = source_map(source, &whole, err);
        if (st)
            return st;
        out->bytes = whole.n - PREFIX_BYTES - header_bytes(source);
        source_unmap(&whole);
    } else if (out->known) {
        out->bytes = source->n - PREFIX_BYTES - header_bytes(source);
    }
    return ST_OK;
}

enum status safetensors_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                             cJSON **out, struct error *err) {
    cJSON *json;
    struct header header = {0};
    struct data data = {0};
    struct model_draft draft;
    const char *name = import_name(source, settings, true, notes->arena);
    enum status st = check(source, settings, err);
    if (!st)
        st = name ? find_data(source, &data, err) : error_no_memory(err);
    if (!st)
        st = json_parse(source->text + PREFIX_BYTES, (size_t)header_bytes(source), source->name, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, source->name);
    st = read_header(&root, notes->arena, data, &header, err);
    if (!st && !add_notes(source, settings, &header, notes))
        st = error_no_memory(err);
    if (!st) {
        model_draft_init(&draft, notes->arena, name, settings->batch, DRAFT_LAYERS);
        weights_draft(&draft, header.weights, header.n_weights, '.', settings);
        st = model_draft_finish(&draft, source, out, err);
    }
    cJSON_Delete(json);
    return st;
}
