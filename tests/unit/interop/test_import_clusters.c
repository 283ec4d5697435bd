/* Clusters from nccl-tests, OSU, AutoDist, Slurm, nvidia-smi and host files: each alone, together, and broken. */
#include <stdio.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/unit/interop/import_notes.h"

#define RANKS                                                                                                          \
    "# Using devices\n#  Rank  0 Group  0 Pid 43 on alpha device  0 [0x0f] NVIDIA A100-SXM4-40GB\n"                    \
    "#  Rank  1 Group  0 Pid 44 on alpha device  1 [0x15] NVIDIA A100-SXM4-40GB\n"                                     \
    "   Rank  2 Pid 45 on beta device  0 [0000:04:00] NVIDIA A100-SXM4-40GB\n"                                         \
    "#  Rank  3 Pid 46 on beta device  1 [0000:05:00] NVIDIA A100-SXM4-40GB\n"                                         \
    "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"

static void read_texts(const char *const *texts, const struct import_settings *settings, struct cluster *out) {
    struct error err;
    assert_ok(import_cluster_texts(texts, settings, &notes, out, &err));
}

#define READ(settings, out, ...) read_texts((const char *const[]){__VA_ARGS__, NULL}, settings, out)

static const struct import_settings none = {0};

static void a_log_of_nccl_tests_is_a_measured_cluster(void **state) {
    (void)state;
    struct cluster c;
    READ(&none, &c,
         RANKS " 0 0 float sum -1 0.51 0.00 0.00 0 0.52 0.00 0.00 0\n"
               " 1048576 262144 float sum -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0\n"
               " 4194304 1048576 float sum -1 127.0 33.03 49.54 N/A 127.8 32.82 49.23 N/A\n"
               "# Out of bounds values : 0 OK\n");
    assert_int_equal(c.n_nodes, 2);
    assert_string_equal(c.nodes[1].name, "beta");
    assert_string_equal(c.nodes[0].device, "NVIDIA A100-SXM4-40GB");
    assert_int_equal(c.n_devices, 4);
    assert_int_equal(c.n_measurements, 2);
    assert_int_equal(c.measurements[0].devices, 4);
    assert_int_equal(c.measurements[0].bytes, 1048576);
    assert_close(c.measurements[0].time_us, 84.50, 0);
    assert_close(c.nodes[0].nic_gbit_per_s, 49.23 * 8, 1e-12);
    assert_close(c.nodes[0].device_link_gbyte_per_s, 49.23, 1e-12);
    assert_true(noted(&notes, "nic_gbit_per_s 393.84 is an estimate"));
    assert_true(noted(&notes, "device_link_gbyte_per_s 49.23 is an estimate"));
    cluster_release(&c);
}

static void every_version_of_a_row_is_read(void **state) {
    (void)state;
    static const char *const rows[] = {
        "1048576 262144 float sum 85.58 12.25 18.38 2e-07 84.50 12.41 18.61 2e-07\n",
        "1048576 262144 float sum -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0\n",
        "[1,0]<stdout>:     1048576 262144 float sum -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0\n",
        "[1,0]<stdout>: 1048576 262144 float sum -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0   \r\n",
        "worker-0: 1048576 262144 float sum -1 85.58 12.25 18.38 N/A 84.50 12.41 18.61 N/A\n",
        "1048576 262144 float avg -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0 2025-01-31 23:59:59\n",
        "1048576 524288 half sum -1 85.58 12.25 18.38 0 80 90 85 1.5 84.50 12.41 18.61 0 80 90 85 1.5\n",
        "1048576 524288 bfloat16 sum -1 N/A N/A N/A N/A 84.50 12.41 18.61 0\n",
        "1048576 262144 float sum -1 84.50 12.41 18.61 0 N/A N/A N/A N/A\n",
        "h:1:2 [0] NCCL INFO x\n1048576 262144 float sum -1h:1:2 [0] NCCL INFO Channel 00\n 85.58 12.25 18.38 0\n"
        "1048576 262144 float sum -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0\n",
        "1048576 262144 float max -1 1 12.25 18.38 0 1 12.41 18.61 0\n"
        "1048576 262144 float sum -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0\n",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        struct cluster c;
        snprintf(text, sizeof text, "%s%s", RANKS, rows[i]);
        READ(&none, &c, text);
        assert_int_equal(c.n_measurements, 1);
        assert_int_equal(c.measurements[0].bytes, 1048576);
        assert_close(c.measurements[0].time_us, 84.50, 0);
        cluster_release(&c);
    }
    assert_true(noted(&notes, "1 rows that other output interrupts"));
}

