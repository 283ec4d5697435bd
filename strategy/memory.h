/* How much memory a plan needs: at most on a device, and on a node for its server.
 *
 * An iteration has a place for each of the plan's steps, and one after each, where a device waits for messages: after
 * the last step these end and the optimizer updates the variables. Everything that takes memory lies there from one
 * place to another, around the end of an iteration where need be. What lies there is summed at each place; the largest
 * sum is the peak. A message's buffer lies from the end of step `ready` until step `gate` begins, however fast or slow
 * the network is. So the peak is a bound that holds whatever messages take; what a timeline of the plan holds at once
 * is never more. Exact for these rules, O(steps + variables + operators + messages + pieces), and sorting where
 * parameters are sharded.
 *
 *   parameters   the variables; of sharded ones the device's part
 *   gradients    of a variable from the step that makes it until all of its messages have ended: frameworks free it
 *                with the update (torch: zero_grad(set_to_none=True)). Of a sparse one that moves rows these rows.
 *                Where gradients or parameters are sharded a gradient goes as its message is packed, after the step
 *                that makes the last gradient of the group, when what was gathered for the group is free again (so do
 *                DeepSpeed and FSDP2). The device's part of the sum of sharded parameters stays from the message's gate
 *                through the update; of sharded gradients it lies in the buffer, which the second half has too.
 *                With several micro-batches ("accumulation") from the first that makes it, and one that is added to
 *                it takes nothing. Where gradients are summed in each, and devices keep parts of the sums, it is as
 *                above in each micro-batch, and the part lies there from the gate of the first reduce-scatter on
 *   optimizer    its states and master copies (strategy/optimizer.h); of messages in halves the device's part
 *   gathered     what all-gathers bring of sharded parameters: from its message on, or from when it is unpacked. Until
 *                the last forward step that reads one of its variables if it is gathered again, else until the group's
 *                last backward step. If it is gathered again among fewer devices, the part among these from then until
 *                the gate of the second all-gather
 *   buffers      one run of bytes for a message of several variables: gradients and then their sum, or what was
 *                gathered, until it is unpacked as the gate opens. And what comes in to be added: a device's part in a
 *                reduce-scatter, a part of that part among replicas (until the update), whole messages of the other
 *                devices at the first of a node, rows of all devices under all_gather. Of whole all-reduces no more
 *                than the credit lets go at once. Under NCCL halves and messages of sharded parameters are padded to
 *                equal parts, and that run is there for one variable too where the devices do not divide its elements
 *   encoding     such a run where gradients travel in f16 or bf16, within the same credit. With an encoder
 *                (strategy/encoder.h) what is encoded, and the parts of all devices that come in to be added, whatever
 *                the credit, which counts other bytes. Of topk what all devices sent. NCCL adds
 *                what powersgd sends where it lies. Of topk and powersgd always an
 *                f32 for each element, of what did not travel yet, and of powersgd all Q. What an encoder reads is a
 *                run of f32 among the buffers, unless it is one gradient of f32
 *   Where parameters are gathered or summed in other types ("gathered_as", "summed_as"): what is gathered, and
 * gradients as they are made, in the first; sums on their way in the second, and gradients that micro-batches add up;
 * the device's parts in the model's type, or before replicas have added theirs in the wider one. Gradients that are
 *   converted as they are packed have their run under encoding.
 *   activations  of a forward operator from its step until that of the backward operator which uses them last; with
 *                several micro-batches in each
 *   temporary    "temporary_bytes" of an operator during its step; of a step's operators the most
 *
 * A device's part of a message is the largest: its elements, or blocks of an encoder, divided by the devices that
 * share it, rounded up. In a node of several devices the first one is meant, of the node that has most; all others need
 * less.
 * On a server: the sums of its messages, and the pushes that come in to be added: each worker's at once, unless the
 * credit lets fewer go.
 * Not counted: the library's own buffers, the CUDA context (some hundred MB), what an allocator loses between blocks,
 * and where operators have no "temporary_bytes" the sample batch and what they need while they run. */
#ifndef STRATEGY_MEMORY_H
#define STRATEGY_MEMORY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "strategy/plan.h"

#define MEMORY_TABLE(X)                                                                                                \
    X(parameters) X(gradients) X(optimizer) X(gathered) X(buffers) X(encoding) X(activations) X(temporary)

enum memory_part {
#define X(name) MEMORY_##name,
    MEMORY_TABLE(X)
#undef X
        MEMORY_PARTS
};

struct memory {
    uint64_t peak_bytes;                     /* on a device */
    uint64_t part_bytes[MEMORY_PARTS];       /* at the peak; together peak_bytes */
    uint32_t peak_step;                      /* the first place with the peak; n_steps: after the last step */
    bool peak_between;                       /* that place is before peak_step begins */
    char place[128];                         /* that place for people: "backward step 3 of 8, fc2.grad", which names
                                              * the first of the step's operators, "before ..." it, or "the update" */
    bool knows_optimizer, knows_activations; /* false: the model does not say, and they are not counted */
    uint64_t server_bytes;                   /* at most, of the node that needs most for its server; 0: no server */
    uint32_t server;                         /* that node */
    uint64_t buffers_bytes;                  /* the most that buffers and encoding take together, at any place */
};

const char *memory_part_name(enum memory_part part);

/* False where the model does not say what the part is. */
bool memory_knows(const struct memory *memory, enum memory_part part);

/* Fails: ST_INFEASIBLE (a strategy with a "consistency", of which nothing is known), ST_NO_MEMORY. */
enum status memory_of_plan(const struct plan *plan, struct memory *out, struct error *err);

/* The least memory of a device that the cluster's description gives, in bytes; 0: it gives none. */
uint64_t memory_of_devices(const struct cluster *cluster);

/* Whether it fits into devices of budget_bytes (0: no limit), and the server into its node as the cluster's description
 * says. Fails: ST_INFEASIBLE, with what is over and by how much. */
enum status memory_check(const struct memory *memory, const struct cluster *cluster, uint64_t budget_bytes,
                         struct error *err);

/* Add it as the member "memory": {"peak_bytes", "at", "parameters_bytes", ...}, null where a part is not known.
 * "temporary_bytes" is left out where it is 0.
 * "server", "server_bytes" where there is one. memory_write says whether there was memory for it. memory_read fails:
 * ST_INVALID; peak_step stays 0. */
bool memory_write(const struct memory *memory, const struct cluster *cluster, cJSON *root);
enum status memory_read(const struct json_at *memory, const struct cluster *cluster, struct memory *out,
                        struct error *err);

#endif
