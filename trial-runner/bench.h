/* Measure a cluster with the worker program, and write the figures into its description. */
#ifndef TRIAL_RUNNER_BENCH_H
#define TRIAL_RUNNER_BENCH_H

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"
#include "trial-runner/launch.h"
#include "trial-runner/shares.h"

/* How well the passes over all points agree. */
struct bench_agreement {
    uint32_t points, redone; /* measured at least twice; measurements that were repeated for disagreeing */
    uint32_t unsettled;      /* points of which no two passes agree */
    double difference;       /* by which part the slowest pass exceeds the fastest, the median over points */
};

/* What a bench by this launcher measures. */
enum transport bench_transport(const struct launcher *launcher);

struct bench_findings {
    struct bench_agreement agreement; /* zeros where no point was measured twice */
    struct shares shares;             /* nothing is known with one device */
};

struct bench_options {
    struct launcher launcher;
    uint64_t max_bytes;  /* of a message; 0: 16 MiB */
    double time_limit_s; /* for the measurements, not counting the start; 0: 40 s */
    const atomic_int *cancel;
    /* A figure has come in: "all_reduce ring", its bytes and time. May be NULL. */
    void (*on_measurement)(void *context, const char *what, uint64_t bytes, double time_us);
    void *context;
};

/* A copy of the cluster's description `json` with its "measurements", "runtime" and "interference" replaced by measured
 * ones and its "transport" by the worker's, all else as the user wrote it; without "interference" where nothing was
 * seen to be slowed. `name` stands for the description in messages; NULL is allowed for *findings. The copy has been
 * read back. Free with cJSON_Delete. Fails: ST_INVALID, ST_TRIAL (the workers failed), ST_CANCELLED, and as
 * launch_workers. */
enum status bench_run(const cJSON *json, const char *name, const struct bench_options *options, cJSON **out,
                      struct bench_findings *findings, struct error *err);

#endif
