"""Shard a model by a strategy with PyTorch's fully_shard (FSDP2): parameters, gradients and optimizer state in parts.

    from syncopate_torch.fsdp import apply
    model = apply(model, "fsdp2.json")
    optimizer = torch.optim.AdamW(model.parameters())

The file is what `syncopate strategy export --to fsdp2` writes. The optimizer is made afterwards: the model's parameters
are other ones then. The file, or a parsed one:

    {"forward_prefetch": n, "backward_prefetch": n, "shard_ranks": n,
     "accumulation": {"micro_batches": n, "synchronize": "last"},
     "groups": [{"variables": [NAME, ...], "reshard_after_forward": true, "param_dtype": "bf16", "reduce_dtype": "f32"}]}

A group's variables are gathered by one all-gather and their gradients summed by one reduce-scatter. Groups are in the
order of the forward pass, and their variables are those of whole modules (wrapping.py). Members without which a file is
whole, and what they are then:
  forward_prefetch, backward_prefetch  how many groups ahead parameters are gathered; 1
  shard_ranks            how many consecutive ranks share the shards; all. Replicas of these all-reduce (HSDP)
  reshard_after_forward  true: gathered parameters are freed after the forward pass, and gathered again for the backward
                         pass; false: they stay; a number: each so many ranks keep all of them together. What
                         fully_shard does: true, but false for the group of the model itself
  param_dtype            f32, bf16 or f16, in which parameters are gathered and computed with; their own
  reduce_dtype           in which gradients travel and are summed; param_dtype
  accumulation           for micro_batches(model); none

gloo on CPUs carries all of this. fully_shard never sends there while it computes, so apply has it gather ahead in the
background, and sums by a reduce-scatter of its own (scatter.py). On GPUs the streams of fully_shard do so, 2 groups ahead
in the forward and 1 in the backward pass. A file that says just that is left to them; another one has explicit prefetches.
"""

import torch
import torch.distributed as dist

from .description import read_groups
from .wrapping import plan_calls, whole_variables, words_for

STREAMS = (2, 1)  # how far ahead fully_shard's own streams gather on a GPU
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}
SYNCHRONIZE = ("last", "each", "each_all_reduce_last")
DEFAULT_ACCUMULATION = {"micro_batches": 1, "synchronize": "last"}


def apply(module, strategy, allow_lossy=False, device_type=None):
    """Call fully_shard on the module, in place, as the strategy says; returns it. All parameters and buffers begin as
    rank 0 has them. `allow_lossy`: whether a type with fewer bits than the parameters may be used."""
    fully_shard = find_fully_shard()
    strategy, name = read_groups(strategy, "fsdp2")
    groups = strategy["groups"]
    try:
        check_members(strategy)
        check_numbers(strategy)
        variables = whole_variables(module, groups)
        policies = [policy_of(k, groups[k], variables, allow_lossy) for k in range(len(groups))]
        calls = plan_calls(module, groups, variables)
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}") from problem
    device_type = device_type or next(module.parameters()).device.type
    mesh = mesh_of(strategy, device_type)
    begin_alike(module)
    units = {}
    for k, modules in calls:
        together = modules[0] if len(modules) == 1 else modules
        reshard = groups[k].get("reshard_after_forward")
        fully_shard(together, mesh=mesh, reshard_after_forward=reshard, mp_policy=policies[k])
        units[k] = modules[0]
    if module not in units.values():
        fully_shard(module, mesh=mesh)  # the root, which has no parameters of its own
    gather_ahead(module, [units[k] for k in sorted(units)], strategy, device_type)
    if device_type == "cpu":
        scatter_in_the_background(module)
    module._syncopate_accumulation = {**DEFAULT_ACCUMULATION, **strategy.get("accumulation", {})}
    return module


def find_fully_shard():
    try:
        from torch.distributed.fsdp import FSDPModule, fully_shard
    except (ImportError, ValueError):  # PyTorch 1.13 ends with the second under Python 3.11
        FSDPModule = None
    if not hasattr(FSDPModule, "set_custom_reduce_scatter"):
        raise RuntimeError(f"sharded parameters need fully_shard of PyTorch 2.13, and this is PyTorch {torch.__version__}")
    return fully_shard


# ---- what a file may say ----


def whole(value, least):
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


MEMBERS = {"strategy", "groups", "forward_prefetch", "backward_prefetch", "shard_ranks", "accumulation"}
GROUP_MEMBERS = {"variables", "reshard_after_forward", "param_dtype", "reduce_dtype"}


def check_members(strategy):
    if not isinstance(strategy.get("accumulation", {}), dict):
        raise ValueError(f"accumulation is {strategy['accumulation']!r}: an object with micro_batches and synchronize")
    for where, found, known in [
        ("", strategy, MEMBERS),
        *((f"group {k}: ", group, GROUP_MEMBERS) for k, group in enumerate(strategy["groups"])),
        ("accumulation: ", strategy.get("accumulation", {}), set(DEFAULT_ACCUMULATION)),
    ]:
        strange = sorted(set(found) - known)
        if strange:
            raise ValueError(f"{where}{strange[0]!r} is unknown here; there are {', '.join(sorted(known))}")


