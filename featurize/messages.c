/* What a plan sends, message by message: how many messages of which size, what starting them costs, when each becomes
 * ready and when the next forward pass needs it. O(messages + pieces). */
#include "featurize/features.h"
#include "featurize/features_internal.h"

enum { DECADES = 7 };

static uint32_t decade(uint64_t bytes) {
    uint32_t at = 0;
    for (uint64_t limit = 1000; at + 1 < DECADES && bytes >= limit; limit *= 10)
        at++;
    return at;
}

static void count_messages(const struct survey *s, struct features *out) {
    const struct plan *plan = s->plan;
    double count[DECADES] = {0}, all_reduces = 0, gathers = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        count[decade(plan->messages[m].bytes)]++;
        all_reduces += plan->messages[m].kind == SYNC_ALL_REDUCE;
        gathers += plan->messages[m].half == HALF_gather;
    }
    for (int d = 0; d < DECADES; d++)
        out->global[FEATURE_GLOBAL_log2_messages_1k + d] = feature_log2(count[d]);
    GLOBAL(out, log2_messages) = feature_log2(plan->n_messages);
    GLOBAL(out, log2_all_reduces) = feature_log2(all_reduces);
    GLOBAL(out, log2_gathers) = feature_log2(gathers);
}

static void add_overheads(const struct survey *s, struct features *out) {
    const struct plan *plan = s->plan;
    const struct runtime *runtime = &s->cost->runtime;
    double gathered = 0, launch_us = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        bool agreed = message->kind == SYNC_ALL_REDUCE && plan->policy == POLICY_priority;
        gathered += message->n_pieces > 1 ? (double)message->bytes : 0;
        launch_us += runtime->message_us + (agreed ? runtime->coordination_us : 0);
    }
    GLOBAL(out, log2_startup_us) = feature_log2(s->startup_us);
    GLOBAL(out, log2_transfer_us) = feature_log2(s->transfer_us);
    GLOBAL(out, log2_launch_us) = feature_log2(launch_us);
    GLOBAL(out, log2_startup_over_compute) = feature_log2_ratio(s->startup_us, s->compute_us);
    GLOBAL(out, log2_transfer_over_compute) = feature_log2_ratio(s->transfer_us, s->compute_us);
    GLOBAL(out, log2_launch_over_compute) = feature_log2_ratio(launch_us, s->compute_us);
    GLOBAL(out, log2_copy_us) = feature_log2(gathered / s->cost->copy_bytes_per_us);
}

static double window(const struct plan *plan) {
    double beside = plan->n_messages > 1 ? plan->n_messages - 1 : 0;
    if (plan->credit_bytes == CREDIT_UNLIMITED || !plan->bytes)
        return beside;
    return fmin(beside, (double)plan->credit_bytes * plan->n_messages / (double)plan->bytes);
}

/* The sum over the message's gradients of their bytes times the time for which they wait for the last gradient. */
static double waited(const struct survey *s, const struct message *message, double ready_us) {
    double sum = 0;
    for (uint32_t i = 0; i < message->n_pieces; i++) {
        const struct piece *piece = &s->plan->pieces[message->first_piece + i];
        const struct gradient *gradient = &s->gradients[s->place[piece->variable]];
        sum += (double)piece->bytes * fmax(0, ready_us - gradient->ready_us);
    }
    return sum * ((double)message->bytes / (double)message_piece_bytes(message));
}

/* Of what is gathered in another type than that of the sums, in the type of the sums. */
static double bytes_as_summed(const struct message *message) {
    return (double)(message->piece_bytes ? message->piece_bytes : message->bytes);
}

/* When the gate of step k of the first pass opens, for all messages that wait there: bytes times microseconds. */
static double gated_bytes(const struct survey *s) {
    const struct plan *plan = s->plan;
    double sum = 0, start_us = 0;
    for (uint32_t k = 0; k < plan->n_forward_steps; k++) {
        for (uint32_t i = plan->first_gate[k]; i < plan->first_gate[k + 1]; i++)
            sum += bytes_as_summed(&plan->messages[plan->by_gate[i]]) * start_us;
        start_us += plan->step_us[k];
    }
    return sum;
}

static void place_messages(const struct survey *s, struct features *out) {
    const struct plan *plan = s->plan;
    double bytes = (double)plan->bytes, ready = 0, wait = 0, last = 0, first_us = INFINITY;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        double ready_us = s->messages[m].ready_us;
        if (!message_brings_gradients(message)) /* its gradients are counted with the reduce-scatter */
            continue;
        ready += (double)message->bytes * ready_us;
        first_us = fmin(first_us, ready_us);
        wait += waited(s, message, ready_us);
        last += message->ready + 1 + plan->ends_in_update == plan->n_steps ? (double)message->bytes : 0;
    }
    GLOBAL(out, ready_share) = feature_share(ready, bytes * s->backward_us);
    GLOBAL(out, first_ready_share) = plan->n_messages ? feature_share(first_us, s->backward_us) : 0;
    GLOBAL(out, wait_share) = feature_share(wait, bytes * s->backward_us);
    GLOBAL(out, gate_share) = feature_share(gated_bytes(s), bytes / s->sums * s->forward_us);
    GLOBAL(out, log2_last_bytes) = feature_log2(last);
}

void features_of_messages(const struct survey *s, struct features *out) {
    count_messages(s, out);
    add_overheads(s, out);
    GLOBAL(out, log2_window) = feature_log2(window(s->plan));
    place_messages(s, out);
}
