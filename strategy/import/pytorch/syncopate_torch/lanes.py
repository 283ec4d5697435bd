"""Process groups over the same ranks, so that several collectives are on their way at once.

gloo does two collectives of a group at a time, and a small one takes milliseconds of waiting for each other; several
groups have more on their way. Collectives of a NCCL communicator follow one another on the device, so there is one.
"""

import torch.distributed as dist

GLOO_LANES = 4


def lanes_of(process_group):
    """The groups that messages take in turn. Every rank must call this, in the same order among collectives."""
    spans_all = dist.get_world_size(process_group) == dist.get_world_size()
    if dist.get_backend(process_group) != "gloo" or not spans_all:
        return [process_group]
    return [dist.new_group() for _ in range(GLOO_LANES)]
