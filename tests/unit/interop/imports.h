/* A text as a source, and the description that an importer makes of it, read back. */
#ifndef TESTS_UNIT_INTEROP_IMPORTS_H
#define TESTS_UNIT_INTEROP_IMPORTS_H

#include <string.h>

#include "interop/import/import.h"
#include "strategy/cluster.h"
#include "strategy/model.h"

static inline struct source source_of(const char *name, const char *text) {
    return (struct source){.name = name, .text = text, .n = strlen(text)};
}

static inline bool noted(const struct notes *notes, const char *part) {
    for (const struct note *n = notes->first; n; n = n->next)
        if (strstr(n->text, part))
            return true;
    return false;
}

/* Notes live until the arena is released. */
static inline enum status import_model_text(const char *text, const struct import_settings *settings,
                                            struct notes *notes, struct model *out, struct error *err) {
    const struct source source = source_of("file.txt", text);
    cJSON *json = NULL;
    enum status st = import_model(&source, NULL, settings, notes, &json, err);
    if (!st)
        st = model_read(json, "imported", out, err);
    cJSON_Delete(json);
    return st;
}

/* Up to 8 texts, a NULL behind the last. */
static inline enum status import_cluster_texts(const char *const *texts, const struct import_settings *settings,
                                               struct notes *notes, struct cluster *out, struct error *err) {
    struct source sources[8];
    size_t n = 0;
    for (; texts[n]; n++)
        sources[n] = source_of("file.txt", texts[n]);
    cJSON *json = NULL;
    enum status st = import_cluster(n, sources, NULL, settings, notes, &json, err);
    if (!st)
        st = cluster_read(json, "imported", out, err);
    cJSON_Delete(json);
    return st;
}

#endif
