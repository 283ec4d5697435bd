"""What all-reduces and pushes cost through torch.distributed on this cluster, as a cluster file for syncopate.

    torchrun ... -m syncopate_torch.bench [CLUSTER.json] --out measured.json [--max-bytes 16777216]

on every rank, as the job is started: with the same backend, network settings and threads, so that what is measured is
what the job will use. CLUSTER.json describes nodes and NICs, by default as the ranks find them (hosts.py); its transport
becomes the backend, and its measurements, interference and runtime are replaced by
  - all_reduce: the median time of one all-reduce, alone and with nothing computed, by bytes, in the faster of two passes
  - with --sharded reduce_scatter and all_gather: its halves, likewise
  - interference: how much computing and messages slow each other (interference.py)
and by what a job does while it computes, so it is measured under load:
  - message_us: what a small one adds when many are started at once
  - coordination_us: a word from rank 0 to all others, as under policy priority; by the job's backend, while hook.py
    always sends it by gloo
  - copy_gbyte_per_s: putting gradients into a message
  - sum_gbyte_per_s: adding one gradient to another, as a server does
  - encode_gbyte_per_s: converting f32 to f16, or back
  - push_us, with gloo: a small push or pull, by the code of the hook's servers (pushes.py)
Times are rank 0's; every rank takes part in every measurement.
"""

import argparse
import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist

from .clock import finish, own_stream
from .description import check_writable, read, words, write
from .hosts import described, fill_rates
from .interference import Load, beside, interference, messages, seconds_a_call
from .lanes import lanes_of
from .profile import median
from .pushes import RoundTrip

LEAST, MOST, ENOUGH_S = 3, 25, 0.5  # repetitions, and the time after which LEAST suffice
MANY, COPIES = 32, 50  # messages at once; copies in one measurement
HAS_HALVES = int(torch.__version__.split(".")[0]) >= 2
CALLS = 4  # one after the other in one measurement, so that ranks that leave the barrier late cost less
LONG_S = 0.1  # one call that takes so long is measured alone


def timed(action, device):
    """Median time of one call in seconds. All ranks repeat as often as rank 0 finds right."""
    seconds, go_on = [], torch.ones(1, device=device)
    action()
    first = torch.tensor([seconds_a_call(action, 1, device)], device=device)
    dist.broadcast(first, 0)
    calls = 1 if first.item() > LONG_S else CALLS
    while go_on.item():
        seconds.append(seconds_a_call(action, calls, device))
        enough = len(seconds) >= MOST or (len(seconds) >= LEAST and calls * sum(seconds) > ENOUGH_S)
        go_on.fill_(not enough)
        dist.broadcast(go_on, 0)
    return median(seconds)


