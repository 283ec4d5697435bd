/* Trials together with all that they refer to, as lines that dataset/import.h reads into a dataset that has none of it:
 * what services and their clients give each other. */
#ifndef DATASET_BUNDLE_H
#define DATASET_BUNDLE_H

#include <stdbool.h>
#include <stdio.h>

#include "dataset/query.h"

/* Lines that were seen; {0} is none. */
struct line_set {
    struct arena arena;
    size_t n, capacity;
    struct seen_line *lines; /* malloc'd */
};

/* *added: the n bytes of `line` were not in the set and are now. Fails: ST_NO_MEMORY. */
enum status line_set_add(struct line_set *set, const char *line, size_t n, bool *added, struct error *err);
bool line_set_has(const struct line_set *set, const char *line, size_t n);
void line_set_release(struct line_set *set);

/* Write what n records of `store` refer to (dataset/export.h: export_shared_references), each line once, but for lines
 * that are in `seen` already. The records themselves are written by export_json. Fails: as export_references. */
enum status bundle_references(struct store *store, size_t n, const struct record *records, struct line_set *seen,
                              FILE *out, struct error *err);

#endif
