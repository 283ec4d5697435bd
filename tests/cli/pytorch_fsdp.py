"""Real fully_shard on gloo ranks of this machine: whatever a strategy of sharded parameters says, training by it is plain
training on the data of all ranks. Called by pytorch_fsdp.sh as

    pytorch_fsdp.py profile      writes model.json of the network below
    pytorch_fsdp.py bytes        what our reduce-scatter and gloo's send; needs a network of its own
    pytorch_fsdp.py FILE...      trains; FILEs are strategies for the network, exported from syncopate: X.json to fsdp2, and
                                 beside it X.py to fsdp2-code; four_X.json is for four ranks

Prints ok and not ok lines. SYNCOPATE_TEST_SEED sets the seed of the random strategies."""

import functools
import json
import os
import random
import runpy
import subprocess
import sys
import time
import warnings

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import syncopate_torch
from gloo_ranks import run_ranks, verdict
from syncopate_torch.fsdp import apply, micro_batches
from syncopate_torch.memory import PeakMemory

TOO_FAR = {torch.float64: 1e-10, torch.float32: 2e-5}
STEPS, RANDOM_STRATEGIES = 4, 2


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(16, 34), torch.nn.Tanh(), torch.nn.Linear(34, 16))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)


class Network(torch.nn.Module):
    """Blocks in a list, which is never called; a parameter of the root; rows that 3 ranks cannot share evenly."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(40, 16)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.norm = torch.nn.LayerNorm(16)
        self.scale = torch.nn.Parameter(torch.ones(16))
        self.head = torch.nn.Linear(16, 40)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x) * self.scale)


def network(dtype=torch.float64, seed=1):
    torch.manual_seed(seed)
    return Network().to(dtype)


def named(*prefixes):
    """The names of the network's parameters that begin so, in the order of the forward pass."""
    return [name for name, _ in network().named_parameters() if name.startswith(prefixes)]


BLOCKS = ["blocks.0.", "blocks.1.", "blocks.2."]
LEAVES = [
    "words", *(b + m for b in BLOCKS for m in ("norm.", "attention.", "mlp.0.", "mlp.2.")), "norm.", "scale", "head.",
]  # fmt: skip
WRAPPINGS = {
    "one_group": [named("")],
    "a_group_a_block": [named("words"), *map(named, BLOCKS), named("norm", "scale", "head")],
    "a_group_a_module": [named(leaf) for leaf in LEAVES],
    "modules_side_by_side": [named("words", "blocks.0."), named("blocks.1.", "blocks.2."), named("norm", "head"), ["scale"]],
}


def groups(wrapping, **more):
    return [{"variables": names, **more} for names in wrapping]


def random_strategy(rng, ranks):
    """A cut of the forward order into runs, and all else that a strategy may say."""
    cuts = sorted(rng.sample(range(1, len(LEAVES)), rng.randint(0, len(LEAVES) - 1)))
    runs = [[n for leaf in LEAVES[a:b] for n in named(leaf)] for a, b in zip([0, *cuts], [*cuts, len(LEAVES)])]
    out = {"forward_prefetch": rng.randint(0, len(runs)), "backward_prefetch": rng.randint(0, len(runs))}
    out["shard_ranks"] = rng.choice([n for n in range(1, ranks + 1) if ranks % n == 0])
    kept = [n for n in range(2, out["shard_ranks"]) if out["shard_ranks"] % n == 0]
    out["groups"] = [{"variables": run, "reshard_after_forward": rng.choice([True, False, *kept])} for run in runs]
    return out


# ---- training ----


def batch(rank, step, micro=0):
    data = torch.Generator().manual_seed(1000 * step + 10 * micro + rank)
    return torch.randint(40, (4, 6), generator=data)


def loss_of(model, tokens):
    return cross_entropy(model(tokens).flatten(0, 1), (tokens.flatten() * 7 + 1) % 40)


def optimizer_of(model):
    return torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)  # what is zero but for rounding stays so


@functools.cache
def train_plainly(dtype, ranks, micro=1):
    """One process with the data of all: losses and parameters."""
    model, losses = network(dtype), []
    optimizer = optimizer_of(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        parts = [loss_of(model, batch(r, step, m)) for r in range(ranks) for m in range(micro)]
        loss = sum(parts) / len(parts)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach() for p in model.parameters()]


