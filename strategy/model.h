/* A model: the variables and compute operators of one training iteration on one device (schema syncopate.model/1).
 *
 * The description is a JSON object. A member without a default is required; an unknown member is refused.
 *   "schema"            "syncopate.model/1"
 *   "name"              a name for people
 *   "batch_per_device"  samples that a device processes in one iteration, or in one of its micro-batches where a
 *                       strategy has several ("accumulation" in strategy/strategy.h); default 1
 *   "optimizer"         what updates the variables (strategy/optimizer.h); default: not known, and memory is predicted
 *                       without its states
 *   "update_us"         microseconds, as "time_us", in which a device updates all variables once. It is in none of the
 *                       operators. Where a strategy shards an update, a device takes its part of it. Default 0
 *   "activations_estimated"  true: "activation_bytes" are from the architecture, not from a profile of a run, and what
 *                       is predicted from them says so; default false
 *   "variables"         an array of at least one variable:
 *     "name"              unique among the variables
 *     "shape"             array of the sizes of its axes, each at least 1, at most 8 of them; [] is a scalar
 *     "dtype"             f32 (default), f16, bf16, f64, i32, i64 or u8
 *     "sparse_rows"       rows of axis 0 that one iteration touches; without it the gradient is dense
 *   "operators"         an array of operators, in any order that "after" allows:
 *     "name"              unique among the operators
 *     "phase"             "forward" or "backward"
 *     "time_us"           microseconds on a device of compute_scale 1
 *     "after"             names of the operators that must end first; default none
 *     "reads"             of a forward operator: names of the variables that it uses; default none
 *     "produces"          of a backward operator: names of the variables whose gradients it makes; default none
 *     "activation_bytes"  of a forward operator: bytes that it leaves for the backward pass. All forward operators have
 *                         it, or none; default: not known, and memory is predicted without activations. Of a backward
 *                         operator, where forward ones have it: what it computes again and leaves for later ones;
 *                         default 0
 *     "kept_for"          with "activation_bytes" above 0: name of the last backward operator that uses these bytes
 *     "temporary_bytes"   the most that a device holds while the operator runs besides variables, gradients, the
 *                         optimizer's states and what operators have left: results on their way, workspaces, the
 *                         batch. Default 0
 *   "layers"            instead of "operators", for a chain of layers in forward order:
 *     "name"              unique among the layers
 *     "forward_us", "backward_us"  microseconds, as "time_us"
 *     "variables"         names of the variables that the layer owns; default none
 *     "activation_bytes"  as of an operator; they are kept for the layer's own backward operator
 *     "temporary_bytes"   as of an operator, of each of the layer's two
 * Exactly one operator produces each variable. At least one operator is forward, and none of those waits for a backward
 * one. A layer L becomes two operators: L, which reads its variables, and L.grad, which produces them. The forward
 * operators run one after another, then the backward ones in the opposite order.
 *
 * A model is read once, checked, and then constant. Operators are referred to by their position in the file. `order` is
 * the order in which a device runs them: all forward operators, then all backward ones, each phase in the order of the
 * file, except that an operator comes after those that it waits for. Times are microseconds, sizes bytes.
 * Threads: a const struct model may be shared. */
#ifndef STRATEGY_MODEL_H
#define STRATEGY_MODEL_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "strategy/names.h"
#include "strategy/optimizer.h"
#include "strategy/variable.h"

enum { MODEL_MAX_RANK = 8, MODEL_MAX_VARIABLES = 200000, MODEL_MAX_OPERATORS = 1000000 };

struct operator{
    const char *name;
    bool backward;
    double time_us;
    uint32_t n_after, n_reads, n_produces;
    const uint32_t *after;     /* operators that must end first */
    const uint32_t *reads;     /* variables that a forward operator uses */
    const uint32_t *produces;  /* variables whose gradients a backward operator makes */
    uint64_t activation_bytes; /* that it leaves for the backward pass */
    uint64_t temporary_bytes;  /* beyond what memory.h counts otherwise, while it runs */
    uint32_t kept_for;         /* the backward operator that uses them last; the operator itself where they are 0 */
};

struct model {
    struct arena arena; /* owns everything below */
    struct id id;
    const char *name;
    double batch_per_device; /* samples */
    struct optimizer optimizer;
    double update_us;        /* of all variables, on one device */
    double updated_elements; /* of all variables: those that an update changes */
    bool knows_activations;  /* its operators have "activation_bytes" */
    bool activations_estimated;
    uint32_t n_variables, n_operators, n_forward;
    const struct variable *variables;
    const struct operator* operators;
    const uint32_t *order; /* n_operators positions in execution order; the first n_forward are forward */
    struct names names;    /* of the variables */
    uint64_t bytes;        /* of all variables */
    double forward_us, backward_us;
};

/* Read and check a description; `name` stands for the document in messages. Fails: ST_INVALID, ST_NO_MEMORY. Release
 * with model_release. */
enum status model_read(const cJSON *json, const char *name, struct model *out, struct error *err);
enum status model_read_file(const char *path, struct model *out, struct error *err);

/* The description with every default written out, in canonical member order; NULL when memory is out. The model's id
 * is the SHA-256 of its canonical text. */
cJSON *model_write(const struct model *model);

/* The part of update_us that is the variable's: by the elements that change, of a sparse gradient those of its rows. */
double model_update_us(const struct model *model, const struct variable *variable);

/* The variable called `name`, or -1. O(log variables). */
int64_t model_find_variable(const struct model *model, const char *name);

void model_release(struct model *model);

#endif
