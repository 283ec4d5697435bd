/* What updates are predicted to do, as JSON: the member "updates" of a prediction (simulator/updates.h). */
#include "simulator/updates.h"

/* Delays without those that no update has at the end. */
bool updates_prediction_write(const struct updates_prediction *u, cJSON *to) {
    int n = UPDATES_DELAYS;
    while (n > 0 && u->delays[n - 1] <= 0)
        n--;
    cJSON *object = cJSON_AddObjectToObject(to, "updates");
    return object && cJSON_AddItemToObject(object, "delays", cJSON_CreateDoubleArray(u->delays, n)) &&
           cJSON_AddNumberToObject(object, "simulated_us", u->us) &&
           cJSON_AddNumberToObject(object, "applied", u->applied) &&
           cJSON_AddNumberToObject(object, "dropped", u->dropped) && cJSON_AddNumberToObject(object, "late", u->late) &&
           cJSON_AddNumberToObject(object, "delay_mean", updates_delay_mean(u)) &&
           cJSON_AddNumberToObject(object, "delay_variance", updates_delay_variance(u)) &&
           cJSON_AddNumberToObject(object, "delay_most", (double)u->delay_most) &&
           cJSON_AddNumberToObject(object, "worker_iteration_us",
                                   u->iterations > 0 ? u->iteration_sum_us / (double)u->iterations : 0) &&
           cJSON_AddNumberToObject(object, "server_in_bytes", u->in_bytes) &&
           cJSON_AddNumberToObject(object, "server_out_bytes", u->out_bytes) &&
           cJSON_AddNumberToObject(object, "replica_bytes", u->replica_bytes) &&
           cJSON_AddNumberToObject(object, "divergence_most", u->divergence_most) &&
           cJSON_AddNumberToObject(object, "between_bytes", u->between_bytes) &&
           cJSON_AddNumberToObject(object, "transfers_between", (double)u->transfers) &&
           cJSON_AddNumberToObject(object, "slow_transfers_between", (double)u->slow_transfers);
}

static enum status read_delays(const struct json_at *at, struct updates_prediction *out, struct error *err) {
    struct json_at list;
    size_t n;
    enum status st = json_array(at, "delays", UPDATES_DELAYS, &list, &n, err);
    if (st)
        return st;
    for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e))
        st = json_number_at(&e, 0, 1e300, &out->delays[e.index], err);
    return st;
}

enum status updates_prediction_read(const struct json_at *at, struct updates_prediction *out, struct error *err) {
    static const double most = 1e300;
    struct updates_prediction u = {.iterations = 1};
    double mean = 0, variance = 0;
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"simulated_us", &u.us},
                   {"applied", &u.applied},
                   {"dropped", &u.dropped},
                   {"late", &u.late},
                   {"delay_mean", &mean},
                   {"delay_variance", &variance},
                   {"worker_iteration_us", &u.iteration_sum_us},
                   {"server_in_bytes", &u.in_bytes},
                   {"server_out_bytes", &u.out_bytes},
                   {"replica_bytes", &u.replica_bytes},
                   {"divergence_most", &u.divergence_most},
                   {"between_bytes", &u.between_bytes}};
    enum status st = read_delays(at, &u, err);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !st; i++)
        st = json_get_number(at, numbers[i].key, JSON_REQUIRED, 0, most, numbers[i].to, err);
    if (!st)
        st = json_get_integer(at, "delay_most", JSON_REQUIRED, 0, UINT64_MAX, &u.delay_most, err);
    if (!st)
        st = json_get_integer(at, "transfers_between", JSON_REQUIRED, 0, UINT64_MAX, &u.transfers, err);
    if (!st)
        st = json_get_integer(at, "slow_transfers_between", JSON_REQUIRED, 0, UINT64_MAX, &u.slow_transfers, err);
    if (st)
        return st;
    u.delay_sum = mean * u.applied;
    u.delay_squares = (variance + mean * mean) * u.applied;
    *out = u;
    return ST_OK;
}
