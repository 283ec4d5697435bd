/* What the exporters share: an export while it is written, and notes about what it cannot say.
 *
 * When memory runs out the form remembers it, and export_build reports it at the end. So adding a note or a file needs
 * no check of its own.
 */
#ifndef INTEROP_EXPORT_EXPORT_INTERNAL_H
#define INTEROP_EXPORT_EXPORT_INTERNAL_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/export/loss.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

struct export; /* interop/export/export.h */

struct form {
    const struct strategy *strategy;
    const struct model *model;
    const struct cluster *cluster;
    const uint32_t *ready; /* the variables in the order of readiness */
    uint32_t n_served;     /* variables on parameter servers; the rest is all-reduced */
    const char *notes[EXPORT_LOSS_COUNT];
    bool no_memory;
    struct arena *arena; /* of the export: it owns the texts */
    struct export *out;
    char *open_text; /* of the file that is being written */
    size_t open_size;
};

typedef enum status export_function(struct form *f, struct error *err);
export_function export_pytorch_ddp, export_pytorch_hook, export_fsdp2, export_horovod, export_deepspeed,
    export_tensorflow, export_xla, export_byteps, export_bytescheduler, export_nccl, export_autodist, export_megatron,
    export_torchtitan, export_accelerate, export_fsdp2_code;

/* ---- files ---- */

/* Begin a file: write its text to the stream that is returned, then call form_close. NULL when memory is out, which the
 * form remembers. */
FILE *form_open(struct form *f);
void form_close(struct form *f, const char *name, FILE *file);

/* "# " lines that say what strategy this is and where it goes: the top of every environment file. */
void form_write_head(const struct form *f, FILE *file, const char *use);

/* Add a JSON file. `json` is deleted. `whole` is false when something is missing in it because memory ran out. */
void form_add_json(struct form *f, const char *name, cJSON *json, bool whole);

/* ---- notes ---- */