static void repeated_sizes_become_their_median(void **state) {
    (void)state;
    struct cluster c;
    const char *again = RANKS "4096 1024 float sum -1 9 0.3 0.45 0 30 0.1 0.15 0\n";
    READ(&none, &c,
         RANKS "4096 1024 float sum -1 9 0.3 0.45 0 10 0.4 0.60 0\n4096 1024 float sum -1 9 0.3 0.45 0 14 0.2 0.30 0\n",
         again);
    assert_int_equal(c.n_devices, 4);
    assert_int_equal(c.n_measurements, 1);
    assert_close(c.measurements[0].time_us, 14, 0);
    cluster_release(&c);
}

static const char unlisted[] = "# size count type redop time algbw busbw error time algbw busbw error\n"
                               "1048576 262144 float sum 85.58 12.25 18.38 2e-07 84.50 112.41 168.62 2e-07\n";

static void unlisted_ranks_follow_from_the_rates(void **state) {
    (void)state;
    struct cluster c;
    READ(&none, &c, "alpha slots=2\nbeta:2\n", unlisted);
    assert_int_equal(c.measurements[0].devices, 4);
    assert_close(c.nodes[0].nic_gbit_per_s, 168.62 * 8, 1e-12);
    cluster_release(&c);
}

static void nodes_that_cannot_have_made_a_log_are_noted(void **state) {
    (void)state;
    struct cluster c;
    READ(&((struct import_settings){.nic_gbit_per_s = 1}), &c, "alpha\nbeta\n", unlisted);
    assert_true(noted(&notes, "measured among 4 devices, but the nodes have 2"));
    cluster_release(&c);
}

#define HEADING "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
#define ROW_1M  "1048576 262144 float sum -1 85.58 12.25 18.38 0 84.50 12.41 18.61 0\n"
#define ROW_4M  "4194304 1048576 float sum -1 127.0 33.03 49.54 0 127.8 32.82 49.23 0\n"

static void a_log_may_hold_several_runs_that_agree(void **state) {
    (void)state;
    struct cluster c;
    READ(&none, &c,
         RANKS ROW_1M ROW_4M "# Avg bus bandwidth : 9\n" RANKS
                             "1048576 262144 float sum -1 90.00 11.65 17.48 0 90.00 11.65 17.48 0\n"
                             "16777216 4194304 float sum -1 400.0 41.94 62.91 0 400.0 41.94 62.91 0\n");
    assert_int_equal(c.n_devices, 4); /* not 8: its ranks are those of before */
    assert_int_equal(c.n_measurements, 3);
    assert_close(c.measurements[0].time_us, (84.50 + 90) / 2, 1e-12);
    assert_true(noted(&notes, "file.txt: 2 runs, whose times agree: the median of each size"));
    cluster_release(&c);
    notes.first = notes.last = NULL;
    /* The ranks of a later run count if the first lists none; one table is one run. */
    READ(&none, &c, HEADING ROW_1M RANKS ROW_1M ROW_1M);
    assert_int_equal(c.n_devices, 4);
    assert_true(noted(&notes, "2 runs, whose"));
    cluster_release(&c);
    notes.first = notes.last = NULL;
    READ(&none, &c, RANKS HEADING ROW_1M ROW_1M);
    assert_false(noted(&notes, "runs"));
    cluster_release(&c);
}

/* Two runs of 4 ranks at random sizes, whose times are a tenth or a third apart: refused where the latter are a quarter
 * of them or more. */