def check_numbers(strategy):
    n, ranks = len(strategy["groups"]), dist.get_world_size()
    for member in ("forward_prefetch", "backward_prefetch"):
        depth = strategy.get(member, 1)
        if not whole(depth, 0) or depth > n:
            raise ValueError(f"{member} is {depth!r}: a whole number up to {n}, the number of groups")
    share = strategy.get("shard_ranks", ranks)
    if not whole(share, 1) or ranks % share:
        raise ValueError(f"shard_ranks is {share!r}, which does not divide the {ranks} ranks")
    for k, group in enumerate(strategy["groups"]):
        reshard = group.get("reshard_after_forward", True)
        if not isinstance(reshard, bool) and (not whole(reshard, 2) or reshard >= share or share % reshard):
            raise ValueError(
                f"group {k}: reshard_after_forward is {reshard!r}: true, false, or a number above 1 and below {share}, "
                "the ranks that share shards, which divides it"
            )
    accumulation = {**DEFAULT_ACCUMULATION, **strategy.get("accumulation", {})}
    if not whole(accumulation["micro_batches"], 1):
        raise ValueError(f"micro_batches is {accumulation['micro_batches']!r}, and no whole number from 1")
    if accumulation["synchronize"] not in SYNCHRONIZE:
        raise ValueError(f"synchronize is {accumulation['synchronize']!r}, and none of {', '.join(SYNCHRONIZE)}")


def policy_of(k, group, variables, allow_lossy):
    """The MixedPrecisionPolicy of group k."""
    from torch.distributed.fsdp import MixedPrecisionPolicy

    own, types = variables[group["variables"][0]].parameter.dtype, {}
    for member in ("param_dtype", "reduce_dtype"):
        if member not in group:
            continue
        if group[member] not in TYPES:
            raise ValueError(f"group {k}: {member} is {group[member]!r}, and none of {', '.join(TYPES)}")
        types[member] = TYPES[group[member]]
        if torch.finfo(types[member]).bits < torch.finfo(own).bits and not allow_lossy:
            raise ValueError(f"{words_for(k, group)}: {member} {group[member]} rounds: pass allow_lossy=True")
    return MixedPrecisionPolicy(**types)


# ---- what fully_shard is told ----


def mesh_of(strategy, device_type):
    from torch.distributed.device_mesh import init_device_mesh

    ranks = dist.get_world_size()
    share = strategy.get("shard_ranks", ranks)
    if share == ranks:
        return init_device_mesh(device_type, (ranks,))
    return init_device_mesh(device_type, (ranks // share, share), mesh_dim_names=("replicate", "shard"))


def begin_alike(module):
    """As DistributedDataParallel does."""
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if not tensor.is_meta:
                alike = tensor.detach().contiguous()
                dist.broadcast(alike, 0)
                tensor.copy_(alike)


def gather_ahead(module, units, strategy, device_type):
    forward, backward = strategy.get("forward_prefetch", 1), strategy.get("backward_prefetch", 1)
    if device_type != "cpu" and (forward, backward) == STREAMS:
        return
    module._set_unshard_async_op(True)
    for i, unit in enumerate(units):
        unit.set_modules_to_forward_prefetch(units[i + 1 : i + 1 + forward])
        before = units[max(i - backward, 0) : i][::-1]
        unit.set_modules_to_backward_prefetch(before or [unit])  # itself: nothing, where an empty list means the default


def scatter_in_the_background(module):
    from .scatter import Exchange, SumOfParts

    exchange = Exchange()
    for part in module.modules():
        state = part._get_fsdp_state() if hasattr(part, "_get_fsdp_state") else None
        for parameters in state._fsdp_param_groups if state else []:
            part.set_custom_reduce_scatter(SumOfParts(parameters, exchange))


# ---- accumulation ----


def micro_batches(model):
    """The numbers of an iteration's micro-batches, for gradients that are added up over them:

    for i in micro_batches(model):
        (loss(model(inputs[i])) / n).backward()

    "synchronize" of the strategy says what is sent: last: nothing before the last one, and gradients are kept whole;
    each: after each, so that they are kept as shards; each_all_reduce_last: the same, but replicas all-reduce once."""
    accumulation = model._syncopate_accumulation
    n, synchronize = accumulation["micro_batches"], accumulation["synchronize"]
    try:
        for i in range(n):
            last = i == n - 1
            model.set_requires_gradient_sync(last or synchronize != "last")
            if synchronize == "each_all_reduce_last":
                model.set_requires_all_reduce(last)
            yield i
    finally:
        model.set_requires_gradient_sync(True)
