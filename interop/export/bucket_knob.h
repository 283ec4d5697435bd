/* From a strategy's groups to the cap of a bucket rule: what PyTorch, TensorFlow, DeepSpeed and XLA share. */
#ifndef INTEROP_EXPORT_BUCKET_KNOB_H
#define INTEROP_EXPORT_BUCKET_KNOB_H

#include "interop/export/export_internal.h"
#include "strategy/baselines/buckets.h"

struct bucket_knob {
    enum bucket_rule rule;
    bool elements; /* sizes are elements, not bytes */
    bool reverse;  /* the order is the reverse of declaration, not that of readiness */
    bool one_kind; /* all dtypes share buckets */
    /* results: */
    bool fits;                 /* some caps make the groups */
    struct bucket_caps caps;   /* those caps, if `fits` */
    uint64_t nearest;          /* if not: a cap that makes no more messages than there are groups (buckets_nearest) */
    uint32_t n_groups, n_made; /* how many groups the strategy has, and how many messages `nearest` makes */
};

/* A variable on parameter servers may fall into any bucket. Fails: ST_NO_MEMORY. */
enum status bucket_knob_find(struct form *f, struct bucket_knob *knob, struct error *err);

/* The same of n given items, which may be of some variables alone. Replaces the labels BUCKET_ANY. Fails: ST_NO_MEMORY.
 */
enum status bucket_knob_infer(struct form *f, struct bucket_knob *knob, uint32_t n, struct bucket_item *items,
                              struct error *err);

/* The note about groups that do not fit. */
void bucket_knob_note(struct form *f, const struct bucket_knob *knob);

#endif
