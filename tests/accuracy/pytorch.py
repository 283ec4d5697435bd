#!/usr/bin/env python3
"""Predicted against measured with real PyTorch on an emulated device: networks x rates x strategies, in the lab.

    pytorch.py [NETWORK,... [RATE,... [STRATEGY,...]]]     (OUT is build/release, PYTHON has torch; needs root)

Four nodes train networks of examples/pytorch/networks.py by DistributedDataParallel and by the hook, on gloo, at rates in
Gbit/s; computing takes the time of an emulated device (examples/pytorch/device.py), so the processors are free for messages. For
each network syncopate_torch.profile writes the model, for each rate syncopate_torch.bench --idle measures the cluster,
and all predictions of a cell, a network at a rate, are written before its first iteration. Then the cell's strategies train
in turn, a block of iterations each, and the median block counts.

What is done stays in build/accuracy-pytorch. Started again, the command goes on with the cell that was cut off, so that it may
be stopped at any time; remove that folder to begin anew. The table has the cells that are there. On a quiet machine of 2
cores the five cells of 0.2 Gbit/s take 17 minutes, of 0.3 12 and of 0.5 less; no cell is begun that would probably end after
MINUTES (50).

    BLOCKS=3 ITERATIONS=4   how much is measured        KEEP=FILE   the table goes there as well (docs/accuracy-pytorch.txt)
"""
import contextlib
import io
import json
import os
import signal
import statistics
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "examples", "pytorch"))
from busy import processor_time, share_busy  # noqa: E402

SYNCOPATE = os.path.join(ROOT, os.environ.get("OUT", "build/release"), "bin", "syncopate")
FOLDER = os.path.join(ROOT, "build", "accuracy-pytorch")
LAB, NODES, DEVICE_MS, MOST_BYTES = "accuracy-pytorch", 4, 200, 8 << 20
NETWORKS = "plain,batchnorm,recurrent,tied,sparse"
RATES = "0.2,0.3,0.5"
# "ddp" is DistributedDataParallel as it comes, "ddp-X" with bucket_cap_mb=X; the others are baselines, by the hook.
STRATEGIES = ("ddp,ddp-0.5,ddp-2,wfbp,single,mg-wfbp,horovod,pace,tictac,bytescheduler-all-reduce,"
              "ps-load-balanced,byteps,bytescheduler-ps,p3,parallax")
BLOCKS, ITERATIONS, WARMUP = (os.environ.get(n, d) for n, d in (("BLOCKS", "3"), ("ITERATIONS", "4"), ("WARMUP", "2")))
LONGEST_S, LIMIT_S = 600, 60 * float(os.environ.get("MINUTES", "50"))


def say(text):
    print(text, file=sys.stderr, flush=True)


