/* A session on a dataset in the test's own folder. */
#ifndef TESTS_UNIT_TUNER_TUNE_IN_DATASET_H
#define TESTS_UNIT_TUNER_TUNE_IN_DATASET_H

#include <stdio.h>

#include "tests/support/check.h"
#include "tests/support/dataset/place.h"
#include "tuner/session/tune.h"

/* tune_run on the dataset of this name, which is made where there is none. */
static enum status tune_in_dataset(const char *name, const struct model *model, const struct cluster *cluster,
                                   const struct tune_runner *runner, const struct tune_options *options,
                                   const char *resume, struct outcome *out, struct error *err) {
    struct store *store;
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("%s.db", name));
    assert_true(store_open(file, STORE_READ_WRITE, &store, err) == ST_OK);
    enum status st = tune_run(store, model, cluster, runner, options, resume, out, err);
    store_close(store);
    return st;
}

#endif
