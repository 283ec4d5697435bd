/* AutoDist's resource_spec.yml: nodes with an address, GPUs, and perhaps the rate of their network in Gbit/s.
 *
 *     nodes:
 *       - address: 10.0.0.1
 *         gpus: [0, 1]
 *         chief: true
 *         network_bandwidth: 40
 *
 * libyaml parses; the tree is walked with the lines of its nodes in messages. A node without GPUs computes on its CPUs,
 * of which it has at least one. How to reach the nodes ("ssh", "ssh_config", "chief") does not matter here. */
#include <string.h>
#include <yaml.h>

#include "interop/import/cluster_kinds.h"

struct spec {
    const char *name;
    yaml_document_t document;
    struct cluster_draft met;
};

bool resource_spec_is(const struct source *source) {
    const char *nodes = strstr(source->text, "nodes:");
    return nodes && (nodes == source->text || nodes[-1] == '\n') && strstr(nodes, "address:");
}

static enum status fail_at(const struct spec *spec, const yaml_node_t *node, struct error *err, const char *what) {
    return error_set(err, ST_INVALID, "%s:%zu: %s", spec->name, node->start_mark.line + 1, what);
}

static const char *scalar_text(const yaml_node_t *node) {
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* How many items a list of devices has. */
static enum status count_devices(const struct spec *spec, const yaml_node_t *node, uint64_t *out, struct error *err) {
    if (node->type != YAML_SEQUENCE_NODE)
        return fail_at(spec, node, err, "a list of device numbers is needed, as in [0, 1]");
    *out = (uint64_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    return *out <= CLUSTER_MAX_DEVICES_PER_NODE ? ST_OK : fail_at(spec, node, err, "more than 64 devices");
}

struct machine {
    const char *address;
    uint64_t gpus, cpus;
    double gbit_per_s;
};

static enum status read_member(const struct spec *spec, const char *key, const yaml_node_t *value, struct machine *out,
                               struct error *err) {
    const char *text = scalar_text(value);
    if (!strcmp(key, "gpus"))
        return count_devices(spec, value, &out->gpus, err);
    if (!strcmp(key, "cpus"))
        return count_devices(spec, value, &out->cpus, err);
    if (!strcmp(key, "address")) {
        out->address = text;
        return text && *text ? ST_OK : fail_at(spec, value, err, "an address is a host name or number");
    }
    if (!strcmp(key, "network_bandwidth"))
        return text && word_number(text, &out->gbit_per_s) && out->gbit_per_s > 0
                   ? ST_OK
                   : fail_at(spec, value, err, "network_bandwidth is a number of Gbit/s");
    if (!strcmp(key, "chief") || !strcmp(key, "ssh_config"))
        return ST_OK;
    return fail_at(spec, value, err,
                   "a node has address, gpus, cpus, network_bandwidth, chief and ssh_config, and nothing else");
}

static enum status read_machine(struct spec *spec, const yaml_node_t *node, struct error *err) {
    struct machine machine = {.cpus = 1};
    if (node->type != YAML_MAPPING_NODE)
        return fail_at(spec, node, err, "a node is a mapping with an address");
    for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&spec->document, p->key);
        const char *name = scalar_text(key);
        enum status st = name
                             ? read_member(spec, name, yaml_document_get_node(&spec->document, p->value), &machine, err)
                             : fail_at(spec, key, err, "a key is a word");
        if (st)
            return st;
    }
    if (!machine.address)
        return fail_at(spec, node, err, "a node without an address");
    const size_t before = spec->met.nodes.n;
    struct draft_node *out = cluster_draft_node(&spec->met, machine.address, strlen(machine.address));
    if (!out)
        return error_no_memory(err);
    if (spec->met.nodes.n == before)
        return fail_at(spec, node, err, "the same address again");
    out->devices = machine.gpus ? machine.gpus : machine.cpus ? machine.cpus : 1;
    out->device = machine.gpus ? "gpu" : "cpu";
    out->nic_gbit_per_s = machine.gbit_per_s;
    return ST_OK;
}

static enum status read_document(struct spec *spec, struct error *err) {
    const yaml_node_t *root = yaml_document_get_root_node(&spec->document), *nodes = NULL;
    enum status st = ST_OK;
    if (!root || root->type != YAML_MAPPING_NODE)
        return error_at(err, ST_INVALID, spec->name, "not a mapping with \"nodes\"");
    for (const yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
        const char *key = scalar_text(yaml_document_get_node(&spec->document, p->key));
        if (key && !strcmp(key, "nodes"))
            nodes = yaml_document_get_node(&spec->document, p->value);
    }
    if (!nodes || nodes->type != YAML_SEQUENCE_NODE)
        return fail_at(spec, nodes ? nodes : root, err, "\"nodes\" must be a list of nodes");
    for (const yaml_node_item_t *i = nodes->data.sequence.items.start; i < nodes->data.sequence.items.top && !st; i++)
        st = read_machine(spec, yaml_document_get_node(&spec->document, *i), err);
    if (!st && !spec->met.nodes.n)
        st = fail_at(spec, nodes, err, "a list of no nodes");
    return st;
}

static enum status load(struct spec *spec, const struct source *source, struct error *err) {
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return error_no_memory(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)source->text, source->n);
    enum status st = ST_OK;
    if (!yaml_parser_load(&parser, &spec->document))
        st = parser.error == YAML_MEMORY_ERROR
                 ? error_no_memory(err)
                 : error_set(err, ST_INVALID, "%s:%zu: not YAML: %s", source->name, parser.problem_mark.line + 1,
                             parser.problem ? parser.problem : "cannot be read");
    yaml_parser_delete(&parser);
    return st;
}

enum status resource_spec_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                               struct cluster_draft *draft, struct error *err) {
    (void)settings;
    (void)notes;
    struct spec spec = {.name = source->name};
    enum status st = load(&spec, source, err);
    if (st)
        return st;
    cluster_draft_init(&spec.met, draft->arena);
    st = read_document(&spec, err);
    if (!st && !cluster_draft_take(draft, &spec.met.nodes, DRAFT_LISTED))
        st = error_no_memory(err);
    cluster_draft_release(&spec.met);
    yaml_document_delete(&spec.document);
    return st;
}
