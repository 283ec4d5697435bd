/* Checking a dataset: that SQLite finds the file sound, and that every row keeps the rules of this folder. */
#ifndef DATASET_CHECK_H
#define DATASET_CHECK_H

#include "dataset/store.h"

struct check_report {
    uint64_t objects, trials, iterations; /* looked at */
    uint64_t problems;
    uint64_t
        audiences; /* rows of audiences that are wrong, where nothing else is: the one problem, which a merge mends */
};

typedef void check_visit(void *context, const char *problem);

/* SQLite's own checks of pages, indexes and references; the hash of every object, and that it is what its kind
 * says; that names and ids hold nothing that a terminal obeys (reasons may: they are printed safely); of every complete
 * trial that its iterations are whole and their median is the one it states. Each problem is one line to `visit` (may
 * be NULL). A file that has problems is still ST_OK: *out counts them. Fails only when the file cannot be read to the
 * end. */
enum status check_run(struct store *store, check_visit *visit, void *context, struct check_report *out,
                      struct error *err);

#endif
