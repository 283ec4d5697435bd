"""The most that each operator of one iteration holds on a GPU besides what syncopate counts by itself ("temporary_bytes").

PyTorch's allocator knows how much it has given out, and the most since it was asked last; both follow the host, so
nothing waits for the GPU. Of an operator's most that is taken off which is counted otherwise: parameters, the optimizer's
states, the gradients that are there, and what operators have left for the backward pass. The rest are results on their
way, workspaces (cuBLAS takes 32 MiB for each thread on Hopper), the batch, buffers.

While the iteration is watched, torch.cuda's own statistics of peaks begin anew at each operator. On a CPU no allocator
says this, and nothing is written.
"""

import torch


class CudaAllocator:
    def __init__(self, device):
        self.device = device

    def held(self):
        return torch.cuda.memory_allocated(self.device)

    def most(self):
        """Since the last call."""
        bytes_held = torch.cuda.max_memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        return bytes_held


def allocator_of(device):
    return CudaAllocator(device) if device.type == "cuda" else None


class Temporary:
    """Watches from the beginning of a forward pass; operator(name) says that what was held since the one before is this
    one's. `gradients_bytes` and `states_bytes` are there at the beginning; `apart`: what is there only because of the
    way in which this profile trains."""

    def __init__(self, allocator, gradients_bytes, states_bytes, apart=0):
        self.allocator, self.states_bytes, self.apart = allocator, states_bytes, apart
        self.most = {}  # by operator
        self.begin = allocator.held() - gradients_bytes
        allocator.most()

    def operator(self, name):
        self.most[name] = max(self.most.get(name, 0), self.allocator.most())

    def describe(self, description):
        """Add "temporary_bytes" to the operators of a description, of which the first ends where this began, or was watched."""
        bytes_of = {v["name"]: size_of(v) for v in description["variables"]}
        known = sum(bytes_of.values()) + self.states_bytes + self.apart
        left_for = {}  # by backward operator: what it uses last
        first = description["operators"][0]["name"]
        for operator in description["operators"]:
            known += operator.get("activation_bytes", 0) + sum(bytes_of[v] for v in operator.get("produces", []))
            if operator.get("kept_for"):
                left_for[operator["kept_for"]] = left_for.get(operator["kept_for"], 0) + operator["activation_bytes"]
            seen = self.most.get(operator["name"], self.begin if operator["name"] == first else 0)
            if seen > known:
                operator["temporary_bytes"] = seen - known
            known -= left_for.get(operator["name"], 0)


def size_of(variable):
    elements = 1
    for size in variable["shape"]:
        elements *= size
    return elements * {"f16": 2, "bf16": 2, "f64": 8}.get(variable["dtype"], 4)
