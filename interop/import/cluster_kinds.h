/* The readers of cluster files, for interop/import/import.c and the tests: each adds to a draft what a source of its
 * kind tells, or fails. `is` functions look at the contents and never fail. Errors as import_cluster. */
#ifndef INTEROP_IMPORT_CLUSTER_KINDS_H
#define INTEROP_IMPORT_CLUSTER_KINDS_H

#include "interop/import/cluster_draft.h"
#include "interop/import/notes.h"
#include "interop/import/settings.h"
#include "interop/import/source.h"

typedef bool import_recognise_cluster(const struct source *source);
typedef enum status import_cluster_reader(const struct source *source, const struct import_settings *settings,
                                          struct notes *notes, struct cluster_draft *draft, struct error *err);

import_recognise_cluster cluster_file_is, nccl_tests_is, nccl_tests_json_is, osu_is, resource_spec_is, slurm_is,
    topology_is, hostfile_is;
import_cluster_reader cluster_file_read, nccl_tests_read, nccl_tests_json_read, osu_read, resource_spec_read,
    slurm_read, topology_read, hostfile_read;

#endif