def train_sharded(strategy, dtype, micro=1, **options):
    """The same by all ranks. Each begins with other parameters, as rank 0's are to count."""
    losses, rank = [], dist.get_rank()
    by_code = isinstance(strategy, str) and strategy.endswith(".py")
    if by_code:
        model = runpy.run_path(strategy)["shard"](network(dtype), **options)
    else:
        model = apply(network(dtype, 1 + rank), strategy, **options)
    optimizer = optimizer_of(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        total = torch.zeros((), dtype=dtype)
        for m in range(1) if by_code else micro_batches(model):
            loss = loss_of(model, batch(rank, step, m)) / micro
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
    return losses, [p.full_tensor().detach() for p in model.parameters()]


def furthest(a, b):
    return max((x - y).abs().max().item() for x, y in zip(a, b))


def apart(strategy, dtype=torch.float64, micro=1, **options):
    """Empty, or how far from plain training it is."""
    plain, ours = train_plainly(dtype, dist.get_world_size(), micro), train_sharded(strategy, dtype, micro, **options)
    losses, parameters = max(abs(a - b) for a, b in zip(plain[0], ours[0])), furthest(plain[1], ours[1])
    far = not max(losses, parameters) < TOO_FAR[dtype] or not abs(plain[0][0] - plain[0][-1]) > 0.01
    return f"losses {losses:.1e} and parameters {parameters:.1e} apart" if far else ""


def strategies_train_alike(said, rng, files):
    ranks = dist.get_world_size()
    for name, wrapping in WRAPPINGS.items():
        for reshard in (True, False) if ranks == 3 else (2,):
            said[f"{name}_reshard_{reshard}"] = apart({"groups": groups(wrapping, reshard_after_forward=reshard)})
    for i in range(RANDOM_STRATEGIES):
        strategy, dtype = random_strategy(rng, ranks), rng.choice([torch.float32, torch.float64])
        why = apart(strategy, dtype)
        said[f"random_strategy_{i}"] = why and f"{why} by {strategy} in {dtype}"
    for file in files:
        name = os.path.basename(file).split(".")[0]
        said[name] = apart(file)
        said[f"code_{name}"] = apart(file[:-5] + ".py") or other_groups(file)


def groups_of(model):
    """What fully_shard has made: of each group its variables, how many ranks share its shards, and how many keep them
    after the forward pass, 0 where it stays gathered."""
    names = {id(p): name for name, p in model.named_parameters()}
    states = [part._get_fsdp_state() for part in model.modules() if hasattr(part, "_get_fsdp_state")]
    found = {id(group): group for state in states for group in state._fsdp_param_groups}

    def ranks(mesh):
        return mesh.shard_mesh_size if mesh else 0

    return {(frozenset(names[id(p.sharded_param)] for p in group.fsdp_params), ranks(group.mesh_info),
             ranks(group.post_forward_mesh_info)) for group in found.values()}  # fmt: skip


def other_groups(file):
    """Where the code makes other groups than apply does."""
    code = groups_of(runpy.run_path(file[:-5] + ".py")["shard"](network()))
    ours = groups_of(apply(network(), file))
    return "" if code and code == ours else f"{code ^ ours}"


def accumulation_trains_alike(said, kinds, **more):
    for kind in kinds:
        strategy = {"groups": groups(WRAPPINGS["a_group_a_block"]), **more}
        strategy["accumulation"] = {"micro_batches": 3, "synchronize": kind}
        said[f"accumulation_synchronized_{kind}"] = apart(strategy, torch.float32 if kind == "last" else torch.float64, micro=3)


def mixed_precision():
    """Against a plain model in bf16 whose gradients are summed in f32, with a copy of the parameters in f32."""
    strategy = {"groups": groups(WRAPPINGS["one_group"], param_dtype="bf16", reduce_dtype="f32")}
    losses, parameters = train_sharded(strategy, torch.float32, allow_lossy=True)
    master, plain = network(torch.float32), []
    optimizer = optimizer_of(master)
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0
        for rank in range(dist.get_world_size()):
            rounded = network().to(torch.bfloat16)
            rounded.load_state_dict(master.state_dict())
            loss = loss_of(rounded, batch(rank, step))
            loss.backward()
            total += loss.item() / dist.get_world_size()
            for p, q in zip(master.parameters(), rounded.parameters()):
                p.grad = (0 if p.grad is None else p.grad) + q.grad.float() / dist.get_world_size()
        torch.nn.utils.clip_grad_norm_(master.parameters(), 1.0)
        optimizer.step()
        plain.append(total)
    away = furthest(parameters, list(master.parameters()))
    losses_away = max(abs(a - b) for a, b in zip(losses, plain))
    return "" if away < 1e-4 and losses_away < 1e-2 else f"parameters {away:.1e}, losses {losses_away:.1e} apart"


def types_are_as_said(file):
    """Of an exported file that gathers bf16 and sums f32: what fully_shard is told of each group, in which type the
    parameters are while a layer computes, and that of their shards and gradients; and losses near those of f32."""
    model, seen = apply(network(torch.float32), file, allow_lossy=True), set()
    for part in model.modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda module, inputs, output: seen.add(module.weight.dtype))
    loss_of(model, batch(0, 0)).backward()
    states = [part._get_fsdp_state() for part in model.modules() if hasattr(part, "_get_fsdp_state")]
    told = {(g.mp_policy.param_dtype, g.mp_policy.reduce_dtype) for s in states for g in s._fsdp_param_groups}
    held = {p.dtype for p in model.parameters()} | {p.grad.dtype for p in model.parameters()}
    narrow, _ = train_sharded(file, torch.float32, allow_lossy=True)
    wide, _ = train_plainly(torch.float32, dist.get_world_size())
    away = max(abs(a - b) for a, b in zip(narrow, wide))
    wanted = ({torch.bfloat16}, {(torch.bfloat16, torch.float32)}, {torch.float32})
    return "" if (seen, told, held) == wanted and 0 < away < 0.05 else f"{seen} {told} {held}, losses {away:.1e} apart"


