/* JSON text into the reader, and what was read out again: canonical, pretty and one-line text must parse, and the
 * canonical form of each must be the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The canonical form of `text`, which a writer of ours made. */
static char *canonical_again(char *text) {
    struct error err = {0};
    cJSON *tree = NULL;
    require(text != NULL, "a tree that was read can be written");
    if (json_parse(text, strlen(text), "again", &tree, &err) != ST_OK)
        fprintf(stderr, "%s\n", ERROR_TEXT(&err));
    require(tree != NULL, "what is written can be read");
    char *again = json_canonical(tree);
    require(again != NULL, "and written again");
    cJSON_Delete(tree);
    free(text);
    return again;
}

/* Visit every node with every reader of values: none may crash, whatever the type. */
static void walk(const struct json_at *at) {
    struct error err;
    const char *text;
    double number;
    uint64_t integer;
    bool flag;
    static const char *const known[] = {"schema", "name", "variables", NULL};
    json_string_at(at, &text, &err);
    json_number_at(at, -1, 1e9, &number, &err);
    json_integer_at(at, 1, 1000, &integer, &err);
    json_bool_at(at, &flag, &err);
    json_expect_object(at, known, &err);
    json_expect_schema(at, "syncopate.model/1", &err);
    for (struct json_at child = json_first(at); child.node; child = json_next(&child))
        walk(&child);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    cJSON *tree = NULL;
    const enum status status = json_parse((const char *)data, n, "input", &tree, &err);
    if (status != ST_OK) {
        require(status == ST_INVALID && err.status == status && err.message[0], "a refusal says why");
        require(tree == NULL, "nothing is written on failure");
        return 0;
    }
    const struct json_at root = json_root(tree, "input");
    walk(&root);
    char *canonical = json_canonical(tree);
    char *a = canonical_again(json_canonical(tree)), *b = canonical_again(json_pretty(tree)),
         *c = canonical_again(json_line(tree));
    require(canonical && strcmp(canonical, a) == 0, "canonical text is a fixed point");
    require(strcmp(a, b) == 0, "pretty text says the same");
    require(strcmp(a, c) == 0, "one-line text says the same");
    free(canonical);
    free(a);
    free(b);
    free(c);
    cJSON_Delete(tree);
    return 0;
}
