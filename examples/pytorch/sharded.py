"""Training with sharded parameters for `make demo-fsdp` (examples/pytorch/demo-fsdp): a transformer of `networks.py` by
PyTorch's fully_shard as it comes, around each block and the model, and by strategies that were exported to fsdp2.

    RANK=0 WORLD_SIZE=4 MASTER_ADDR=... MASTER_PORT=... python3 sharded.py --profile FILE
    ... python3 sharded.py --compare FILE [--way NAME=STRATEGY]...     blocks of iterations in turn; times and losses
    ... python3 sharded.py --memory FILE [--way NAME=STRATEGY]...      the most memory that each takes in an iteration
    WORLD_SIZE=4 python3 sharded.py --without-gloo --memory FILE ...   of one rank alone, whose messages go nowhere

Layers take the time of a device that is emulated (`device.py`), --device-ms an iteration, while the processors are free;
the host waits for it, since on a CPU fully_shard has no queue to fill. Memory is of runs without it.
"""

import gc
import json
import os

import torch
import torch.distributed as dist

import train
from table_sharded import AS_IT_COMES
from syncopate_torch.fsdp import apply
from syncopate_torch.memory import PeakMemory


def per_block(model):
    """FSDP2 as its tutorial has it."""
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model)


class Job(train.Job):
    """A copy that trains by Adam, sharded by how(model); None: this rank trains alone."""

    ahead = False

    def prepare(self, options, how):
        self.model = how(self.model) if how else self.model
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)


def ways_of(options):
    """How each way shards, by name."""
    ways = {AS_IT_COMES: per_block}
    for way in options.way:
        name, _, path = way.partition("=")
        ways[name] = lambda model, path=path: apply(model, path)
    return ways


def profile(options):
    job = Job(options)
    how = {"warmup": options.warmup, "iterations": options.iterations}
    found = train.syncopate_torch.profile(job.model, options.profile, name=options.network, **how)
    found.clock = job.device or found.clock
    dist.barrier()
    train.train(job, found.left)


def peaks(options):
    """By way: the most bytes in an iteration, and those before it."""
    peak, found, options.device_ms = PeakMemory(), {}, 0
    for name, shard in ways_of(options).items():
        job = Job(options, shard)
        train.train(job, 2)
        with peak:
            train.train(job, 1)
        found[name] = {"peak_bytes": peak.bytes, "before_bytes": peak.before}
        del job
        gc.collect()
    return found


def join(options):
    if options.without_gloo:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", rank=0, world_size=int(os.environ["WORLD_SIZE"]), store=FakeStore())
    else:
        dist.init_process_group("gloo")


def main():
    parser = train.parser_of_options()
    parser.add_argument("--memory")
    parser.add_argument("--without-gloo", action="store_true")
    parser.add_argument("--way", action="append", default=[])
    parser.set_defaults(network="transformer")
    options = parser.parse_args()
    torch.set_num_threads(1)
    join(options)
    if options.profile:
        profile(options)
    elif options.memory:
        train.write_found(options.memory, peaks(options))
    else:
        jobs = {name: Job(options, shard) for name, shard in ways_of(options).items()}
        train.write_found(options.compare, train.in_turn(jobs, options))
    dist.barrier()


if __name__ == "__main__":
    main()
