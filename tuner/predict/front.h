/* Time against memory: which of some strategies are worth their memory. A strategy is on the front if all that need no
 * more memory are slower. Units: bytes, microseconds (_us). Threads: functions have no state. */
#ifndef TUNER_PREDICT_FRONT_H
#define TUNER_PREDICT_FRONT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A strategy; its texts are borrowed. */
struct front_point {
    const char *way; /* what people call it: "ZeRO-1"; NULL: nothing but its name */
    const char *strategy, *id;
    uint32_t n_groups;
    uint64_t bytes;      /* the most that a device holds at once */
    double iteration_us; /* in weather the mean that is expected */
};

/* By rising memory; those of the same memory by rising time. O(n log n). */
void front_sort(size_t n, struct front_point *points);

/* Keep those of sorted points that are on the front, in their order; returns how many. Of points with the same memory
 * and time one is kept. O(n). */
size_t front_keep(size_t n, struct front_point *points);

/* For people: of those that front_keep kept, leave out whose memory is within FRONT_NEAR of a faster one's; returns how
 * many are left. O(n). */
#define FRONT_NEAR 0.001
size_t front_thin(size_t n, struct front_point *points);

/* How many groups, for a table: "-" where servers have all. */
const char *front_groups(uint32_t n_groups, char *out, size_t room);

/* Add the member "front": of each point {"id", "peak_bytes", "iteration_us"}. False when memory is out. */
bool front_write(size_t n, const struct front_point *points, cJSON *to);

#endif
