/* Flat trees: reading XGBoost's, walking, and our own JSON.
 *
 * Children always come after their parent, which the readers check: a walk ends whatever a file says. */
#include "simulator/learned/forest.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 24, MOST_TREES = 1 << 20 };

/* The arrays of one tree; XGBoost's names and ours. Leaves have no children (-1). */
struct columns {
    const char *left, *right, *feature, *value, *default_left;
};
static const struct columns XGBOOST = {"left_children", "right_children", "split_indices", "split_conditions",
                                       "default_left"};
static const struct columns OURS = {"left", "right", "feature", "value", "default_left"};

static enum status grow(struct forest *forest, size_t trees, size_t nodes, struct error *err) {
    uint32_t *root = realloc(forest->root, (forest->n_trees + trees + 1) * sizeof *root);
    if (!root)
        return error_no_memory(err);
    forest->root = root;
    struct forest_node *node = realloc(forest->nodes, (forest->n_nodes + nodes + 1) * sizeof *node);
    if (!node)
        return error_no_memory(err);
    forest->nodes = node;
    return ST_OK;
}

struct cursor {
    struct json_at left, right, feature, value, default_left;
};

static enum status open_column(const struct json_at *tree, const char *key, size_t n, struct json_at *array,
                               struct json_at *first, struct error *err) {
    size_t found;
    enum status status = json_array(tree, key, MOST_NODES, array, &found, err);
    if (status)
        return status;
    if (found != n)
        return json_fail(array, err, "has %zu entries; the tree has %zu nodes", found, n);
    *first = json_first(array);
    return ST_OK;
}

/* A child's number, which must come after its parent; 0 for XGBoost's -1. */
static enum status read_child(const struct json_at *at, size_t parent, size_t n, uint32_t *out, struct error *err) {
    double x;
    enum status status = json_number_at(at, -1, (double)n - 1, &x, err);
    if (status)
        return status;
    if (x != -1 && !(x > (double)parent && x == (double)(uint32_t)x))
        return json_fail(at, err, "must be a later node, or -1 for none");
    *out = x == -1 ? 0 : (uint32_t)x;
    return ST_OK;
}

/* XGBoost writes 0 and 1, or false and true. */
static enum status read_flag(const struct json_at *at, bool *out, struct error *err) {
    uint64_t flag;
    if (cJSON_IsBool(at->node))
        return json_bool_at(at, out, err);
    enum status status = json_integer_at(at, 0, 1, &flag, err);
    if (!status)
        *out = flag == 1;
    return status;
}

static enum status read_node(const struct cursor *at, size_t place, size_t n, uint32_t n_features,
                             struct forest_node *out, struct error *err) {
    uint64_t feature = 0;
    double value = 0;
    enum status status = read_child(&at->left, place, n, &out->left, err);
    if (!status)
        status = read_child(&at->right, place, n, &out->right, err);
    if (!status)
        status = json_integer_at(&at->feature, 0, n_features - 1, &feature, err);
    if (!status)
        status = json_number_at(&at->value, -FLT_MAX, FLT_MAX, &value, err);
    if (!status)
        status = read_flag(&at->default_left, &out->default_left, err);
    if (status)
        return status;
    if (!out->left != !out->right)
        return json_fail(&at->left, err, "a node has two children or none");
    out->feature = (uint32_t)feature;
    out->value = (float)value;
    return ST_OK;
}

/* Add one tree. A failure may leave more room in *forest, but its counts are as they were. */
static enum status read_tree(const struct json_at *tree, const struct columns *columns, uint32_t n_features,
                             struct forest *forest, struct error *err) {
    struct json_at array[5];
    struct cursor at;
    size_t n;
    enum status status = json_array(tree, columns->left, MOST_NODES, &array[0], &n, err);
    if (!status && n == 0)
        return json_fail(&array[0], err, "a tree has at least one node");
    if (status || (status = open_column(tree, columns->left, n, &array[0], &at.left, err)) ||
        (status = open_column(tree, columns->right, n, &array[1], &at.right, err)) ||
        (status = open_column(tree, columns->feature, n, &array[2], &at.feature, err)) ||
        (status = open_column(tree, columns->value, n, &array[3], &at.value, err)) ||
        (status = open_column(tree, columns->default_left, n, &array[4], &at.default_left, err)) ||
        (status = grow(forest, 1, n, err)))
        return status;
    const uint32_t root = (uint32_t)forest->n_nodes;
    for (size_t i = 0; i < n; i++) {
        struct forest_node *node = &forest->nodes[root + i];
        *node = (struct forest_node){0};
        status = read_node(&at, i, n, n_features, node, err);
        if (status)
            return status;
        node->left = node->left ? root + node->left : 0;
        node->right = node->right ? root + node->right : 0;
        at = (struct cursor){json_next(&at.left), json_next(&at.right), json_next(&at.feature), json_next(&at.value),
                             json_next(&at.default_left)};
    }
    forest->root[forest->n_trees++] = root;
    forest->n_nodes += n;
    return ST_OK;
}

static enum status read_trees(const struct json_at *trees, size_t most, const struct columns *columns,
                              uint32_t n_features, struct forest *forest, struct error *err) {
    const struct forest before = *forest;
    enum status status = ST_OK;
    size_t n = 0;
    for (struct json_at tree = json_first(trees); tree.node && n < most && !status; tree = json_next(&tree), n++)
        status = read_tree(&tree, columns, n_features, forest, err);
    if (status) {
        forest->n_trees = before.n_trees;
        forest->n_nodes = before.n_nodes;
    }
    return status;
}

