/* PyTorch: arguments of torch.nn.parallel.DistributedDataParallel, to be given as **arguments.
 *
 * Buckets are rebuilt after the first iteration in the order in which gradients became ready. Each dtype fills its own
 * buckets; a bucket is closed once it holds its cap or more. So there are arguments for groups that are runs of the
 * order of readiness:
 *   {}                          they are the default's (25 MiB, the first bucket 1 MiB)
 *   {"bucket_cap_mb": x}        one cap makes them all
 *   {"bucket_cap_mb_list": []}  a cap a bucket; only recent versions have it, so the signature is to be checked
 * A MiB figure is bytes / 2^20 and exact, since DDP takes int(x * 2^20). In older versions the first bucket stays at
 * 1 MiB even where bucket_cap_mb is given. Where the caps of buckets differ, the list is used. Groups that no caps make
 * are written out for a communication hook, as pytorch_hook.c does.
 *
 * One all-reduce at a time, in order, and the optimizer waits for all.
 * Source: torch.nn.parallel.DistributedDataParallel, documentation and signature; Li et al., VLDB 2020, §4.2. */
#include "base/json.h"
#include "interop/export/bucket_knob.h"

static const uint64_t MIB = UINT64_C(1) << 20, DEFAULT_CAP = UINT64_C(25) << 20, DEFAULT_FIRST = UINT64_C(1) << 20;

static bool contains(const struct cap_range *range, uint64_t cap) {
    return cap >= range->low && cap <= range->high;
}

static bool is_default(const struct bucket_caps *caps) {
    for (uint32_t i = 0; i < caps->n; i++)
        if (!contains(&caps->ranges[i], i ? DEFAULT_CAP : DEFAULT_FIRST))
            return false;
    return true;
}

static double mib(const struct cap_range *range) {
    return (double)export_round(range->low, range->high, DEFAULT_CAP, 2) / (double)MIB;
}

/* The longest tail of buckets that one cap serves: returns the first of them, and the range of that cap in *tail. */
static uint32_t common_tail(const struct bucket_caps *caps, struct cap_range *tail) {
    uint32_t k = caps->n;
    *tail = (struct cap_range){1, UINT64_MAX};
    while (k > 0) {
        const struct cap_range *range = &caps->ranges[k - 1];
        const struct cap_range both = {range->low > tail->low ? range->low : tail->low,
                                       range->high < tail->high ? range->high : tail->high};
        if (both.low > both.high)
            break;
        *tail = both;
        k--;
    }
    return k;
}

static bool add_list(cJSON *json, const struct bucket_caps *caps) {
    struct cap_range tail;
    const uint32_t n = common_tail(caps, &tail);
    cJSON *list = cJSON_AddArrayToObject(json, "bucket_cap_mb_list");
    for (uint32_t i = 0; i <= n && list; i++) {
        cJSON *cap = cJSON_CreateNumber(mib(i < n ? &caps->ranges[i] : &tail));
        if (!cJSON_AddItemToArray(list, cap)) {
            cJSON_Delete(cap);
            return false;
        }
    }
    return list != NULL;
}

static bool add_caps(cJSON *json, const struct bucket_knob *knob) {
    struct cap_range one;
    if (!knob->fits)
        return cJSON_AddNumberToObject(json, "bucket_cap_mb", (double)knob->nearest / (double)MIB);
    if (is_default(&knob->caps))
        return true;
    if (buckets_common(&knob->caps, &one))
        return cJSON_AddNumberToObject(json, "bucket_cap_mb", mib(&one));
    return add_list(json, &knob->caps);
}

/* Each group with its algorithm, largest message, server and members, for the hook. */
static void add_exact_groups(struct form *f) {
    cJSON *json = cJSON_CreateObject();
    const bool whole =
        json && cJSON_AddStringToObject(json, "strategy", f->strategy->id.hex) && form_add_exact_groups(f, json, false);
    form_add_json(f, "ddp-groups.json", json, whole);
}

enum status export_pytorch_ddp(struct form *f, struct error *err) {
    struct bucket_knob knob = {.rule = BUCKET_REACHED, .fits = true};
    const bool reduced = f->n_served < f->strategy->n_variables;
    enum status st = reduced ? bucket_knob_find(f, &knob, err) : ST_OK;
    if (st)
        return st;
    cJSON *json = cJSON_CreateObject();
    const bool whole = json && add_caps(json, &knob);
    form_add_json(f, "ddp.json", json, whole);
    if (!knob.fits)
        form_note(f, EXPORT_LOSS_GROUPS,
                  "these %u groups are no runs of the order of readiness; ddp-groups.json has them for a "
                  "communication hook, bucket_cap_mb makes %u messages of other members",
                  knob.n_groups, knob.n_made);
    form_note_rest(f, CAN_ALL_REDUCE);
    if (f->notes[EXPORT_LOSS_GROUPS] || f->notes[EXPORT_LOSS_PARTITION])
        add_exact_groups(f);
    return ST_OK;
}
