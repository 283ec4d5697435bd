"""The most memory that a training process takes at once on a CPU, as the kernel counts it (Linux, glibc).

    peak = PeakMemory()  # before the model is made
    ...
    with peak:
        for i in range(2):
            step()
    print(peak.bytes)

The figure is the bytes of all tensors at the beginning and what the resident memory of the process grew by from there to
its peak: parameters, gradients, optimizer state, gathered groups, buffers of collectives (gloo's own, too), activations
and temporary results, whichever thread has them. PyTorch's profiler would miss what gloo's threads allocate and release.

Resident memory tells this only while released memory goes back to the kernel at once. So from PeakMemory() on malloc
maps every block of 64 KiB and more by itself, to the end of the process: time is measured in other runs. What malloc
had kept by then it would use first, and never give back: hence before the model is made. Two iterations bring the
optimizer's state, too. On a GPU torch.cuda.max_memory_allocated says the same."""

import ctypes
import gc

import torch

MAPPED_FROM, M_MMAP_THRESHOLD = 1 << 16, -3


class PeakMemory:
    """A context: bytes `before` it, at the peak (`bytes`) and `after` it, of this rank."""

    def __init__(self):
        self._libc = ctypes.CDLL(None)
        self._libc.mallopt(M_MMAP_THRESHOLD, MAPPED_FROM)

    def __enter__(self):
        self.before = bytes_of_tensors()
        self._libc.malloc_trim(0)
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak begins anew
        self._resident = resident("VmRSS")
        return self

    def __exit__(self, *error):
        self.bytes = self.before + max(resident("VmHWM") - self._resident, 0)
        self.after = bytes_of_tensors()


def resident(line):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(text.split()[1]) * 1024 for text in file if text.startswith(line + ":"))


def bytes_of_tensors():
    """Of all tensors on the CPU that Python can reach, each storage once."""
    gc.collect()
    storages = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter) and thing.device.type == "cpu":
            if thing.layout == torch.strided:
                storage = thing.untyped_storage()
                storages[storage._cdata] = storage.nbytes()
    return sum(storages.values())
