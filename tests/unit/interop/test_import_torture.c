/* Every allocation of every importer fails once. libyaml allocates by itself and is not tortured. */
#include "tests/support/check.h"
#include "tests/support/torture.h"
#include "tests/unit/interop/graph_item_bytes.h"
#include "tests/unit/interop/imports.h"
#include "tests/unit/interop/onnx_bytes.h"
#include "tests/unit/interop/trace_text.h"
#include "tests/unit/strategy/descriptions.h"

static const char profile[] =
    "node1 -- Input0 -- forward_compute_time=6, backward_compute_time=0, parameter_size=0\n"
    "node2 -- Linear(in_features=6, out_features=3, bias=True) -- forward_compute_time=1, backward_compute_time=1.5, "
    "parameter_size=84\nnode3 -- A -- forward_compute_time=1, backward_compute_time=1, parameter_size=4\n"
    "\tnode1 -- node2\n\tnode2 -- node3";
static const char table[] = "tensor,elements,ready_us\na,4,5\nb,4,6\n";
static const char rows[] = "# Rank 0 Pid 1 on a device 0 [0] X\n# Rank 1 Pid 1 on b device 0 [0] X\nalgbw busbw\n"
                           "4096 1024 float sum -1 9 0.3 0.3 0 10 0.4 0.4 0\n"
                           "# Rank 0 Pid 1 on a device 0 [0] X\n# Rank 1 Pid 1 on b device 0 [0] X\n"
                           "4096 1024 float sum -1 9 0.3 0.3 0 10 0.4 0.4 0\n";
static const char json[] =
    "{\"config\":{\"devices\":[{\"hostname\":\"a\",\"device_info\":\"X\"},{\"hostname\":\"b\",\"device_info\":\"X\"}]},"
    "\"results\":[{\"size\":4,\"count\":1,\"type\":\"float\",\"redop\":\"sum\",\"in_place\":{\"time\":1,\"alg_bw\":2,"
    "\"bus_bw\":2}}]}";
