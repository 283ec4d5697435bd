/* What several exporters ask of a strategy, and the roundest number of an interval. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "interop/export/export_internal.h"
#include "strategy/plan.h"

int form_algorithm(const struct form *f) {
    int common = -1;
    for (uint32_t g = 0; g < f->strategy->n_groups; g++) {
        const int algorithm = (int)f->strategy->groups[g].algorithm;
        if (algorithm == ALGORITHM_all_gather)
            continue;
        if (common >= 0 && algorithm != common)
            return -1;
        common = algorithm;
    }
    return common;
}

static bool is_sharded(const struct form *f, unsigned sharded, uint32_t v) {
    const struct strategy *s = f->strategy;
    for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
        const struct variable_sync *part = sync_part(&s->variables[v], k);
        if (part->kind == SYNC_ALL_REDUCE && sharded >> s->groups[part->group].sharded & 1)
            return true;
    }
    return false;
}

const char *form_which(struct form *f, unsigned sharded, uint32_t n) {
    uint32_t v = 0;
    while (v < f->strategy->n_variables && !is_sharded(f, sharded, v))
        v++;
    if (n == f->strategy->n_variables || v == f->strategy->n_variables)
        return "";
    const char *name = f->model->variables[v].name;
    const int shown = (int)text_clean_length(name, strnlen(name, 60));
    const char *text = arena_printf(f->arena, " (\"%.*s\"%s)", shown, name, n > 1 ? ", ..." : "");
    f->no_memory |= !text;
    return text ? text : "";
}

int form_encoding(const struct form *f) {
    int encoding = (int)f->strategy->variables[0].encoding;
    for (uint32_t v = 1; v < f->strategy->n_variables; v++)
        if ((int)f->strategy->variables[v].encoding != encoding)
            return -1;
    return encoding;
}

static uint64_t partition_of(const struct form *f, uint32_t v) {
    const struct variable_sync *sync = &f->strategy->variables[v];
    return sync->kind == SYNC_PARAMETER_SERVER ? sync->partition_bytes
                                               : f->strategy->groups[sync->group].partition_bytes;
}

/* A size, and the bytes of a variable that has it. */
struct part {
    uint64_t size, bytes;
};

static int by_size(const void *a, const void *b) {
    const struct part *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

uint64_t form_partition(struct form *f, bool *uniform) {
    const uint32_t n = f->strategy->n_variables;
    struct part *parts = arena_alloc(f->arena, n, sizeof *parts);
    uint64_t best = 0, most = 0, bytes = 0;
    *uniform = true;
    f->no_memory |= !parts;
    for (uint32_t v = 0; v < n && parts; v++)
        parts[v] = (struct part){partition_of(f, v), f->model->variables[v].bytes};
    if (parts)
        qsort(parts, n, sizeof *parts, by_size);
    for (uint32_t v = 0; v < n && parts; v++) {
        const bool same = v && parts[v].size == parts[v - 1].size;
        *uniform = *uniform && (same || !v);
        bytes = (same ? bytes : 0) + parts[v].bytes;
        best = bytes > most ? parts[v].size : best;
        most = bytes > most ? bytes : most;
    }
    return best;
}

const uint64_t *form_group_bytes(struct form *f) {
    const struct strategy *s = f->strategy;
    uint64_t *bytes = arena_alloc(f->arena, s->n_groups, sizeof *bytes);
    f->no_memory |= !bytes;
    for (uint32_t v = 0; v < s->n_variables && bytes; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&s->variables[v], k);
            if (part->kind == SYNC_ALL_REDUCE)
                bytes[part->group] += plan_part_bytes(s, &f->model->variables[v], &s->variables[v], k);
        }
    return bytes;
}

const uint32_t *form_first_reads(struct form *f) {
    const struct model *m = f->model;
    uint32_t *first = arena_alloc(f->arena, m->n_variables, sizeof *first);
    f->no_memory |= !first;
    for (uint32_t v = 0; v < m->n_variables && first; v++)
        first[v] = m->n_forward;
    for (uint32_t i = m->n_forward; i-- > 0 && first;) {
        const struct operator* op = & m->operators[m->order[i]];
        for (uint32_t r = 0; r < op->n_reads; r++)
            first[op->reads[r]] = i;
    }
    return first;
}

uint32_t form_workers(const struct form *f) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->cluster->n_nodes; i++)
        n += f->cluster->nodes[i].devices > 0;
    return n;
}

uint32_t form_servers(struct form *f) {
    const struct strategy *s = f->strategy;
    bool *serves = arena_alloc(f->arena, f->cluster->n_nodes, sizeof *serves);
    uint32_t n = 0;
    f->no_memory |= !serves;
    for (uint32_t v = 0; v < s->n_variables && serves; v++)
        for (uint32_t i = 0; i < s->variables[v].n_servers; i++)
            serves[s->variables[v].servers[i]] = true;
    for (uint32_t i = 0; i < f->cluster->n_nodes && serves; i++)
        n += serves[i];
    return n;
}

/* Add `item` and own it no longer. */
static bool append(cJSON *array, cJSON *item) {
    if (array && item && cJSON_AddItemToArray(array, item))
        return true;
    cJSON_Delete(item);
    return false;
}

cJSON *form_groups(struct form *f) {
    const struct strategy *s = f->strategy;
    cJSON *all = cJSON_CreateArray(), **groups = arena_alloc(f->arena, s->n_groups, sizeof(cJSON *));
    bool whole = all && groups;
    for (uint32_t g = 0; g < s->n_groups && whole; g++) {
        groups[g] = cJSON_CreateArray();
        whole = append(all, groups[g]);
    }
    for (uint32_t i = 0; i < s->n_variables && whole; i++) {
        const struct variable_sync *sync = &s->variables[f->ready[i]];
        if (sync->kind == SYNC_ALL_REDUCE)
            whole = append(groups[sync->group], cJSON_CreateString(f->model->variables[f->ready[i]].name));
    }
    if (whole)
        return all;
    cJSON_Delete(all);
    return NULL;
}

bool form_same_servers(const struct form *f, const struct strategy *other) {
    for (uint32_t v = 0; v < other->n_variables; v++) {
        const struct variable_sync *a = &f->strategy->variables[v], *b = &other->variables[v];
        if (a->kind == SYNC_PARAMETER_SERVER &&
            (a->n_servers != b->n_servers || memcmp(a->servers, b->servers, a->n_servers * sizeof *a->servers) != 0))
            return false;
    }
    return true;
}

bool form_same_shards(const struct form *f, const struct strategy *other) {
    for (uint32_t v = 0; v < other->n_variables; v++) {
        const struct variable_sync *a = &f->strategy->variables[v], *b = &other->variables[v];
        if (a->kind == SYNC_PARAMETER_SERVER && (a->shards != b->shards || a->axis != b->axis))
            return false;
    }
    return true;
}

uint64_t export_round(uint64_t low, uint64_t high, uint64_t preferred, uint64_t base) {
    if (preferred >= low && preferred <= high)
        return preferred;
    if (high == UINT64_MAX && low <= UINT64_MAX / base)
        high = low * base;
    uint64_t best = low;
    for (uint64_t unit = base; unit <= high; unit *= base) {
        const uint64_t up = (low + (unit - 1)) / unit * unit;
        if (low <= UINT64_MAX - unit && up >= low && up <= high)
            best = up;
        if (unit > UINT64_MAX / base)
            break;
    }
    return best;
}