/* Say what is lost; the first note of a loss stays. */
void form_note(struct form *f, enum export_loss loss, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether what is noted leaves devices with other parts than the strategy says (parts.c). `noted`: set of
 * 1u << EXPORT_LOSS_... */
bool parts_change_memory(enum export_parts parts, uint32_t noted, const struct strategy *strategy,
                         const struct model *model);

/* What a form can say; the rest of what the strategy does is noted by form_note_rest. */
enum ability {
    CAN_ALL_REDUCE = 1,
    CAN_SERVE = 2,
    CAN_SHARD = 4,
    CAN_PARTITION = 8,
    CAN_ORDER = 16,
    CAN_CREDIT = 32, /* any credit. Without it all-reduces go one at a time, and pushes and pulls without a limit */
    CAN_CROSS = 64,
    CAN_ALGORITHM = 128,
    CAN_CAST = 256,
    CAN_REDUCE_LOCALLY = 512, /* always does */
    CAN_PREEMPT = 1024,
    CAN_GATHER = 2048,      /* sparse gradients by all-gather */
    CAN_SHARE = 4096,       /* several served variables in one push */
    CAN_KEEP_PARTS = 8192,  /* says "sharded", or notes itself what it cannot say of it */
    CAN_REPLICATE = 16384,  /* "shard_ranks" */
    CAN_RESHARD = 32768,    /* "reshard_after_forward" of so many devices */
    CAN_CARRY = 131072,     /* "gathered_as" and "summed_as", or notes itself what it cannot say of these */
    CAN_ACCUMULATE = 65536, /* notes itself what it cannot say of micro-batches */
    /* form_note_made has compared both */
    CAN_BE_COMPARED = CAN_PARTITION | CAN_KEEP_PARTS,
};
void form_note_rest(struct form *f, unsigned can);

/* Where a tool that has this setting sums gradients with several micro-batches, which it is told in the number of them.
 */
void form_note_synchronize(struct form *f, enum synchronize theirs);

/* The same for a tool that is told two numbers of samples: a device's in a micro-batch, and all in an iteration. True
 * if there are several micro-batches, and samples are whole numbers. */
bool form_batches(struct form *f, enum synchronize theirs, uint64_t *micro_batch, uint64_t *global_batch);

/* Compare with what the form's settings make: `made`, a sealed strategy for the same model that serves nothing. `made`
 * is released. Notes where all-reduced variables differ: in groups, largest message, what is sharded, what stays
 * gathered, how far ahead variables are gathered. Notes where a device would need more memory. Then calls
 * form_note_rest. `can`: abilities beside CAN_ALL_REDUCE and CAN_BE_COMPARED. `theirs`: where the form sums gradients
 * of several micro-batches. A note about types must come before, since lost types change the memory. */
void form_note_made(struct form *f, struct strategy *made, unsigned can, enum synchronize theirs);

/* ---- facts ---- */

/* Whether the groups of the all-reduced variables have the same members. Fails (remembered) when memory is out. */
bool form_same_groups(struct form *f, const struct strategy *made);

/* Names the first all-reduced variable that is sharded in one of these ways (set of 1u << SHARDED_...), where only `n`
 * of the variables are: " (\"b\", ...)"; "" where all are, or memory is out (remembered). */
const char *form_which(struct form *f, unsigned sharded, uint32_t n);

/* What the group with the most parts kept apart has sharded. */
enum sharded form_sharded(const struct form *f);

/* The types in which sharded parameters are gathered and summed, which all their groups share. False: groups differ. */
bool form_carried(const struct form *f, enum carried *gathered, enum carried *summed);

/* The type that all sharded parameters have in the model; DTYPE_COUNT: there are several, or none. */
enum dtype form_sharded_dtype(const struct form *f);

/* Note that the types in which sharded parameters go are others than those that the form says. */
void form_note_carried(struct form *f);

/* Among how many devices each group that is gathered twice keeps its parts between the passes; 0: all that share the
 * shards, UINT32_MAX: groups differ. */
uint32_t form_reshard_ranks(const struct form *f);

/* The algorithm that all groups share, and the encoding that all variables share, served ones too; -1: they differ. */
int form_algorithm(const struct form *f);
int form_encoding(const struct form *f);

/* The largest message that the strategy allows (partition_bytes of groups and served variables). If groups and
 * variables have different limits, *uniform is false, and the result is the limit under which the most bytes travel. 0:
 * whole. */
uint64_t form_partition(struct form *f, bool *uniform);

/* Bytes of each of the n_groups groups as the strategy moves them; NULL (remembered) when memory is out. */
const uint64_t *form_group_bytes(struct form *f);

/* The place, in the order of execution, of the first forward operator that reads it, by variable; n_forward where none
 * does. NULL (remembered) when memory is out. */
const uint32_t *form_first_reads(struct form *f);

/* How many nodes have devices, and how many serve. */
uint32_t form_workers(const struct form *f);
uint32_t form_servers(struct form *f);

/* The groups as lists of variables' names, in the order of readiness; NULL when memory is out. */
cJSON *form_groups(struct form *f);

/* Add "groups" to `json`, and "node_ranks" where something is served (pytorch_hook.c). in_parts: groups may be
 * updated in parts. False when memory is out. */
bool form_add_exact_groups(struct form *f, cJSON *json, bool in_parts);

/* Compare with `other`, which serves everything: does it have the same servers, or the same cuts, for every variable
 * that this strategy serves? */
bool form_same_servers(const struct form *f, const struct strategy *other);
bool form_same_shards(const struct form *f, const struct strategy *other);

/* ---- one number from an interval ---- */

/* `preferred` if it lies in [low, high]; else the number there with the most trailing zeros in `base`, and of several
 * the least. Where high is UINT64_MAX, which means no end, numbers up to base * low are looked at. low <= high. */
uint64_t export_round(uint64_t low, uint64_t high, uint64_t preferred, uint64_t base);

#endif