static void runs_whose_times_differ_are_refused(void **state) {
    (void)state;
    struct rng rng;
    size_t n_refused = 0;
    const struct import_settings rates = {.nic_gbit_per_s = 1, .device_link_gbyte_per_s = 1};
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 300; round++) {
        enum { SIZES = 12 };
        const size_t n = 1 + rng_below(&rng, SIZES);
        size_t apart = 0;
        const char *runs[2] = {RANKS, RANKS};
        for (size_t i = 0; i < n; i++) {
            const unsigned long bytes = 1024ul << i;
            const bool far = rng_below(&rng, 4) == 0, slower = rng_below(&rng, 2);
            const double first = 100 + (double)rng_below(&rng, 900), factor = far ? 1.34 : 1.1;
            const double times[2] = {first, slower ? first * factor : first / factor};
            apart += far;
            for (size_t r = 0; r < 2; r++) {
                const double alg = (double)bytes / times[r] / 1e3;
                runs[r] = arena_printf(&arena, "%s%lu %lu float sum -1 %.4f %.2f %.2f 0 N/A N/A N/A N/A\n", runs[r],
                                       bytes, bytes / 4, times[r], alg, alg * 1.5);
            }
        }
        const char *const texts[] = {arena_printf(&arena, "%s%s", runs[0], runs[1]), NULL};
        struct error err = {0};
        struct cluster c = {0};
        const enum status st = import_cluster_texts(texts, &rates, &notes, &c, &err);
        const bool refused = apart && 4 * apart >= n;
        assert_int_equal(st, refused ? ST_INVALID : ST_OK);
        assert_true(!refused ||
                    strstr(ERROR_TEXT(&err), "runs that differ; give the log of one, or each as a log of its"));
        cluster_release(&c);
        n_refused += refused;
    }
    assert_true(n_refused > 30 && n_refused < 270);
}

static void rows_alone_are_enough_beside_hosts(void **state) {
    (void)state;
    struct cluster c;
    READ(&((struct import_settings){.devices = 4}), &c, "alpha slots=2\nbeta:2\n", ROW_1M ROW_4M);
    assert_int_equal(c.n_measurements, 2);
    assert_int_equal(c.measurements[0].devices, 4);
    cluster_release(&c);
}

#define JSON_PART "{\"time\":84.5,\"alg_bw\":12.41,\"bus_bw\":18.61,\"nwrong\":null}"
#define JSON_LOG(part)                                                                                                 \
    "{\"version\":2,\"args\":[\"x\"],\"config\":{\"nthreads\":1,\"ngpus\":2,\"devices\":["                             \
    "{\"rank\":0,\"hostname\":\"alpha\",\"device_info\":\"NVIDIA H100\"},"                                             \
    "{\"rank\":2,\"hostname\":\"beta\",\"device_info\":\"NVIDIA H100\"}]},\"results\":["                               \
    "{\"size\":1048576,\"count\":262144,\"type\":\"float\",\"redop\":\"sum\",\"root\":\"-1\",\"out_of_place\":null,"   \
    "\"in_place\":" part ",\"actual_iterations\":20}]}"

static void the_json_of_nccl_tests_tells_the_same(void **state) {
    (void)state;
    struct cluster c;
    READ(&none, &c, JSON_LOG(JSON_PART));
    assert_int_equal(c.n_nodes, 2);
    assert_int_equal(c.nodes[1].devices, 2);
    assert_string_equal(c.nodes[1].device, "NVIDIA H100");
    assert_int_equal(c.measurements[0].devices, 4);
    assert_close(c.measurements[0].time_us, 84.5, 0);
    cluster_release(&c);
}

static void osu_tables_give_the_curve_and_the_nics(void **state) {
    (void)state;
    struct cluster c;
    READ(&((struct import_settings){.devices = 2}), &c, "# two\nn1\nn2 max_slots=4 # here\n",
         "# OSU MPI Allreduce Latency Test v5.6.2\n# Size       Avg Latency(us)   Min Latency(us)\n"
         "4                       2.61  1\n1048576   1500.25    1\n",
         "# OSU MPI-CUDA Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size    Latency (us)\n0  1.50\n1 1.75\n"
         "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n1 2.0\n1048576 1175.5\n2097152 1100\n");
    assert_int_equal(c.n_nodes, 2);
    assert_int_equal(c.n_devices, 2);
    assert_close(c.nodes[0].nic_gbit_per_s, 9.404, 1e-12);
    assert_close(c.nodes[0].nic_latency_us, 1.5, 0);
    assert_int_equal(c.n_measurements, 2);
    assert_close(c.measurements[1].time_us, 1500.25, 0);
    cluster_release(&c);
}

