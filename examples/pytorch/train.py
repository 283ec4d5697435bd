"""A real training job for the walk-through in docs/pytorch.md: VGG-11 for images of 32 x 32 pixels (9.5 million
parameters, 38 MB of gradients) or a network of `networks.py`, random data from a fixed seed, DistributedDataParallel on
gloo.

    RANK=0 WORLD_SIZE=4 MASTER_ADDR=... MASTER_PORT=... python3 train.py [--profile FILE] [--strategy FILE] ...

--profile FILE   write the model as syncopate describes it: every rank trains alone, at the same time as the others
--strategy FILE  apply a strategy that was exported as pytorch-hook; by default that of the trial, if this is one
--device-ms MS   layers take the time of an emulated accelerator (`device.py`), by which an iteration computes for MS
--compare FILE   train two copies in turn, one by plain DDP and one by the strategy; write times and losses
Rank 0 writes iteration times to --times FILE (SYNCOPATE_TRIAL_TIMES), a JSON line an iteration.
"""

import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from busy import processor_time, share_busy
from device import Device
from networks import NETWORKS, cross_entropy

import syncopate_torch
from syncopate_torch.description import check_writable, words
from syncopate_torch.hook import checked, distribute

WIDTHS = (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool")


def vgg11(classes=10):
    """Configuration A of Simonyan and Zisserman (2015) with one hidden layer in its classifier."""
    layers, channels = [], 3
    for width in WIDTHS:
        if width == "pool":
            layers.append(torch.nn.MaxPool2d(2))
        else:
            layers += [torch.nn.Conv2d(channels, width, 3, padding=1), torch.nn.ReLU(inplace=True)]
            channels = width
    hidden = [torch.nn.Linear(512, 512), torch.nn.ReLU(inplace=True)]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), *hidden, torch.nn.Linear(512, classes))


def images(batch):
    def draw(generator):
        x = torch.randn(batch, 3, 32, 32, generator=generator)
        return x, (x.mean(dim=(2, 3)) @ torch.ones(3, 10).cumsum(1)).argmax(1)

    return draw


class Job:
    """A copy of the network, its optimizer and its data. Copies are alike on all ranks, their data is not. `how` makes
    the module into the one that is trained: wrap(module, optimizer); None: this rank trains alone."""

    ahead = True  # of its device, as a host is with a GPU

    def __init__(self, options, how=None):
        torch.manual_seed(options.seed)
        make, self.draw = NETWORKS.get(options.network, (vgg11, images(options.batch)))
        self.model, self.losses, self.device = make(), [], None
        self.data = torch.Generator().manual_seed(1000 * options.seed + dist.get_rank())
        if options.device_ms:
            self.device = Device(self.model, options.device_ms, self.draw(self.data)[0], ahead=self.ahead)
        self.prepare(options, how)

    def prepare(self, options, how):
        kind = {"momentum": 0.9, "weight_decay": 5e-4} if options.network == "vgg11" else {}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, **kind)
        if how:
            self.model = how(self.model, self.optimizer)

    def iterate(self):
        inputs, wanted = self.draw(self.data)
        self.optimizer.zero_grad()
        loss = cross_entropy(self.model(inputs), wanted)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def settle(self):
        """All parameters up to date."""
        getattr(self.model, "synchronize", lambda: None)()


def plainly(model, optimizer):
    return DistributedDataParallel(model)


def by(strategy):
    """By the hook, or plainly if there is no strategy."""
    return lambda model, optimizer: distribute(model, strategy, optimizer=optimizer) if strategy else plainly(model, 0)


def train(job, iterations, tell=lambda i, us: None):
    """Times are from the start of an iteration to that of the next. Then all parameters are brought up to date."""
    for i in range(iterations):
        start = time.perf_counter()
        job.iterate()
        tell(i, (time.perf_counter() - start) * 1e6)
    job.settle()


def in_turn(jobs, options):
    """Blocks of iterations in turn: the first job, the second, ..., the first job, ... A block's time is the mean of its
    iterations but the first, which found nothing on its way where without a barrier something usually is. Beside it, how
    busy the processors were, from 0 to 1."""
    blocks, busy = {name: [] for name in jobs}, {name: [] for name in jobs}
    for job in jobs.values():
        train(job, options.warmup)
    for _ in range(options.blocks):
        for name, job in jobs.items():
            times = []
            dist.barrier()
            before = processor_time()
            train(job, 1 + options.iterations, lambda i, us, into=times: into.append(us))
            busy[name].append(share_busy(before))
            blocks[name].append(sum(times[1:]) / options.iterations)
    return {"block_us": blocks, "busy": busy, "losses": {name: job.losses for name, job in jobs.items()}}


def compare(options):
    """Plain DDP and the strategy in turn."""
    jobs = {"ddp": Job(options, plainly), "strategy": Job(options, by(options.strategy))}
    write_found(options.compare, in_turn(jobs, options))


def write_found(path, found):
    if dist.get_rank() == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file)


def of_trial():
    """The strategy of the trial that this is, if it is one."""
    folder = os.environ.get("SYNCOPATE_TRIAL_DIR")
    return folder and os.path.join(folder, "pytorch-hook.json")


def writer_of_times(path):
    if not path or dist.get_rank():
        return lambda i, us: None
    file = open(path, "a", encoding="utf-8", buffering=1)
    return lambda i, us: file.write(json.dumps({"iteration": i, "time_us": round(us, 1)}) + "\n")


def check_files(options):
    """Before ranks wait for each other: the strategy is read, and files can be written where they shall be."""
    applied = options.strategy and (options.compare or not options.profile)
    try:
        options.strategy = checked(options.strategy, allow_lossy=False) if applied else None
        for path in (options.profile, options.compare, options.times):
            if path and not os.path.exists(path):
                check_writable(path)
    except (OSError, ValueError) as problem:
        if os.environ.get("RANK", "0") == "0":
            print(f"train.py: error: {words(problem)}", file=sys.stderr)
        raise SystemExit(2) from None


def parser_of_options():
    environ = os.environ.get
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile")
    parser.add_argument("--strategy", default=of_trial())
    parser.add_argument("--compare")
    parser.add_argument("--times", default=environ("SYNCOPATE_TRIAL_TIMES"))
    parser.add_argument("--iterations", type=int, default=int(environ("SYNCOPATE_TRIAL_ITERATIONS", "20")))
    parser.add_argument("--warmup", type=int, default=int(environ("SYNCOPATE_TRIAL_WARMUP", "3")))
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--network", choices=["vgg11", *NETWORKS], default="vgg11")
    parser.add_argument("--device-ms", type=float, default=0)
    return parser


def main():
    options = parser_of_options().parse_args()
    check_files(options)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if options.compare:
        compare(options)
    elif options.profile:
        job = Job(options)
        name = "vgg11-32" if options.network == "vgg11" else options.network
        profile = syncopate_torch.profile(job.model, options.profile, name=name)
        profile.clock = job.device or profile.clock
        dist.barrier()
        train(job, profile.left)
    else:
        job = Job(options, by(options.strategy))
        train(job, options.warmup + options.iterations, writer_of_times(options.times))
    dist.barrier()


if __name__ == "__main__":
    main()
