/* Text into the cluster reader. What is accepted is written, read and written again without a change, and finds its
 * nodes by name and by device. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/cluster.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_round_trip(const struct cluster *cluster) {
    struct cluster again;
    struct error err = {0};
    cJSON *json = cluster_write(cluster);
    char *first = json_canonical(json);
    if (cluster_read(json, "again", &again, &err) != ST_OK)
        fprintf(stderr, "%s\n", ERROR_TEXT(&err));
    require(!err.status, "what is written can be read");
    cJSON_Delete(json);
    json = cluster_write(&again);
    char *second = json_canonical(json);
    require(first && second && strcmp(first, second) == 0, "and written again the same");
    require(strcmp(cluster->id.hex, again.id.hex) == 0, "with the same id");
    cJSON_Delete(json);
    free(first);
    free(second);
    cluster_release(&again);
}

static void check_nodes(const struct cluster *cluster) {
    uint32_t device = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const struct node *node = &cluster->nodes[i];
        require(cluster_find_node(cluster, node->name) == i, "a node is found by its name");
        require(node->first_device == device, "devices are numbered node by node");
        if (node->devices)
            require(cluster_node_of_device(cluster, device + node->devices - 1) == i, "and by its last device");
        device += node->devices;
    }
    require(device == cluster->n_devices && device > 0, "every device is some node's");
    for (uint32_t i = 0; i < cluster->n_links; i++)
        require(cluster->links[i].from < cluster->n_nodes && cluster->links[i].to < cluster->n_nodes &&
                    cluster->links[i].from != cluster->links[i].to && cluster->links[i].gbit_per_s > 0,
                "a link joins two nodes");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    struct cluster cluster = {0};
    cJSON *json = NULL;
    if (json_parse((const char *)data, n, "input", &json, &err) != ST_OK)
        return 0;
    const enum status status = cluster_read(json, "input", &cluster, &err);
    cJSON_Delete(json);
    if (status != ST_OK) {
        require(status == ST_INVALID && err.status == status && !strncmp(ERROR_TEXT(&err), "input: ", 7),
                "a refusal says why");
        require(!cluster.arena.blocks, "nothing is written on failure");
        return 0;
    }
    check_round_trip(&cluster);
    check_nodes(&cluster);
    cluster_release(&cluster);
    return 0;
}
