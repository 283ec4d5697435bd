/* Predictions of memory as JSON; strategy/memory.h says which members there are. */
#include <stdio.h>

#include "strategy/memory.h"

enum { KEY_ROOM = 32 };
static const uint64_t MOST_BYTES = UINT64_C(1) << 53;

static const char *key_of(enum memory_part part, char out[KEY_ROOM]) {
    snprintf(out, KEY_ROOM, "%s_bytes", memory_part_name(part));
    return out;
}

bool memory_write(const struct memory *m, const struct cluster *cluster, cJSON *root) {
    char key[KEY_ROOM];
    cJSON *to = cJSON_AddObjectToObject(root, "memory");
    bool ok = to && cJSON_AddNumberToObject(to, "peak_bytes", (double)m->peak_bytes) &&
              cJSON_AddStringToObject(to, "at", m->place);
    for (int p = 0; p < MEMORY_PARTS && ok; p++) {
        const enum memory_part part = (enum memory_part)p;
        if (part == MEMORY_temporary && m->part_bytes[p] == 0)
            continue;
        ok = memory_knows(m, part) ? cJSON_AddNumberToObject(to, key_of(part, key), (double)m->part_bytes[p]) != NULL
                                   : cJSON_AddNullToObject(to, key_of(part, key)) != NULL;
    }
    return ok && (m->server_bytes == 0 || (cJSON_AddStringToObject(to, "server", cluster->nodes[m->server].name) &&
                                           cJSON_AddNumberToObject(to, "server_bytes", (double)m->server_bytes)));
}

static enum status read_part(const struct json_at *at, int part, struct memory *out, struct error *err) {
    char key[KEY_ROOM];
    struct json_at member;
    const bool absent = json_has(at, key_of((enum memory_part)part, key), &member) && cJSON_IsNull(member.node);
    if (part == MEMORY_optimizer)
        out->knows_optimizer = !absent;
    if (part == MEMORY_activations)
        out->knows_activations = !absent;
    const enum json_need need = part == MEMORY_temporary ? JSON_OPTIONAL : JSON_REQUIRED;
    return absent ? ST_OK : json_get_integer(at, key, need, 0, MOST_BYTES, &out->part_bytes[part], err);
}

static enum status read_server(const struct json_at *at, const struct cluster *cluster, struct memory *out,
                               struct error *err) {
    const char *name;
    enum status st = json_get_string(at, "server", JSON_REQUIRED, &name, err);
    const int64_t node = st ? -1 : cluster_find_node(cluster, name);
    if (st)
        return st;
    if (node < 0)
        return json_fail(at, err, "\"server\": the cluster has no node \"%s\"", name);
    out->server = (uint32_t)node;
    return json_get_integer(at, "server_bytes", JSON_REQUIRED, 0, MOST_BYTES, &out->server_bytes, err);
}

enum status memory_read(const struct json_at *at, const struct cluster *cluster, struct memory *out,
                        struct error *err) {
    struct memory memory = {0};
    const char *place;
    enum status st = json_get_integer(at, "peak_bytes", JSON_REQUIRED, 0, MOST_BYTES, &memory.peak_bytes, err);
    if (!st)
        st = json_get_string(at, "at", JSON_REQUIRED, &place, err);
    for (int p = 0; p < MEMORY_PARTS && !st; p++)
        st = read_part(at, p, &memory, err);
    if (!st && json_has(at, "server", &(struct json_at){0}))
        st = read_server(at, cluster, &memory, err);
    if (st)
        return st;
    snprintf(memory.place, sizeof memory.place, "%s", place);
    *out = memory;
    return ST_OK;
}
