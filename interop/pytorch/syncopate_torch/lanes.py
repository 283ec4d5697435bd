"""Process groups over the same ranks, so that several collectives are on their way at once.

gloo does two collectives of a group at a time, and a small one spends milliseconds waiting for the other ranks; several
groups have more collectives on their way. Collectives of a NCCL communicator follow one another on the device, so there
is one group.
"""

import torch.distributed as dist

GLOO_LANES = 4


def lanes_of(process_group, cross):
    """The groups that messages take in turn. Every rank must call this, in the same order among collectives.

    Without a barrier (cross) none of them is DDP's own group. There DDP sends buffers (those of BatchNorm) before a
    forward pass, while messages are still on their way, and ranks that begin two collectives of one group in different
    orders wait for ever. All ranks must take part when a group is made, also those outside of DDP's group.
    """
    if dist.get_world_size(process_group) == dist.get_world_size():
        backend = dist.get_backend(process_group)
        return [dist.new_group(backend=backend) for _ in range(GLOO_LANES if backend == "gloo" else 1)]
    if cross:
        raise ValueError("a strategy without a barrier needs all ranks in DDP's process group")
    return [process_group]
