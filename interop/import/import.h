/* Models and clusters from the files of other tools.
 *
 * A kind of file is recognised by its contents. What a file does not tell comes from the settings, or is refused, or is
 * estimated; estimates and what was left out are told as notes, and a model with estimated times has a name that ends
 * in "-estimate" unless the caller names it. A byte order mark before text is passed over.
 * Threads: any, each with an arena of its own. */
#ifndef INTEROP_IMPORT_IMPORT_H
#define INTEROP_IMPORT_IMPORT_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "interop/import/notes.h"
#include "interop/import/source.h"

/* 0 and NULL: not given. */
struct import_settings {
    const char *name;     /* of the description */
    double batch;         /* samples a device in an iteration */
    double forward_ratio; /* forward time as a part of the backward time */
    double tflops;        /* what a device sustains, 10^12 operations a second */
    double positions;     /* tokens, or pixels, of a sample that pass each weight */
    uint64_t devices;     /* of a measurement that does not say */
    double nic_gbit_per_s, nic_latency_us, device_link_gbyte_per_s;
};

/* Options that are for some kinds alone; given with others they are refused. */
enum import_option {
    IMPORT_FORWARD_RATIO = 1,
    IMPORT_TFLOPS = 2,
    IMPORT_POSITIONS = 4,
    IMPORT_ESTIMATE = IMPORT_TFLOPS | IMPORT_POSITIONS,
    IMPORT_DEVICES = 8
};

struct import_kind {
    const char *name, *summary;
    unsigned options; /* of enum import_option, those that it takes */
};

/* The kinds in the order in which they are tried; ends with a NULL name. */
const struct import_kind *import_model_kinds(void);
const struct import_kind *import_cluster_kinds(void);

/* A model description from one file. `kind` is a name of import_model_kinds, or NULL: by contents. *out is the caller's
 * and passes model_read. Fails: ST_USAGE (a kind that is none, a setting that is missing or that the kind does not
 * take), ST_INVALID with file and line or offset, ST_TOO_LARGE, ST_NO_MEMORY. */
enum status import_model(const struct source *source, const char *kind, const struct import_settings *settings,
                         struct notes *notes, cJSON **out, struct error *err);

/* One cluster description from n files that tell parts of it: nodes, rates, measured curves. Where two tell the same,
 * the later one counts, and of measurements of the same size the median. As above. */
enum status import_cluster(size_t n, const struct source *sources, const char *kind,
                           const struct import_settings *settings, struct notes *notes, cJSON **out, struct error *err);

#endif