def sizes_to(most_bytes):
    """Powers of 4 from 1 KiB, and the largest, in bytes."""
    sizes = [1024]
    while sizes[-1] * 4 < most_bytes:
        sizes.append(sizes[-1] * 4)
    return [*sizes, most_bytes // 4 * 4]


def curve(of, call, most_bytes, device):
    """Measurements of schema syncopate.cluster/1; `of` says of what, and call(elements) makes what is timed. All sizes are
    timed in two passes, and the faster one counts: what disturbs for some seconds only makes messages slower."""
    sizes, ranks = sizes_to(most_bytes), dist.get_world_size()
    passes = [[timed(call(size // 4), device) * 1e6 for size in sizes] for _ in range(2)]
    out = []
    for size, us in zip(sizes, map(min, *passes)):
        out.append({**of, "devices": ranks, "bytes": size, "time_us": round(us, 1)})
        say(f"  {of['operation'].replace('_', '-')} of {size} bytes: {us:.0f} us")
    return out


def all_reduces(most_bytes, device):
    def call(elements):
        tensor = torch.zeros(elements, device=device)
        return lambda: dist.all_reduce(tensor)

    return curve({"operation": "all_reduce", "algorithm": "ring"}, call, most_bytes, device)


def halves(most_bytes, device):
    """Sums of which each rank keeps a part, and parts that all ranks get, as fully_shard sends them: over gloo by the
    reduce-scatter of scatter.py, which is that of hook.py too. Bytes are those of all parts together."""

    def shares(elements):
        part = torch.zeros(-(-elements // dist.get_world_size()), device=device)
        return part, part.repeat(dist.get_world_size())

    def scatter(elements):
        part, whole = shares(elements)
        if dist.get_backend() == "nccl":
            return lambda: dist.reduce_scatter_tensor(part, whole)
        return lambda: scatter_sum(whole, part)

    def gather(elements):
        part, whole = shares(elements)
        return lambda: dist.all_gather_into_tensor(whole, part)

    return [
        *curve({"operation": "reduce_scatter"}, scatter, most_bytes, device),
        *curve({"operation": "all_gather"}, gather, most_bytes, device),
    ]


def scatter_sum(whole, part):
    received = torch.empty_like(whole)
    dist.all_to_all_single(received, whole)
    torch.sum(received.view(dist.get_world_size(), -1), 0, out=part)


def message_us(lanes, device):
    """Many small all-reduces are started at once: their time, divided by their number."""
    return timed(messages(4096, MANY, lanes, device), device) / MANY * 1e6


def copy_gbyte_per_s(device):
    """By the mean time: under load a copy now and then waits for its processor, and so do those of a job."""
    source, target = torch.ones(1 << 22, device=device), torch.ones(1 << 22, device=device)
    seconds = seconds_a_call(lambda: torch.div(source, 2, out=target), COPIES, device)
    return (16 << 20) / seconds / 1e9


def sum_gbyte_per_s(device):
    """By the mean time, too."""
    total, part = torch.zeros(1 << 22, device=device), torch.ones(1 << 22, device=device)
    return (16 << 20) / seconds_a_call(lambda: total.add_(part), COPIES, device) / 1e9


def encode_gbyte_per_s(device):
    wide, narrow = torch.ones(1 << 22, device=device), torch.ones(1 << 22, device=device).half()

    def there_and_back():
        torch.div(wide, 2, out=narrow)
        wide.copy_(narrow)

    return 2 * (16 << 20) / seconds_a_call(there_and_back, COPIES, device) / 1e9


def word_us(device):
    """The time of one word from rank 0 to all others: half of the time until all have answered."""
    there, back = torch.zeros(1, device=device), torch.zeros(1, device=device)

    def both():
        dist.broadcast(there, 0)
        dist.all_reduce(back)

    return timed(both, device) / 2 * 1e6


def push_us(device):
    """Half of the time of a small push and its pull."""
    there_and_back = RoundTrip(1024)
    us = timed(there_and_back, device) / 2 * 1e6
    there_and_back.settle()
    return us


def say(text):
    if dist.get_rank() == 0:
        print(text, file=sys.stderr, flush=True)


def interference_said(load, most_bytes, lanes, device):
    shares, warning = interference(load, most_bytes, lanes, device)
    for when, kept in shares.items():
        say(f"  {when}: computing keeps {kept['compute']:.0%} of its speed, a message {kept['traffic']:.0%}")
    if warning:
        say(f"  {warning}")
    return shares


def measure(description, most_bytes, device, idle, sharded):
    """The description with what was measured; `idle`: while nothing is computed; `sharded`: halves of all-reduces too."""
    load, lanes = contextlib.nullcontext() if idle else Load(device), lanes_of(dist.group.WORLD, cross=True)
    runtime = dict(description.get("runtime", {}))
    with load:
        runtime["message_us"] = round(message_us(lanes, device), 1)
        runtime["coordination_us"] = round(word_us(device), 1)
        if dist.get_backend() == "gloo" and dist.get_world_size() > 1:
            runtime["push_us"] = round(push_us(device), 1)
        runtime["copy_gbyte_per_s"] = round(copy_gbyte_per_s(device), 2)
        runtime["sum_gbyte_per_s"] = round(sum_gbyte_per_s(device), 2)
        runtime["encode_gbyte_per_s"] = round(encode_gbyte_per_s(device), 2)
    dist.barrier()
    say("  " + ", ".join(f"{name} {value}" for name, value in runtime.items()))
    replaced = ("collectives", "measurements", "interference", "runtime")
    out = {k: v for k, v in description.items() if k not in replaced}
    shares = {"startup": {}} if idle else interference_said(load, most_bytes, lanes, device)
    if dist.get_backend() != "nccl":  # whose all-reduces follow one another, so that none is beside others
        shares["startup"]["beside"] = beside(most_bytes, lanes, device)
        say(f"  startup beside large messages: {shares['startup']['beside']:.1%} of its speed")
    if shares["startup"]:
        out["interference"] = shares
    if dist.get_backend() in ("nccl", "gloo", "mpi"):
        out["transport"] = dist.get_backend()  # what is not measured is typical of it
    sums = all_reduces(most_bytes, device)
    out = {**out, "runtime": runtime, "measurements": sums + (halves(most_bytes, device) if sharded else [])}
    if any("nic_gbit_per_s" not in node for node in out["nodes"]):
        say(f"  rates: {fill_rates(out, out['measurements']):.3g} GB/s, as the largest all-reduce reached")
    return out


def refuse(why, rank=os.environ.get("LOCAL_RANK", os.environ.get("RANK", "0"))):
    """End this rank with status 2. Only rank 0 (of its host, unless `rank` is given) says why."""
    if str(rank) == "0":
        print(f"syncopate_torch.bench: error: {why}", file=sys.stderr, flush=True)
    raise SystemExit(2)


def read_cluster(path):
    """The description, and how many devices it has; None of both without a file."""
    if path is None:
        return None, None
    try:
        description = read(path)
        return description, sum(node.get("count", 1) * node.get("devices", 1) for node in description["nodes"])
    except OSError as problem:
        refuse(words(problem))
    except (ValueError, KeyError, TypeError, AttributeError):
        refuse(f"{path}: is no cluster file; `syncopate import cluster` makes one")


ABOUT = """Measure what all-reduces of torch.distributed cost on this cluster, and write a cluster file for
`syncopate simulate` and `syncopate tune`: their times by bytes, what starting a message costs, with gloo what
a push to a server costs, and how much computing and messages slow each other.

Run it on every rank, one rank a device, as your job is started: by the same launcher, with the same backend,
network settings (NCCL_*, GLOO_SOCKET_IFNAME) and OMP_NUM_THREADS. Nothing else may run meanwhile. It takes about
half a minute and 30 times as long as one all-reduce of --max-bytes, with --sharded twice as long."""
AFTER = """Where is it started from?
  one node with 8 GPUs     torchrun --nproc_per_node 8 -m syncopate_torch.bench --out measured.json
  several, by torchrun     torchrun --nnodes 4 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint HOST:29500 \\
                               -m syncopate_torch.bench --out measured.json         (the same on every node)
  Slurm                    srun torchrun ... in the job's allocation, or one task a GPU with RANK, WORLD_SIZE,
                           LOCAL_RANK, MASTER_ADDR and MASTER_PORT set as the job sets them
  python3 cannot find it   PYTHONPATH=PREFIX/share/syncopate/python (or interop/pytorch of the source)

What comes next:
  syncopate simulate model.json measured.json      model.json is from python3 -m syncopate_torch.profile

CLUSTER, where you have one (`syncopate import cluster` makes it), names nodes and the rates of their NICs. The file
that is written is the same with what was measured; what an earlier bench measured is replaced."""


def options_of_command():
    parser = argparse.ArgumentParser(
        prog="python3 -m syncopate_torch.bench",
        description=ABOUT,
        epilog=AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cluster = "a cluster file: nodes and their NICs (default: the hosts of the ranks, and the rates that are reached)"
    parser.add_argument("cluster", nargs="?", metavar="CLUSTER", help=cluster)
    parser.add_argument("--out", required=True, metavar="FILE", help="where the cluster file with measurements goes (rank 0)")
    most = "the largest all-reduce; about the job's largest bucket (default 16777216). Less makes the bench shorter"
    parser.add_argument("--max-bytes", type=int, metavar="N", default=16 << 20, help=most)
    backend = "that of the job: nccl (default with a GPU), gloo (default without one) or mpi"
    parser.add_argument("--backend", metavar="NAME", default="nccl" if torch.cuda.is_available() else "gloo", help=backend)
    idle = """compute nothing meanwhile, and leave out how computing and messages slow each other: for a job whose
    computing leaves the processors alone that move its messages"""
    parser.add_argument("--idle", action="store_true", help=idle)
    sharded = """measure reduce-scatters and all-gathers too, each as often as all-reduces: for FSDP, and for a hook that
    updates parameters in parts. Without it each is taken to be half of an all-reduce"""
    parser.add_argument("--sharded", action="store_true", help=sharded)
    options = parser.parse_args()
    if options.max_bytes < 4096:
        parser.error("--max-bytes must be at least 4096")
    if options.sharded and options.backend != "nccl" and not HAS_HALVES:
        parser.error("--sharded needs PyTorch 2: this one cannot gather into a tensor over gloo")
    return options


def own_device(backend):
    """With NCCL the GPU of this rank: of those that it sees, the one with its number on this host."""
    if backend != "nccl":
        return torch.device("cpu")
    if not torch.cuda.device_count():
        refuse("--backend nccl: this rank sees no GPU; give gloo or mpi")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def join(backend):
    try:
        dist.init_process_group(backend)
    except (ValueError, RuntimeError) as problem:
        refuse(f"{words(problem)}; start every rank as the job's are started, by torchrun, srun or mpirun")


def check_output(path, device):
    """Where rank 0 cannot write the file, all ranks end before they measure for it."""
    why = None
    if dist.get_rank() == 0:
        try:
            check_writable(path)
        except OSError as problem:
            why = words(problem)
    bad = torch.tensor([float(why is not None)], device=device)
    dist.broadcast(bad, 0)
    if bad.item():
        refuse(why, dist.get_rank())


def main():
    options = options_of_command()
    description, devices = read_cluster(options.cluster)
    device = own_device(options.backend)
    join(options.backend)
    check_output(options.out, device)
    if devices and dist.get_world_size() != devices:
        refuse(f"{options.cluster} has {devices} devices, and these are {dist.get_world_size()} ranks", dist.get_rank())
    with own_stream(device):
        out = measure(description or described(device), options.max_bytes, device, options.idle, options.sharded)
    if dist.get_rank() == 0:
        try:
            write(options.out, out)
        except OSError as problem:
            refuse(words(problem), 0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
