"""What NCCL's own model, from datasheets alone, says of all-reduces that others measured (../shared/data); prints ok, not ok
and skip lines. Called by published.sh with the program.

Three machines with NVLink, one of them with two nodes, and one with PCIe. Left out: an L40S machine with 4 and 8 GPUs, whose
times rise tenfold with the second pair (its README calls it an outlier), and two nodes of GCP, where a network of its own
carries TCP at 80 times what a kernel does: `syncopate import cluster` or `bench` for those.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

program, data = sys.argv[1], os.path.join(os.path.dirname(__file__), "../../../shared/data")

# The 12 sizes are powers of four from 1 KiB to 4 GiB, as far as a table has them.
SIZES = [4**k for k in range(5, 17)]


def of_configurator(name, gpus):
    """Median latency of float16 all-reduces in us, by bytes; the table's message_size counts elements."""
    with open(os.path.join(data, "all-reduce", name), encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f) if r["op_name"] == "all_reduce" and int(r["num_gpus"]) == gpus]
    return {int(r["message_size"]) * 2: float(r["latency"]) * 1e3 for r in rows if r["nccl_dtype"] == "half"}


def of_nccl_tests(name):
    """Out-of-place times in us, by bytes."""
    times = {}
    with open(os.path.join(data, "nccl-tests", name), encoding="utf-8") as f:
        for words in map(str.split, f):
            if len(words) >= 12 and words[0].isdigit() and words[2] == "float":
                times[int(words[0])] = float(words[5])
    return times


def predicted_us(cluster, size, folder):
    """Of one all-reduce: what an iteration of a model with one variable takes, less its launch."""
    model = {
        "schema": "syncopate.model/1",
        "name": "one",
        "batch_per_device": 1,
        "variables": [{"name": "v", "shape": [size // 4], "dtype": "f32"}],
        "operators": [
            {"name": "forward", "phase": "forward", "time_us": 0, "reads": ["v"]},
            {"name": "backward", "phase": "backward", "time_us": 0, "after": ["forward"], "produces": ["v"]},
        ],
    }
    cluster["runtime"] = {"message_us": 0.001}
    for name, document in ("model", model), ("cluster", cluster):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(document, f)
    paths = [os.path.join(folder, name) for name in ("model", "cluster")]
    run = subprocess.run([program, "simulate", *paths, "--baseline", "single", "--json"], capture_output=True, check=True)
    return json.loads(run.stdout)["iteration_us"]


def machine(nodes, devices, nic_gbit_per_s, link):
    node = {"name": "n", "count": nodes, "devices": devices, "nic_gbit_per_s": nic_gbit_per_s, "nic_latency_us": 5}
    node["device_link_gbyte_per_s"] = link
    return {"schema": "syncopate.cluster/1", "name": "c", "transport": "nccl", "nodes": [node]}


# Name, GPUs' link in one direction and NICs by datasheet, the table, and the largest median error.
TABLES = [
    ("two_nodes_of_8_a100", machine(2, 8, 1600, 300), lambda: of_nccl_tests("oci-bm-gpu4-2x8a100.log"), 0.2),
    ("4_h100", machine(1, 4, 400, 450), lambda: of_configurator("h100_sxm_nccl_2.27.3.csv", 4), 0.1),
    ("8_h100", machine(1, 8, 400, 450), lambda: of_configurator("h100_sxm_nccl_2.27.3.csv", 8), 0.15),
    ("4_a100", machine(1, 4, 400, 300), lambda: of_configurator("a100_sxm_nccl_2.27.3.csv", 4), 0.3),
    ("8_a100", machine(1, 8, 400, 300), lambda: of_configurator("a100_sxm_nccl_2.27.3.csv", 8), 0.3),
    ("2_l40s", machine(1, 2, 400, 32), lambda: of_configurator("l40s_nccl_2.27.3.csv", 2), 0.3),
]

for name, cluster, table, most in TABLES:
    if not os.path.isdir(data):
        print(f"skip nccl_{name}: needs ../shared/data")
        continue
    measured = table()
    with tempfile.TemporaryDirectory() as folder:
        errors = [abs(predicted_us(cluster, size, folder) / measured[size] - 1) for size in SIZES if size in measured]
    median = statistics.median(errors)
    print(f"{'ok' if len(errors) > 8 and median <= most else 'not ok'} nccl_{name}: {len(errors)} sizes, {median:.0%} off")