# ---- what happens when ----


def chain(layers, width, strategy):
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers)))
    return apply(model, {"groups": [{"variables": [f"{i}.weight"]} for i in range(layers)], **strategy})


def groups_ahead():
    """How many groups are gathered or on their way, beside the one that computes, at each of six layers: at most the
    prefetch, and less only at the end of a pass."""
    layers, why = 6, []
    for forward, backward in ((0, 0), (1, 1), (2, 3), (4, 2)):
        model, seen = chain(layers, 12, {"forward_prefetch": forward, "backward_prefetch": backward}), {}

        def look(phase, i):
            states = [part._get_fsdp_state()._fsdp_param_groups[0] for part in model]
            gathered = [k for k, s in enumerate(states) if s._all_gather_result is not None or s.is_unsharded]
            seen[phase, i] = [k for k in gathered if k != i]

        def look_twice(output, i):
            look("forward", i)
            output.register_hook(lambda gradient: look("backward", i))  # after fully_shard's hook

        for i, part in enumerate(model):
            part.register_forward_hook(lambda module, inputs, output, i=i: look_twice(output, i))
        for _ in range(2):
            seen.clear()
            model(torch.ones(3, 12)).sum().backward()
        for i in range(layers):
            ahead = {"forward": list(range(i + 1, layers))[:forward], "backward": list(range(i))[::-1][:backward]}
            for phase, expected in ahead.items():
                if sorted(expected) != seen[phase, i]:
                    why.append(f"{forward} and {backward} ahead, {phase} {i}: {seen[phase, i]}")
    return ", ".join(why[:3])


def sums_in_the_background():
    """While a layer computes its gradients, the sum of the layer after it is on its way; in f64 it is not."""
    found = {}
    for dtype in (torch.float32, torch.float64):
        model = chain(4, 12, {}).to(dtype)
        exchange = model[0]._get_fsdp_state()._fsdp_param_groups[0]._reduce_scatter_comm.exchange
        on_its_way = []
        for part in model:
            part.register_full_backward_pre_hook(lambda *_: on_its_way.append(exchange.work is not None))
        model(torch.ones(3, 12, dtype=dtype)).sum().backward()
        found[dtype] = on_its_way, exchange.work is None
    right = {torch.float32: ([False, True, True, True], True), torch.float64: ([False] * 4, True)}
    return "" if found == right else str(found)


