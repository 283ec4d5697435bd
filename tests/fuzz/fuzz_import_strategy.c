/* Bytes as the settings of a framework, of any kind. What is accepted makes a strategy that can be written and read,
 * and makes it twice; what is refused has one line that says why. */
#include "strategy/strategy.h"
#include "tests/fuzz/import.h"

static const char model_text[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"variables\":[{\"name\":\"e\",\"shape\":[90]},"
    "{\"name\":\"h.0.w\",\"shape\":[50]},{\"name\":\"h.1.w\",\"shape\":[60],\"dtype\":\"f16\"},{\"name\":\"n\","
    "\"shape\":[4]}],\"layers\":[{\"name\":\"1\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"e\"]},"
    "{\"name\":\"2\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"h.0.w\",\"h.1.w\"]},"
    "{\"name\":\"3\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"n\"]}]}";
static const char cluster_text[] = "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\","
                                   "\"count\":4,\"nic_gbit_per_s\":1}]}";

/* The strategy as text, or NULL when the input is refused; malloc'd. */
static char *import_text(const uint8_t *data, size_t n, const struct model *model, const struct cluster *cluster) {
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    struct error err = {0};
    struct strategy strategy;
    struct source source = {.name = "input", .text = arena_copy(&arena, (const char *)data, n), .n = n};
    char *text = NULL;
    require(source.text != NULL, "memory for the input");
    enum status st = import_strategy(&source, NULL, model, cluster, &notes, &strategy, &err);
    if (st == ST_OK) {
        text = strategy_canonical(&strategy, model, cluster);
        require(text != NULL, "a strategy can be written");
        strategy_release(&strategy);
    } else {
        require(err.status == st && err.message[0] && !strchr(ERROR_TEXT(&err), '\n'), "a refusal is one line");
        require(st != ST_INVALID || !strncmp(ERROR_TEXT(&err), "input", 5), "and names the file");
    }
    arena_release(&arena);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    struct model model;
    struct cluster cluster;
    cJSON *json;
    require(!json_parse(model_text, strlen(model_text), "m", &json, &err) && !model_read(json, "m", &model, &err),
            "the model");
    cJSON_Delete(json);
    require(!json_parse(cluster_text, strlen(cluster_text), "c", &json, &err) &&
                !cluster_read(json, "c", &cluster, &err),
            "the cluster");
    cJSON_Delete(json);
    char *text = import_text(data, n, &model, &cluster), *again = import_text(data, n, &model, &cluster);
    require(!text == !again && (!text || !strcmp(text, again)), "an importer says the same twice");
    free(text);
    free(again);
    cluster_release(&cluster);
    model_release(&model);
    return 0;
}
