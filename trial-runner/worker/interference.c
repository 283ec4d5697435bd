/* Computing first lasts twice as long as the messages alone. Where messages beside it last longer than that, computing
 * becomes longer, up to three times: what messages do to computing shows only in computing that outlasts them.
 *
 * An iteration is timed on device 0. Messages are timed on every device and the shortest time counts, that of the
 * device which was last to begin and so waited for none. */
#include "trial-runner/worker/interference.h"

#include <math.h>
#include <stdbool.h>

#include "base/clock.h"
#include "trial-runner/worker/bench_plan.h"
#include "trial-runner/worker/report.h"

enum { ROUNDS = 9, ITERATIONS = 3, LEAST_MESSAGES = 3, MOST_MESSAGES = 64, CALIBRATIONS = 3, WORD = 4 };

static const double MOST_BYTES = 256 << 20; /* of the messages of a load */
static const double LONGER = 2;             /* computing than messages */
static const double OUTLASTED = 0.75;       /* messages end within this part of computing */
static const double SMALL_PART = 0.2;       /* of the time, at most */

/* Where messages alone take 1, a round takes 2 (computing) + 1 + 2 (both), as often as iterations are repeated; about
 * one round more goes for calibration. */
static const double UNITS = (2 + 1 + 2) * (ITERATIONS + BENCH_PLAN_WARMUP) * (ROUNDS + 1);

struct load {
    const char *part;
    uint64_t bytes;
    uint32_t messages; /* 0: the load is left out */
    double part_of_time, compute_us;
};

/* See the header. */
struct times {
    double compute_us, messages_us, both_us, beside_us;
};

struct interference_load interference_large(size_t n, const struct interference_load *loads, double limit_us) {
    const double most_us = (1 - SMALL_PART) * limit_us / UNITS;
    struct interference_load best = {0};
    for (size_t i = 1; i < n; i++)
        if (loads[i].us >= 2 * loads[0].us && LEAST_MESSAGES * loads[i].us <= most_us)
            best = loads[i];
    return best;
}

/* As many messages as fit. */
static struct load load_of(const char *part, const struct interference_load *load, double part_of_time,
                           double limit_us) {
    const double fit = load->us > 0 ? part_of_time * limit_us / UNITS / load->us : MOST_MESSAGES;
    struct load out = {.part = part, .bytes = load->bytes, .part_of_time = part_of_time};
    if (load->bytes > 0 && fit >= LEAST_MESSAGES)
        out.messages = (uint32_t)fmax(LEAST_MESSAGES, fmin(fmin(fit, MOST_MESSAGES), MOST_BYTES / (double)load->bytes));
    return out;
}

/* Times of `messages` messages beside computing, the same on all ranks. */
static enum status time_plan(const struct world *world, uint32_t messages, uint64_t bytes, double compute_us,
                             double *iteration_us, double *messages_us, struct error *err) {
    const struct bench_plan_shape shape = {.messages = messages,
                                           .bytes = bytes,
                                           .compute_us = compute_us,
                                           .algorithm = ALGORITHM_ring,
                                           .policy = POLICY_fifo,
                                           .credit_bytes = 0};
    double here_us;
    enum status status = bench_plan_time(world, &shape, ITERATIONS, iteration_us, &here_us, err);
    if (status)
        return status;
    MPI_Bcast(iteration_us, 1, MPI_DOUBLE, 0, world->workers);
    MPI_Allreduce(&here_us, messages_us, 1, MPI_DOUBLE, MPI_MIN, world->workers);
    return ST_OK;
}

/* A part of the messages, beside as much less computing; too few are none. */
static void shrink(struct load *load, double part) {
    const uint32_t fewer = (uint32_t)floor(load->messages * fmin(part, 1) + 1e-6);
    load->compute_us *= (double)fewer / load->messages;
    load->messages = fewer < LEAST_MESSAGES ? 0 : fewer;
}

