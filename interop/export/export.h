/* A strategy in the forms that training frameworks take today: environment files, option files, a table for NCCL.
 *
 * A framework's options say less than a strategy. What a form cannot say is a loss, noted with a word from a fixed list
 * (interop/export/loss.h). A form without notes makes the framework do all that the strategy says. Where a framework
 * has one knob and a rule (PyTorch's buckets), the knob is worked out from the groups; it is exact when there is no
 * note about groups.
 *
 * A strategy promises how much memory a job needs. Where devices would keep other parts than the strategy says, the
 * promise is broken, and the export is not to be given out (export_check_memory). Other groups change memory too. Some
 * exporters build what their settings make (made.c) and note where a device would need over 1% more. Such an export is
 * not given out where the strategy fits into the cluster's devices and the export does not.
 *
 *     struct export export;
 *     st = export_build(exporters_find("horovod"), &strategy, &model, &cluster, &export, err);
 *     ... export.files[0].name, .text ... export.notes[0].text ...
 *     export_release(&export);
 * Threads: functions have no state. */
#ifndef INTEROP_EXPORT_EXPORT_H
#define INTEROP_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/export/loss.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

struct export_note {
    enum export_loss loss;
    const char *text; /* a sentence without its full stop */
};

struct export_file {
    const char *name; /* "horovod.env": no folder */
    const char *text; /* n bytes, and a NUL behind them that does not count */
    size_t n;
};

enum { EXPORT_MAX_FILES = 4 };

struct export {
    struct arena arena; /* owns the texts */
    uint32_t n_files, n_notes;
    struct export_file files[EXPORT_MAX_FILES];  /* the main one first */
    struct export_note notes[EXPORT_LOSS_COUNT]; /* at most one of each loss, in the order of the table */
    bool over_memory;    /* what the form makes needs more than the cluster's devices have, and the strategy does not */
    bool changes_memory; /* of the job: see export_check_memory */
};

struct form; /* private: an export while it is written */

struct exporter {
    const char *name;    /* "pytorch-ddp" */
    const char *summary; /* one line for people: what comes out */
    enum status (*write)(struct form *f, struct error *err);
    bool each_shard; /* it can say how each shard is synchronized; others get all shards as the first one */
    enum export_parts parts;
    const char *files[EXPORT_MAX_FILES + 1]; /* all names that its files may have; then NULL */
};

const struct exporter *exporters_list(size_t *n);
const struct exporter *exporters_find(const char *name); /* or NULL */

/* Write a sealed strategy in one form. Fails: ST_NO_MEMORY, ST_INFEASIBLE (plan_lower's). Release with export_release.
 * O(variables log variables + messages). */
enum status export_build(const struct exporter *exporter, const struct strategy *strategy, const struct model *model,
                         const struct cluster *cluster, struct export *out, struct error *err);

void export_release(struct export *export); /* {0} is allowed */

/* What it notes: a set of 1u << EXPORT_LOSS_... */
uint32_t export_losses(const struct export *export);

/* The losses that still count where a job does by itself what is `accepted` (both sets of 1u << EXPORT_LOSS_...). More
 * memory follows from other losses. So the loss "memory" does not count where the job keeps the parts itself, or where
 * all losses that take memory are accepted. */
uint32_t export_unaccepted(uint32_t losses, uint32_t accepted);

/* ST_OK unless `built`, which export_build made of the rest, changes_memory. Then ST_INFEASIBLE, with what the form
 * cannot say and which forms keep to its memory. What changes memory (parts.c): parts of parameters, gradients or the
 * optimizer's states that are lost or added, replicas of parts, and more than the cluster's devices have. Halves of an
 * all-reduce for which the model's optimizer keeps nothing are work alone. Fails also: ST_NO_MEMORY. A refusal builds
 * every other form, to name those that can. */
enum status export_check_memory(const struct exporter *exporter, const struct export *built,
                                const struct strategy *strategy, const struct model *model,
                                const struct cluster *cluster, struct error *err);

#endif
