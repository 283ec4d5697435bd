/* The claims of a store, for who opens and closes it. */
#ifndef DATASET_CLAIMS_INTERNAL_H
#define DATASET_CLAIMS_INTERNAL_H

#include "base/error.h"

struct store;

/* The connection is a new one: take all claims again. Those that another process has now are lost. */
enum status claims_take_again(struct store *store, struct error *err);
void claims_forget(struct store *store);

#endif
