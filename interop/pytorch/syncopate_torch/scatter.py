"""A reduce-scatter for fully_shard over gloo: half the bytes, and computing goes on meanwhile.

gloo's own reduce_scatter_tensor moves what an all-reduce moves: measured on three ranks, 4 times the bytes of the whole
buffer in all, where 2 are needed. And on a CPU fully_shard waits until it has ended. Here each rank sends every other
one its part (all_to_all_single) and adds up what it gets, in the order of ranks: 2 times.

The sum is there when the next reduce-scatter begins, or the backward pass ends, as on a GPU, where the compute stream
waits for the reduce-scatter before it frees its input. That is sound only where nobody looks at the sum until then:
`may_wait` says so for a group of parameters. Elsewhere (gradients that are added to earlier ones, converted, divided once
more, or summed among replicas) it is waited for at once.
"""

import torch
import torch.distributed as dist
from torch.autograd import Variable
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter

UNDIVIDED = (torch.float32, torch.bfloat16)  # the types in which fully_shard lets the collective divide


class Exchange:
    """The one reduce-scatter of a model that is on its way, if any."""

    def __init__(self):
        self.work, self.finish = None, None

    def begin(self, work, finish):
        self.work, self.finish = work, finish

    def settle(self):
        work, finish, self.work, self.finish = self.work, self.finish, None, None
        if work:
            work.wait()
            finish()


class SumOfParts(ReduceScatter):
    """fully_shard's reduce-scatter for one group of parameters."""

    def __init__(self, parameters, exchange):
        self.parameters, self.exchange = parameters, exchange  # parameters: an FSDPParamGroup

    def allocate(self, size, *, dtype, device):
        """First of all of the input; by then what the reduce-scatter before holds is free again."""
        self.exchange.settle()
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            raise ValueError("over gloo gradients are summed or averaged: set_gradient_divide_factor needs NCCL")
        ranks = group.size()
        received = torch.empty_like(input_tensor)
        work = dist.all_to_all_single(received, input_tensor, group=group, async_op=True)

        def finish():
            add_up(received.view(ranks, -1), output_tensor, ranks if op == dist.ReduceOp.AVG else 1)

        self.exchange.begin(work, finish)
        if may_wait(self.parameters, output_tensor.dtype):
            Variable._execution_engine.queue_callback(self.exchange.settle)
        else:
            self.exchange.settle()


def add_up(parts, output, divisor):
    """Inside of torch.sum 16-bit floats are added up in 32 bits."""
    torch.sum(parts, 0, out=output)
    if divisor > 1:
        output.div_(divisor)


def may_wait(parameters, dtype):
    """Whether fully_shard only keeps views of the sum until the backward pass ends."""
    shards = [p.sharded_param for p in parameters.fsdp_params]
    return (
        not parameters._is_hsdp
        and parameters._all_reduce_hook is None
        and dtype in UNDIVIDED
        and parameters._orig_dtype == dtype
        and all(s.grad is None and not getattr(s, "_post_accumulate_grad_hooks", None) for s in shards)
    )
