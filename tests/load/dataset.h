/* The dataset that the service is loaded with: ResNet-50 with a thousand strategies, and many trials of small models on
 * small clusters in sessions of several teams, drawn from a fixed seed. */
#ifndef TESTS_LOAD_DATASET_H
#define TESTS_LOAD_DATASET_H

#include <stddef.h>

#include "base/id.h"

enum { DATASET_BIG = 1000, DATASET_SMALL = 5000, DATASET_MODELS = 20, DATASET_CLUSTERS = 30, DATASET_ROUND = 5000 };

/* What is in it, the same for any number of trials. */
struct dataset_names {
    struct id big[DATASET_BIG];     /* strategies of ResNet-50 on the lab's four nodes */
    struct id small[DATASET_SMALL]; /* strategies of any of the small models "small-0", ... on any "nodes-2", ... */
    struct id models[DATASET_MODELS], clusters[DATASET_CLUSTERS]; /* the small ones */
    char big_model[64], big_cluster[64];
};

/* Put n trials (a multiple of DATASET_ROUND) into the dataset at `path`, a file or an address, which has none, and say
 * what is in it. Ends the program on errors. */
void dataset_fill(const char *path, size_t n, struct dataset_names *out);

/* The file `path`, made with n trials unless it is there, and what is in it. Ends the program on errors. */
void dataset_make(const char *path, size_t n, struct dataset_names *out);

/* The token of the last page of `page_size` records of these in that order, as the service would have given it. */
void dataset_last_page(const char *path, const char *filter, const char *order, size_t page_size, char out[64]);

#endif