static const char ours[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"o\",\"nodes\":[{\"name\":\"a\","
    "\"nic_gbit_per_s\":1}],\"measurements\":[{\"operation\":\"push\",\"bytes\":1,\"time_us\":1}]}";
static const char osu[] = "# OSU MPI Allreduce Latency Test v5\n4 2\n# OSU MPI Latency Test v5\n4 2\n";
static const char slurm[] =
    "NodeName=a Gres=gpu:a100:2 State=IDLE\nNodeName=b State=IDLE Gres= CfgTRES=gres/gpu:h=2\nNodeName=c State=DOWN\n";
static const char topology[] = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X\tNV1\nGPU1\tSYS\t X\n";

static const struct import_settings all = {.devices = 2, .nic_gbit_per_s = 1, .device_link_gbyte_per_s = 1};

static enum status read_model(void *text, struct error *err) {
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    struct model m = {0};
    enum status st = import_model_text(text, &(struct import_settings){0}, &notes, &m, err);
    model_release(&m);
    arena_release(&arena);
    return st;
}

static enum status read_bytes(void *bytes, struct error *err) {
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    const struct source source = source_of_bytes("m", bytes);
    cJSON *made = NULL;
    enum status st = import_model(&source, NULL, &(struct import_settings){.batch = 2, .tflops = 1, .positions = 1},
                                  &notes, &made, err);
    cJSON_Delete(made);
    arena_release(&arena);
    return st;
}

struct clusters {
    const struct import_settings *settings;
    const char *texts[4];
};

static enum status read_clusters(void *arg, struct error *err) {
    const struct clusters *clusters = arg;
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    struct cluster c = {0};
    enum status st = import_cluster_texts(clusters->texts, clusters->settings, &notes, &c, err);
    cluster_release(&c);
    arena_release(&arena);
    return st;
}

struct settings {
    struct model model;
    struct cluster cluster;
    const char *text;
};

static enum status read_strategy(void *arg, struct error *err) {
    const struct settings *settings = arg;
    const struct source source = source_of("s", settings->text);
    struct arena arena = {0};
    struct notes notes = {.arena = &arena};
    struct strategy s;
    enum status st = import_strategy(&source, NULL, &settings->model, &settings->cluster, &notes, &s, err);
    if (!st)
        strategy_release(&s);
    arena_release(&arena);
    return st;
}

static enum status read_file(void *path, struct error *err) {
    struct arena arena = {0};
    struct source source;
    enum status st = source_read(path, &arena, &source, err);
    arena_release(&arena);
    return st;
}

static struct proto_bytes safetensors(void) {
    static const char header[] = "{\"w\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}";
    struct proto_bytes file = {.n = 0};
    for (size_t i = 0; i < 8; i++)
        put_byte(&file, (unsigned)((sizeof header - 1) >> 8 * i & 0xff));
    for (size_t i = 0; i < sizeof header - 1 + 12; i++)
        put_byte(&file, i < sizeof header - 1 ? (unsigned char)header[i] : 0);
    return file;
}

static void models_survive_every_failing_allocation(void **state) {
    (void)state;
    assert_true(torture(read_model, (void *)(uintptr_t)profile) > 50);
    assert_true(torture(read_model, (void *)(uintptr_t)table) > 50);
    struct proto_bytes onnx = onnx_small(), item = graph_item_small(), tensors = safetensors();
    assert_true(torture(read_bytes, &onnx) > 50);
    assert_true(torture(read_bytes, &tensors) > 50);
    assert_true(torture(read_bytes, &item) > 50);
    static struct trace_text trace;
    put_iteration(&trace, 0, 1, 0, 2);
    put_event(&trace, "cuda_runtime", "cudaLaunchKernel", 1, 20, 1, "\"correlation\":3");
    put_event(&trace, "kernel", "sgemm", 7, 30, 9, "\"correlation\":3");
    assert_true(torture(read_model, (void *)(uintptr_t)trace_end(&trace)) > 50);
}

static void clusters_survive_every_failing_allocation(void **state) {
    (void)state;
    struct clusters several[] = {
        {&(struct import_settings){0}, {rows}},
        {&(struct import_settings){0}, {json}},
        {&(struct import_settings){.name = "n", .devices = 2}, {ours, rows, osu}},
        {&all, {slurm, topology, osu}},
        {&(struct import_settings){.nic_gbit_per_s = 1, .device_link_gbyte_per_s = 1}, {"a slots=2\nb\n", topology}}};
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        assert_true(torture(read_clusters, &several[i]) > 20);
}

static void strategies_survive_every_failing_allocation(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"zero_optimization\":{\"stage\":3,\"sub_group_size\":1}}",
        "{\"zero_optimization\":{\"stage\":2}}",
        "--use-distributed-optimizer --ddp-bucket-size 3",
        "[parallelism]\nfsdp_reshard_after_forward = \"default\"\n",
        "distributed_type: FSDP\nnum_processes: 3\nfsdp_version: 2\n",
        "{\"strategy\":\"0\",\"forward_prefetch\":1,\"accumulation\":{\"micro_batches\":2},"
        "\"groups\":[{\"variables\":[\"e\"],\"reduce_dtype\":\"bf16\"},{\"variables\":[\"h.0.w\"]}]}",
    };
    struct settings settings = {0};
    struct error err = {0};
    assert_ok(quoted_model("{'schema':'syncopate.model/1','name':'m','variables':[{'name':'e','shape':[90]},"
                           "{'name':'h.0.w','shape':[50]}],'layers':[{'name':'1','forward_us':1,'backward_us':1,"
                           "'variables':['e','h.0.w']}]}",
                           &settings.model, &err));
    assert_ok(quoted_cluster("{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':2,"
                             "'nic_gbit_per_s':1}]}",
                             &settings.cluster, &err));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        settings.text = texts[i];
        assert_true(torture(read_strategy, &settings) > 5);
    }
    cluster_release(&settings.cluster);
    model_release(&settings.model);
}

static void reading_a_file_survives_every_failing_allocation(void **state) {
    (void)state;
    char text[200000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_true(torture(read_file, (void *)(uintptr_t)test_file("long", text)) > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_survive_every_failing_allocation),
        cmocka_unit_test(clusters_survive_every_failing_allocation),
        cmocka_unit_test(strategies_survive_every_failing_allocation),
        cmocka_unit_test(reading_a_file_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