def sums_are_those_of_gloo():
    from syncopate_torch.scatter import add_up

    ranks, rank, why = dist.get_world_size(), dist.get_rank(), []
    for dtype, near in ((torch.float32, 1e-6), (torch.float64, 1e-14), (torch.bfloat16, 0.05)):
        mine = torch.randn(ranks * 50, generator=torch.Generator().manual_seed(rank)).to(dtype)
        theirs, ours, parts = torch.empty(50, dtype=dtype), torch.empty(50, dtype=dtype), torch.empty_like(mine)
        dist.reduce_scatter_tensor(theirs, mine, op=dist.ReduceOp.AVG)
        dist.all_to_all_single(parts, mine)
        add_up(parts.view(ranks, -1), ours, ranks)
        if not (theirs - ours).abs().max() < near:
            why.append(f"{dtype}: {(theirs - ours).abs().max():.1e}")
    return ", ".join(why)


def another_divisor():
    """What is said of a factor that gloo cannot divide by, and must not be passed over."""
    model = chain(1, 12, {})
    model.set_gradient_divide_factor(2.0)
    try:
        model(torch.ones(3, 12)).sum().backward()
    except ValueError as error:
        return "" if "set_gradient_divide_factor needs NCCL" in str(error) else str(error)
    return "nothing"


