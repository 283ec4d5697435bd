"""Update a part of the parameters on each rank and gather the rest: a group with "sharded": "optimizer" (ZeRO-1, DeAR).

Such a message travels twice. First each rank gets the sum of its share of the gradients: all ranks send each other their
parts, and add up (gloo's own reduce-scatter sends twice as much, scatter.py). The optimizer updates this share, and has state for
it alone. Then all ranks send each other the updated shares.

The parameters of a group become views of one buffer, in which they lie as their gradients do in the group's. So a share
is a run of the buffer, and what comes in needs no copy. In the optimizer's groups each parameter gives way to the slice
of it that is in this rank's share, if any.

With a barrier optimizer.step() ends when all is there. Without one it ends when all shares are on their way, and a
module waits for its parameters before it runs (deferred.py).
"""

import torch
import torch.distributed as dist

from .deferred import Deferred


class Share:
    """This rank's part of a message: `own` of the parameters' `values`, and the `sum` of its gradients."""

    def __init__(self, values, group):
        self.values, self.group = values, group
        self.ranks, rank, n = dist.get_world_size(group), dist.get_rank(group), values.numel()
        self.sizes = [n // self.ranks + (k < n % self.ranks) for k in range(self.ranks)]
        self.first, self.length = sum(self.sizes[:rank]), self.sizes[rank]
        self.own = values[self.first : self.first + self.length]
        self.sum = torch.zeros_like(self.own)
        self._received = None

    def scatter(self, gradients):
        self._received = torch.empty(self.ranks * self.length, dtype=gradients.dtype, device=gradients.device)
        return self._exchange(self._received, gradients, [self.length] * self.ranks, self.sizes)

    def add_up(self):
        if self._received.is_cuda:
            self._received.record_stream(torch.cuda.current_stream())  # another one allocated it
        torch.sum(self._received.view(self.ranks, -1), 0, out=self.sum)
        self._received = None

    def gather(self):
        return self._exchange(self.values, self.own.repeat(self.ranks), self.sizes, [self.length] * self.ranks)

    def _exchange(self, into, out, receives, sends):
        return dist.all_to_all_single(into, out, receives, sends, group=self.group, async_op=True)


def share_out(layout, lanes):
    """Give each message of a sharded group its Share, and return slices of parameters: {parameter: [(slice, sum)]}."""
    slices = {}
    for run in layout.runs:
        values = torch.empty_like(run.buffer)
        for piece, start in zip(run.pieces, run.starts):
            parameter = piece.variable.parameter
            place = values[start : start + piece.elements]
            place.copy_(parameter.detach().reshape(-1))
            parameter.data = place.view(parameter.shape)
            slices[parameter] = []
        begin = 0
        for i in run.messages:
            message = layout.messages[i]
            end = begin + message.buffer.numel()
            message.share = share = Share(values[begin:end], lanes[i % len(lanes)])
            first, last = begin + share.first, begin + share.first + share.length
            for piece, start in zip(run.pieces, run.starts):
                a, b = max(first, start), min(last, start + piece.elements)
                if a < b:
                    part = torch.nn.Parameter(values[a:b])
                    slices[piece.variable.parameter].append((part, share.sum[a - first : b - first]))
            begin = end
    return slices


class Parts(Deferred):
    """Takes the place of optimizer.step, with a barrier and without."""

    def __init__(self, optimizer, module, exchange, slices):
        super().__init__(optimizer, module, exchange)
        if optimizer.state:
            raise ValueError("the optimizer has state of whole parameters already: call distribute before the first step")
        self.slices = slices
        self.arriving = {}  # what the gathers of messages wait for, by the message's number
        for group in optimizer.param_groups:
            group["params"] = [part for p in group["params"] for part in self._parts(p)]
        plain = optimizer.zero_grad
        optimizer.zero_grad = lambda *args, **options: (plain(*args, **options), self._forget_gradients())

    def _parts(self, parameter):
        return [part for part, _ in self.slices[parameter]] if parameter in self.slices else [parameter]

    def _forget_gradients(self):
        """Of whole parameters there are only this rank's own gradients, which are of no more use."""
        for parameter in self.slices:
            parameter.grad = None

    def step(self, closure=None):
        if closure is not None:
            raise ValueError("a strategy that updates in parts cannot run a closure")
        self.finish()
        for parameter, parts in self.slices.items():
            self.exchange.wait(self.exchange.variables[parameter])
            for part, total in parts:
                part.grad = total
        self.plain_step()
        self._forget_gradients()
        messages = self.exchange.messages
        for i in sorted((i for i, m in enumerate(messages) if m.share), key=lambda i: (messages[i].urgency, i)):
            self.arriving[i] = messages[i].share.gather()
        self.waiting = set(self.slices)
        if not self.exchange.cross:
            self.finish()

    def need(self, parameters):
        due = [p for p in parameters if p in self.waiting]
        for i in {i for p in due for i in self.exchange.variables[p].messages}:
            if i in self.arriving:
                self.arriving.pop(i).wait()
        self.waiting.difference_update(due)
