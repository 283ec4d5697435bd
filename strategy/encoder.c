/* What encoders are called, how long what they make is, and which rules strategies with them keep. */
#include "strategy/encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define X(name) #name,
static const char *const words[] = {ENCODING_TABLE(X) NULL};
#undef X

static const struct encoder_figure figures[ENCODING_COUNT] = {
    [ENCODING_int8] = {"block_size", 8, 65536, 256, true},
    [ENCODING_topk] = {"part", 1e-6, 0.5, 0.01, false},
    [ENCODING_powersgd] = {"rank", 1, 256, 1, true},
};

const struct encoder_figure *encoder_figure(enum encoding encoding) {
    return encoding_is_encoder(encoding) ? &figures[encoding] : NULL;
}

const char *encoder_text(enum encoding encoding, double figure, char *out, size_t size) {
    if (encoding == ENCODING_int8)
        snprintf(out, size, "int8 in blocks of %.0f", figure);
    else if (encoding == ENCODING_topk)
        snprintf(out, size, "topk of %.4g%%", 100 * figure);
    else if (encoding == ENCODING_powersgd)
        snprintf(out, size, "powersgd of rank %.0f", figure);
    else
        snprintf(out, size, "%s", encoding_name(encoding));
    return out;
}

struct encoder_matrix encoder_matrix(const struct variable *v) {
    if (v->rank < 2)
        return (struct encoder_matrix){v->elements, 0};
    return (struct encoder_matrix){v->shape[0], v->elements / v->shape[0]};
}

uint64_t encoder_first_elements(const struct variable *variable, double rank) {
    const struct encoder_matrix matrix = encoder_matrix(variable);
    return matrix.columns ? matrix.rows * (uint64_t)rank : variable->elements;
}

uint64_t encoder_second_elements(const struct variable *variable, double rank) {
    return encoder_matrix(variable).columns * (uint64_t)rank;
}

uint64_t encoder_kept(double part, uint64_t elements) {
    const uint64_t kept = (uint64_t)ceil(part * (double)elements);
    return kept < 1 ? 1 : kept < elements ? kept : elements;
}

uint64_t encoder_bytes(enum encoding encoding, double figure, uint64_t elements) {
    const uint64_t block = (uint64_t)figure;
    if (encoding == ENCODING_topk)
        return encoder_kept(figure, elements) * ENCODER_PLACED_BYTES;
    return elements + (elements + block - 1) / block * ENCODER_SCALE_BYTES;
}

uint64_t encoder_part_bytes(enum encoding encoding, double figure, uint64_t elements, uint32_t n) {
    const uint64_t block = (uint64_t)figure, blocks = (elements + block - 1) / block;
    const uint64_t part = (blocks + n - 1) / n * block;
    return encoder_bytes(encoding, figure, part < elements ? part : elements);
}

/* ---- descriptions ---- */

static enum status read_figure(const struct json_at *at, struct variable_sync *out, struct error *err) {
    const struct encoder_figure *figure = encoder_figure(out->encoding);
    const char *const known[] = {"kind", figure->name, NULL};
    uint64_t whole = (uint64_t)figure->usual;
    double number = figure->usual;
    enum status st = json_expect_object(at, known, err);
    if (!st && figure->whole)
        st = json_get_integer(at, figure->name, JSON_OPTIONAL, (uint64_t)figure->least, (uint64_t)figure->most, &whole,
                              err);
    else if (!st)
        st = json_get_number(at, figure->name, JSON_OPTIONAL, figure->least, figure->most, &number, err);
    out->figure = figure->whole ? (double)whole : number;
    return st;
}

enum status encoder_read(const struct json_at *owner, struct variable_sync *out, struct error *err) {
    struct json_at at;
    size_t encoding = ENCODING_none;
    if (!json_has(owner, "encoding", &at))
        return ST_OK;
    const bool object = cJSON_IsObject(at.node);
    enum status st =
        json_get_word(object ? &at : owner, object ? "kind" : "encoding", JSON_REQUIRED, words, &encoding, err);
    out->encoding = (enum encoding)encoding;
    if (st)
        return st;
    const struct encoder_figure *figure = encoder_figure(out->encoding);
    if (object && !figure)
        return json_fail(&at, err, "%s has no figures: write \"encoding\": \"%s\"", words[encoding], words[encoding]);
    if (object)
        return read_figure(&at, out, err);
    out->figure = figure ? figure->usual : 0;
    return ST_OK;
}

bool encoder_write(const struct variable_sync *sync, cJSON *owner) {
    const struct encoder_figure *figure = encoder_figure(sync->encoding);
    if (sync->encoding == ENCODING_none)
        return true;
    if (!figure)
        return cJSON_AddStringToObject(owner, "encoding", encoding_name(sync->encoding));
    cJSON *object = cJSON_AddObjectToObject(owner, "encoding");
    return cJSON_AddStringToObject(object, "kind", encoding_name(sync->encoding)) &&
           cJSON_AddNumberToObject(object, figure->name, sync->figure);
}

