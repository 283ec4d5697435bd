/* What nccl-tests writes with -J (from 2.17.3): {"config": {"nthreads", "ngpus", "devices": [...]}, "results":
 * [{"size", "count", "type", "redop", "out_of_place": {"time", "alg_bw", "bus_bw", "nwrong"}, "in_place": {...}}]}.
 *
 * "devices" has one entry a process: the first of its nthreads x ngpus devices. Other members are not read.
 * interop/import/nccl_tests.c says which time is kept, and what is checked. */
#include <string.h>

#include "base/json.h"
#include "interop/import/cluster_kinds.h"
#include "interop/import/nccl_rows.h"

static const double MAX_US = 1e12, MAX_RATE = 1e6;
enum { MAX_RESULTS = 1000000, MAX_DEVICES = 1 << 20 };

bool nccl_tests_json_is(const struct source *source) {
    const size_t blank = strspn(source->text, " \t\r\n");
    return source->text[blank] == '{' && strstr(source->text, "\"bus_bw\"");
}

static enum status read_device(const struct json_at *at, uint64_t each, struct nccl_rows *rows, struct error *err) {
    const char *host, *device;
    enum status st = json_get_string(at, "hostname", JSON_REQUIRED, &host, err);
    if (!st)
        st = json_get_string(at, "device_info", JSON_REQUIRED, &device, err);
    if (st)
        return st;
    struct draft_node *node = cluster_draft_node(&rows->met, host, strlen(host));
    if (!node || !(node->device = arena_strdup(rows->met.arena, device)))
        return error_no_memory(err);
    node->devices += each;
    rows->ranks += each;
    return ST_OK;
}

static enum status read_config(const struct json_at *root, struct nccl_rows *rows, struct error *err) {
    struct json_at config, devices;
    uint64_t threads = 1, gpus = 1;
    size_t n;
    enum status st = json_member(root, "config", &config, err);
    if (!st)
        st = json_get_integer(&config, "nthreads", JSON_OPTIONAL, 1, MAX_DEVICES, &threads, err);
    if (!st)
        st = json_get_integer(&config, "ngpus", JSON_OPTIONAL, 1, MAX_DEVICES / threads, &gpus, err);
    if (st || !json_has(&config, "devices", &devices))
        return st;
    st = json_array(&config, "devices", MAX_DEVICES, &devices, &n, err);
    for (struct json_at e = st ? (struct json_at){0} : json_first(&devices); e.node && !st; e = json_next(&e))
        st = read_device(&e, threads * gpus, rows, err);
    return st;
}

static enum status read_part(const struct json_at *part, struct nccl_tests_row *row, struct error *err) {
    double wrong = 0;
    struct json_at at;
    if (json_has(part, "cpu_time", &at))
        return json_fail(&at, err, "times of the processor; run all_reduce_perf without -C");
    enum status st = json_get_number(part, "time", JSON_REQUIRED, 0, MAX_US, &row->time_us, err);
    if (!st)
        st = json_get_number(part, "alg_bw", JSON_REQUIRED, 0, MAX_RATE, &row->alg, err);
    if (!st)
        st = json_get_number(part, "bus_bw", JSON_REQUIRED, 0, MAX_RATE, &row->bus, err);
    if (!st && json_has(part, "nwrong", &at) && !cJSON_IsNull(at.node))
        st = json_number_at(&at, 0, 1e300, &wrong, err);
    if (!st && wrong > 0)
        st = json_fail(part, err, "%g wrong sums: times of a broken all-reduce; run it again", wrong);
    return st;
}

static enum status read_result(const struct json_at *at, struct nccl_rows *rows, struct error *err) {
    struct nccl_tests_row row = {.place = at->index};
    struct json_at part;
    const char *type, *redop;
    uint64_t count;
    enum status st = json_get_integer(at, "size", JSON_REQUIRED, 0, UINT64_C(1) << 48, &row.bytes, err);
    if (!st)
        st = json_get_integer(at, "count", JSON_REQUIRED, 0, UINT64_C(1) << 48, &count, err);
    if (!st)
        st = json_get_string(at, "type", JSON_REQUIRED, &type, err);
    if (!st)
        st = json_get_string(at, "redop", JSON_REQUIRED, &redop, err);
    if (!st && !nccl_type_bytes(type))
        st = json_fail(at, err, "there is no type \"%s\"", type);
    if (!st && row.bytes != count * nccl_type_bytes(type))
        st = json_fail(at, err, "%lu bytes are not %lu elements of %s: this is no all-reduce", (unsigned long)row.bytes,
                       (unsigned long)count, type);
    if (st)
        return st;
    const char *const parts[] = {"in_place", "out_of_place"};
    for (size_t i = 0; i < 2; i++)
        if (json_has(at, parts[i], &part) && !cJSON_IsNull(part.node)) {
            st = read_part(&part, &row, err);
            if (!st && row.bytes && row.time_us > 0 && nccl_is_sum(redop))
                rows->items[rows->n++] = row;
            return st;
        }
    return json_fail(at, err, "neither \"in_place\" nor \"out_of_place\"");
}

static enum status read_results(const struct json_at *root, const struct import_settings *settings,
                                struct nccl_rows *rows, struct cluster_draft *draft, struct error *err) {
    struct json_at results;
    const struct nccl_tests_row *best;
    uint64_t ranks;
    size_t n;
    enum status st = read_config(root, rows, err);
    if (!st)
        st = json_array(root, "results", MAX_RESULTS, &results, &n, err);
    if (st)
        return st;
    rows->items = arena_alloc(draft->arena, n, sizeof *rows->items);
    if (!rows->items)
        return error_no_memory(err);
    for (struct json_at e = json_first(&results); e.node && !st; e = json_next(&e))
        st = read_result(&e, rows, err);
    if (st)
        return st;
    st = nccl_rows_check(rows, settings->devices, &best, &ranks, err);
    if (st) {
        error_prefix(err, st, "%s", root->key);
        return st;
    }
    return nccl_rows_use(rows, best, ranks, draft) ? ST_OK : error_no_memory(err);
}

enum status nccl_tests_json_read(const struct source *source, const struct import_settings *settings,
                                 struct notes *notes, struct cluster_draft *draft, struct error *err) {
    (void)notes;
    struct nccl_rows rows = {.n = 0};
    cJSON *json;
    enum status st = json_parse(source->text, source->n, source->name, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, source->name);
    cluster_draft_init(&rows.met, draft->arena);
    st = cJSON_IsObject(json) ? read_results(&root, settings, &rows, draft, err)
                              : json_fail(&root, err, "not an object");
    cluster_draft_release(&rows.met);
    cJSON_Delete(json);
    return st;
}
