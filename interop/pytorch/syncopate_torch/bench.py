"""What all-reduces cost through torch.distributed on this cluster, as a cluster file for syncopate.

    torchrun ... -m syncopate_torch.bench CLUSTER.json --out measured.json [--max-bytes 16777216] [--busy]

on every rank, as the job is started: with the same backend and the same network settings, so that what is measured is
what the job will use. CLUSTER.json describes nodes and NICs; its transport becomes the backend, and its measurements and
runtime are replaced by
  - all_reduce: the median time of one all-reduce, alone, by bytes
  - message_us: what a small one adds when many are started at once
  - coordination_us: a word from rank 0 to all others, as under policy priority; by the job's backend, while hook.py
    always sends it by gloo
  - copy_gbyte_per_s: putting gradients into a message
Under --busy each rank computes in a second thread meanwhile, as a job does on processors that also communicate.
Times are rank 0's; every rank takes part in every measurement.
"""

import argparse
import json
import os
import sys
import threading
import time

import torch
import torch.distributed as dist

from .description import check_writable, write
from .lanes import lanes_of
from .profile import median

LEAST, MOST, ENOUGH_S = 3, 25, 1.0  # repetitions, and the time after which LEAST suffice


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


MANY = 32
CALLS = 4  # one after the other in one measurement, so that ranks that leave the barrier late cost less


def timed(action, device):
    """Median time of one call in seconds. All ranks repeat as often as rank 0 finds right."""
    seconds, go_on = [], torch.ones(1, device=device)
    for _ in range(2):
        action()
    while go_on.item():
        dist.barrier()
        start = time.perf_counter()
        for _ in range(CALLS):
            action()
        synchronize(device)
        seconds.append((time.perf_counter() - start) / CALLS)
        enough = len(seconds) >= MOST or (len(seconds) >= LEAST and CALLS * sum(seconds) > ENOUGH_S)
        go_on.fill_(not enough)
        dist.broadcast(go_on, 0)
    return median(seconds)


def all_reduces(most_bytes, device):
    """Measurements of schema syncopate.cluster/1. Sizes are powers of 4 from 1 KiB, and the largest."""
    sizes = [1024]
    while sizes[-1] * 4 < most_bytes:
        sizes.append(sizes[-1] * 4)
    out = []
    for size in [*sizes, most_bytes]:
        tensor = torch.zeros(size // 4, device=device)
        us = timed(lambda: dist.all_reduce(tensor), device) * 1e6
        out.append(
            {
                "operation": "all_reduce",
                "algorithm": "ring",
                "devices": dist.get_world_size(),
                "bytes": size // 4 * 4,
                "time_us": round(us, 1),
            }
        )
        say(f"  all-reduce of {size // 4 * 4} bytes: {us:.0f} us")
    return out


def message_us(device):
    """Many small all-reduces are started at once: their time, divided by their number."""
    lanes, words = lanes_of(dist.group.WORLD, cross=True), torch.zeros(MANY, 1024, device=device)

    def all_at_once():
        works = [dist.all_reduce(w, group=lanes[i % len(lanes)], async_op=True) for i, w in enumerate(words)]
        for work in works:
            work.wait()

    return timed(all_at_once, device) / MANY * 1e6


def copy_gbyte_per_s(device):
    source, target, took = torch.ones(1 << 22, device=device), torch.ones(1 << 22, device=device), []
    for _ in range(10):
        synchronize(device)
        start = time.perf_counter()
        torch.div(source, 2, out=target)
        synchronize(device)
        took.append(time.perf_counter() - start)
    return (16 << 20) / median(took) / 1e9


def word_us(device):
    """The time of one word from rank 0 to all others: half of the time until all have answered."""
    there, back = torch.zeros(1, device=device), torch.zeros(1, device=device)

    def both():
        dist.broadcast(there, 0)
        dist.all_reduce(back)

    return timed(both, device) / 2 * 1e6


class Busy:
    """A thread that computes while this is entered."""

    def __enter__(self):
        self.ends = False
        self.thread = threading.Thread(target=self._compute, daemon=True)
        self.thread.start()

    def _compute(self):
        layer, x = torch.nn.Conv2d(64, 64, 3, padding=1), torch.randn(8, 64, 32, 32)
        while not self.ends:
            layer(x).sum().backward()

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()


def say(text):
    if dist.get_rank() == 0:
        print(text, file=sys.stderr, flush=True)


def measure(description, most_bytes, device):
    """The description with what was measured."""
    runtime = dict(description.get("runtime", {}))
    runtime["message_us"] = round(message_us(device), 1)
    runtime["coordination_us"] = round(word_us(device), 1)
    runtime["copy_gbyte_per_s"] = round(copy_gbyte_per_s(device), 2)
    say("  " + ", ".join(f"{name} {value}" for name, value in runtime.items()))
    out = {k: v for k, v in description.items() if k not in ("collectives", "measurements", "runtime")}
    if dist.get_backend() in ("nccl", "gloo", "mpi"):
        out["transport"] = dist.get_backend()  # what is not measured is typical of it
    return {**out, "runtime": runtime, "measurements": all_reduces(most_bytes, device)}


def refuse(why, rank=os.environ.get("LOCAL_RANK", os.environ.get("RANK", "0"))):
    """End this rank with an error. Only rank 0 (of its host, unless `rank` is given) prints why."""
    raise SystemExit(f"syncopate_torch.bench: {why}" if str(rank) == "0" else 1)


def read_cluster(path):
    """The description, and how many devices it has."""
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
        return description, sum(node.get("count", 1) * node.get("devices", 1) for node in description["nodes"])
    except OSError as problem:
        refuse(f"{path}: {problem.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError):
        refuse(f"{path}: is no cluster file; `syncopate import cluster` makes one")


def main():
    about = "Measure what all-reduces of torch.distributed cost on a cluster, one rank a device, into its description."
    parser = argparse.ArgumentParser(prog="python3 -m syncopate_torch.bench", description=about)
    parser.add_argument("cluster", help="a cluster file: nodes and their NICs")
    parser.add_argument("--out", required=True, help="where the cluster file with measurements goes (rank 0)")
    parser.add_argument("--max-bytes", type=int, default=16 << 20)
    parser.add_argument("--busy", action="store_true", help="compute meanwhile, as a job on the same processors does")
    parser.add_argument("--backend", default="nccl" if torch.cuda.is_available() else "gloo")
    options = parser.parse_args()
    if options.max_bytes < 4096:
        parser.error("--max-bytes must be at least 4096")
    description, devices = read_cluster(options.cluster)
    device = torch.device("cuda", torch.cuda.current_device()) if options.backend == "nccl" else torch.device("cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    if dist.get_rank() == 0:
        check_writable(options.out)
    if dist.get_world_size() != devices:
        refuse(f"{options.cluster} has {devices} devices, and these are {dist.get_world_size()} ranks", dist.get_rank())
    if options.busy:
        with Busy():
            out = measure(description, options.max_bytes, device)
    else:
        out = measure(description, options.max_bytes, device)
    if dist.get_rank() == 0:
        write(options.out, out)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
