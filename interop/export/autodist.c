/* AutoDist: its Strategy message, in protobuf's JSON form and in its wire format, which AutoDist reads from a file.
 *
 * A variable is a node with a synchronizer; a cut one has a partitioner ("4,1" cuts axis 0 in four, the first parts one
 * row larger, as here) and a node for each part, "NAME/part_0". Parameter servers are named by address and device
 * ("n1:CPU:0"), synchronous, without local copies of variables. AutoDist always sums what the devices of a node send
 * there first. A merge group is a number. AutoDist leaves order, sizes of messages and what is in flight to TensorFlow.
 * Encoding f16 is AutoDist's HorovodCompressor.
 * Source: AutoDist, autodist/proto/strategy.proto and synchronizers.proto; kernel/partitioner.py. */
#include <string.h>

#include "interop/export/export_internal.h"
#include "interop/export/protobuf.h"

static const char *const specs[] = {"AUTO", "NCCL", "RING", NULL};
static const char *const compressors[] = {"NoneCompressor", "HorovodCompressor", "HorovodCompressorEF", NULL};

static const struct proto_field server_fields[] = {{"reductionDestination", 1, PROTO_TEXT, NULL, NULL},
                                                   {"localReplication", 2, PROTO_BOOL, NULL, NULL},
                                                   {"sync", 3, PROTO_BOOL, NULL, NULL},
                                                   {"staleness", 4, PROTO_INTEGER, NULL, NULL},
                                                   {NULL, 0, PROTO_TEXT, NULL, NULL}};
static const struct proto_field reduce_fields[] = {{"spec", 1, PROTO_ENUM, NULL, specs},
                                                   {"compressor", 2, PROTO_ENUM, NULL, compressors},
                                                   {"group", 3, PROTO_INTEGER, NULL, NULL},
                                                   {NULL, 0, PROTO_TEXT, NULL, NULL}};
static const struct proto_field node_fields[] = {{"varName", 1, PROTO_TEXT, NULL, NULL},
                                                 {"PSSynchronizer", 2, PROTO_MESSAGE, server_fields, NULL},
                                                 {"AllReduceSynchronizer", 3, PROTO_MESSAGE, reduce_fields, NULL},
                                                 {"partitioner", 5, PROTO_TEXT, NULL, NULL},
                                                 {"partConfig", 6, PROTO_MESSAGE, node_fields, NULL},
                                                 {NULL, 0, PROTO_TEXT, NULL, NULL}};
static const struct proto_field graph_fields[] = {{"replicas", 1, PROTO_TEXT, NULL, NULL},
                                                  {NULL, 0, PROTO_TEXT, NULL, NULL}};
static const struct proto_field strategy_fields[] = {{"id", 1, PROTO_TEXT, NULL, NULL},
                                                     {"nodeConfig", 3, PROTO_MESSAGE, node_fields, NULL},
                                                     {"graphConfig", 4, PROTO_MESSAGE, graph_fields, NULL},
                                                     {NULL, 0, PROTO_TEXT, NULL, NULL}};

/* "n1:CPU:0" */
static bool add_device(cJSON *object, const char *key, const char *node, const char *kind, uint32_t index) {
    char text[4200];
    snprintf(text, sizeof text, "%s:%s:%u", node, kind, index);
    cJSON *value = cJSON_CreateString(text);
    if (value && (key ? cJSON_AddItemToObject(object, key, value) : cJSON_AddItemToArray(object, value)))
        return true;
    cJSON_Delete(value);
    return false;
}

/* The synchronizer of shard k. */
static bool add_synchronizer(const struct form *f, cJSON *node, const struct variable_sync *of, uint32_t k) {
    const struct variable_sync *sync = sync_part(of, k);
    if (sync->kind == SYNC_PARAMETER_SERVER) {
        const char *server = f->cluster->nodes[sync->servers[k % sync->n_servers]].name;
        cJSON *ps = cJSON_AddObjectToObject(node, "PSSynchronizer");
        return ps && add_device(ps, "reductionDestination", server, "CPU", 0) &&
               cJSON_AddFalseToObject(ps, "localReplication") && cJSON_AddTrueToObject(ps, "sync") &&
               cJSON_AddNumberToObject(ps, "staleness", 0);
    }
    const bool ring = f->strategy->groups[sync->group].algorithm == ALGORITHM_ring;
    cJSON *reduce = cJSON_AddObjectToObject(node, "AllReduceSynchronizer");
    return reduce && cJSON_AddStringToObject(reduce, "spec", ring ? "RING" : "AUTO") &&
           cJSON_AddStringToObject(reduce, "compressor",
                                   sync->encoding == ENCODING_f16 ? "HorovodCompressor" : "NoneCompressor") &&
           cJSON_AddNumberToObject(reduce, "group", sync->group);
}

