/* What the fuzz targets of importers share: bytes as a file of one kind. What is accepted is a description that its
 * reader accepts, and imported again the same; what is refused has one line that says why. */
#ifndef TESTS_FUZZ_IMPORT_H
#define TESTS_FUZZ_IMPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "interop/import/import.h"
#include "strategy/cluster.h"
#include "strategy/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void require(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

/* Take back an option that the kind of file has no use for; false: it was something else. */
static inline int drop_option(struct import_settings *settings, const char *message) {
    if (strstr(message, "takes no --tflops"))
        settings->tflops = 0;
    else if (strstr(message, "takes no --positions"))
        settings->positions = 0;
    else if (strstr(message, "takes no --devices"))
        settings->devices = 0;
    else
        return 0;
    return 1;
}

/* The canonical text, or NULL when the input is refused; malloc'd. */
static inline char *import_bytes(const uint8_t *data, size_t n, const char *kind, int cluster) {
    struct import_settings settings = {
        .batch = 2, .tflops = 1, .positions = 3, .devices = 2, .nic_gbit_per_s = 10, .device_link_gbyte_per_s = 10};
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    struct error err = {0};
    struct source source = {.name = "input", .text = arena_copy(&arena, (const char *)data, n), .n = n};
    cJSON *json = NULL;
    char *text = NULL;
    require(source.text != NULL, "memory for the input");
    enum status st;
    do
        st = cluster ? import_cluster(1, &source, kind, &settings, &notes, &json, &err)
                     : import_model(&source, kind, &settings, &notes, &json, &err);
    while (st == ST_USAGE && drop_option(&settings, ERROR_TEXT(&err)));
    if (st == ST_OK) {
        text = json_canonical(json);
        require(text != NULL, "a description can be written");
    } else {
        require(!json && err.status == st && err.message[0] && !strchr(ERROR_TEXT(&err), '\n'),
                "a refusal is one line");
        require(st != ST_INVALID || !strncmp(ERROR_TEXT(&err), "input", 5), "and names the file");
    }
    cJSON_Delete(json);
    arena_release(&arena);
    return text;
}

static inline int fuzz_import(const uint8_t *data, size_t n, const char *kind, int cluster) {
    char *text = import_bytes(data, n, kind, cluster);
    if (!text)
        return 0;
    struct error err = {0};
    struct model model = {0};
    struct cluster read = {0};
    cJSON *json = NULL;
    require(!json_parse(text, strlen(text), "text", &json, &err), "a description is JSON");
    require(!(cluster ? cluster_read(json, "text", &read, &err) : model_read(json, "text", &model, &err)),
            "a description is read");
    char *again = import_bytes(data, n, kind, cluster);
    require(again && !strcmp(text, again), "an importer says the same twice");
    cJSON_Delete(json);
    model_release(&model);
    cluster_release(&read);
    free(again);
    free(text);
    return 0;
}

#endif
