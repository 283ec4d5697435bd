/* A bucket with given contents closes at the right item if and only if its cap lies in an interval. The interval
 * follows from three numbers: the size of the bucket, its last item, and the first item behind it. So all caps are
 * found in one pass, exactly, without search. The last bucket of a kind is still open, so it sets no upper limit. */
#include "strategy/baselines/buckets.h"

#include <string.h>

uint32_t buckets_place(uint32_t n, struct bucket_item *items, uint32_t n_labels) {
    uint32_t before[BUCKET_KINDS], behind[BUCKET_KINDS];
    for (int k = 0; k < BUCKET_KINDS; k++)
        before[k] = behind[k] = BUCKET_ANY;
    for (uint32_t i = n; i-- > 0;)
        if (items[i].label != BUCKET_ANY)
            behind[items[i].kind] = items[i].label;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t kind = items[i].kind;
        if (items[i].label == BUCKET_ANY && before[kind] != BUCKET_ANY)
            items[i].label = before[kind];
        else if (items[i].label == BUCKET_ANY)
            items[i].label = behind[kind] != BUCKET_ANY ? behind[kind] : n_labels++;
        before[kind] = items[i].label;
    }
    return n_labels;
}

/* A bucket of one kind while items are read. */
struct open_bucket {
    bool open;
    uint32_t label, index, n_items;
    uint64_t size, last;
};

static void raise(struct cap_range *range, uint64_t low) {
    if (low > range->low)
        range->low = low;
}

static void lower(struct cap_range *range, uint64_t high) {
    if (high < range->high)
        range->high = high;
}

/* Narrow the range to the caps that close this bucket here; `next` is the size of the item after it, 0 when the bucket
 * is the last of its kind. */
static void constrain(enum bucket_rule rule, const struct open_bucket *b, uint64_t next, struct cap_range *range) {
    switch (rule) {
    case BUCKET_REACHED:
        raise(range, b->size - b->last + 1);
        if (next)
            lower(range, b->size);
        break;
    case BUCKET_EXCEEDED:
        raise(range, b->size - b->last);
        if (next)
            lower(range, b->size - 1);
        break;
    case BUCKET_BEFORE:
    case BUCKET_COMBINED:
        if (b->n_items > 1)
            raise(range, b->size);
        if (next)
            lower(range, b->size + next - 1);
        break;
    }
}

static void take(struct open_bucket *b, const struct bucket_item *item) {
    b->size += item->size;
    b->last = item->size;
    b->n_items++;
}

/* Where every label is a run of its kind. */
static enum status infer_runs(enum bucket_rule rule, uint32_t n, const struct bucket_item *items, uint32_t n_labels,
                              struct arena *arena, struct bucket_caps *out, bool *fits, struct error *err) {
    struct open_bucket of[BUCKET_KINDS] = {{0}};
    struct bucket_caps caps = {0, arena_alloc(arena, (size_t)n + 1, sizeof *caps.ranges)};
    bool *used = arena_alloc(arena, (size_t)n_labels + 1, sizeof *used), good = true;
    if (!caps.ranges || !used)
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        caps.ranges[i] = (struct cap_range){1, UINT64_MAX};
    for (uint32_t i = 0; i < n; i++) {
        struct open_bucket *b = &of[items[i].kind];
        if (b->open && b->label != items[i].label) {
            constrain(rule, b, items[i].size, &caps.ranges[b->index]);
            *b = (struct open_bucket){.index = b->index + 1};
        }
        if (!b->open) {
            good = good && !used[items[i].label];
            used[items[i].label] = true;
            b->open = true;
            b->label = items[i].label;
            caps.n = b->index >= caps.n ? b->index + 1 : caps.n;
        }
        take(b, &items[i]);
    }
    for (int k = 0; k < BUCKET_KINDS; k++)
        if (of[k].open)
            constrain(rule, &of[k], 0, &caps.ranges[of[k].index]);
    for (uint32_t i = 0; i < caps.n; i++)
        good = good && caps.ranges[i].low <= caps.ranges[i].high;
    *out = caps;
    *fits = good;
    return ST_OK;
}

bool buckets_common(const struct bucket_caps *caps, struct cap_range *out) {
    *out = (struct cap_range){1, UINT64_MAX};
    for (uint32_t i = 0; i < caps->n; i++) {
        raise(out, caps->ranges[i].low);
        lower(out, caps->ranges[i].high);
    }
    return out->low <= out->high;
}

static bool is_full(enum bucket_rule rule, const struct open_bucket *b, uint64_t next, uint64_t cap) {
    switch (rule) {
    case BUCKET_REACHED:
        return b->size >= cap;
    case BUCKET_EXCEEDED:
        return b->size > cap;
    case BUCKET_BEFORE:
        break;
    case BUCKET_COMBINED:
        if (b->n_items == BUCKET_MOST_COMBINED)
            return true;
        break;
    }
    return b->size + next > cap;
}

