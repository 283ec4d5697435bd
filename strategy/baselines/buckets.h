/* Rules that fill buckets with gradients in a fixed order up to a cap, and the caps that make given groups.
 *
 * Each kind (dtype) fills buckets of its own; the k-th bucket of a kind has the k-th cap, the last cap serves all
 * later ones.
 *   BUCKET_REACHED   a bucket is full once it holds its cap or more       (PyTorch: bytes, order of readiness)
 *   BUCKET_EXCEEDED  a bucket is full once it holds more than its cap     (TensorFlow: bytes, reverse of declaration)
 *   BUCKET_BEFORE    a bucket is full before it would exceed its cap      (DeepSpeed: elements, order of readiness)
 *   BUCKET_COMBINED  the same, or once it holds BUCKET_MOST_COMBINED items; an item above the cap is alone, and the
 *                    bucket that is open stays open                       (XLA: bytes, order of readiness; one cap) */
#ifndef STRATEGY_BASELINES_BUCKETS_H
#define STRATEGY_BASELINES_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/model.h"

enum bucket_rule { BUCKET_REACHED, BUCKET_EXCEEDED, BUCKET_BEFORE, BUCKET_COMBINED };
enum { BUCKET_MOST_COMBINED = 256, BUCKET_KINDS = 2 * DTYPE_COUNT }; /* among all devices; among some */

struct bucket_item {
    uint32_t kind;  /* below BUCKET_KINDS */
    uint32_t label; /* the group that it is in, or that the rule puts it in */
    uint64_t size;  /* at least 1 */
};

enum { BUCKET_ANY = UINT32_MAX }; /* a label: wherever it falls */

/* The caps of the k-th bucket of every kind that make the groups: low <= cap <= high. */
struct bucket_caps {
    uint32_t n;
    struct cap_range {
        uint64_t low, high;
    } * ranges;
};

/* Replace the labels BUCKET_ANY. Such an item takes the label of the item of its kind before it. If no item of its kind
 * is before it, it takes the label of the next one. A kind without labels gets a new one, from n_labels up. Returns how
 * many labels there are then. O(n). */
uint32_t buckets_place(uint32_t n, struct bucket_item *items, uint32_t n_labels);

/* The caps that make the labels of items[n]; n_labels are in use. *fits is false when none do, because a label is no
 * run of its kind or a range is empty. Fails: ST_NO_MEMORY. O(n). BUCKET_COMBINED: caps that make the labels may be
 * several ranges; the one of the smallest cap. O(n^2). */
enum status buckets_infer(enum bucket_rule rule, uint32_t n, const struct bucket_item *items, uint32_t n_labels,
                          struct arena *arena, struct bucket_caps *out, bool *fits, struct error *err);

/* The caps that are right for every bucket, so that one number is enough; false when there are none. */
bool buckets_common(const struct bucket_caps *caps, struct cap_range *out);

/* Fill items[].label by the rule, 0, 1, ... in the order in which buckets open; returns how many. n_caps >= 1. O(n). */
uint32_t buckets_fill(enum bucket_rule rule, uint32_t n, struct bucket_item *items, uint32_t n_caps,
                      const uint64_t *caps);

/* For groups that no cap makes: the least cap that makes at most n_buckets buckets. Changes the labels. With
 * BUCKET_COMBINED more cap may make more buckets, so a smaller cap may do too; and where no cap makes so few, because a
 * bucket is full at BUCKET_MOST_COMBINED items, it is one above all sizes together. O(n log total). */
uint64_t buckets_nearest(enum bucket_rule rule, uint32_t n, struct bucket_item *items, uint32_t n_buckets);

#endif
