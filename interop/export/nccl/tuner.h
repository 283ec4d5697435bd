/* NCCL's interface for tuner plugins, versions 4 and 5, as declared by us: what a plugin exports under the names
 * ncclTunerPlugin_v4 and ncclTunerPlugin_v5, and how NCCL calls it. With these the plugin is built without NCCL's
 * headers.
 *
 * Results are ncclResult_t, 0 being success. The cost table is numAlgo × numProto floats, row-major, although it is
 * passed as float **; a cost below 0 (-1) means that NCCL cannot use that pair here. NCCL takes the pair of least cost.
 * Threads: NCCL makes one context for each communicator, and uses it from one thread at a time.
 * Source: NCCL, ext-tuner documentation and public plugin headers. */
#ifndef INTEROP_EXPORT_NCCL_TUNER_H
#define INTEROP_EXPORT_NCCL_TUNER_H

#include <stddef.h>
#include <stdint.h>

enum { TUNER_SUCCESS = 0 };
enum tuner_log_level { TUNER_LOG_WARN = 2, TUNER_LOG_INFO = 3 };
enum { TUNER_LOG_TUNING = 64 }; /* the subsystem of NCCL_DEBUG_SUBSYS */

typedef void (*tuner_log)(enum tuner_log_level level, unsigned long subsystems, const char *file, int line,
                          const char *format, ...);

typedef int tuner_ask(void *context, int collective, size_t bytes, int pipelined_operations, float **costs,
                      int n_algorithms, int n_protocols, int registered_buffer, int *n_channels);

struct tuner_v4 {
    const char *name;
    int (*init)(size_t n_ranks, size_t n_nodes, tuner_log log, void **context);
    tuner_ask *ask;
    int (*destroy)(void *context);
};

/* The two pointers after the log are NCCL's NVLink domains and the constants of its cost model; we do not use them. */
struct tuner_v5 {
    const char *name;
    int (*init)(void **context, uint64_t communicator, size_t n_ranks, size_t n_nodes, tuner_log log, void *domains,
                void *constants);
    tuner_ask *ask;
    int (*finalize)(void *context);
};

extern const struct tuner_v4 ncclTunerPlugin_v4;
extern const struct tuner_v5 ncclTunerPlugin_v5;

#endif
