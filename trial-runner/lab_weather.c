/* The process of a lab that changes rates while the program runs. Of the weather it plays what falls on NICs; ranks
 * slow themselves down. Changes that come while others are made are made at once, the last of them only. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "strategy/weather.h"
#include "trial-runner/lab.h"
#include "trial-runner/lab_internal.h"

enum { PORTS = LAB_MAX_NODES * DIRECTION_COUNT, NUMBERS = LAB_MAX_NODES * WEATHER_NUMBERS };

static void sleep_until(double us) {
    double left = us - clock_now_us();
    if (left <= 0)
        return;
    struct timespec time = {.tv_sec = (time_t)(left / 1e6)};
    time.tv_nsec = (long)((left - (double)time.tv_sec * 1e6) * 1e3);
    nanosleep(&time, NULL);
}

static enum status make_changes(const struct lab_config *config, const double *wanted, double *now, struct error *err) {
    enum status status = ST_OK;
    for (size_t port = 0; port < config->n * DIRECTION_COUNT && !status; port++) {
        size_t node = port / DIRECTION_COUNT;
        if (wanted[port] == now[port])
            continue;
        status = lab_network_change(node, config->nodes[node].name, port % DIRECTION_COUNT, wanted[port], err);
        now[port] = wanted[port];
    }
    return status;
}

_Noreturn void lab_weather_play(const struct lab_config *config, double start_us) {
    static double wanted[NUMBERS], now[PORTS];
    struct weather weather = {.cluster = config->weather, .seed = config->seed, .gbit_per_s = wanted};
    struct error err;
    weather_begin(&weather);
    for (size_t port = 0; port < config->n * DIRECTION_COUNT; port++)
        now[port] = config->nodes[port / DIRECTION_COUNT].gbit_per_s;
    for (;;) {
        while (start_us + weather_next_us(&weather) <= clock_now_us())
            weather_advance(&weather);
        if (make_changes(config, wanted, now, &err)) {
            fprintf(stderr, "the lab cannot play its weather: %s\n", ERROR_TEXT(&err));
            _exit(1);
        }
        double next_us = weather_next_us(&weather);
        if (next_us > 1e15)
            for (;;)
                pause();
        sleep_until(start_us + next_us);
    }
}
