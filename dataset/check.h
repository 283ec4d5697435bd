/* Checking a dataset: that SQLite finds the file sound, and that every row keeps the rules of this folder. */
#ifndef DATASET_CHECK_H
#define DATASET_CHECK_H

#include "dataset/store.h"

struct check_report {
    uint64_t objects, trials, iterations; /* looked at */
    uint64_t problems;
    uint64_t audiences; /* wrong rows of the table of audiences; counted only in a file without other problems */
};

typedef void check_visit(void *context, const char *problem);

/* Checks
 *   - pages, indexes and references, by SQLite's own checks;
 *   - the hash of every object, and that the object is what its kind says;
 *   - that names and ids hold nothing that a terminal obeys (reasons may: they are printed safely);
 *   - that every complete trial has all its iterations, and states their median.
 * Each problem is one line to `visit` (may be NULL). The status of a file with problems is ST_OK, and *out counts them.
 * Fails only when the file cannot be read to the end. */
enum status check_run(struct store *store, check_visit *visit, void *context, struct check_report *out,
                      struct error *err);

#endif
