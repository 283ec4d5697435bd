/* See optimizer.h. */
#include "strategy/optimizer.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

enum { F32_BYTES = 4 };
static const double MOST_BYTES_PER_ELEMENT = 64;

#define X(word, states) #word,
static const char *const words[] = {OPTIMIZER_TABLE(X) NULL};
#undef X

static enum status read_object(const struct json_at *at, size_t *word, struct optimizer *out, struct error *err) {
    static const char *const known[] = {"name", "master_copy", "bytes_per_element", NULL};
    struct json_at ignored;
    enum status st = json_expect_object(at, known, err);
    if (st || !json_has(at, "bytes_per_element", &ignored)) {
        if (!st)
            st = json_get_word(at, "name", JSON_REQUIRED, words, word, err);
        return st ? st : json_get_bool(at, "master_copy", JSON_OPTIONAL, &out->master_copy, err);
    }
    if (json_has(at, "name", &ignored) || json_has(at, "master_copy", &ignored))
        return json_fail(at, err, "\"bytes_per_element\" is all that is kept: give it alone");
    out->kind = OPTIMIZER_of_bytes;
    return json_get_number(at, "bytes_per_element", JSON_REQUIRED, 0, MOST_BYTES_PER_ELEMENT, &out->bytes_per_element,
                           err);
}

enum status optimizer_read(const struct json_at *at, struct optimizer *out, struct error *err) {
    struct optimizer optimizer = {.kind = OPTIMIZER_unknown};
    struct json_at member;
    size_t word = 0;
    *out = optimizer;
    if (!json_has(at, "optimizer", &member))
        return ST_OK;
    enum status st = cJSON_IsObject(member.node) ? read_object(&member, &word, &optimizer, err)
                                                 : json_get_word(at, "optimizer", JSON_REQUIRED, words, &word, err);
    if (st)
        return st;
    if (optimizer.kind == OPTIMIZER_unknown)
        optimizer.kind = (enum optimizer_kind)(OPTIMIZER_unknown + 1 + word);
    *out = optimizer;
    return ST_OK;
}

bool optimizer_write(const struct optimizer *optimizer, cJSON *object) {
    if (optimizer->kind == OPTIMIZER_unknown)
        return true;
    const char *word = optimizer->kind == OPTIMIZER_of_bytes ? NULL : words[optimizer->kind - OPTIMIZER_unknown - 1];
    if (word && !optimizer->master_copy)
        return cJSON_AddStringToObject(object, "optimizer", word);
    cJSON *to = cJSON_AddObjectToObject(object, "optimizer");
    if (!word)
        return to && cJSON_AddNumberToObject(to, "bytes_per_element", optimizer->bytes_per_element);
    return to && cJSON_AddStringToObject(to, "name", word) && cJSON_AddBoolToObject(to, "master_copy", true);
}

/* Numbers in the states of a whole variable. */
static uint64_t state_elements(enum optimizer_kind kind, const struct variable *v) {
#define X(word, states) states,
    static const uint64_t states[] = {OPTIMIZER_TABLE(X)};
#undef X
    if (kind == OPTIMIZER_adafactor && v->rank > 1)
        return v->elements / v->shape[v->rank - 1] + v->elements / v->shape[v->rank - 2];
    return states[kind - OPTIMIZER_unknown - 1] * v->elements;
}

uint64_t optimizer_bytes(const struct optimizer *optimizer, const struct variable *v, uint64_t elements) {
    if (optimizer->kind == OPTIMIZER_unknown)
        return 0;
    if (optimizer->kind == OPTIMIZER_of_bytes)
        return (uint64_t)ceil(optimizer->bytes_per_element * (double)elements);
    const uint64_t own = dtype_bytes(v->dtype), states = state_elements(optimizer->kind, v);
    const bool copied = optimizer->master_copy && (v->dtype == DTYPE_f16 || v->dtype == DTYPE_bf16);
    const uint64_t whole = states * (copied ? F32_BYTES : own);
    /* Factors do not fall into equal parts: a part has its share of them, rounded up. */
    const uint64_t part = (uint64_t)(((wide)whole * elements + v->elements - 1) / v->elements);
    return part + (copied ? elements * F32_BYTES : 0);
}
