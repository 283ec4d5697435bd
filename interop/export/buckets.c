/* A bucket with given contents closes at the right item if and only if its cap lies in an interval. The interval
 * follows from three numbers: the size of the bucket, its last item, and the first item behind it. So all caps are
 * found in one pass, exactly, without search. The last bucket of a kind is still open, so it sets no upper limit. */
#include "interop/export/buckets.h"

uint32_t buckets_place(uint32_t n, struct bucket_item *items, uint32_t n_labels) {
    uint32_t before[DTYPE_COUNT], behind[DTYPE_COUNT];
    for (int k = 0; k < DTYPE_COUNT; k++)
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

enum status buckets_infer(enum bucket_rule rule, uint32_t n, const struct bucket_item *items, uint32_t n_labels,
                          struct arena *arena, struct bucket_caps *out, bool *fits, struct error *err) {
    struct open_bucket of[DTYPE_COUNT] = {{0}};
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
    for (int k = 0; k < DTYPE_COUNT; k++)
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
    }
    return b->size + next > cap;
}

uint32_t buckets_fill(enum bucket_rule rule, uint32_t n, struct bucket_item *items, uint32_t n_caps,
                      const uint64_t *caps) {
    struct open_bucket of[DTYPE_COUNT] = {{0}};
    uint32_t n_labels = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct open_bucket *b = &of[items[i].kind];
        const uint64_t cap = caps[b->index < n_caps ? b->index : n_caps - 1];
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