/* "1,4,1" */
static bool add_partitioner(cJSON *node, const struct variable *variable, const struct variable_sync *sync) {
    char text[MODEL_MAX_RANK * 12] = "";
    for (uint32_t axis = 0; axis < variable->rank; axis++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u", axis ? "," : "",
                 axis == sync->axis ? sync->shards : 1);
    return cJSON_AddStringToObject(node, "partitioner", text);
}

/* TensorFlow's "w:0" has parts "w/part_0:0". */
static bool add_part_name(cJSON *part, const char *name, uint32_t k) {
    char text[4200];
    const size_t n = strlen(name);
    const bool output = n > 2 && !strcmp(name + n - 2, ":0");
    snprintf(text, sizeof text, "%.*s/part_%u%s", (int)(output ? n - 2 : n), name, k, output ? ":0" : "");
    return cJSON_AddStringToObject(part, "varName", text);
}

static bool add_parts(const struct form *f, cJSON *node, const struct variable *variable,
                      const struct variable_sync *sync) {
    cJSON *parts = add_partitioner(node, variable, sync) ? cJSON_AddArrayToObject(node, "partConfig") : NULL;
    bool whole = parts != NULL;
    for (uint32_t k = 0; k < sync->shards && whole; k++) {
        cJSON *part = cJSON_CreateObject();
        whole = add_part_name(part, variable->name, k) && add_synchronizer(f, part, sync, k);
        if (!cJSON_AddItemToArray(parts, part)) {
            cJSON_Delete(part);
            return false;
        }
    }
    return whole;
}

static bool add_nodes(const struct form *f, cJSON *json) {
    cJSON *nodes = cJSON_AddArrayToObject(json, "nodeConfig");
    bool whole = nodes != NULL;
    for (uint32_t v = 0; v < f->model->n_variables && whole; v++) {
        const struct variable *variable = &f->model->variables[v];
        const struct variable_sync *sync = &f->strategy->variables[v];
        cJSON *node = cJSON_CreateObject();
        whole = cJSON_AddStringToObject(node, "varName", variable->name) &&
                (sync->shards > 1 ? add_parts(f, node, variable, sync) : add_synchronizer(f, node, sync, 0));
        if (!cJSON_AddItemToArray(nodes, node)) {
            cJSON_Delete(node);
            return false;
        }
    }
    return whole;
}

static bool add_replicas(const struct form *f, cJSON *json) {
    cJSON *graph = cJSON_AddObjectToObject(json, "graphConfig");
    cJSON *replicas = cJSON_AddArrayToObject(graph, "replicas");
    bool whole = replicas != NULL;
    for (uint32_t i = 0; i < f->cluster->n_nodes && whole; i++) {
        const struct node *node = &f->cluster->nodes[i];
        for (uint32_t k = 0; k < node->devices && whole; k++)
            whole = add_device(replicas, NULL, node->name, strcmp(node->device, "cpu") ? "GPU" : "CPU", k);
    }
    return whole;
}

static bool names_other_than_ring(const struct form *f) {
    for (uint32_t g = 0; g < f->strategy->n_groups; g++)
        if (f->strategy->groups[g].algorithm != ALGORITHM_auto && f->strategy->groups[g].algorithm != ALGORITHM_ring)
            return true;
    return false;
}

/* Only all-reduced gradients can be compressed, and only to f16. */
static bool encodings_fit(const struct form *f) {
    for (uint32_t v = 0; v < f->strategy->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&f->strategy->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&f->strategy->variables[v], k);
            if (part->encoding != ENCODING_none && (part->encoding != ENCODING_f16 || part->kind != SYNC_ALL_REDUCE))
                return false;
        }
    return true;
}

enum status export_autodist(struct form *f, struct error *err) {
    cJSON *json = cJSON_CreateObject();
    (void)err;
    const bool whole =
        cJSON_AddStringToObject(json, "id", f->strategy->id.hex) && add_nodes(f, json) && add_replicas(f, json);
    FILE *file = whole ? form_open(f) : NULL;
    if (file)
        proto_write(file, json, strategy_fields);
    form_close(f, "autodist.pb", file);
    form_add_json(f, "autodist.json", json, whole);
    form_note_rest(f, CAN_ALL_REDUCE | CAN_SERVE | CAN_SHARD | CAN_REDUCE_LOCALLY |
                          (names_other_than_ring(f) ? 0u : CAN_ALGORITHM) | (encodings_fit(f) ? CAN_CAST : 0u));
    return ST_OK;
}
