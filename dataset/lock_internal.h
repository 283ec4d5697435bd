/* One writer a dataset: an advisory lock on a side file, PATH.lock, whose text is the holder's process id. */
#ifndef DATASET_LOCK_INTERNAL_H
#define DATASET_LOCK_INTERNAL_H

#include "base/error.h"

struct lock {
    int fd;     /* -1: not held */
    char *path; /* of the side file */
};

/* Fails: ST_CONFLICT naming the process that has it, ST_ENVIRONMENT, ST_NO_MEMORY. `name` stands for the dataset in
 * messages, `file` is its absolute path. */
enum status lock_take(const char *file, const char *name, struct lock *out, struct error *err);
void lock_drop(struct lock *lock);

#endif
