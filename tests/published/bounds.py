"""How far measured iterations of ResNet-50 are above the lower bound of the clusters that ran them.

    bounds.py SYNCOPATE TABLE [MOST]

TABLE is resnet50-v100.csv of shared/data/throughputs. Clusters are described by datasheets alone: four V100 a node on PCIe,
and rate and latency of the network; under parameter servers as many server nodes. Operator times are scaled to the
published rate of one GPU. Prints the median, least and largest ratio; exits 1 where the median is above MOST."""
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile

NETWORKS = {"10GbE": (10, 30), "100GbE": (100, 25), "100GbIB": (100, 5)}  # Gbit/s, us
GPUS_A_NODE = 4
COPIED_CELLS = {("100GbE", "BSP-PS"), ("100GbE", "WFBP-PS")}  # equal the 10GbE rows: a slip of the table


def scaled_model(batch, images_per_s):
    generate = [sys.executable, "examples/generate/generate.py", "--print", "resnet50", "--batch", str(batch)]
    model = json.loads(subprocess.run(generate, capture_output=True, text=True, check=True).stdout)
    scale = batch / images_per_s * 1e6 / sum(o["time_us"] for o in model["operators"])
    for operator in model["operators"]:
        operator["time_us"] *= scale
    return model


def described_cluster(network, gpus, servers):
    gbit_per_s, latency_us = NETWORKS[network]
    node = {"name": "w", "count": gpus // GPUS_A_NODE, "devices": GPUS_A_NODE, "device": "v100"}
    node.update(nic_gbit_per_s=gbit_per_s, nic_latency_us=latency_us, device_link_gbyte_per_s=12)
    nodes = [node] + ([dict(node, name="s", devices=0)] if servers and gpus > GPUS_A_NODE else [])
    return {"schema": "syncopate.cluster/1", "name": "published", "nodes": nodes}


def bound_us(program, folder, model, cluster):
    paths = [os.path.join(folder, name) for name in ("model.json", "cluster.json")]
    for path, value in zip(paths, (model, cluster)):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
    command = [program, "simulate", *paths, "--baseline", "wfbp", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["lower_bound_us"]


def ratios(program, table):
    with open(table, encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if (r["network"], r["method"]) not in COPIED_CELLS]
    known = {}
    with tempfile.TemporaryDirectory() as folder:
        for r in rows:
            batch, gpus, servers = int(r["batch_per_gpu"]), int(r["gpus"]), r["method"].endswith("-PS")
            key = batch, float(r["one_gpu_images_per_s"]), r["network"], gpus, servers
            if key not in known:
                cluster = described_cluster(r["network"], gpus, servers)
                known[key] = bound_us(program, folder, scaled_model(*key[:2]), cluster)
            yield gpus * batch / float(r["images_per_s"]) * 1e6 / known[key]


def main():
    found = list(ratios(sys.argv[1], sys.argv[2]))
    median = statistics.median(found)
    print(f"{len(found)} cells: measured over bound {median:.2f} in the median, {min(found):.2f} to {max(found):.2f}")
    sys.exit(len(sys.argv) > 3 and median > float(sys.argv[3]))


main()
