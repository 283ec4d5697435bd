/* Q begins at a multiple of 16 bytes, as NCCL likes to read. */
#include "trial-runner/worker/nccl/power.h"

#include <stdlib.h>

#include "trial-runner/worker/report.h"
#include "trial-runner/worker/thin.h"

enum { ALIGN = 16 };

static bool is_by_power(const struct message *message) {
    return message->encoder == ENCODING_powersgd;
}

static void describe(const struct plan *plan, uint32_t m, struct kernel_thin *thin, struct kernel_matrix *matrices) {
    const struct message *message = &plan->messages[m];
    struct thin_place place = thin_first(plan, m);
    thin->n = message->n_pieces;
    thin->rank = (uint32_t)message->figure;
    thin->part = 1 / (float)plan->cluster->n_devices;
    for (uint32_t i = 0; i < message->n_pieces; thin_next(&place, plan, m, ++i)) {
        const uint64_t rows = place.shape.rows, columns = place.shape.columns;
        thin->most_rows = rows > thin->most_rows ? rows : thin->most_rows;
        thin->most_columns = columns > thin->most_columns ? columns : thin->most_columns;
        matrices[i] = (struct kernel_matrix){rows, columns, place.at, place.first, place.second, place.variable};
    }
}

void power_init(struct power *power, const struct plan *plan) {
    uint32_t n = 0;
    *power = (struct power){.plan = plan, .messages = report_alloc(plan->n_messages, sizeof *power->messages)};
    struct kernel_matrix *matrices = report_alloc(plan->n_pieces, sizeof *matrices);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        if (!is_by_power(&plan->messages[m]))
            continue;
        describe(plan, m, &power->messages[m], matrices + n);
        n += plan->messages[m].n_pieces;
    }
    power->matrices = device_upload(matrices, n * sizeof *matrices);
    free(matrices);
    n = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        power->messages[m].matrices = power->matrices + n;
        n += power->messages[m].n;
    }
}

static uint64_t first_bytes(const struct message *message) {
    return message->bytes - message->second_bytes;
}

static uint64_t second_at(const struct message *message) {
    return (first_bytes(message) + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t power_room_bytes(const struct message *message) {
    return second_at(message) + message->second_bytes;
}

static void all_reduce(struct network *network, const struct message *message, float *run, uint64_t bytes,
                       const struct stream *stream) {
    if (bytes > 0)
        network_check(network,
                      ncclAllReduce(run, run, bytes / sizeof *run, ncclFloat32, ncclSum,
                                    network_comm_of(network, message), stream->cuda),
                      "ncclAllReduce");
}

void power_sum(const struct power *power, struct network *network, uint32_t m, float *run, float *kept, char *room,
               const struct stream *stream) {
    const struct message *message = &power->plan->messages[m];
    struct kernel_thin thin = power->messages[m];
    thin.run = run;
    thin.left = kept;
    thin.kept_q = kept + message_elements(message);
    thin.p = (float *)(void *)room;
    thin.q = (float *)(void *)(room + second_at(message));
    device_check(kernels_thin_begin(&thin, stream->cuda), "multiplying");
    all_reduce(network, message, thin.p, first_bytes(message), stream);
    device_check(kernels_thin_turn(&thin, stream->cuda), "multiplying");
    all_reduce(network, message, thin.q, message->second_bytes, stream);
    device_check(kernels_thin_end(&thin, stream->cuda), "multiplying");
    device_check(cudaMemcpyAsync(thin.kept_q, thin.q, message->second_bytes, cudaMemcpyDeviceToDevice, stream->cuda),
                 "copying");
}

void power_release(struct power *power) {
    device_free(power->matrices);
    free(power->messages);
    *power = (struct power){0};
}