def peak_memory():
    """Of a chain, against what is counted by hand: shards of parameters, of two moments of Adam and of the gradients that
    are there; and whole layers: the gathered one that computes and its gradient, the next one on its way, and the input
    of the reduce-scatter before with what has come of it."""
    layers, width, ranks = 8, 640, dist.get_world_size()
    layer, why, peak = 4 * width * width, [], PeakMemory()
    for reshard in (True, False):
        model = chain(layers, width, {"groups": [
            {"variables": [f"{i}.weight"], "reshard_after_forward": reshard} for i in range(layers)]})  # fmt: skip
        optimizer = optimizer_of(model)
        for i in range(2):
            with peak:
                model(torch.ones(4, width)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        shards = 3 * layers / ranks
        counted = layer * (shards + (layers - 2) / ranks + 5 if reshard else shards + layers + 2 + 1 / ranks)
        if abs(peak.bytes / counted - 1) > 0.1 or peak.after > peak.before + layer:
            why.append(f"reshard {reshard}: {peak.bytes / layer:.2f} layers, counted {counted / layer:.2f}, "
                       f"{peak.before / layer:.2f} before, {peak.after / layer:.2f} after")  # fmt: skip
    return "; ".join(why)


def syncopate(*arguments):
    command = [os.environ["SYNCOPATE"], *arguments, "--log", "error"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def step_of(model, optimizer):
    tokens = torch.randint(500, (1, 32))
    cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()


def predicted_memory(rank):
    """Of three wrappings what is predicted, from a profile, against what one rank of four takes whose messages go
    nowhere: without the buffers of gloo."""
    from networks import Transformer
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    on, budget, peak, said = ("transformer.json", "four.json"), "24MB", PeakMemory(), {}
    model = Transformer(words=500, width=192, blocks=8)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    profile = syncopate_torch.profile(model, on[0], warmup=0, iterations=2)
    while not profile.done:
        step_of(model, optimizer)
    del model, optimizer, profile
    best = json.loads(syncopate("advise", *on, "--memory", budget, "--out", "advice", "--json"))["answers"][0]["id"]
    for name, how in {"fsdp-per-block": "--baseline", "fsdp-whole": "--baseline", f"advice/{best[:12]}.json": "--strategy"}.items():
        predicted = json.loads(syncopate("simulate", *on, how, name, "--json"))["memory"]
        exported = syncopate("strategy", "export", name, "--model", on[0], "--cluster", on[1], "--to", "fsdp2", "--strict")
        model = apply(Transformer(words=500, width=192, blocks=8), json.loads(exported))
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        step_of(model, optimizer)
        with peak:
            step_of(model, optimizer)
        off = predicted["peak_bytes"] / peak.bytes - 1
        known = predicted["optimizer_bytes"] and predicted["activations_bytes"] is not None
        said[f"memory_of_{'fsdp-optimal' if best[:12] in name else name}_is_predicted_to_a_tenth"] = (
            "" if abs(off) < 0.1 and known else f"{off:+.1%} of {peak.bytes}: {predicted}"
        )
        del model, optimizer
    return said


def loopback_bytes():
    with open("/proc/net/dev", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.strip().startswith("lo:"))


def bytes_sent(rank):
    """By all ranks, in buffers, while rank 0 looks at the counter of the loopback."""
    elements, ranks = 300000, dist.get_world_size()
    mine, part, parts = torch.ones(elements), torch.empty(elements // ranks), torch.empty(elements)
    counted = {}
    for name, collective in {
        "gloo": lambda: dist.reduce_scatter_tensor(part, mine),
        "ours": lambda: dist.all_to_all_single(parts, mine),
    }.items():
        collective()  # connects
        seen = []
        for repeat in (collective, lambda: None):
            dist.barrier()
            time.sleep(0.1)
            seen.append(loopback_bytes())
            dist.barrier()
            for _ in range(10):
                repeat()
        counted[name] = (seen[1] - seen[0]) / 10 / elements / 4
    right = abs(counted["gloo"] - 2 * (ranks - 1)) < 0.2 and abs(counted["ours"] - (ranks - 1)) < 0.1
    return {"our_reduce_scatter_sends_half_the_bytes_of_gloos": "" if right else str(counted)}


def write_profile():
    model = network(torch.float32)
    profile = syncopate_torch.profile(model, "model.json", name="network", warmup=1, iterations=3)
    while not profile.done:
        loss_of(model, batch(0, 0)).backward()


# ---- bad input ----


def refusal(strategy, model=None, **options):
    try:
        apply(model or network(), strategy, **options)
    except OSError as error:
        return str(error)
    except (ValueError, RuntimeError) as error:
        return str(error)
    return "nothing"


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x))


def refusals():
    half, blocks = named("")[: len(named("")) // 2], groups(WRAPPINGS["a_group_a_block"])
    split = groups([named("words", "blocks", "norm", "scale"), ["head.weight"], ["head.bias"]])
    projection = [n for n in named("blocks.1.attention") if "out_proj" in n]
    apart_from = groups([projection, [n for n in named("") if n not in projection]])
    cross = groups([["0.bias", "0.weight"], ["1.weight", "1.bias"]])
    sparse = torch.nn.Sequential(torch.nn.Embedding(9, 4, sparse=True), torch.nn.Linear(4, 4))
    mixed = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4).double())
    scalar = torch.nn.Sequential(torch.nn.Linear(4, 4))
    scalar.register_parameter("s", torch.nn.Parameter(torch.ones(())))
    crossed = torch.nn.Sequential(Holder(), Holder())
    interlaced = groups([["0.own", "1.inner.weight", "1.inner.bias"], ["1.own", "0.inner.weight", "0.inner.bias"]])
    half_precision = groups(WRAPPINGS["one_group"], param_dtype="bf16")
    return {
        "no groups of variables; syncopate strategy export --to fsdp2 writes them": refusal({"groups": [{}]}),
        "the strategy: no groups of variables": refusal({"groups": []}),
        "missing.json": refusal("missing.json"),
        "not of this module": refusal({"groups": groups([half])}),
        "group 2 (head.bias) is no set of whole modules: head (Linear) has variables of group 1 too": refusal(
            {"groups": split}
        ),
        "blocks.1.attention (MultiheadAttention) has variables of group 0 too": refusal({"groups": apart_from}),
        "is no set of whole modules: 0 (Holder) has variables of group 1 too": refusal({"groups": interlaced}, crossed),
        "two (Linear) has variables of group 0 too": refusal(
            {"groups": groups([["one.weight", "one.bias"], ["two.bias"]])}, Tied()
        ),
        "head.bias is in group 4 and in group 5": refusal({"groups": [*blocks, *groups([["head.bias"]])]}),
        "a part of head.bias": refusal({"groups": [*blocks, {"variables": [{"name": "head.bias", "from": 0, "to": 9}]}]}),
        "0.weight: its gradients are sparse": refusal(
            {"groups": groups([["0.weight"], ["1.weight", "1.bias"]])}, sparse
        ),
        "is of torch.float32 and torch.float64": refusal({"groups": groups([sum((g["variables"] for g in cross), [])])}, mixed),
        "s: it is a scalar": refusal({"groups": groups([["0.weight", "0.bias", "s"]])}, scalar),
        "forward_prefetch is 6: a whole number up to 5": refusal({"groups": blocks, "forward_prefetch": 6}),
        "backward_prefetch is -1": refusal({"groups": blocks, "backward_prefetch": -1}),
        "shard_ranks is 2, which does not divide the 3 ranks": refusal({"groups": blocks, "shard_ranks": 2}),
        "reshard_after_forward is 3: true, false": refusal({"groups": groups([named("")], reshard_after_forward=3)}),
        "synchronize is 'never'": refusal({"groups": blocks, "accumulation": {"synchronize": "never"}}),
        "micro_batches is 0": refusal({"groups": blocks, "accumulation": {"micro_batches": 0}}),
        "accumulation is 3: an object": refusal({"groups": blocks, "accumulation": 3}),
        "'forward_prefech' is unknown": refusal({"groups": blocks, "forward_prefech": 2}),
        "group 0: 'reshard' is unknown": refusal({"groups": groups([named("")], reshard=True)}),
        "param_dtype bf16 rounds: pass allow_lossy=True": refusal({"groups": half_precision}),
        "param_dtype is 'f8'": refusal({"groups": groups([named("")], param_dtype="f8")}),
    }


