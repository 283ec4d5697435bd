"""One rank of accuracy-pytorch: trains copies of a network in turn, by plain DDP and by the hook, on the emulated device.

    pytorch_rank.py CELL.json OUT.json --network NAME --device-ms MS [--iterations N ...]       (options of train.py)

CELL.json is {NAME: {"ddp": arguments of DistributedDataParallel} or {"hook": a strategy}}. Rank 0 writes OUT.json: what
train.in_turn() returns, and why the hook refused what it refused.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "pytorch"))

import train

from syncopate_torch.hook import distribute


def way(how):
    if "hook" in how:
        return lambda model, optimizer: distribute(model, how["hook"], optimizer=optimizer)
    return lambda model, optimizer: DistributedDataParallel(model, **how["ddp"])


def main():
    parser = train.parser_of_options()
    parser.add_argument("cell")
    parser.add_argument("out")
    options = parser.parse_args()
    with open(options.cell, encoding="utf-8") as file:
        ways = json.load(file)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    jobs, refused = {}, {}
    for name, how in ways.items():
        try:
            jobs[name] = train.Job(options, way(how))
        except ValueError as problem:  # on all ranks alike
            refused[name] = str(problem)
    found = train.in_turn(jobs, options)
    if dist.get_rank() == 0:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({**found, "refused": refused}, file)
    dist.barrier()


if __name__ == "__main__":
    main()