/* ---- rules ---- */

static enum status check_figure(const struct variable *v, const struct variable_sync *part, struct error *err) {
    const struct encoder_figure *figure = encoder_figure(part->encoding);
    const double is = part->figure;
    if (is >= figure->least && is <= figure->most && (!figure->whole || is == floor(is)))
        return ST_OK;
    return error_set(err, ST_INVALID, "variable \"%s\" has \"%s\" %g of %s; it must be %sfrom %g to %g", v->name,
                     figure->name, is, encoding_name(part->encoding), figure->whole ? "a whole number " : "",
                     figure->least, figure->most);
}

/* powersgd: whole matrices of at least its rank. */
static enum status check_matrix(const struct group *group, const struct variable *v, const struct variable_sync *part,
                                struct error *err) {
    const struct encoder_matrix is = encoder_matrix(v);
    if (part->encoding != ENCODING_powersgd)
        return ST_OK;
    if (v->sparse_rows)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is sparse and encoded as powersgd, which needs all rows: leave \"encoding\" "
                         "away",
                         v->name);
    if (part->shards > 1)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is cut into %u shards and encoded as powersgd, which needs whole matrices: "
                         "leave one of them away",
                         v->name, part->shards);
    if (group && group->partition_bytes)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is encoded as powersgd, which needs whole matrices, but group %lu has "
                         "\"partition_bytes\": leave it away",
                         v->name, (unsigned long)group->id);
    if (is.columns && part->figure > (double)(is.rows < is.columns ? is.rows : is.columns))
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is a matrix of %llu rows of %llu, which has no rank %.0f: lower \"rank\", or "
                         "leave \"encoding\" away",
                         v->name, (unsigned long long)is.rows, (unsigned long long)is.columns, part->figure);
    return ST_OK;
}

enum status encoder_check(const struct strategy *strategy, const struct variable *v, const struct variable_sync *part,
                          struct error *err) {
    const char *name = encoding_name(part->encoding);
    if (!encoding_is_encoder(part->encoding))
        return ST_OK;
    if (part->kind == SYNC_PARAMETER_SERVER)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is served and encoded as %s, which servers cannot add: all-reduce it, or use "
                         "f16 or bf16",
                         v->name, name);
    if (strategy->policy == POLICY_preemptive)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is encoded as %s, and policy preemptive slices bytes that can be added: use "
                         "fifo or priority",
                         v->name, name);
    const struct group *group = part->group < strategy->n_groups ? &strategy->groups[part->group] : NULL;
    if (group && group->algorithm != ALGORITHM_auto)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is encoded as %s, which goes its own way, but group %lu has \"algorithm\" "
                         "%s: leave it away",
                         v->name, name, (unsigned long)group->id, algorithm_name(group->algorithm));
    const enum status st = check_figure(v, part, err);
    return st ? st : check_matrix(group, v, part, err);
}

static bool has_encoder(const struct strategy *strategy) {
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[v]); k++)
            if (encoding_is_encoder(sync_part(&strategy->variables[v], k)->encoding))
                return true;
    return false;
}

/* A member of a group, which may be one shard of the variable. */
struct member {
    const struct variable_sync *part; /* NULL: none was seen yet */
    uint32_t variable;
};

static enum status compare_members(const struct strategy *strategy, const struct model *model,
                                   const struct member *first, const struct member *other, struct error *err) {
    const enum encoding a = first->part->encoding, b = other->part->encoding;
    char one[64], two[64];
    if (!encoding_is_encoder(a) && !encoding_is_encoder(b))
        return ST_OK;
    if (a == b && first->part->figure == other->part->figure)
        return ST_OK;
    return error_set(err, ST_INVALID, "group %lu mixes \"%s\" (%s) and \"%s\" (%s): one encoder a merge group",
                     (unsigned long)strategy->groups[first->part->group].id, model->variables[first->variable].name,
                     encoder_text(a, first->part->figure, one, sizeof one), model->variables[other->variable].name,
                     encoder_text(b, other->part->figure, two, sizeof two));
}

enum status encoder_check_groups(const struct strategy *strategy, const struct model *model, struct error *err) {
    if (!has_encoder(strategy))
        return ST_OK;
    struct member *first = calloc((size_t)strategy->n_groups + 1, sizeof *first);
    enum status st = first ? ST_OK : error_no_memory(err);
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[v]) && !st; k++) {
            const struct member member = {sync_part(&strategy->variables[v], k), v};
            if (member.part->kind != SYNC_ALL_REDUCE)
                continue;
            struct member *slot = &first[member.part->group];
            if (!slot->part)
                *slot = member;
            st = compare_members(strategy, model, slot, &member, err);
        }
    free(first);
    return st;
}