static void a_resource_spec_lists_nodes(void **state) {
    (void)state;
    struct cluster c;
    READ(&((struct import_settings){.device_link_gbyte_per_s = 10}), &c,
         "# comment\nnodes:\n  - address: 10.0.0.1\n    gpus: [0, 1, 2]\n    chief: true\n    network_bandwidth: 40\n"
         "  - address: 'ten'\n    cpus: [0]\n    ssh_config: conf\n    network_bandwidth: 25.5\n"
         "ssh:\n  conf: {username: root, port: 12345}\n");
    assert_int_equal(c.n_nodes, 2);
    assert_string_equal(c.nodes[0].name, "10.0.0.1");
    assert_int_equal(c.nodes[0].devices, 3);
    assert_string_equal(c.nodes[0].device, "gpu");
    assert_close(c.nodes[0].nic_gbit_per_s, 40, 0);
    assert_string_equal(c.nodes[1].device, "cpu");
    assert_close(c.nodes[1].nic_gbit_per_s, 25.5, 0);
    cluster_release(&c);
}

static void slurm_nodes_have_gpus_or_one_processor(void **state) {
    (void)state;
    struct cluster c;
    READ(&((struct import_settings){.nic_gbit_per_s = 100, .device_link_gbyte_per_s = 10, .name = "s"}), &c,
         "NodeName=g1 Arch=x86_64 CoresPerSocket=64\n   OS=Linux 5.4 #1 SMP\n   Gres=gpu:a100:4(S:0,1),nic:2\n"
         "   State=IDLE ThreadsPerCore=2\n\n"
         "NodeName=g2 Gres=gpu:2\n   State=ALLOCATED+PLANNED\n\nNodeName=c1 Gres=(null)\n   State=MIXED\n\n"
         "NodeName=g3 Gres=gpu:a100:4\n   State=IDLE+DRAIN\n\nNodeName=g4 Gres=gpu:a100:4\n   State=DOWN*\n");
    assert_string_equal(c.name, "s");
    assert_int_equal(c.n_nodes, 3);
    assert_int_equal(c.nodes[0].devices, 4);
    assert_string_equal(c.nodes[0].device, "a100");
    assert_int_equal(c.nodes[1].devices, 2);
    assert_int_equal(c.nodes[2].devices, 1);
    assert_string_equal(c.nodes[2].device, "cpu");
    assert_true(noted(&notes, "2 nodes that are down"));
    cluster_release(&c);
}

/* What Gres= does not say, CfgTRES= does; what it says counts. */
static void slurm_nodes_without_gres_have_the_gpus_of_their_tres(void **state) {
    (void)state;
    static const struct {
        const char *words;
        uint32_t devices;
        const char *device;
    } nodes[] = {
        {"CfgTRES=cpu=64,mem=515000M,billing=64,gres/gpu=4", 4, "gpu"},
        {"CfgTRES=cpu=64,mem=515000M,billing=64,gres/gpu=8,gres/gpu:h100=8 AllocTRES=gres/gpu=2", 8, "h100"},
        {"CfgTRES=cpu=64,gres/gpu:v100=2", 2, "v100"},
        {"CfgTRES=cpu=64,gres/gpu:v100=2,gres/gpu:a100=3", 5, "a100"},
        {"Gres=(null) CfgTRES=cpu=64,gres/gpu=3", 3, "gpu"},
        {"CfgTRES=cpu=64,gres/gpu=3 Gres=gpu:a100:2", 2, "a100"},
        {"CfgTRES=cpu=64,gres/gpumem=80,gres/nic=4", 1, "cpu"},
        {"CfgTRES=cpu=64,gres/gpu=0", 1, "cpu"},
        {"CfgTRES=", 1, "cpu"},
        {"", 1, "cpu"},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct cluster c;
        READ(&((struct import_settings){.nic_gbit_per_s = 100, .device_link_gbyte_per_s = 10}), &c,
             arena_printf(&arena,
                          "NodeName=a CfgTRES=gres/gpu:k80=7\n   State=IDLE\nNodeName=b\n   %s\n   State=IDLE\n",
                          nodes[i].words));
        assert_int_equal(c.n_nodes, 2);
        assert_int_equal(c.nodes[0].devices, 7);
        assert_string_equal(c.nodes[0].device, "k80");
        assert_int_equal(c.nodes[1].devices, nodes[i].devices);
        assert_string_equal(c.nodes[1].device, nodes[i].device);
        cluster_release(&c);
    }
}

