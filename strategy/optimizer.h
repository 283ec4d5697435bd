/* What an optimizer keeps beside the variables that it updates, for predictions of memory.
 *
 * The member "optimizer" of a model (strategy/model.h) is
 *   a word            as below, or
 *   an object with
 *     "name"            such a word
 *     "master_copy"     whether variables of 16 bits have a copy in f32 that is updated in their place; the states of
 *                       these variables are f32 then (mixed precision of Megatron and DeepSpeed: 4 + 4 + 4 bytes an
 *                       element with adam, the K = 12 of ZeRO's section 3.1); default false
 *   or an object with
 *     "bytes_per_element"  all that is kept, in bytes for each element, whatever its type
 *
 * Without a master copy a state has the type of its variable, as torch.optim allocates it (zeros_like of the variable):
 *   sgd                 nothing
 *   momentum            a buffer: torch.optim.SGD's momentum_buffer
 *   adagrad             a sum of squares: Adagrad's sum
 *   rmsprop             a mean of squares: RMSprop's square_avg, neither centered nor with momentum
 *   lion                a mean: Lion's exp_avg
 *   adam, adamw, lamb   two means: exp_avg and exp_avg_sq, without amsgrad
 *   adafactor           of a variable with two axes or more one number for each row and for each column of its last two
 *                       axes (torch.optim.Adafactor's row_var and col_var), of others a mean of squares
 * Counters of steps, one number a variable, and what an update needs while it runs (the "foreach" forms of torch.optim
 * take as much as their variables for a moment) are not counted. */
#ifndef STRATEGY_OPTIMIZER_H
#define STRATEGY_OPTIMIZER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "strategy/variable.h"

/* X(word, states: of as many elements as the variable has) */
#define OPTIMIZER_TABLE(X)                                                                                             \
    X(sgd, 0)                                                                                                          \
    X(momentum, 1) X(adagrad, 1) X(rmsprop, 1) X(lion, 1) X(adam, 2) X(adamw, 2) X(lamb, 2) X(adafactor, 1)

enum optimizer_kind {
    OPTIMIZER_unknown,
#define X(word, states) OPTIMIZER_##word,
    OPTIMIZER_TABLE(X)
#undef X
        OPTIMIZER_of_bytes /* "bytes_per_element" */
};

struct optimizer {
    enum optimizer_kind kind;
    bool master_copy;
    double bytes_per_element; /* OPTIMIZER_of_bytes */
};

/* Read the member "optimizer" of `at`, which may be absent. Fails: ST_INVALID. */
enum status optimizer_read(const struct json_at *at, struct optimizer *out, struct error *err);

/* Add it to the object, unless it is unknown. False when memory is out. */
bool optimizer_write(const struct optimizer *optimizer, cJSON *object);

/* Bytes of state for this many of the variable's elements; 0 where the optimizer is unknown. */
uint64_t optimizer_bytes(const struct optimizer *optimizer, const struct variable *variable, uint64_t elements);

#endif
