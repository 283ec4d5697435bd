/* Every allocation of reading and writing JSON fails once. */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "tests/support/check.h"
#include "tests/support/torture.h"

static const char document[] =
    "{\"a\":1,\"b\":[1,2,{\"x\":\"text\"}],\"c\":null,\"d\":true,\"e\":0.1,\"f\":\"\\u00b5\",\"g\":{},\"h\":[],\"i\":2,"
    "\"j\":\"nine members and more are sorted\"}";

static enum status parse(void *arg, struct error *err) {
    (void)arg;
    cJSON *tree = NULL;
    const enum status status = json_parse(document, sizeof document - 1, "document", &tree, err);
    if (status == ST_OK)
        cJSON_Delete(tree);
    else if (tree)
        return error_set(err, ST_CONFLICT, "the output was written on failure");
    return status;
}

static enum status read_file(void *arg, struct error *err) {
    cJSON *tree = NULL;
    const enum status status = json_read_file(arg, &tree, err);
    cJSON_Delete(tree);
    return status;
}

struct writing {
    char *(*write)(const cJSON *);
    const cJSON *tree;
};

static enum status write_text(void *arg, struct error *err) {
    const struct writing *w = arg;
    char *text = w->write(w->tree);
    if (!text)
        return error_no_memory(err);
    free(text);
    return ST_OK;
}

static void parsing_survives_each_failed_allocation(void **state) {
    (void)state;
    assert_true(torture(parse, NULL) > 20);
}

static void reading_a_file_survives_each_failed_allocation(void **state) {
    (void)state;
    char *path = strdup(test_file("document.json", document));
    assert_non_null(path);
    assert_true(torture(read_file, path) > 20);
    free(path);
}

static void every_writer_survives_each_failed_allocation(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *tree = NULL;
    assert_ok(json_parse(document, sizeof document - 1, "document", &tree, &err));
    struct writing canonical = {json_canonical, tree}, pretty = {json_pretty, tree}, line = {json_line, tree};
    assert_true(torture(write_text, &canonical) >= 3); /* the text, and the members of each object */
    assert_true(torture(write_text, &pretty) >= 1);
    assert_true(torture(write_text, &line) >= 1);
    cJSON_Delete(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parsing_survives_each_failed_allocation),
        cmocka_unit_test(reading_a_file_survives_each_failed_allocation),
        cmocka_unit_test(every_writer_survives_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
