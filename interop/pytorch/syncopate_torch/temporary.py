"""The most that each operator of one iteration holds on a GPU besides what syncopate counts by itself ("temporary_bytes").

PyTorch's allocator knows how much it has given out, and the most since it was asked last. Both figures follow the host, so
nothing waits for the GPU. From an operator's most we subtract what syncopate counts otherwise: parameters, the optimizer's
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
    """Watches from the beginning of a forward pass. operator(name) says that the most held since the operator before is
    this one's. `apart` are bytes of gradients that are there, and of what keeps them."""

    def __init__(self, allocator, states_bytes, apart):
        self.allocator, self.states_bytes = allocator, states_bytes
        self.most = {}  # by operator
        self.begin = allocator.held() - apart
        allocator.most()

    def operator(self, name, apart):
        self.most[name] = max(self.most.get(name, 0), self.allocator.most() - apart)

    def describe(self, operators, parameters_bytes):
        """Add "temporary_bytes" to the operators of a description. The first may have ended before this began ("between
        iterations"). It gets what was held at the beginning."""
        known = parameters_bytes + self.states_bytes
        left_for = {}  # by backward operator: what it uses last
        for operator in operators:
            known += operator.get("activation_bytes", 0)
            if operator.get("kept_for"):
                left_for[operator["kept_for"]] = left_for.get(operator["kept_for"], 0) + operator["activation_bytes"]
            seen = self.most.get(operator["name"], self.begin if operator is operators[0] else 0)
            if seen > known:
                operator["temporary_bytes"] = seen - known
            known -= left_for.get(operator["name"], 0)
