/* Trials together with all that they refer to, as lines. A dataset that has none of it can import them
 * (dataset/import.h). Services and their clients send each other datasets this way. */
#ifndef DATASET_BUNDLE_H
#define DATASET_BUNDLE_H

#include <stdbool.h>
#include <stdio.h>

#include "dataset/query.h"

/* A set of lines that were seen; {0} is the empty set. */
struct line_set {
    struct arena arena;
    size_t n, capacity;
    struct seen_line *lines; /* malloc'd */
};

/* *added: the n bytes of `line` were not in the set and are now. Fails: ST_NO_MEMORY. */
enum status line_set_add(struct line_set *set, const char *line, size_t n, bool *added, struct error *err);
bool line_set_has(const struct line_set *set, const char *line, size_t n);
void line_set_release(struct line_set *set);

/* Write what n records of `store` refer to (export_shared_references of dataset/export.h). Lines that are in `seen` are
 * left out, and the others are added to it. The records themselves are written by export_json. Fails as
 * export_references. */
enum status bundle_references(struct store *store, size_t n, const struct record *records, struct line_set *seen,
                              FILE *out, struct error *err);

#endif