uint32_t buckets_fill(enum bucket_rule rule, uint32_t n, struct bucket_item *items, uint32_t n_caps,
                      const uint64_t *caps) {
    struct open_bucket of[BUCKET_KINDS] = {{0}};
    uint32_t n_labels = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct open_bucket *b = &of[items[i].kind];
        const uint64_t cap = caps[b->index < n_caps ? b->index : n_caps - 1];
        if (rule == BUCKET_COMBINED && items[i].size > cap) {
            items[i].label = n_labels++;
            continue;
        }
        if (b->open && is_full(rule, b, items[i].size, cap))
            *b = (struct open_bucket){.index = b->index + 1};
        if (!b->open) {
            b->open = true;
            b->label = n_labels++;
        }
        take(b, &items[i]);
        items[i].label = b->label;
    }
    return n_labels;
}

uint64_t buckets_nearest(enum bucket_rule rule, uint32_t n, struct bucket_item *items, uint32_t n_buckets) {
    uint64_t low = 1, high = 1;
    for (uint32_t i = 0; i < n; i++)
        high += items[i].size;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (buckets_fill(rule, n, items, 1, &middle) <= n_buckets)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- XLA's rule, where one cap also says which items are alone ---- */

/* Whether both have the same items together. of_a[n_labels] and of_b[n] are scratch; b's labels are below n. */
static bool same_labels(uint32_t n, const struct bucket_item *a, const struct bucket_item *b, uint32_t n_labels,
                        uint32_t *of_a, uint32_t *of_b) {
    memset(of_a, 0xff, n_labels * sizeof *of_a);
    memset(of_b, 0xff, n * sizeof *of_b);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *to_b = &of_a[a[i].label], *to_a = &of_b[b[i].label];
        *to_b = *to_b == UINT32_MAX ? b[i].label : *to_b;
        *to_a = *to_a == UINT32_MAX ? a[i].label : *to_a;
        if (*to_b != b[i].label || *to_a != a[i].label)
            return false;
    }
    return true;
}

/* The largest cap that closes the same buckets as `cap` and leaves the same items alone. */
static uint64_t same_up_to(uint32_t n, const struct bucket_item *items, uint64_t cap) {
    struct open_bucket of[BUCKET_KINDS] = {{0}};
    uint64_t high = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        struct open_bucket *b = &of[items[i].kind];
        const uint64_t size = items[i].size;
        if (size > cap) {
            high = size - 1 < high ? size - 1 : high;
            continue;
        }
        if (b->open && b->n_items < BUCKET_MOST_COMBINED && b->size + size > cap)
            high = b->size + size - 1 < high ? b->size + size - 1 : high;
        if (b->open && is_full(BUCKET_COMBINED, b, size, cap))
            *b = (struct open_bucket){.open = true};
        b->open = true;
        take(b, &items[i]);
    }
    return high;
}

static uint64_t next_size(uint32_t n, const struct bucket_item *items, uint64_t above) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (items[i].size > above && items[i].size < next)
            next = items[i].size;
    return next;
}

/* If some cap makes the labels, so does the largest group of several, or the largest item that the cap holds: the same
 * items are alone with it, and what did not fit does not fit. So only these are tried. */
static enum status infer_combined(uint32_t n, const struct bucket_item *items, uint32_t n_labels, struct arena *arena,
                                  struct bucket_caps *out, bool *fits, struct error *err) {
    struct bucket_item *made = arena_alloc(arena, n, sizeof *made);
    struct open_bucket *of = arena_alloc(arena, (size_t)n_labels + 1, sizeof *of);
    uint32_t *of_a = arena_alloc(arena, (size_t)n_labels + 1, sizeof *of_a),
             *of_b = arena_alloc(arena, n, sizeof *of_b);
    *out = (struct bucket_caps){1, arena_alloc(arena, 1, sizeof *out->ranges)};
    if (!made || !of || !of_a || !of_b || !out->ranges)
        return error_no_memory(err);
    uint64_t cap = 1;
    memset(of, 0, ((size_t)n_labels + 1) * sizeof *of);
    for (uint32_t i = 0; i < n; i++) {
        struct open_bucket *group = &of[items[i].label];
        take(group, &items[i]);
        if (group->n_items > 1 && group->size > cap)
            cap = group->size;
    }
    for (*fits = false; !*fits && cap < UINT64_MAX; cap = *fits ? cap : next_size(n, items, cap)) {
        memcpy(made, items, n * sizeof *made);
        buckets_fill(BUCKET_COMBINED, n, made, 1, &cap);
        *fits = same_labels(n, items, made, n_labels, of_a, of_b);
        out->ranges[0] = (struct cap_range){cap, same_up_to(n, items, cap)};
    }
    return ST_OK;
}

enum status buckets_infer(enum bucket_rule rule, uint32_t n, const struct bucket_item *items, uint32_t n_labels,
                          struct arena *arena, struct bucket_caps *out, bool *fits, struct error *err) {
    return rule == BUCKET_COMBINED ? infer_combined(n, items, n_labels, arena, out, fits, err)
                                   : infer_runs(rule, n, items, n_labels, arena, out, fits, err);
}
