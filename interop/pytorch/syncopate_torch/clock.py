"""Moments of an iteration, on the clock of the device that computes.

On a CPU a moment is the time at which the hook ran. On a GPU the hook runs when work is handed over, not when it is
done, so a moment is an event in the stream, and times are known when the iteration has ended.
"""

import contextlib
import time

import torch


class CpuClock:
    """Moments are microseconds."""

    def now(self):
        return time.perf_counter_ns() / 1e3

    def wait(self):
        pass

    def between_us(self, start, end):
        return end - start


class CudaClock:
    """Moments are events of the stream in which the caller's work is queued."""

    def __init__(self, device):
        self.device = device

    def now(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def wait(self):
        torch.cuda.synchronize(self.device)

    def between_us(self, start, end):
        return start.elapsed_time(end) * 1e3


def clock_of(device):
    return CudaClock(device) if device.type == "cuda" else CpuClock()


def own_stream(device):
    """A context in which this thread's work on a GPU goes to a stream of its own."""
    return torch.cuda.stream(torch.cuda.Stream(device)) if device.type == "cuda" else contextlib.nullcontext()


def event_on(tensor):
    """An event of the stream to which this thread's work on the tensor goes, whatever this thread's device is; None on a
    CPU. synchronize() sleeps until then."""
    if not tensor.is_cuda:
        return None
    return torch.cuda.current_stream(tensor.device).record_event(torch.cuda.Event(blocking=True))


def wait_on_stream(event, tensor):
    """This thread's later work on the tensor comes after the event."""
    if event:
        torch.cuda.current_stream(tensor.device).wait_event(event)


def finish(device):
    """Wait for what this thread has queued, not for what others have."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
