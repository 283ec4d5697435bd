"""How much messages slow computing, and computing slows messages, where both happen at once.

Three things are timed in turn, each by all ranks at once and for the same time: messages alone, computing alone, and
both. The shares of their speeds that messages and computing keep go into the cluster file as "interference":
  - startup: messages of 1 KiB, one after the other, whose time does not depend on their bytes
  - transfer: large messages, two on their way at a time. What a byte costs is the difference between two sizes.
And one thing without computing: what startups keep of their speed ("beside") behind the bytes of large messages. A small
message waits behind them in queues on its way, at each of its steps; a NIC's queue of 30 ms makes 5 ms into 200.
On a GPU computing goes to the default stream and messages to another one.
"""

import math
import threading
import time

import torch
import torch.distributed as dist

from .clock import finish
from .profile import median

REPETITIONS, WINDOW_S = 5, 0.5
SMALL, IN_FLIGHT = 1024, 2
LARGE, CALLS = 3, 20  # messages that a small one meets; small ones in one measurement
LEAST_SHARE = 0.01


class Load:
    """A thread that trains a small network while this is entered: convolutions, a matrix product, and the update."""

    def __init__(self, device):
        convolutions = [torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        convolutions += [torch.nn.Conv2d(64, 128, 3, padding=1), torch.nn.ReLU()]
        layers = [*convolutions, torch.nn.Flatten(), torch.nn.Linear(128 * 8 * 8, 128)]
        self.network = torch.nn.Sequential(*layers).to(device)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-6, momentum=0.9)
        self.images, self.device = torch.randn(8, 64, 16, 16, device=device), device
        finish(device)  # the thread computes in another stream

    def __enter__(self):
        self.ends, self.steps, self.began = False, 0, time.perf_counter()
        self.thread = threading.Thread(target=self._compute, daemon=True)
        self.thread.start()

    def _compute(self):
        while not (self.ends and self.steps):
            self.optimizer.zero_grad()
            self.network(self.images).square().mean().backward()
            self.optimizer.step()
            finish(self.device)
            self.steps += 1
        self.seconds = time.perf_counter() - self.began

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()

    def speed(self):
        """Steps a second, the mean of all ranks. When this returns, no rank computes any more."""
        speed = torch.tensor([self.steps / self.seconds], device=self.device)
        dist.all_reduce(speed)
        return speed.item() / dist.get_world_size()


def seconds_a_call(action, calls, device):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        action()
    finish(device)
    return (time.perf_counter() - start) / calls


def calls_in_window(action, device):
    """How many calls take WINDOW_S, as rank 0 finds."""
    action()
    calls = torch.tensor([WINDOW_S / seconds_a_call(action, 2, device)], device=device)
    dist.broadcast(calls, 0)
    return max(1, math.ceil(calls.item()))


def side_by_side(load, action, device):
    """Medians: seconds of the action alone, seconds under load, and the share of its speed that the load keeps."""
    calls_alone = calls_in_window(action, device)
    with load:
        calls_loaded = calls_in_window(action, device)
    alone, loaded, kept = [], [], []
    for _ in range(REPETITIONS):
        load.speed()
        alone.append(seconds_a_call(action, calls_alone, device))
        with load:
            time.sleep(WINDOW_S)
        speed = load.speed()
        with load:
            loaded.append(seconds_a_call(action, calls_loaded, device))
        kept.append(load.speed() / speed)
    return median(alone), median(loaded), median(kept)


def messages(size, at_once, lanes, device):
    """An action: so many all-reduces of `size` bytes at once."""
    buffers = [torch.zeros(max(size // 4, 1), device=device) for _ in range(at_once)]

    def action():
        works = [dist.all_reduce(b, group=lanes[i % len(lanes)], async_op=True) for i, b in enumerate(buffers)]
        for work in works:
            work.wait()

    return action


def beside(most_bytes, lanes, device):
    """The share of its speed that a small message keeps when a quarter of large ones, one in each of some lanes, is done."""
    alone = seconds_a_call(messages(SMALL, 1, lanes, device), CALLS, device)
    buffers = [torch.zeros(max(most_bytes // LARGE // 4, 1), device=device) for _ in range(LARGE)]
    small, slowed, large_s = torch.zeros(SMALL // 4, device=device), [], None
    for _ in range(1 + REPETITIONS):
        dist.barrier()
        begin = time.perf_counter()
        works = [dist.all_reduce(b, group=lanes[i % len(lanes)], async_op=True) for i, b in enumerate(buffers)]
        if large_s is not None:
            time.sleep(large_s / 4)
            start = time.perf_counter()
            dist.all_reduce(small, group=lanes[LARGE % len(lanes)])
            finish(device)
            slowed.append(time.perf_counter() - start)
        for work in works:
            work.wait()
        finish(device)
        large_s = large_s or time.perf_counter() - begin
    return share(ratio(alone, median(slowed)))


def ratio(alone, loaded):
    """Of a speed, given times. Noise may make a difference of times negative: then nothing was seen to disturb."""
    return alone / loaded if alone > 0 and loaded > 0 else 1


def share(found):
    return round(min(max(found, LEAST_SHARE), 1), 3)


def shares(found):
    """The member "interference" of schema syncopate.cluster/1, and a line of what counts as 1 but was above, or None."""
    above = [f"{part} {of} {x:.2f}" for part, kept in found.items() for of, x in kept.items() if round(x, 2) > 1]
    warning = f"warning: shares above 1 count as 1: {', '.join(above)}; something else uses this machine or network"
    return {part: {of: share(x) for of, x in kept.items()} for part, kept in found.items()}, warning if above else None


def interference(load, most_bytes, lanes, device):
    """As shares() returns them."""
    alone, loaded, kept = side_by_side(load, messages(SMALL, 1, lanes, device), device)
    startup = {"compute": ratio(kept, 1), "traffic": ratio(alone, loaded)}
    half = most_bytes // IN_FLIGHT
    part_alone, part_loaded, _ = side_by_side(load, messages(half // 4, IN_FLIGHT, lanes, device), device)
    alone, loaded, kept = side_by_side(load, messages(half, IN_FLIGHT, lanes, device), device)
    transfer = {"compute": ratio(kept, 1), "traffic": ratio(alone - part_alone, loaded - part_loaded)}
    return shares({"startup": startup, "transfer": transfer})