enum status forest_append_xgboost(struct forest *forest, const char *json, size_t n, size_t n_trees,
                                  uint32_t n_features, struct error *err) {
    cJSON *tree;
    struct json_at learner, booster, model, trees;
    size_t found;
    enum status status = json_parse(json, n, "XGBoost's model", &tree, err);
    if (status)
        return status;
    const struct json_at root = json_root(tree, "XGBoost's model");
    if (!(status = json_member(&root, "learner", &learner, err)) &&
        !(status = json_member(&learner, "gradient_booster", &booster, err)) &&
        !(status = json_member(&booster, "model", &model, err)) &&
        !(status = json_array(&model, "trees", MOST_TREES, &trees, &found, err)))
        status = read_trees(&trees, n_trees, &XGBOOST, n_features, forest, err);
    cJSON_Delete(tree);
    return status;
}

enum status forest_copy(const struct forest *from, struct forest *out, struct error *err) {
    struct forest copy = {0};
    enum status status = grow(&copy, from->n_trees, from->n_nodes, err);
    if (status) {
        forest_release(&copy);
        return status;
    }
    if (from->n_trees > 0) {
        memcpy(copy.root, from->root, from->n_trees * sizeof *copy.root);
        memcpy(copy.nodes, from->nodes, from->n_nodes * sizeof *copy.nodes);
    }
    copy.n_trees = from->n_trees;
    copy.n_nodes = from->n_nodes;
    *out = copy;
    return ST_OK;
}

enum status forest_append_scaled(struct forest *forest, const struct forest *from, size_t first, float scale,
                                 struct error *err) {
    const size_t n = from->n_trees - first, start = first < from->n_trees ? from->root[first] : from->n_nodes;
    const size_t n_nodes = from->n_nodes - start, trees = forest->n_trees, nodes = forest->n_nodes;
    const enum status status = grow(forest, n, n_nodes, err);
    if (status)
        return status;
    for (size_t t = 0; t < n; t++)
        forest->root[trees + t] = (uint32_t)(from->root[first + t] - start + nodes);
    for (size_t i = 0; i < n_nodes; i++) {
        struct forest_node node = from->nodes[start + i];
        if (node.left) {
            node.left += (uint32_t)(nodes - start);
            node.right += (uint32_t)(nodes - start);
        } else {
            node.value *= scale;
        }
        forest->nodes[nodes + i] = node;
    }
    forest->n_trees = trees + n;
    forest->n_nodes = nodes + n_nodes;
    return ST_OK;
}

void forest_release(struct forest *forest) {
    free(forest->root);
    free(forest->nodes);
    *forest = (struct forest){0};
}

static float leaf_of(const struct forest *forest, uint32_t node, const float *x) {
    const struct forest_node *at = &forest->nodes[node];
    while (at->left) {
        const float value = x[at->feature];
        const bool left = value != value ? at->default_left : value < at->value;
        at = &forest->nodes[left ? at->left : at->right];
    }
    return at->value;
}

float forest_score(const struct forest *forest, const float *x) {
    float sum = 0;
    for (size_t t = 0; t < forest->n_trees; t++)
        sum += leaf_of(forest, forest->root[t], x);
    return sum;
}

static bool add_number(cJSON *array, double x) {
    cJSON *number = cJSON_CreateNumber(x);
    return number && (cJSON_AddItemToArray(array, number) || (cJSON_Delete(number), false));
}

static bool write_nodes(const struct forest *forest, uint32_t root, uint32_t end, cJSON *tree) {
    cJSON *left = cJSON_AddArrayToObject(tree, OURS.left), *right = cJSON_AddArrayToObject(tree, OURS.right);
    cJSON *feature = cJSON_AddArrayToObject(tree, OURS.feature), *value = cJSON_AddArrayToObject(tree, OURS.value);
    cJSON *default_left = cJSON_AddArrayToObject(tree, OURS.default_left);
    bool ok = left && right && feature && value && default_left;
    for (uint32_t i = root; ok && i < end; i++) {
        const struct forest_node *node = &forest->nodes[i];
        ok = add_number(left, node->left ? node->left - root : -1.0) &&
             add_number(right, node->right ? node->right - root : -1.0) && add_number(feature, node->feature) &&
             add_number(value, (double)node->value) && add_number(default_left, node->default_left);
    }
    return ok;
}

cJSON *forest_write(const struct forest *forest) {
    cJSON *trees = cJSON_CreateArray();
    for (size_t t = 0; trees && t < forest->n_trees; t++) {
        const size_t end = t + 1 < forest->n_trees ? forest->root[t + 1] : forest->n_nodes;
        cJSON *tree = cJSON_CreateObject();
        if (!tree || !write_nodes(forest, forest->root[t], (uint32_t)end, tree)) {
            cJSON_Delete(tree);
            cJSON_Delete(trees);
            return NULL;
        }
        cJSON_AddItemToArray(trees, tree);
    }
    return trees;
}

enum status forest_read(const struct json_at *at, uint32_t n_features, struct forest *out, struct error *err) {
    static const char *const KNOWN[] = {"default_left", "feature", "left", "right", "value", NULL};
    struct forest forest = {0};
    enum status status = ST_OK;
    for (struct json_at tree = json_first(at); tree.node && !status; tree = json_next(&tree))
        status = json_expect_object(&tree, KNOWN, err);
    if (!status)
        status = read_trees(at, MOST_TREES, &OURS, n_features, &forest, err);
    if (status) {
        forest_release(&forest);
        return status;
    }
    *out = forest;
    return ST_OK;
}
