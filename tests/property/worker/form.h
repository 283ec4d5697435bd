/* Updates as the MPI worker moves them, without ranks: a form of floats behind some weights, and updates of random
 * numbers that the worker and the iteration determine. */
#ifndef TESTS_PROPERTY_WORKER_FORM_H
#define TESTS_PROPERTY_WORKER_FORM_H

#include <string.h>

#include "base/rng.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/mpi/update.h"

enum { FORM_WEIGHTS = 3, FORM_FLOATS = 21, FORM_MEMBERS = 8, FORM_RUN = 1000 };

static const struct message form_message = {.bytes = FORM_WEIGHTS * sizeof(double) + FORM_FLOATS * sizeof(float),
                                            .dtype = DTYPE_f32};
static const struct update_form form = {
    .message = &form_message, .weights_bytes = FORM_WEIGHTS * sizeof(double), .units = UPDATE_HEAD_UNITS + 2};

/* What an update carries. */
struct form_body {
    double weights[FORM_WEIGHTS];
    float floats[FORM_FLOATS];
};

static inline void form_body_of(uint64_t seed, const struct update_member *member, struct form_body *out) {
    struct rng rng;
    memset(out, 0, sizeof *out);
    rng_split(&rng, seed, FORM_RUN * member->worker + member->iteration);
    for (int k = 0; k < FORM_WEIGHTS; k++)
        out->weights[k] = rng_normal(&rng);
    for (int k = 0; k < FORM_FLOATS; k++)
        out->floats[k] = (float)rng_normal(&rng);
}

static inline void form_add(struct form_body *sum, const struct form_body *more) {
    for (int k = 0; k < FORM_WEIGHTS; k++)
        sum->weights[k] += more->weights[k];
    for (int k = 0; k < FORM_FLOATS; k++)
        sum->floats[k] += more->floats[k];
}

/* The body stands in the buffer as the message has it: the floats directly behind the weights. */
static inline void form_write(const struct form_body *body, char *buffer) {
    memcpy(update_body(buffer), body, form_message.bytes);
}

static inline bool form_holds(const struct form_body *body, char *buffer) {
    return memcmp(update_body(buffer), body, form_message.bytes) == 0;
}

/* A buffer with room for members behind the body. */
static inline char *form_buffer(struct pool *pool) {
    return pool_take(pool, update_bytes(&form) + (uint64_t)update_member_units(FORM_MEMBERS) * UPDATE_UNIT);
}

static inline char *form_push(struct pool *pool, uint64_t seed, const struct update_member *member) {
    struct form_body body;
    char *buffer = form_buffer(pool);
    form_body_of(seed, member, &body);
    form_write(&body, buffer);
    *update_head_of(buffer) = (struct update_head){
        .kind = UPDATE_PUSH, .worker = member->worker, .iteration = member->iteration, .version = member->version};
    return buffer;
}

#endif
