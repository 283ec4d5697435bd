"""A strategy's merge groups and message sizes in DistributedDataParallel, exactly, whatever its buckets are.

    from syncopate_torch.hook import distribute
    model = distribute(model, "ddp-groups.json")

in place of DistributedDataParallel(model). The file is what `syncopate strategy export --to pytorch-ddp` writes where no
bucket size makes the groups or messages are cut. Gradients come from DDP in buckets as small as it makes them; here they wait until their
group is whole, and then one all-reduce goes for the group, or one for each part of at most partition_bytes. Groups go in
the order in which they become whole, which is the same on all ranks, since DDP hands out buckets in one order.

The mean is taken as DDP takes it: each rank divides before the sum.
"""

import json

import torch
import torch.distributed
from torch.futures import Future, collect_all
from torch.nn.parallel import DistributedDataParallel

ONE_BYTE = 1 / 2**20  # in the MiB that bucket_cap_mb counts


def distribute(module, groups, **arguments):
    """DistributedDataParallel of the module with the groups of a file or of a parsed one; other arguments are DDP's."""
    if not isinstance(groups, dict):
        with open(groups, encoding="utf-8") as file:
            groups = json.load(file)
    model = DistributedDataParallel(module, bucket_cap_mb=ONE_BYTE, **arguments)
    model.register_comm_hook(Groups(model, groups["groups"]), reduce)
    return model


def reduce(state, bucket):
    """The communication hook."""
    return state.take(bucket)


class Groups:
    """Which parameter is in which group, and what of each group has arrived in this iteration."""

    def __init__(self, model, groups):
        self.process_group = model.process_group
        named = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        names = [name for group in groups for name in group["variables"]]
        if sorted(names) != sorted(named):
            odd = sorted(set(names) ^ set(named)) or sorted(n for n in set(names) if names.count(n) > 1)
            raise ValueError(f"the groups are not of this module: {', '.join(odd[:3])}")
        self.group_of = {named[name]: i for i, group in enumerate(groups) for name in group["variables"]}
        self.sizes = [len(group["variables"]) for group in groups]
        self.partitions = [group.get("partition_bytes", 0) for group in groups]
        self.arrived = [[] for _ in groups]
        self.done = [None for _ in groups]  # the futures of this iteration, to be waited for

    def take(self, bucket):
        """Put the bucket's gradients to their groups, send those that are whole; the future waits for all of them."""
        buffer, needed = bucket.buffer(), {}
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
            group = self.group_of[parameter]
            if not self.arrived[group]:
                self.done[group] = Future(devices=[buffer.device] if buffer.is_cuda else None)
            self.arrived[group].append(gradient)
            needed[group] = self.done[group]
            if len(self.arrived[group]) == self.sizes[group]:
                gradients, self.arrived[group] = self.arrived[group], []
                self.send(gradients, self.partitions[group], self.done[group])
        return collect_all(list(needed.values())).then(lambda all_done: all_done.value() and buffer)

    def send(self, gradients, partition_bytes, done):
        """Sum a group's gradients over all ranks, in place; `done` then has them."""
        one = gradients[0].view(-1) if len(gradients) == 1 else torch.cat([g.reshape(-1) for g in gradients])
        one.div_(torch.distributed.get_world_size(self.process_group))
        most = partition_bytes // one.element_size() or one.numel()
        works = [
            torch.distributed.all_reduce(part, group=self.process_group, async_op=True).get_future()
            for part in one.split(most)
        ]

        def finish(sums):
            try:
                for sum_ in sums.value():
                    sum_.value()
                if len(gradients) > 1:
                    parts = one.split([g.numel() for g in gradients])
                    for gradient, part in zip(gradients, parts):
                        gradient.copy_(part.view_as(gradient))
                done.set_result(gradients)
            except Exception as error:  # whoever waits is to know, not this thread
                done.set_exception(error)

        collect_all(works).then(finish)
