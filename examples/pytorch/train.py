"""A real training job for the walk-through in docs/pytorch.md: VGG-11 for images of 32 x 32 pixels (9.5 million
parameters, 38 MB of gradients), random images from a fixed seed, DistributedDataParallel on gloo.

    RANK=0 WORLD_SIZE=4 MASTER_ADDR=... MASTER_PORT=... python3 train.py [--profile FILE] [--strategy FILE] ...

--profile FILE   write the model as syncopate describes it: every rank trains alone, at the same time as the others
--strategy FILE  apply a strategy that was exported as pytorch-hook; by default that of the trial, if this is one
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

import syncopate_torch
from syncopate_torch.description import check_writable, words
from syncopate_torch.hook import checked, distribute

WIDTHS = (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool")


def network(classes=10):
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


class Job:
    """A copy of the network, its optimizer and its data. Copies are alike on all ranks, their data is not."""

    def __init__(self, options, strategy=None, alone=False):
        torch.manual_seed(options.seed)
        self.model, self.batch = network(), options.batch
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
        self.data = torch.Generator().manual_seed(1000 * options.seed + dist.get_rank())
        self.losses = []
        if strategy:
            self.model = distribute(self.model, strategy, optimizer=self.optimizer)
        elif not alone:
            self.model = DistributedDataParallel(self.model)

    def iterate(self):
        images = torch.randn(self.batch, 3, 32, 32, generator=self.data)
        labels = (images.mean(dim=(2, 3)) @ torch.ones(3, 10).cumsum(1)).argmax(1)
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def settle(self):
        """All parameters up to date."""
        getattr(self.model, "synchronize", lambda: None)()


def train(job, iterations, tell=lambda i, us: None):
    """Times are from the start of an iteration to that of the next. Then all parameters are brought up to date."""
    for i in range(iterations):
        start = time.perf_counter()
        job.iterate()
        tell(i, (time.perf_counter() - start) * 1e6)
    job.settle()


def compare(options):
    """Blocks of iterations in turn: plain DDP, the strategy, plain DDP, ... A block's time is the mean of its
    iterations but the first, which found nothing on its way where without a barrier something usually is."""
    jobs = {"ddp": Job(options), "strategy": Job(options, options.strategy)}
    blocks = {name: [] for name in jobs}
    for job in jobs.values():
        train(job, options.warmup)
    for _ in range(options.blocks):
        for name, job in jobs.items():
            times = []
            dist.barrier()
            train(job, 1 + options.iterations, lambda i, us, into=times: into.append(us))
            blocks[name].append(sum(times[1:]) / options.iterations)
    if dist.get_rank() == 0:
        with open(options.compare, "w", encoding="utf-8") as file:
            json.dump({"block_us": blocks, "losses": {name: job.losses for name, job in jobs.items()}}, file)


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


def main():
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
    options = parser.parse_args()
    check_files(options)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if options.compare:
        compare(options)
    elif options.profile:
        job = Job(options, alone=True)
        profile = syncopate_torch.profile(job.model, options.profile, name="vgg11-32", batch=options.batch)
        dist.barrier()
        train(job, profile.left)
    else:
        job = Job(options, options.strategy)
        train(job, options.warmup + options.iterations, writer_of_times(options.times))
    dist.barrier()


if __name__ == "__main__":
    main()