static const char matrix[] = "\t\033[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\033[0m\n"
                             "GPU0\t X \tNV12\tNV4\tSYS\t0-31\t0\nGPU1\tNV12\t X \tNV12\tPXB\t0-31\t0\n"
                             "GPU2\tNV4\tNV12\t X \tPXB\t0-31\t0\nNIC0\tSYS\tPXB\tPXB\t X \n\nLegend:\n  X = Self\n";

static void a_topology_tells_devices_and_nvlinks_of_each_node(void **state) {
    (void)state;
    struct cluster c;
    READ(&((struct import_settings){.nic_gbit_per_s = 100}), &c, "n1\nn2\n", matrix);
    assert_int_equal(c.n_nodes, 2);
    assert_int_equal(c.nodes[1].devices, 3);
    assert_close(c.nodes[1].device_link_gbyte_per_s, 100, 0);
    assert_true(noted(&notes, "device_link_gbyte_per_s 100 is an estimate from NVLinks"));
    cluster_release(&c);
    READ(&((struct import_settings){.nic_gbit_per_s = 100}), &c, matrix);
    assert_int_equal(c.n_nodes, 1);
    assert_int_equal(c.n_devices, 3);
    cluster_release(&c);
}

static void hosts_may_be_written_in_several_ways(void **state) {
    (void)state;
    struct cluster c;
    READ(&((struct import_settings){.nic_gbit_per_s = 100, .device_link_gbyte_per_s = 1}), &c,
         "a slots=4\n\nb:2 # two\nc\nd\nd\r\nd\na slots=2 max_slots=8");
    const uint32_t devices[] = {6, 2, 1, 3};
    assert_int_equal(c.n_nodes, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(c.nodes[i].devices, devices[i]);
    cluster_release(&c);
}

#define CLUSTER                                                                                                        \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"ours\",\"nodes\":[{\"name\":\"n\",\"count\":4,"                    \
    "\"nic_gbit_per_s\":7}],\"runtime\":{\"push_us\":3},\"measurements\":[{\"operation\":\"push\",\"bytes\":1,"        \
    "\"time_us\":1},{\"operation\":\"all_reduce\",\"algorithm\":\"ring\",\"devices\":4,\"bytes\":64,\"time_us\":5},"   \
    "{\"operation\":\"all_reduce\",\"devices\":4,\"bytes\":64,\"time_us\":6}]}"

static void a_log_adds_its_curve_to_a_cluster_file(void **state) {
    (void)state;
    struct cluster c;
    READ(&none, &c, CLUSTER, RANKS "4096 1024 float sum -1 9 0.3 0.45 0 10 0.4 0.60 0\n");
    assert_string_equal(c.name, "ours");
    assert_int_equal(c.n_nodes, 4);
    assert_close(c.nodes[0].nic_gbit_per_s, 7, 0);
    assert_close(c.runtime.push_us, 3, 0);
    assert_int_equal(c.n_measurements, 3);
    assert_int_equal(c.measurements[0].algorithm, ALGORITHM_auto);
    assert_int_equal(c.measurements[0].bytes, 4096);
    assert_int_equal(c.measurements[1].algorithm, ALGORITHM_ring);
    assert_true(noted(&notes, "only measurements are added"));
    cluster_release(&c);
}

#define ONE_NODE_LOG                                                                                                   \
    "#  Rank  0 Group  0 Pid 43 on alpha device  0 [0x0f] NVIDIA A100\n"                                               \
    "#  Rank  1 Group  0 Pid 44 on alpha device  1 [0x15] NVIDIA A100\n"                                               \
    "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"                                  \
    "1048576 262144 float sum -1 85.58 12.25 12.25 0 84.50 12.41 12.41 0\n"

/* Whatever describes a lone node, with all that it needs but the rate of a NIC. */
static void one_node_needs_no_nic(void **state) {
    (void)state;
    static const char note[] = "one node: nothing crosses its NIC, whose rate no file tells; nic_gbit_per_s 1 stands";
    const struct import_settings linked = {.device_link_gbyte_per_s = 50};
    const struct {
        const char *text;
        const struct import_settings *settings;
        uint32_t devices;
        double link;
    } files[] = {
        {ONE_NODE_LOG, &none, 2, 12.41},
        {"nodes:\n  - address: 10.0.0.1\n    gpus: [0, 1, 2]\n", &linked, 3, 50},
        {"nodes:\n  - address: 10.0.0.1\n    gpus: [0]\n", &none, 1, 0},
        {"NodeName=g2 Gres=gpu:4\n   State=IDLE\n", &linked, 4, 50},
        {"alpha slots=2\n", &linked, 2, 50},
        {"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X\tNV4\nGPU1\tNV4\t X\n", &none, 2, 100},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct cluster c;
        notes.first = notes.last = NULL;
        READ(files[i].settings, &c, files[i].text);
        assert_int_equal(c.n_nodes, 1);
        assert_int_equal(c.n_devices, files[i].devices);
        assert_close(c.nodes[0].device_link_gbyte_per_s, files[i].link, 0);
        assert_true(noted(&notes, note));
        cluster_release(&c);
    }
    struct cluster c;
    notes.first = notes.last = NULL;
    READ(&((struct import_settings){.nic_gbit_per_s = 25}), &c, ONE_NODE_LOG);
    assert_close(c.nodes[0].nic_gbit_per_s, 25, 0);
    assert_false(noted(&notes, "one node"));
    cluster_release(&c);
}

static void refused_texts(const char *const *texts, const struct import_settings *settings, enum status status,
                          const char *part) {
    struct error err;
    struct cluster c;
    assert_fails(import_cluster_texts(texts, settings, &notes, &c, &err), status, part);
}

#define REFUSED(settings, status, part, ...)                                                                           \
    refused_texts((const char *const[]){__VA_ARGS__, NULL}, settings, status, part)
#define BAD(text, part) REFUSED(&none, ST_INVALID, part, text)

static void bad_rows_are_refused_with_their_line(void **state) {
    (void)state;
    BAD(RANKS "4096 1024 float sum -1 9 0.3 0.45 0 10 0.4 0.60\n", "file.txt:7: a row of 12 columns");
    BAD(RANKS "4096 1024 float sum -1 9 0.3 0.45\n", "file.txt:7: a row of 8 columns");
    BAD(RANKS "4096 1024 float sum -1 9 0.3 0.45 0 ten 0.4 0.60 0\n", "file.txt:7: time \"ten\" is not a number");
    BAD(RANKS "4096 1024 float sum -1 9 0.3 0.45 0 10 0.4 0.60 3\n", "file.txt:7: 3 wrong sums");
    BAD(RANKS "4096 256 float sum -1 9 0.3 0.45 0 10 0.4 0.60 0\n", "4096 bytes are not 256 elements of float");
    BAD(RANKS "4096 1024 float sum -1 9 10 7.5 0 10 10 7.5 0\n", "is not 2(n-1)/n of 10 for 4 ranks");
    BAD(RANKS "4096 1024 float max -1 9 0.3 0.45 0 10 0.4 0.60 0\n", "file.txt: no row of a sum");
    BAD(RANKS "0 0 float sum -1 0 0 0 0 0 0 0 0\n", "file.txt: no row of a sum");
    BAD("# size count type redop cputime algbw busbw\n", "file.txt:1: times of the processor");
    BAD("algbw busbw\n4096 1024 float sum 9 0.3 0.45 0 10 0.4 0.60 0\n", "give --devices");
    BAD(JSON_LOG("{\"cpu_time\":1,\"bus_bw\":1}"), "/results/0/in_place/cpu_time");
    BAD(JSON_LOG("{\"time\":1,\"bus_bw\":1}"), "/results/0/in_place");
    BAD(JSON_LOG("{\"time\":1,\"alg_bw\":1,\"bus_bw\":1.5,\"nwrong\":2}"), "2 wrong sums");
    BAD("{\"bus_bw\":1}", "file.txt: ");
    BAD("[\"algbw\", \"busbw\"]", "file.txt: ");
}

static void runs_of_other_ranks_or_collectives_are_refused(void **state) {
    (void)state;
    BAD(RANKS ROW_1M HEADING "1048576 262144 float sum -1 170 6.17 9.25 0 169 6.20 9.31 0\n",
        "file.txt:9: 1048576 bytes took 169 us, and 84.5 us in the run before (line 7): runs that differ; give the log "
        "of");
    BAD(RANKS ROW_1M "# Rank 0 Pid 1 on alpha device 0 [0] A\n# Rank 1 Pid 1 on alpha device 1 [1] A\n" HEADING
                     "1048576 262144 float sum -1 85 12.3 12.3 0 85 12.3 12.3 0\n",
        "file.txt:8: a run of 2 ranks behind one of 4; give each as a log of its own");
    BAD(RANKS ROW_1M "# Rank 0 Pid 1 on alpha device 0 [0] A\n# Rank 1 Pid 1 on alpha device 1 [1] A\n"
                     "# Rank 2 Pid 1 on gamma device 0 [0] A\n# Rank 3 Pid 1 on gamma device 1 [1] A\n" HEADING ROW_1M,
        "file.txt:8: a run on other nodes than one before; give each as a log of its own");
    BAD(RANKS ROW_1M "# Rank 0 Pid 1 on alpha device 0 [0] A\n# Rank 1 Pid 1 on beta device 1 [1] A\n"
                     "# Rank 2 Pid 1 on beta device 0 [0] A\n# Rank 3 Pid 1 on beta device 2 [1] A\n" HEADING ROW_1M,
        "file.txt:8: a run on other nodes");
    BAD(RANKS ROW_1M HEADING "4194304 1048576 float sum 0 85.58 49.01 49.01 0 85.58 49.01 49.01 0\n",
        "bus bandwidth 49.01 is not 2(n-1)/n of 49.01 for 4 ranks"); /* reduce_perf's */
    BAD(HEADING ROW_4M HEADING "16777216 4194304 float sum -1 300 55.92 97.87 0 300 55.92 97.87 0\n",
        "bus bandwidth 49.23 is not 2(n-1)/n of 32.82 for 8 ranks"); /* 4 ranks, and 8 */
}

static void other_bad_files_are_refused_with_their_line(void **state) {
    (void)state;
    BAD("# OSU MPI Broadcast Latency Test v5\n1 2\n", "file.txt:1: \"MPI Broadcast Latency");
    BAD("# OSU MPI Latency Test v5\n", "file.txt: a title without rows");
    BAD("# OSU MPI Latency Test v5\n# Size\n1 x\n", "file.txt:3: value \"x\"");
    BAD("# OSU MPI Latency Test v5\n1\n", "file.txt:2: a row of one column");
    BAD("nodes:\n  - address: a\n    gpu: [0]\n", "file.txt:3: a node has address");
    BAD("nodes:\n  - gpus: [0]\n    # address:\n", "file.txt:2: a node without an address");
    BAD("nodes:\n  - address: a\n    gpus: 3\n", "file.txt:3: a list of device numbers");
    BAD("nodes:\n  - address: a\n  - address: a\n", "file.txt:3: the same address again");
    BAD("nodes:\n  - address: a\n   gpus: [\n", "file.txt:3: not YAML");
    BAD("nodes:\n  address: a\n", "file.txt:2: \"nodes\" must be a list");
    BAD("nodes:\n  - address: a\n    network_bandwidth: fast\n", "file.txt:3: network_bandwidth is a number");
    BAD("NodeName=a State=IDLE\nNodeName=a State=IDLE\n", "file.txt:2: node \"a\" again");
    BAD("NodeName=a State=DOWN\n", "file.txt: no node that is in service");
    BAD("NodeName=a State=IDLE Gres=gpu:99\n", "file.txt:1: number of GPUs 99 is out of range");
    BAD("NodeName=a State=IDLE CfgTRES=cpu=1,gres/gpu=99\n", "file.txt:1: number of GPUs 99 is out of range");
    BAD("NodeName=a State=IDLE CfgTRES=gres/gpu:a100=x\n", "file.txt:1: number of GPUs \"x\" is not a whole number");
    BAD("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X\tNV1\nGPU1\tNVX\t X\n", "file.txt:3: \"NVX\" is no kind of link");
    BAD("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X\tNV1\n", "1 rows of GPUs under a heading of 2");
    BAD("\tGPU0\tGPU1\tCPU Affinity\nGPU0\tNV1\t X\n", "file.txt:2: \"NV1\" in column 0 of row 0");
    BAD("a slots=99\n", "file.txt:1: slots 99 is out of range");
    BAD("a slots=1 b\n", "file.txt:1: \"b\" after a host");
    BAD("hello, world\n", "of no known kind");
    BAD("", "of no known kind");
}

static void what_no_file_tells_is_asked_for(void **state) {
    (void)state;
    REFUSED(&none, ST_USAGE, "--nic-gbit-per-s", "a\nb\n");
    REFUSED(&none, ST_USAGE, "--nic-gbit-per-s", "a slots=2\nb slots=2\n", ONE_NODE_LOG);
    REFUSED(&none, ST_USAGE, "--device-link-gbyte-per-s", "a slots=2\n");
    REFUSED(&((struct import_settings){.nic_gbit_per_s = 1}), ST_USAGE, "--device-link-gbyte-per-s", "a slots=2\n");
    REFUSED(&none, ST_USAGE, "give --devices", "a\n", "# OSU MPI Allreduce Latency Test v5\n4 2\n");
    REFUSED(&none, ST_USAGE, "give a hostfile as well, a line \"HOST slots=DEVICES\" for each node, or a cluster file",
            unlisted);
    REFUSED(&((struct import_settings){.devices = 4}), ST_USAGE, "file.txt: no node is named there; give a hostfile",
            ROW_1M);
    BAD("4096 1024 float sum -1 9 0.3 0.45 0 10 0.4 0.60 0\n", "give --devices, how many took part");
    REFUSED(&none, ST_USAGE, "two cluster files", CLUSTER, CLUSTER);
    REFUSED(&((struct import_settings){.nic_gbit_per_s = 1}), ST_USAGE, "stand in its file", CLUSTER);
    REFUSED(&((struct import_settings){.devices = UINT64_C(1) << 40}), ST_USAGE, "--devices", "a\n");
    REFUSED(&((struct import_settings){.nic_gbit_per_s = -3}), ST_USAGE, "--nic-gbit-per-s -3", "a\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_NOTES(a_log_of_nccl_tests_is_a_measured_cluster),
        WITH_NOTES(every_version_of_a_row_is_read),
        WITH_NOTES(repeated_sizes_become_their_median),
        WITH_NOTES(a_log_may_hold_several_runs_that_agree),
        WITH_NOTES(runs_whose_times_differ_are_refused),
        WITH_NOTES(rows_alone_are_enough_beside_hosts),
        WITH_NOTES(unlisted_ranks_follow_from_the_rates),
        WITH_NOTES(nodes_that_cannot_have_made_a_log_are_noted),
        WITH_NOTES(the_json_of_nccl_tests_tells_the_same),
        WITH_NOTES(osu_tables_give_the_curve_and_the_nics),
        WITH_NOTES(a_resource_spec_lists_nodes),
        WITH_NOTES(slurm_nodes_have_gpus_or_one_processor),
        WITH_NOTES(slurm_nodes_without_gres_have_the_gpus_of_their_tres),
        WITH_NOTES(a_topology_tells_devices_and_nvlinks_of_each_node),
        WITH_NOTES(hosts_may_be_written_in_several_ways),
        WITH_NOTES(a_log_adds_its_curve_to_a_cluster_file),
        WITH_NOTES(one_node_needs_no_nic),
        WITH_NOTES(bad_rows_are_refused_with_their_line),
        WITH_NOTES(runs_of_other_ranks_or_collectives_are_refused),
        WITH_NOTES(other_bad_files_are_refused_with_their_line),
        WITH_NOTES(what_no_file_tells_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
