"""PyTorch on NCCL, by strategies of the hook and of fully_shard: do they train like DistributedDataParallel, does each way
end, and is the memory of fully_shard what was predicted? Four ranks share one GPU and talk by NCCL's sockets on the loopback, so times
tell nothing of a cluster. `make accuracy-nccl` runs it where PyTorch sees a GPU.

    PYTHONPATH=interop/pytorch:examples/pytorch python3 tests/accuracy/nccl_pytorch.py SYNCOPATE FOLDER [WAY...]

On a machine without a GPU the same runs on gloo with a network that is tiny; that checks this file alone. A way has a
minute; one that does not end counts as failed, and the next one begins.
"""

import gc
import json
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import syncopate_torch
from networks import Transformer, cross_entropy
from syncopate_torch.fsdp import apply
from syncopate_torch.hook import distribute

RANKS, STEPS, LIMIT_S = 4, 16, 60
APART, LOSSY_APART = 1e-4, 0.05  # of losses near 9: rounding; what 16 steps in bf16 came to twice over
MEMORY_OFF = 0.1  # of fully_shard in the model's own types; DistributedDataParallel keeps more than is predicted
GPU = torch.cuda.device_count() > 0  # does not start CUDA, which a forked process could not use then
DEVICE, BACKEND = ("cuda", "nccl") if GPU else ("cpu", "gloo")
WORDS, WIDTH, BLOCKS, LENGTH, BATCH = (8000, 512, 6, 256, 4) if GPU else (400, 32, 3, 16, 2)
# NAME: (baseline, options of `strategy show`, members of every group, format of the export)
WAYS = {
    "pytorch-ddp": ("pytorch-ddp", [], {}, "pytorch-hook"),
    "mg-wfbp": ("mg-wfbp", [], {}, "pytorch-hook"),
    "mg-wfbp as bf16": ("mg-wfbp", [], {"encoding": "bf16"}, "pytorch-hook"),
    "zero-1": ("zero-1", [], {}, "pytorch-hook"),
    "dear": ("dear", [], {}, "pytorch-hook"),
    "pace": ("pace", [], {}, "pytorch-hook"),
    "bytescheduler-all-reduce": ("bytescheduler-all-reduce", [], {}, "pytorch-hook"),
    "fsdp-per-block": ("fsdp-per-block", [], {}, "fsdp2"),
    "fsdp-whole": ("fsdp-whole", [], {}, "fsdp2"),
    "fsdp-optimal": ("fsdp-optimal", [], {}, "fsdp2"),
    "hsdp": ("hsdp", [], {}, "fsdp2"),
    "fsdp-per-block as bf16": ("fsdp-per-block", [], {"gathered_as": "bf16", "summed_as": "f32"}, "fsdp2"),
}
LOSSY = ("bf16",)


def network():
    torch.manual_seed(1)
    return Transformer(words=WORDS, width=WIDTH, blocks=BLOCKS).to(DEVICE)


def tokens_of(data):
    tokens = torch.randint(WORDS, (BATCH, LENGTH), generator=data)
    return tokens.to(DEVICE), ((tokens * 7 + 1) % WORDS).to(DEVICE)


def wait_for_gpu():
    if GPU:
        torch.cuda.synchronize()


def iterate(model, optimizer, data):
    tokens, wanted = tokens_of(data)
    optimizer.zero_grad()
    loss = cross_entropy(model(tokens), wanted)
    loss.backward()
    optimizer.step()
    return loss


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=1e-4, eps=1e-4, fused=True)


# ---- in the ranks ----


