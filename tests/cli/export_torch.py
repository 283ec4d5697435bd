"""Real torch.distributed: a strategy's exact groups through the communication hook, on gloo ranks of this machine, and
the bucket sizes of ddp.json in DDP's own rule. Called by export.sh as

    export_torch.py MODULE_FOLDER MODEL FOLDER...

FOLDER has strategy.json and pytorch-ddp/ddp.json, for the model. Prints ok and not ok lines."""

import json
import os
import socket
import sys

sys.path.insert(0, sys.argv[1])

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

import syncopate_torch.hook

RANKS, STEPS = 3, 4


def module():
    torch.manual_seed(1)
    layers = [torch.nn.Linear(32, 32) for _ in range(4)]
    return torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.Tanh())])


# No runs of the order of readiness: layers 0 and 4 together, 2 and 6 together, one of them in parts of 1 KiB.
GROUPS = {
    "groups": [
        {"algorithm": "auto", "partition_bytes": 0, "variables": ["0.weight", "4.bias", "4.weight", "0.bias"]},
        {"algorithm": "auto", "partition_bytes": 1024, "variables": ["6.weight", "2.weight"]},
        {"algorithm": "auto", "partition_bytes": 0, "variables": ["2.bias"]},
        {"algorithm": "auto", "partition_bytes": 0, "variables": ["6.bias"]},
    ]
}
# 4-byte elements of each all-reduce of an iteration.
MESSAGES = sorted([2 * (32 * 32 + 32)] + [256] * 8 + [32, 32])


def train(model, rank):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    random = torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 32, generator=random)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().clone() for p in model.parameters()]


def run(rank, port, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    plain = train(DistributedDataParallel(module()), rank)
    sent, all_reduce = [], dist.all_reduce

    def counted(tensor, *args, **options):
        sent.append(tensor.numel())
        return all_reduce(tensor, *args, **options)

    model = syncopate_torch.hook.distribute(module(), GROUPS)
    dist.all_reduce = counted
    grouped = train(model, rank)
    dist.all_reduce = all_reduce
    try:
        syncopate_torch.hook.distribute(module(), {"groups": GROUPS["groups"][1:]})
        refused = ""
    except ValueError as error:
        refused = str(error)
    if rank == 0:
        results.put(
            {
                "losses": max(abs(a - b) for a, b in zip(plain[0], grouped[0])),
                "parameters": max((a - b).abs().max().item() for a, b in zip(plain[1], grouped[1])),
                "moved": max((a - b).abs().max().item() for a, b in zip(plain[1], module().parameters())),
                "sent": [sorted(sent[i * len(MESSAGES) : (i + 1) * len(MESSAGES)]) for i in range(STEPS)],
                "more": sent[STEPS * len(MESSAGES) :],
                "refused": refused,
            }
        )
    dist.barrier()
    dist.destroy_process_group()


def ready_order(model):
    """The variables in the order of their producers, which are in the file as they run."""
    position = {v["name"]: i for i, v in enumerate(model["variables"])}
    backward = [o for o in model["operators"] if o["phase"] == "backward"]
    return [name for o in backward for name in sorted(o.get("produces", []), key=position.get)]


def buckets_of(model, arguments):
    """What DDP makes of the arguments once it has seen one iteration, as sets of names."""
    shapes, order = {v["name"]: v["shape"] for v in model["variables"]}, ready_order(model)
    mib = arguments.get("bucket_cap_mb_list") or [arguments.get("bucket_cap_mb")] if arguments else [1, 25]
    tensors = [torch.empty(shapes[name], device="meta") for name in order]
    buckets, _ = dist._compute_bucket_assignment_by_size(tensors, [int(cap * 1024 * 1024) for cap in mib])
    return sorted(sorted(order[i] for i in bucket) for bucket in buckets)


def check_buckets(model_path, folders):
    with open(model_path, encoding="utf-8") as file:
        model = json.load(file)
    same, bad = 0, []
    for folder in folders:
        if not os.path.exists(f"{folder}/pytorch-ddp/ddp.json"):  # refused: sharded
            continue
        with open(f"{folder}/strategy.json", encoding="utf-8") as file:
            variables = json.load(file)["variables"]
        with open(f"{folder}/pytorch-ddp/ddp.json", encoding="utf-8") as file:
            arguments = json.load(file)
        if os.path.exists(f"{folder}/pytorch-ddp/ddp-groups.json") or any("group" not in v["sync"] for v in variables):
            continue
        groups = {}
        for v in variables:
            groups.setdefault(v["sync"]["group"], []).append(v["name"])
        if sorted(sorted(g) for g in groups.values()) == buckets_of(model, arguments):
            same += 1
        else:
            bad.append(folder)
    verdict("DDP_makes_the_buckets_of_the_strategy", same >= 5 and not bad, f"{same} right, not {bad}")


def verdict(name, holds, why):
    print(f"ok {name}" if holds else f"not ok {name}: {why}")


if __name__ == "__main__":
    check_buckets(sys.argv[2], sys.argv[3:])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    torch.multiprocessing.spawn(run, (port, results), nprocs=RANKS)
    got = results.get()
    verdict("hook_trains_as_DDP_does", got["losses"] < 1e-6 and got["parameters"] < 1e-6 < got["moved"], json.dumps(got))
    verdict("hook_sends_the_groups_and_nothing_else", got["sent"] == [MESSAGES] * STEPS and not got["more"], got["sent"])
    verdict("hook_refuses_groups_of_another_module", "0.weight" in got["refused"], got["refused"])