/* Make computing long enough. *took_us: how long the last run of both took, by device 0's clock. */
static enum status calibrate(const struct world *world, struct load *load, double limit_us, double *took_us,
                             struct error *err) {
    const double most_us = limit_us / 2 / (ITERATIONS + BENCH_PLAN_WARMUP); /* or a round would take all of the time */
    double both_us, messages_us;
    enum status status = time_plan(world, load->messages, load->bytes, 0, &both_us, &messages_us, err);
    for (int i = 0; i < CALIBRATIONS && !status; i++) {
        if (load->compute_us * OUTLASTED > messages_us)
            return ST_OK;
        load->compute_us = LONGER * messages_us;
        shrink(load, most_us / load->compute_us);
        if (load->messages == 0)
            return ST_OK;
        *took_us = clock_now_us();
        status = time_plan(world, load->messages, load->bytes, load->compute_us, &both_us, &messages_us, err);
        *took_us = clock_now_us() - *took_us;
        MPI_Bcast(took_us, 1, MPI_DOUBLE, 0, world->workers);
    }
    return status;
}

/* Where both together take longer than was planned, fewer messages let all rounds fit. */
static enum status prepare(const struct world *world, struct load *load, double limit_us, struct error *err) {
    double took_us = 0;
    enum status status = calibrate(world, load, limit_us, &took_us, err);
    if (load->messages == 0)
        return status;
    const double round_us = took_us * (2 + 1 + 2) / 2, fit = limit_us / (ROUNDS + 1) / fmax(round_us, 1);
    shrink(load, fmax(fit, (double)LEAST_MESSAGES / load->messages));
    return status;
}

/* An iteration that only computes has one message of a word, as a plan must have one. */
static enum status time_load(const struct world *world, const struct load *load, struct times *out, struct error *err) {
    double unused_us;
    enum status status = time_plan(world, 1, WORD, load->compute_us, &out->compute_us, &unused_us, err);
    if (!status)
        status = time_plan(world, load->messages, load->bytes, 0, &unused_us, &out->messages_us, err);
    if (!status)
        status = time_plan(world, load->messages, load->bytes, load->compute_us, &out->both_us, &out->beside_us, err);
    return status;
}

static void report(const struct world *world, const struct load *load, const struct times *times) {
    if (world->device != 0)
        return;
    cJSON *line = report_event("interference");
    cJSON_AddStringToObject(line, "part", load->part);
    cJSON_AddStringToObject(line, "operation", operation_name(OPERATION_all_reduce));
    cJSON_AddStringToObject(line, "algorithm", algorithm_name(ALGORITHM_ring));
    cJSON_AddNumberToObject(line, "devices", world->cluster->n_devices);
    cJSON_AddNumberToObject(line, "bytes", (double)load->bytes);
    cJSON_AddNumberToObject(line, "messages", load->messages);
    cJSON_AddNumberToObject(line, "time_us", times->beside_us / load->messages);
    cJSON_AddNumberToObject(line, "compute_us", times->compute_us);
    cJSON_AddNumberToObject(line, "messages_us", times->messages_us);
    cJSON_AddNumberToObject(line, "both_us", times->both_us);
    cJSON_AddNumberToObject(line, "beside_us", times->beside_us);
    report_send(line);
}

/* Whether one more round would end by end_us. It is expected to take as long as the mean round since first_us. Device 0
 * decides. */
static bool round_fits(const struct world *world, double first_us, double end_us, int rounds) {
    const double now_us = clock_now_us();
    int fits = rounds == 0 || now_us + (now_us - first_us) / rounds <= end_us;
    MPI_Bcast(&fits, 1, MPI_INT, 0, world->workers);
    return fits != 0;
}

enum status interference_measure(const struct world *world, const struct interference_options *options,
                                 struct error *err) {
    const double end_us = clock_now_us() + options->limit_us;
    struct load loads[] = {load_of("startup", &options->small, SMALL_PART, options->limit_us),
                           load_of("transfer", &options->large, 1 - SMALL_PART, options->limit_us)};
    enum { LOADS = sizeof loads / sizeof *loads };
    enum status status = ST_OK;
    for (int i = 0; i < LOADS && !status; i++) {
        if (loads[0].messages == 0) /* without small messages, large ones say nothing */
            loads[i].messages = 0;
        if (loads[i].messages > 0)
            status = prepare(world, &loads[i], loads[i].part_of_time * options->limit_us, err);
    }
    const double first_us = clock_now_us();
    for (int round = 0; round < ROUNDS && !status && round_fits(world, first_us, end_us, round); round++)
        for (int i = 0; i < LOADS && !status; i++) {
            struct times times;
            if (loads[i].messages == 0)
                continue;
            status = time_load(world, &loads[i], &times, err);
            if (!status)
                report(world, &loads[i], &times);
        }
    return status;
}
