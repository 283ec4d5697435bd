/* What Slurm's `scontrol show node` prints: NAME=VALUE words; each NodeName= begins a node. Gres says how many GPUs the
 * node has, "gpu:a100:4(S:0-1)"; where it says none, CfgTRES does, "cpu=64,gres/gpu=4,gres/gpu:a100=4". A node without
 * GPUs is one CPU device. Nodes that are out of service are left out. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "interop/import/cluster_kinds.h"

/* The GPUs of CfgTRES: gres/gpu=N are all, gres/gpu:TYPE=N those of one type. */
struct tres {
    uint64_t all, typed;
    const char *type; /* the last one; NULL: none */
};

struct nodes {
    struct lines lines;
    struct cluster_draft met;
    struct draft_node *node; /* the one that words are about */
    struct tres tres;        /* of that node */
    bool out_of_service;
    size_t left_out;
};

bool slurm_is(const struct source *source) {
    return strstr(source->text, "NodeName=") && (strstr(source->text, "Gres=") || strstr(source->text, "State="));
}

/* All words of the node were read: drop it if it is out of service; without GPUs it is one CPU device. */
static void end_node(struct nodes *nodes) {
    if (nodes->node && nodes->out_of_service) {
        nodes->met.nodes.n--; /* it is the last */
        nodes->left_out++;
    } else if (nodes->node && !nodes->node->devices) {
        const struct tres *tres = &nodes->tres;
        const uint64_t gpus = tres->all ? tres->all : tres->typed;
        nodes->node->devices = gpus ? gpus : 1;
        nodes->node->device = gpus ? tres->type : "cpu";
    }
    nodes->node = NULL;
    nodes->tres = (struct tres){0};
    nodes->out_of_service = false;
}

static enum status begin_node(struct nodes *nodes, const char *name, struct error *err) {
    end_node(nodes);
    const size_t before = nodes->met.nodes.n;
    if (!*name)
        return lines_fail(&nodes->lines, err, "a node without a name");
    nodes->node = cluster_draft_node(&nodes->met, name, strlen(name));
    if (!nodes->node)
        return error_no_memory(err);
    return nodes->met.nodes.n > before ? ST_OK : lines_fail(&nodes->lines, err, "node \"%.100s\" again", name);
}

/* "gpu:4", "gpu:a100:4(S:0-1)", "gpu". */
static enum status read_gpus(struct nodes *nodes, const char *gres, size_t n, struct error *err) {
    char text[128];
    uint64_t count = 1;
    n = n < strcspn(gres, "(") ? n : strcspn(gres, "(");
    if (n >= sizeof text)
        return lines_fail(&nodes->lines, err, "Gres of %zu bytes", n);
    memcpy(text, gres, n);
    text[n] = 0;
    char *last = strrchr(text, ':'), *type = strchr(text, ':');
    const bool counted = last && isdigit((unsigned char)last[1]) && !last[1 + strspn(last + 1, "0123456789")];
    enum status st =
        counted ? lines_integer(&nodes->lines, "number of GPUs", last + 1, 0, CLUSTER_MAX_DEVICES_PER_NODE, &count, err)
                : ST_OK;
    if (st)
        return st;
    nodes->node->devices += count;
    if (!count || (counted && type == last) || !type)
        return ST_OK;
    if (counted)
        *last = 0;
    nodes->node->device = arena_strdup(nodes->met.arena, type + 1);
    return nodes->node->device ? ST_OK : error_no_memory(err);
}

/* A list of resources; commas inside of brackets do not part them. */
static enum status read_gres(struct nodes *nodes, const char *list, struct error *err) {
    enum status st = ST_OK;
    while (*list && !st) {
        size_t n = 0;
        for (int depth = 0; list[n] && (list[n] != ',' || depth); n++)
            depth += (list[n] == '(') - (list[n] == ')');
        if (!strncmp(list, "gpu", 3) && (n == 3 || list[3] == ':' || list[3] == '('))
            st = read_gpus(nodes, list, n, err);
        list += n + (list[n] == ',');
    }
    return st;
}

/* "cpu=64,mem=512G,billing=64,gres/gpu=4,gres/gpu:a100=4" */
static enum status read_tres(struct nodes *nodes, char *list, struct error *err) {
    static const char gpu[] = "gres/gpu";
    enum status st = ST_OK;
    char *rest = NULL;
    for (char *item = strtok_r(list, ",", &rest); item && !st; item = strtok_r(NULL, ",", &rest)) {
        char *count = strchr(item, '='), *type = item + strlen(gpu);
        uint64_t n;
        if (!count || strncmp(item, gpu, strlen(gpu)) != 0 || (*type != '=' && *type != ':'))
            continue;
        *count++ = 0;
        st = lines_integer(&nodes->lines, "number of GPUs", count, 0, CLUSTER_MAX_DEVICES_PER_NODE, &n, err);
        if (st || !*type) {
            nodes->tres.all = st ? 0 : n;
            continue;
        }
        nodes->tres.typed += n;
        if (n && !(nodes->tres.type = arena_strdup(nodes->met.arena, type + 1)))
            st = error_no_memory(err);
    }
    return st;
}

static bool is_out_of_service(const char *state) {
    static const char *const words[] = {"DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "POWERED_DOWN", "UNKNOWN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(state, words[i]))
            return true;
    return strchr(state, '*'); /* does not answer */
}

static enum status read_line(struct nodes *nodes, char *line, struct error *err) {
    enum status st = ST_OK;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t", &rest); word && !st; word = strtok_r(NULL, " \t", &rest)) {
        if (!strncmp(word, "NodeName=", 9))
            st = begin_node(nodes, word + 9, err);
        else if (nodes->node && !strncmp(word, "Gres=", 5))
            st = read_gres(nodes, word + 5, err);
        else if (nodes->node && !strncmp(word, "CfgTRES=", 8))
            st = read_tres(nodes, word + 8, err);
        else if (nodes->node && !strncmp(word, "State=", 6))
            nodes->out_of_service = is_out_of_service(word + 6);
    }
    return st;
}

enum status slurm_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                       struct cluster_draft *draft, struct error *err) {
    (void)settings;
    struct nodes nodes = {.left_out = 0};
    enum status st = ST_OK;
    if (!lines_init(&nodes.lines, source, draft->arena))
        return error_no_memory(err);
    cluster_draft_init(&nodes.met, draft->arena);
    for (char *line; !st && (line = lines_next(&nodes.lines));)
        st = read_line(&nodes, line, err);
    end_node(&nodes);
    if (!st && !nodes.met.nodes.n)
        st = error_at(err, ST_INVALID, source->name,
                      "no node that is in service; give what `scontrol show node` prints");
    if (!st && (!cluster_draft_take(draft, &nodes.met.nodes, DRAFT_LISTED) ||
                (nodes.left_out && !notes_add(notes, "%s: %zu nodes that are down, drained or failing are left out",
                                              source->name, nodes.left_out))))
        st = error_no_memory(err);
    cluster_draft_release(&nodes.met);
    return st;
}