def join(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    os.environ.update(NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_MNNVL_ENABLE="0", NCCL_HOSTID=f"rank {rank}")
    torch.set_num_threads(1)
    if GPU:
        torch.cuda.set_device(0)
    dist.init_process_group(BACKEND, rank=rank, world_size=RANKS)


def wrapped(way, path):
    """The model as the way has it, and its optimizer."""
    model = network()
    if way is None:
        return DistributedDataParallel(model), adam(model)
    lossy = any(word in way for word in LOSSY)
    if WAYS[way][3] == "pytorch-hook":
        optimizer = adam(model)
        return distribute(model, path, optimizer=optimizer, allow_lossy=lossy), optimizer
    model = apply(model, path, allow_lossy=lossy)
    return model, adam(model)


def train(rank, way, path):
    """Losses of all steps, the mean time of the last half, and the most bytes in one step."""
    model, optimizer = wrapped(way, path)
    data, losses = torch.Generator().manual_seed(rank), []
    for step in range(STEPS):
        if step == STEPS // 2:
            wait_for_gpu()
            start = time.perf_counter()
            if GPU:
                torch.cuda.reset_peak_memory_stats()
        losses.append(iterate(model, optimizer, data).detach())
    getattr(model, "synchronize", lambda: None)()
    wait_for_gpu()
    us = (time.perf_counter() - start) * 1e6 / (STEPS - STEPS // 2)
    peak = torch.cuda.max_memory_allocated() if GPU else 0
    found = {"losses": [loss.item() for loss in losses], "us": us, "peak_bytes": peak}
    del model, optimizer
    gc.collect()
    return found


def run_rank(rank, port, way, path, results):
    join(rank, port)
    found = train(rank, way, path)
    if rank == 0:
        results.put(found)
        results.close()
        results.join_thread()  # else os._exit may lose it
    dist.barrier()
    os._exit(0)  # NCCL's communicators end with the process


# ---- the parent ----


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run_ranks(way, path):
    """What rank 0 found; or a line that says why nothing. All ranks have ended after it."""
    forks = multiprocessing.get_context("fork")
    results, port = forks.Queue(), free_port()
    ranks = [forks.Process(target=run_rank, args=(r, port, way, path, results)) for r in range(RANKS)]
    for process in ranks:
        process.start()
    end, found = time.monotonic() + LIMIT_S, None
    while found is None and time.monotonic() < end and not any(p.exitcode for p in ranks):
        try:
            found = results.get(timeout=0.2)
        except queue.Empty:
            pass
    failed = any(p.exitcode for p in ranks)
    for process in ranks:
        process.join(timeout=5 if found else 0)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    if found is None:
        return "a rank failed" if failed else f"no end in {LIMIT_S} s"
    return found


def profile_alone(path):
    """In a process of its own, since this one must not start CUDA."""
    def alone():
        model = network()
        optimizer, data = adam(model), torch.Generator().manual_seed(0)
        profile = syncopate_torch.profile(model, path, name="transformer")
        for _ in range(profile.left):
            iterate(model, optimizer, data)
        os._exit(0 if profile.done else 1)

    process = multiprocessing.get_context("fork").Process(target=alone)
    process.start()
    process.join(LIMIT_S)
    if process.is_alive():
        process.kill()
    if process.exitcode != 0:
        raise SystemExit("nccl_pytorch: no profile")


def store(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


class Predictions:
    """Strategies of the ways, exported, and what they are to take."""

    def __init__(self, syncopate, folder):
        self.syncopate, self.folder = syncopate, folder
        self.model, self.cluster = f"{folder}/model.json", f"{folder}/cluster.json"
        node = {"name": "n", "count": RANKS, "devices": 1, "device": DEVICE, "nic_gbit_per_s": 10, "nic_latency_us": 50,
                "device_link_gbyte_per_s": 25}  # fmt: skip
        store(self.cluster, {"schema": "syncopate.cluster/1", "name": "shared-gpu", "nodes": [node]})

    def run(self, *arguments):
        ran = subprocess.run([self.syncopate, *arguments, "--log", "error"], check=False, capture_output=True, text=True)
        if ran.returncode != 0:
            raise SystemExit(f"nccl_pytorch: {' '.join(arguments)}: {ran.stderr.strip()}")
        return ran.stdout

    def export(self, way):
        """The path of the exported file, and the bytes predicted."""
        baseline, options, members, to = WAYS[way]
        path = f"{self.folder}/{way.replace(' ', '-')}"
        where = [self.model, self.cluster]
        strategy = json.loads(self.run("strategy", "show", *where, "--baseline", baseline, *options, "--json"))
        if members:
            strategy.pop("id", None)
            for group in strategy["variables"] if "encoding" in members else strategy["groups"]:
                group.update(members)
        store(f"{path}.json", strategy)
        predicted = json.loads(self.run("simulate", *where, "--strategy", f"{path}.json", "--json"))
        on = ["--model", self.model, "--cluster", self.cluster, "--to", to, "--out", f"{path}-exported.json"]
        self.run("strategy", "export", f"{path}.json", *on)
        return f"{path}-exported.json", predicted["memory"]["peak_bytes"]


def main():
    syncopate, folder, *ways = sys.argv[1:]
    strange = [way for way in ways if way not in WAYS]
    if strange:
        raise SystemExit(f"nccl_pytorch: no way {strange[0]!r}; there are {', '.join(WAYS)}")
    profile_alone(f"{folder}/model.json")
    predictions = Predictions(syncopate, folder)
    plain, failed = run_ranks(None, None), 0
    if isinstance(plain, str):
        raise SystemExit(f"nccl_pytorch: plain DistributedDataParallel: {plain}")
    print(f"PyTorch {torch.__version__} on {BACKEND}, {RANKS} ranks; plain DistributedDataParallel takes "
          f"{plain['us'] / 1e3:.0f} ms an iteration and {plain['peak_bytes'] / 1e6:.0f} MB", flush=True)  # fmt: skip
    row = "{:<26} {:>12} {:>10} {:>12} {:>12} {:>8}"
    print(row.format("WAY", "LOSSES APART", "TIME", "MEMORY", "PREDICTED", "ERROR"))
    for way in ways or WAYS:
        path, predicted = predictions.export(way)
        found = run_ranks(way, path)
        if isinstance(found, str):
            failed += 1
            print(f"{way:<26} FAILED: {found}", flush=True)
            continue
        apart = max(abs(a - b) for a, b in zip(plain["losses"], found["losses"]))
        lossy, peak = any(word in way for word in LOSSY), found["peak_bytes"]
        if not apart < (LOSSY_APART if lossy else APART):
            failed += 1
            print(f"{way}: FAILED: losses {apart} apart")
        if peak and WAYS[way][3] == "fsdp2" and not lossy and abs(predicted / peak - 1) > MEMORY_OFF:
            failed += 1
            print(f"{way}: FAILED: memory")
        error = f"{100 * (predicted / peak - 1):+.1f}%" if peak else ""
        print(row.format(way, f"{apart:.1e}", f"{found['us'] / 1e3:.0f} ms", f"{peak / 1e6:.1f} MB",
                         f"{predicted / 1e6:.1f} MB", error), flush=True)  # fmt: skip
    print(f"losses of {STEPS} iterations from {plain['losses'][0]:.4f} to {plain['losses'][-1]:.4f}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
