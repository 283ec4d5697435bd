"""Ranks of torch.distributed with gloo on the loopback, for the tests of this folder."""

import os
import socket

import torch
import torch.distributed
import torch.multiprocessing


def verdict(name, why):
    if why.startswith("skip: "):
        print(f"skip {name}: {why[6:]}")
        return
    print(f"ok {name}" if not why else f"not ok {name}: {why}".replace("\n", " "))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def run_ranks(ranks, function, *arguments):
    """What rank 0 returns of function(rank, *arguments). Ranks are forked, so that none has to import torch again."""
    results = torch.multiprocessing.get_context("fork").SimpleQueue()
    everything = (ranks, free_port(), function, arguments, results)
    torch.multiprocessing.start_processes(run_rank, everything, nprocs=ranks, start_method="fork")
    return results.get()


def run_rank(rank, ranks, port, function, arguments, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    said = function(rank, *arguments)
    if rank == 0:
        results.put(said)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
