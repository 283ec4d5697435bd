/* Descriptions in tests: written with ' for ", read through the parser, changed member by member.
 *
 * Everything is static inline, because unit tests link no sources of each other. */
#ifndef TESTS_UNIT_STRATEGY_DESCRIPTIONS_H
#define TESTS_UNIT_STRATEGY_DESCRIPTIONS_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"
#include "tests/support/check.h"

/* `text` with each ' as ", parsed under `name`; the caller deletes it. */
static inline enum status parse_quoted(const char *text, const char *name, cJSON **out, struct error *err) {
    char *json = strdup(text);
    assert_non_null(json);
    for (char *p = json; *p; p++)
        if (*p == '\'')
            *p = '"';
    enum status st = json_parse(json, strlen(json), name, out, err);
    free(json);
    return st;
}

static inline enum status quoted_model(const char *text, struct model *out, struct error *err) {
    cJSON *json = NULL;
    enum status st = parse_quoted(text, "m.json", &json, err);
    if (!st)
        st = model_read(json, "m.json", out, err);
    cJSON_Delete(json);
    return st;
}

static inline enum status quoted_cluster(const char *text, struct cluster *out, struct error *err) {
    cJSON *json = NULL;
    enum status st = parse_quoted(text, "c.json", &json, err);
    if (!st)
        st = cluster_read(json, "c.json", out, err);
    cJSON_Delete(json);
    return st;
}

static inline enum status quoted_strategy(const char *text, const struct model *model, const struct cluster *cluster,
                                          struct strategy *out, struct error *err) {
    cJSON *json = NULL;
    enum status st = parse_quoted(text, "s.json", &json, err);
    if (!st)
        st = strategy_read(json, "s.json", model, cluster, out, err);
    cJSON_Delete(json);
    return st;
}

/* Put the members of every object below `node` in a random order. Arrays keep theirs. */
static inline void shuffle_members(struct rng *rng, cJSON *node) {
    uint32_t n = (uint32_t)cJSON_GetArraySize(node);
    cJSON **children = calloc(n + 1, sizeof *children);
    uint32_t *order = calloc(n + 1, sizeof *order);
    assert_true(children && order);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        children[i] = cJSON_DetachItemFromArray(node, 0);
        shuffle_members(rng, children[i]);
    }
    if (cJSON_IsObject(node))
        rng_shuffle(rng, n, order);
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(node, children[order[i]]);
    free(children);
    free(order);
}

/* The k-th number, string, boolean or null below `node` in file order, or NULL; *k is counted down. */
static inline cJSON *leaf(cJSON *node, uint32_t *k) {
    if (!cJSON_IsObject(node) && !cJSON_IsArray(node))
        return (*k)-- ? NULL : node;
    for (cJSON *child = node->child; child; child = child->next) {
        cJSON *found = leaf(child, k);
        if (found)
            return found;
    }
    return NULL;
}

/* Make another value of the same kind. */
static inline void change_leaf(cJSON *node) {
    if (cJSON_IsString(node)) {
        char text[128];
        snprintf(text, sizeof text, "%.100s~", node->valuestring);
        assert_non_null(cJSON_SetValuestring(node, text));
    } else if (cJSON_IsBool(node)) {
        node->type = cJSON_IsTrue(node) ? cJSON_False : cJSON_True;
    } else {
        cJSON_SetNumberHelper(node, node->valuedouble > 1e6 ? node->valuedouble / 2 : node->valuedouble + 1);
    }
}

/* A file that is no description, whatever the kind, and what its reader must say. */
struct bad_file {
    const char *path;
    enum status status;
    const char *says;
};

/* A file of 200 MB that takes no room on the disk. */
static inline const char *sparse_file(void) {
    const char *path = test_file("huge.json", "{");
    assert_int_equal(truncate(path, 200 * 1000 * 1000), 0);
    return path;
}

/* The array ends at path NULL. */
static inline const struct bad_file *bad_files(void) {
    static struct bad_file files[8];
    files[0] = (struct bad_file){"/nonexistent/m.json", ST_NOT_FOUND, "/nonexistent/m.json: no such file"};
    files[1] = (struct bad_file){test_file("empty.json", ""), ST_INVALID, "empty.json: "};
    files[2] = (struct bad_file){test_dir(), ST_INVALID, "is a directory"};
    files[3] =
        (struct bad_file){test_file("text.json", "name: resnet50\n"), ST_INVALID, "text.json: line 1, column 1: "};
    files[4] = (struct bad_file){test_file("cut.json", "{\"schema\":\"synco"), ST_INVALID, "cut.json: line 1, column "};
    files[5] = (struct bad_file){sparse_file(), ST_TOO_LARGE, "huge.json: more than 64 MiB"};
    files[6] =
        (struct bad_file){test_file("inf.json", "{\"schema\":1e999}"), ST_INVALID, "/schema: a number too large"};
    files[7] = (struct bad_file){NULL, ST_OK, NULL};
    return files;
}

#endif