class Holder(torch.nn.Module):
    """A parameter of its own and a module inside."""

    def __init__(self):
        super().__init__()
        self.own, self.inner = torch.nn.Parameter(torch.ones(4)), torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x * self.own)


# ---- ranks ----


def three_ranks(rank, number, typed, files):
    said, rng = {}, random.Random(number)
    missing = [f"'{must}' not in '{text}'" for must, text in refusals().items() if must not in text or "\n" in text]
    said["what_fully_shard_cannot_do_is_refused_in_a_line"] = ", ".join(missing)
    strategies_train_alike(said, rng, [file for file in files if not file.startswith("four_")])
    accumulation_trains_alike(said, ("last", "each"))
    said["mixed_precision_is_that_of_a_rounded_copy"] = mixed_precision()
    said["types_are_as_the_exported_strategy_says"] = types_are_as_said(typed)
    said["parameters_are_gathered_as_far_ahead_as_said"] = groups_ahead()
    said["sums_travel_while_the_next_layer_computes"] = sums_in_the_background()
    said["our_reduce_scatter_sums_as_gloo_does"] = sums_are_those_of_gloo()
    said["another_divisor_is_refused"] = another_divisor()
    said["peak_memory_is_what_is_counted_by_hand"] = peak_memory()
    return said


def four_ranks(rank, number, files):
    said, rng = {}, random.Random(number + 1)
    strategies_train_alike(said, rng, [file for file in files if file.startswith("four_")])
    for name in ("a_group_a_block", "modules_side_by_side"):
        said[f"replicas_of_two_{name}"] = apart({"groups": groups(WRAPPINGS[name]), "shard_ranks": 2})
    said["replicas_of_two_by_code"] = apart(files[0][:-5] + ".py", shard_ranks=2)
    accumulation_trains_alike(said, ("last", "each", "each_all_reduce_last"), shard_ranks=2)
    return said


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    import torch.distributed.fsdp  # here, not in each rank

    optimizer_of(network())
    number = int(os.environ.get("SYNCOPATE_TEST_SEED") or time.time_ns() % 2**32)
    if sys.argv[1:] == ["profile"]:
        write_profile()
        sys.exit()
    said = run_ranks(3, bytes_sent) if sys.argv[1:] == ["bytes"] else {}
    if not said:
        print(f"seed {number}")
        said = run_ranks(1, predicted_memory) | run_ranks(3, three_ranks, number, sys.argv[1], sys.argv[2:])
        said |= {f"four_ranks_{name}": why for name, why in run_ranks(4, four_ranks, number, sys.argv[2:]).items()}
    for name, why in said.items():
        verdict(name, why)
