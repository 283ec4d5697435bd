/* What the user says beside the files of an import. */
#ifndef INTEROP_IMPORT_SETTINGS_H
#define INTEROP_IMPORT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
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

/* The name of the description: the setting, else the file's, with "-estimate" behind it where times are estimated.
 * NULL when memory is out. */
const char *import_name(const struct source *source, const struct import_settings *settings, bool estimated,
                        struct arena *arena);

#endif