def at(name):
    return os.path.join(FOLDER, name)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def store(path, value):
    """All of it or nothing, as a run may be cut off."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(path + ".part", path)


def syncopate(*arguments):
    return subprocess.run([SYNCOPATE, *arguments, "--log", "error"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=LONGEST_S)


def python_with_torch():
    for python in filter(None, (os.environ.get("PYTHON"), sys.executable, "/usr/bin/python3")):
        if not subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
            return python
    raise SystemExit("accuracy-pytorch: needs PyTorch: PYTHON=... make accuracy-pytorch, or Debian's python3-torch")


PYTHON = python_with_torch()


def ranks(*arguments):
    """On every node. Fails with what was said."""
    started = subprocess.Popen([os.path.join(ROOT, "examples", "pytorch", "ranks"), LAB, str(NODES), PYTHON, *arguments],
                               env={**os.environ, "SYNCOPATE": SYNCOPATE, "PYTHONWARNINGS": "ignore"},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = started.communicate(timeout=LONGEST_S)
    except BaseException:
        started.terminate()  # it ends the ranks
        started.wait(10)
        raise
    if started.returncode:
        raise SystemExit("accuracy-pytorch: %s ended with %d:\n%s" % (arguments[0], started.returncode, said[-2000:]))


# ---- what is predicted and what is run ----

def prepared(name, model_path, cluster_path):
    """(how it is run or why it is not, what is predicted)"""
    if name == "ddp":
        which, how = ("--baseline", "pytorch-ddp"), {"ddp": {}}
    elif name.startswith("ddp-"):
        which, how = ("--bucket-mib", name[4:]), {"ddp": {"bucket_cap_mb": float(name[4:])}}
    else:
        which = ("--baseline", name)
        made = syncopate("strategy", "export", name, "--model", model_path, "--cluster", cluster_path, "--to", "pytorch-hook",
                         "--strict")
        if made.returncode:
            return made.stderr.strip().split("\n")[-1].replace("syncopate: error: ", ""), None
        how = {"hook": json.loads(made.stdout)}
    predicted = syncopate("simulate", model_path, cluster_path, *which, "--json")
    if predicted.returncode:
        return predicted.stderr.strip(), None
    return how, json.loads(predicted.stdout)["iteration_us"]


# ---- a cell ----

def busy_for(seconds):
    """How busy the processors are, from 0 to 1."""
    before = processor_time()
    time.sleep(seconds)
    return share_busy(before)


def describe(rate):
    """The lab of this rate is up, and its cluster is measured."""
    plain, measured = at("lab-%s.json" % rate), at("measured-%s.json" % rate)
    store(plain, {"schema": "syncopate.cluster/1", "name": LAB,
                  "nodes": [{"name": "n", "count": NODES, "devices": 1, "device": "cpu", "nic_gbit_per_s": float(rate),
                             "nic_latency_us": 50, "device_link_gbyte_per_s": 12}]})
    syncopate("lab", "down", LAB)  # one that an earlier run left
    up = syncopate("lab", "up", plain)
    if up.returncode:
        raise SystemExit("accuracy-pytorch: " + up.stderr.strip())
    if not os.path.exists(measured):
        disturbed = busy_for(3)
        say("before the bench at %s Gbit/s others keep the processors %.0f%% busy%s" % (
            rate, 100 * disturbed, "; predictions will be too high" if disturbed > 0.2 else ""))
        store(at("disturbed-%s.json" % rate), disturbed)
        ranks("-m", "syncopate_torch.bench", plain, "--out", measured, "--idle", "--max-bytes", str(MOST_BYTES))
    return measured


def profiled(network):
    model = at(network + ".json")
    if not os.path.exists(model):
        ranks(os.path.join(ROOT, "examples", "pytorch", "train.py"), "--network", network, "--device-ms", str(DEVICE_MS),
              "--profile", model)
    return model


def run(network, rate, strategies, measured):
    """A row for each strategy: predicted, then run."""
    cell, model = "%s-%s" % (network, rate), profiled(network)
    ways = {name: prepared(name, model, measured) for name in strategies}
    store(at(cell + "-ways.json"), {name: how for name, (how, us) in ways.items() if us})
    ranks(os.path.join(ROOT, "tests", "accuracy", "pytorch_rank.py"), at(cell + "-ways.json"), at(cell + "-found.json"),
          "--network", network, "--device-ms", str(DEVICE_MS), "--blocks", BLOCKS, "--iterations", ITERATIONS,
          "--warmup", WARMUP)
    found, rows = load(at(cell + "-found.json")), []
    for name, (how, us) in ways.items():
        row = {"network": network, "rate": rate, "strategy": name, "predicted_us": us}
        if name in found["block_us"]:
            row.update(block_us=found["block_us"][name], busy=statistics.mean(found["busy"][name]))
        else:
            row["refused"] = found["refused"].get(name, how)
        rows.append(row)
    return rows


# ---- the table ----

def quantile(ordered, share):
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def table(rows):
    measured = {}
    print("NETWORK    GBIT/S  STRATEGY                   PREDICTED   MEASURED    ERROR  BLOCKS                PROCESSORS")
    for row in rows:
        head = "%-10s %6s  %-25s " % (row["network"], row["rate"], row["strategy"])
        if "refused" in row:
            print(head + " refused: " + row["refused"])
            continue
        predicted, blocks = row["predicted_us"], sorted(row["block_us"])
        us = statistics.median(blocks)
        measured.setdefault((row["network"], row["rate"]), []).append((predicted, us))
        print(head + "%7.0f ms %7.0f ms  %+6.1f%%  %6.0f .. %-6.0f            %5.0f%%" % (
            predicted / 1e3, us / 1e3, 100 * (predicted / us - 1), blocks[0] / 1e3, blocks[-1] / 1e3, 100 * row["busy"]))
    errors = sorted(abs(p / us - 1) for cell in measured.values() for p, us in cell)
    pairs = [(a[0] - b[0]) * (a[1] - b[1]) > 0 for cell in measured.values() for i, a in enumerate(cell) for b in cell[:i]
             if max(a[1], b[1]) / min(a[1], b[1]) > 1.05]
    if errors:
        print("\n%d runs: error %.1f%% in the median, %.1f%% at the 90th percentile, %.1f%% at most" % (
            len(errors), 100 * statistics.median(errors), 100 * quantile(errors, 0.9), 100 * errors[-1]))
    if pairs:
        print("of %d pairs in a cell that are over 5%% apart %.1f%% are ordered as predicted" % (
            len(pairs), 100 * statistics.mean(pairs)))


def measure(networks, rates, strategies):
    """The rows of all cells that are there, after those that are not were run while time lasts."""
    began, longest, every = time.monotonic(), 0, []
    for rate in rates:
        measured = None
        for network in networks:
            kept, passed = at("cell-%s-%s.json" % (network, rate)), time.monotonic() - began
            if not os.path.exists(kept):
                if passed + longest > LIMIT_S:
                    say("%s at %s Gbit/s: not begun, %.0f minutes are over; call again to go on" % (network, rate, passed / 60))
                    continue
                measured = measured or describe(rate)
                store(kept, run(network, rate, strategies, measured))
                longest = max(longest, time.monotonic() - began - passed)
                say("%s at %s Gbit/s: %.0f s since the start" % (network, rate, time.monotonic() - began))
            every += load(kept)
    return every


def benches(rates):
    """How quiet the machine was when the clusters were measured, which every prediction rests on."""
    there = [(rate, at("disturbed-%s.json" % rate)) for rate in rates if os.path.exists(at("disturbed-%s.json" % rate))]
    print("processors busy before the bench: " + ", ".join("%.0f%% at %s Gbit/s" % (100 * load(p), r) for r, p in there))


def main():
    given = sys.argv[1:] + [""] * 3
    networks, rates, strategies = (chosen.split(",") for chosen in (
        given[0] or NETWORKS, given[1] or RATES, given[2] or STRATEGIES))
    os.makedirs(FOLDER, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        every = measure(networks, rates, strategies)
    finally:
        syncopate("lab", "down", LAB)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        table(every)
        benches(rates)
    for path in filter(None, (at("table.txt"), os.environ.get("KEEP"))):
        with open(path, "w", encoding="utf-8") as file:
            file.write("$ make accuracy-pytorch\n" + text.getvalue())
    print(text.getvalue(), end="")


if __name__ == "__main__":
    main()
