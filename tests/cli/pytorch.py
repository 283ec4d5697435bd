"""Real torch.distributed on gloo ranks of this machine: whatever a strategy says, training by the hook is training by
plain DistributedDataParallel. Called by pytorch.sh as

    pytorch.py MODULE_FOLDER profile FOLDER      writes FOLDER/model.json from ranks that train without each other
    pytorch.py MODULE_FOLDER bench ARGUMENT...   is `python -m syncopate_torch.bench ARGUMENT...` on every rank
    pytorch.py MODULE_FOLDER train HOOK_FILE...  trains by exported strategies and by random ones

Prints ok and not ok lines. SYNCOPATE_TEST_SEED sets the seed of the random strategies."""

import gc
import os
import random
import runpy
import sys
import tempfile
import time
import warnings

sys.path.insert(0, sys.argv[1])

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

import syncopate_torch
from gloo_ranks import free_port, verdict
from syncopate_torch import interference, lanes
from syncopate_torch.description import check_writable, read, words
from syncopate_torch.hook import distribute
from syncopate_torch.line import Follower, Leader, Line
from syncopate_torch.pushes import RoundTrip

TOO_FAR = 1e-10  # in f64
RANKS, STEPS, RANDOM_STRATEGIES = 3, 6, 6


class Network(torch.nn.Module):
    """Parameters that one module holds and another reads (attention's projection), one held twice, one of the root."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(40, 16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))
        self.again = torch.nn.Linear(16, 16)
        self.again.weight = self.layers[0].weight
        self.scale = torch.nn.Parameter(torch.ones(16))
        self.head = torch.nn.Linear(16, 40)

    def forward(self, tokens):
        x = self.words(tokens)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(self.again(x) * self.scale)


class Sparse(torch.nn.Module):
    """Two tables whose gradients are sparse, of which a step touches few rows, and one that no other step touches."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(400, 6, sparse=True, padding_idx=0)
        self.bags = torch.nn.EmbeddingBag(300, 6, mode="sum", sparse=True)
        self.head = torch.nn.Linear(6, 40)

    def forward(self, tokens):
        return self.head(torch.tanh(self.words(tokens)) + self.bags(tokens.flatten()[:, None]).view(*tokens.shape, 6))


def module(kind=Network):
    torch.manual_seed(1)
    return kind().double()


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(
        [{"params": list(p)[:5], "lr": 0.02}, {"params": list(p)[5:], "lr": 0.01}], lr=0.01
    ),
}


class Run:
    """What training came to."""

    def __init__(self, strategy, optimizer="sgd", kind=Network):
        model = module(kind)
        self.optimizer = OPTIMIZERS[optimizer](list(model.parameters()))
        scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)
        self.model = DistributedDataParallel(model) if strategy is None else distribute(model, strategy, self.optimizer)
        self.data = torch.Generator().manual_seed(dist.get_rank())
        self.losses, self.gradients = [], []
        for step in range(STEPS):
            self.iterate()
            scheduler.step()
            if step == STEPS // 2:
                self.evaluation = self.evaluate()
        self.parameters = [p.clone() for p in self.model.state_dict().values()]

    def iterate(self):
        tokens = torch.randint(40, (4, 6), generator=self.data)
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(tokens).flatten(0, 1), (tokens.flatten() * 7 + 1) % 40)
        loss.backward()
        self.gradients = [p.grad.clone().to_dense() for p in self.model.parameters()]
        self.optimizer.step()
        self.losses.append(loss.item())

    def evaluate(self):
        with torch.no_grad():
            return self.model.module(torch.arange(12).view(2, 6)).sum().item()


def furthest(a, b):
    return max((x - y).abs().max().item() for x, y in zip(a, b))


def compare(plain, ours, barrier):
    """Empty, or how far from plain DDP it is."""
    apart = {
        "losses": max(abs(a - b) for a, b in zip(plain.losses, ours.losses)),
        "parameters": furthest(plain.parameters, ours.parameters),
        "evaluation": abs(plain.evaluation - ours.evaluation) / 100,
    }
    if barrier:
        apart["gradients"] = furthest(plain.gradients, ours.gradients)
    return ", ".join(f"{what} {x:.1e} apart" for what, x in apart.items() if not x < TOO_FAR)


def random_member(rng, name, parameter):
    """The variable whole, or cut along an axis."""
    axis = rng.randrange(parameter.dim())
    size = parameter.shape[axis]
    if rng.random() < 0.6 or size < 3:
        return [name]
    cuts = sorted(rng.sample(range(1, size), rng.randint(1, min(3, size - 1))))
    return [{"name": name, "axis": axis, "from": a, "to": b} for a, b in zip([0, *cuts], [*cuts, size])]


def random_server(rng, node_ranks):
    node = rng.randrange(len(node_ranks))
    return {"node": f"n{node + 1}", "rank": sum(node_ranks[:node]), "local_reduction": rng.random() < 0.6}


def random_strategy(rng, served=0.0, kind=Network):
    """Any groups, parts, order, credit and barrier; a group is served, or its sparse gradients are gathered, with
    probability `served`."""
    named = dict(module(kind).named_parameters())
    policies = ["fifo", "priority"] if served else ["fifo", "priority", "preemptive"]
    out = {"policy": rng.choice(policies), "cross_iteration": rng.random() < 0.6}
    out["node_ranks"] = rng.choice([[1, 1, 1], [2, 1], [0, 1, 2], [3]])
    members = [m for name, p in named.items() for m in (random_member(rng, name, p) if served else [name])]
    rng.shuffle(members)
    cuts = sorted(rng.sample(range(1, len(members)), rng.randint(0, len(members) - 1)))
    groups = [
        {
            "algorithm": "auto",
            "partition_bytes": rng.choice([0, 0, 1000, 4096]),
            "needed": rng.randint(0, 9),
            "variables": members[a:b],
        }
        for a, b in zip([0, *cuts], [*cuts, len(members)])
    ]
    for group in groups:
        if rng.random() < served:
            group["server"] = random_server(rng, out["node_ranks"])
    out["groups"] = groups if kind == Network else with_rows(rng, groups, served)
    if rng.random() < 0.7:
        out["credit_bytes"] = rng.choice([0, 2048, 100000])
    if rng.random() < 0.5:
        out["pulls"] = "priority"
    if out["policy"] == "preemptive":
        out["slices"] = random_slices(rng, groups, named)
    return out


def with_rows(rng, groups, served):
    """Members of sparse gradients into groups of their own, in which touched rows travel, with probability `served`."""
    out = []
    for group in groups:
        tables = [m for m in group["variables"] if "head" not in str(m) and rng.random() < served]
        dense = [m for m in group["variables"] if m not in tables]
        rows = [{**(m if isinstance(m, dict) else {"name": m}), "rows": 24} for m in tables]
        out += [{**group, "variables": dense}] if dense else []
        algorithm = "auto" if "server" in group else "all_gather"
        if dense and rows and "server" in group and rng.random() < 0.5:  # several in one push
            out[-1]["variables"] = rng.sample(dense + rows, len(dense + rows))
        else:
            out += [{**group, "variables": rows, "algorithm": algorithm}] if rows else []
    return out


def random_slices(rng, groups, named):
    slices = []
    for g, group in enumerate(groups):
        left = sum(named[name].numel() for name in group["variables"])
        while left:
            length = min(left, rng.randint(100, 900))
            slices.append({"group": g, "bytes": 8 * length})
            left -= length
    rng.shuffle(slices)
    return slices


def refusal(action):
    try:
        action()
    except OSError as error:
        return words(error)
    except (ValueError, RuntimeError) as error:
        return str(error)
    return ""


def one_group(encoding=None, server=None, **more):
    group = {"algorithm": "auto", "partition_bytes": 0, "variables": [n for n, _ in module().named_parameters()]}
    if encoding:
        group["encoding"] = encoding
    if server is not None:
        group["server"] = {"node": "n", "rank": server}
    return {"groups": [group], "node_ranks": [1] * RANKS, **more}


def encoded_gradients(encoding, cross, server=None):
    """How far the mean gradients of one backward pass are from plain DDP's, as a part of the largest: empty where that
    is what rounding to the encoding explains, or where the backend refuses to sum it."""
    plain, ours = module(), module()
    optimizers = [torch.optim.SGD(m.parameters(), 1.0) for m in (plain, ours)]
    start = [p.clone() for p in plain.state_dict().values()]
    strategy = one_group(encoding, server, cross_iteration=cross)
    try:
        ours = distribute(ours, strategy, optimizers[1], allow_lossy=True)
    except ValueError as error:
        summed = encoding == "bf16" and server is None
        return "" if summed and "cannot sum torch.bfloat16" in str(error) else str(error)
    after = []
    for model, optimizer in zip((DistributedDataParallel(plain), ours), optimizers):
        tokens = torch.arange(24).view(4, 6) + dist.get_rank()
        model(tokens).square().mean().backward()
        optimizer.step()
        after.append([p.clone() for p in model.state_dict().values()])
    rounding = {"f16": 2**-9, "bf16": 2**-6}[encoding]
    most, away = furthest(after[0], start), furthest(*after)
    return "" if 0 < away < rounding * most else f"{away:.1e} apart, gradients up to {most:.1e}"


def two_backward_passes():
    model = module()
    model = distribute(model, one_group(cross_iteration=True), torch.optim.SGD(model.parameters(), 0.1))
    tokens = torch.arange(6).view(1, 6)
    try:
        for _ in range(2):
            model(tokens).sum().backward()
    finally:
        dist.barrier()


def refusals():
    """What is said to what must be said."""
    model = module()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    strange, lbfgs = torch.optim.SGD(module().parameters(), 0.1), torch.optim.LBFGS(model.parameters())
    cross = one_group(cross_iteration=True)
    said = {
        "parameters are not updated by it": refusal(lambda: distribute(model, cross, strange)),
        "LBFGS looks at all": refusal(lambda: distribute(model, cross, lbfgs)),
        "none of fifo, priority": refusal(lambda: distribute(model, one_group(policy="frobnicate"))),
        "syncopate strategy export": refusal(lambda: distribute(model, {"groups": [{}]})),
        "credit_bytes is no": refusal(lambda: distribute(model, one_group(credit_bytes="7"))),
        "rounded to f16: pass allow_lossy=True": refusal(lambda: distribute(model, one_group(encoding="f16"))),
        "encoding \"f8\" is none of f16, bf16": refusal(
            lambda: distribute(model, one_group(encoding="f8"), allow_lossy=True)
        ),
        "bucket_cap_mb: ": refusal(lambda: distribute(model, one_group(), bucket_cap_mb=25)),
    }
    head = [{"variables": [{"name": "head.bias", "from": a, "to": b}]} for a, b in ((0, 9), (9, 40))]
    rest = [n for n, _ in model.named_parameters() if n != "head.bias"]
    rows = {"groups": [{"variables": [{"name": "head.bias", "rows": 3}, *rest]}]}
    summed = {"groups": [{"variables": [{"name": "words.weight", "rows": 3}, "bags.weight", "head.weight", "head.bias"]}]}
    two_nodes, second = one_group(server=0, node_ranks=[1, 1]), one_group(server=1, node_ranks=[RANKS])
    second["groups"][0]["server"]["local_reduction"] = True
    said |= {
        "node n5 serves, but has no device": refusal(
            lambda: distribute(model, {"groups": [{"variables": [*rest, "head.bias"], "server": {"node": "n5"}}]})
        ),
        "for 2 ranks, and these are 3": refusal(lambda: distribute(model, two_nodes)),
        "rank 7 is to serve": refusal(lambda: distribute(model, one_group(server=7))),
        "rank 1 is to serve with local_reduction": refusal(lambda: distribute(model, second)),
        "its gradients are not sparse": refusal(lambda: distribute(model, rows)),
        "served or gathered, but not all-reduced": refusal(lambda: distribute(module(Sparse), summed)),
        "can be gathered": refusal(
            lambda: distribute(model, {"groups": [{"algorithm": "all_gather", "variables": [*rest, "head.bias"]}]})
        ),
        "head.bias is not in them once": refusal(
            lambda: distribute(model, {"groups": [{"variables": rest}, *head[1:]]})
        ),
        "head.bias ends at 9 of 40": refusal(lambda: distribute(model, {"groups": [{"variables": rest}, *head[:1]]})),
        "no rows 9 to 40 along axis 1": refusal(
            lambda: distribute(model, {"groups": [{"variables": [*rest, {**head[1]["variables"][0], "axis": 1}]}]})
        ),
        "none of at_once, priority": refusal(lambda: distribute(model, one_group(pulls="never"))),
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write("{")
        file.flush()
        said[f"{file.name}: Expecting"] = refusal(lambda: distribute(model, file.name))
    said["missing.json: No such file or directory"] = refusal(lambda: distribute(model, "missing.json"))
    said["none/m.json: cannot write into none: No such file"] = refusal(
        lambda: syncopate_torch.profile(module(), "none/m.json") if not dist.get_rank() else check_writable("none/m.json")
    )
    distribute(model, cross, optimizer)
    return {
        **said,
        "pass the optimizer": refusal(lambda: distribute(module(), one_group(cross_iteration=True))),
        "no groups of variables": refusal(lambda: distribute(module(), {"groups": []})),
        "not of this module": refusal(lambda: distribute(module(), {"groups": [{"variables": ["another.weight"]}]})),
        "do not add up": refusal(lambda: distribute(module(), one_group(slices=[{"group": 0, "bytes": 8}]))),
        "cannot run a closure": refusal(lambda: optimizer.step(lambda: None)),
        "two backward passes": refusal(two_backward_passes),
    }


def gradients_gather_without_a_sum():
    """The gradients of two backward passes, the first in no_sync()."""
    out = []
    for strategy in (None, one_group(cross_iteration=True)):
        model = module()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model = DistributedDataParallel(model) if strategy is None else distribute(model, strategy, optimizer)
        tokens = (torch.arange(6) + dist.get_rank()).view(1, 6)
        for _ in range(3):
            optimizer.zero_grad()
            with model.no_sync():
                model(tokens).square().mean().backward()
            model(tokens + 1).square().mean().backward()
            optimizer.step()
        out.append([p.clone() for p in model.state_dict().values()])
    return furthest(*out)


class Normalised(torch.nn.Module):
    """With buffers, which DDP sends before each forward pass."""

    def __init__(self, width):
        super().__init__()
        middle = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.BatchNorm1d(width))
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, width), torch.nn.BatchNorm1d(width), middle, torch.nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.layers(x)


def some_ranks_train():
    """Ranks 0 and 1 in a group of their own; what is said of a strategy that this cannot be done with, and how far apart."""
    group = dist.new_group([0, 1])
    if dist.get_rank() > 1:
        return "", 0
    out, said = [], ""
    for parts in (None, 2, 1):
        torch.manual_seed(3)
        model = Normalised(8).double()
        names = [n for n, _ in model.named_parameters()]
        optimizer = torch.optim.SGD(model.parameters(), 0.005)
        if parts is None:
            model = DistributedDataParallel(model, process_group=group)
        else:
            strategy = {"groups": [{"variables": names[k::parts], "partition_bytes": 2} for k in range(parts)]}
            cross = {**strategy, "cross_iteration": True}
            said = refusal(lambda: distribute(model, cross, optimizer, process_group=group))
            model = distribute(model, strategy, process_group=group)
        for step in range(5):
            optimizer.zero_grad()
            model(torch.arange(12.0).view(3, 4).double() * (step + dist.get_rank() + 1)).square().mean().backward()
            optimizer.step()
        out.append([p.clone() for p in model.state_dict().values()])
    return said, max(furthest(out[0], other) for other in out[1:])


def one_lane_is_enough():
    """As with NCCL, where DDP's buffers travel in its group while messages do in one other, whatever the ranks' pace."""
    rng, out = random.Random(dist.get_rank()), []
    for cross in (None, True):
        torch.manual_seed(4)
        model = Normalised(256).double()
        names = [n for n, _ in model.named_parameters()]
        optimizer = torch.optim.SGD(model.parameters(), 0.001)
        if cross is None:
            model = DistributedDataParallel(model)
        else:
            strategy = {
                "groups": [{"variables": [name], "partition_bytes": 1 << 14} for name in names],
                "credit_bytes": 1 << 15,  # so that messages begin while the forward pass runs
                "cross_iteration": True,
            }
            lanes.GLOO_LANES, before = 1, lanes.GLOO_LANES
            model = distribute(model, strategy, optimizer)
            lanes.GLOO_LANES = before
        for step in range(20):
            optimizer.zero_grad()
            time.sleep(rng.random() / 50)
            model(torch.arange(12.0).view(3, 4).double() * (step % 3 + dist.get_rank() + 1) / 50).square().mean().backward()
            optimizer.step()
        out.append([p.clone() for p in model.state_dict().values()])
    return furthest(*out)


class Sometimes(torch.nn.Module):
    """A layer that only every other forward pass reads."""

    def __init__(self):
        super().__init__()
        self.always, self.rare, self.passes = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), 0

    def forward(self, x):
        self.passes += 1
        return self.always(self.rare(x) if self.passes % 2 else x)


def unread_parameters_are_updated_all_the_same():
    out = []
    for cross in (None, True):
        torch.manual_seed(2)
        model = Sometimes().double()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        groups = [{"variables": [n for n, _ in model.named_parameters()][k : k + 2]} for k in (0, 2)]
        if cross is None:
            model = DistributedDataParallel(model, find_unused_parameters=True)
        else:
            model = distribute(
                model, {"groups": groups, "cross_iteration": True}, optimizer, find_unused_parameters=True
            )
        for step in range(6):
            optimizer.zero_grad()
            model(torch.full((2, 4), step + dist.get_rank(), dtype=torch.float64) / 10).square().sum().backward()
            optimizer.step()
        out.append([p.clone() for p in model.state_dict().values()])
    return furthest(*out)


def ranks_train(rank, port, seed, files, results):
    start(rank, port)
    plain = {name: Run(None, name) for name in ("sgd", "adam")}
    rng = random.Random(seed)
    said = {}
    for i in range(RANDOM_STRATEGIES):
        strategy, name = random_strategy(rng), rng.choice(["sgd", "adam"])
        ours = Run(strategy, name)
        apart = compare(plain[name], ours, not strategy["cross_iteration"])
        said[f"hook_trains_as_DDP_does_whatever_the_strategy_{i}"] = apart and f"{apart}, seed {seed}: {strategy}"
    for i in range(RANDOM_STRATEGIES):
        strategy, name = random_strategy(rng, served=rng.choice([0.5, 1])), rng.choice(["sgd", "adam"])
        apart = compare(plain[name], Run(strategy, name), not strategy["cross_iteration"])
        said[f"hook_serves_as_DDP_sums_whatever_the_strategy_{i}"] = apart and f"{apart}, seed {seed}: {strategy}"
    sparse = Run(None, "momentum", Sparse)
    for i in range(RANDOM_STRATEGIES):
        strategy = random_strategy(rng, served=rng.choice([0, 0.5, 1]), kind=Sparse)
        apart = compare(sparse, Run(strategy, "momentum", Sparse), not strategy["cross_iteration"])
        said[f"hook_sends_sparse_gradients_whatever_the_strategy_{i}"] = apart and f"{apart}, seed {seed}: {strategy}"
    for path in files:
        ours = Run(path)
        said[f"hook_trains_as_DDP_does_by_{os.path.basename(path).split('.')[0]}"] = compare(plain["sgd"], ours, False)
    for encoding in ("f16", "bf16"):
        for cross in (False, True):
            what = f"hook_rounds_gradients_to_{encoding}_{'without' if cross else 'with'}_a_barrier"
            said[what] = encoded_gradients(encoding, cross)
        said[f"hook_rounds_served_gradients_to_{encoding}"] = encoded_gradients(encoding, True, server=1)
    away = gradients_gather_without_a_sum()
    said["hook_leaves_no_sync_alone"] = "" if away < TOO_FAR else f"{away:.1e} apart"
    away = unread_parameters_are_updated_all_the_same()
    said["hook_updates_what_a_forward_pass_does_not_read"] = "" if away < TOO_FAR else f"{away:.1e} apart"
    away = one_lane_is_enough()
    said["hook_trains_with_one_lane_beside_DDPs_own"] = "" if away < TOO_FAR else f"{away:.1e} apart"
    text, away = some_ranks_train()
    said["hook_trains_among_some_ranks"] = "" if away < TOO_FAR else f"{away:.1e} apart"
    said["hook_needs_all_ranks_where_there_is_no_barrier"] = "" if rank > 1 or "needs all ranks" in text else text
    moved = furthest(plain["sgd"].parameters, [p for p in module().state_dict().values()])
    said["plain_DDP_trains_at_all"] = "" if moved > 0.01 else f"moved by {moved}"
    said["schedulers_of_the_learning_rate_have_nothing_to_say"] = ", ".join(sorted(set(WARNINGS)))
    missing = [f"'{must}' not in '{text}'" for must, text in refusals().items() if must not in text]
    said["hook_refuses_what_it_cannot_do"] = ", ".join(missing)
    if rank == 0:
        results.put(said)
    dist.barrier()


def ranks_profile(rank, port, folder, results):
    start(rank, port)
    model = module()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    profile = syncopate_torch.profile(model, f"{folder}/model.json", name="network", warmup=2, iterations=5)
    for _ in range(7):
        optimizer.zero_grad()
        model(torch.zeros(4, 6, dtype=torch.int64)).sum().backward()
        optimizer.step()
    said = {
        "profile_of_ranks_that_do_not_wait_for_each_other": "" if profile.done else "not done",
        "profile_times_buffers_where_it_is_asked_to": buffers_are_timed(folder),
        "profile_counts_what_a_forward_pass_leaves": activations_are_counted(folder),
        "profile_counts_what_else_operators_hold": temporary_is_what_is_left(folder),
        "profile_knows_the_optimizer": optimizers_are_known(folder),
    }
    if rank == 0:
        results.put(said)
    dist.barrier()


def buffers_are_timed(folder):
    """What is wrong with three profiles of a module with 4 MB of buffers."""
    times, warned = {}, {}
    for broadcast in (None, False, True):
        model, before = Normalised(4), len(WARNINGS)
        model.register_buffer("large", torch.zeros(1000000))
        path = f"{folder}/buffers-{broadcast}.json"
        profile = syncopate_torch.profile(model, path, warmup=0, iterations=3, broadcast_buffers=broadcast)
        for _ in range(3):
            model(torch.ones(3, 4)).sum().backward()
        warned[broadcast] = any("4000080 bytes of buffers" in text for text in WARNINGS[before:])
        if dist.get_rank() == 0:
            operators = {o["name"]: o for o in read(path)["operators"]}
            times[broadcast] = operators.get("broadcast buffers forward", {"time_us": 0})["time_us"]
            first = "broadcast buffers forward" if broadcast else "between iterations forward"
            if operators["layers.0 forward"]["after"] != [first]:
                return f"layers.0 after {operators['layers.0 forward']['after']}"
    fits = times.get(True, 1) > 100 and not times.get(None) and not times.get(False)
    return "" if fits and warned == {None: dist.get_rank() == 0, False: False, True: False} else f"{times} {warned}"


def profiled(model, path, make_optimizer, inputs, evaluate=True, clear=False, **options):
    """The file after three iterations; None by ranks that do not write it."""
    optimizer = make_optimizer(model.parameters())
    profile = syncopate_torch.profile(model, path, warmup=0, iterations=3, **options)
    for _ in range(3):
        if evaluate:
            model(inputs)  # with gradients on; it does not count
        if clear:
            optimizer.zero_grad(set_to_none=True)
        model(inputs).square().sum().backward()
        optimizer.step()
    return read(path) if dist.get_rank() == 0 else None


def activations_are_counted(folder):
    """Of a chain of random widths. Tanh leaves its output, which the layer after it uses as well and which counts once;
    the first layer uses the batch, which does not count; the square leaves what the model returned."""
    rng = random.Random(int(os.environ.get("SYNCOPATE_TEST_SEED") or 1))
    rows, widths = rng.randint(1, 9), [rng.randint(1, 40) for _ in range(rng.randint(3, 6))]
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.Tanh())][:-1]
    model = torch.nn.Sequential(*layers, torch.nn.Dropout(0)).eval()
    found = profiled(model, f"{folder}/chain.json", torch.optim.Adagrad, torch.ones(rows, widths[0]), optimizer="lion")
    if not found:
        return ""
    expected = {f"{2 * i + 1} forward": (4 * rows * w, f"{2 * i}.") for i, w in enumerate(widths[1:-1])}
    expected["loss forward"] = 4 * rows * widths[-1], f"{2 * len(widths) - 4}."
    why = [] if found["optimizer"] == "lion" else [found.get("optimizer")]
    for o in (o for o in found["operators"] if o["phase"] == "forward"):
        size, gradient = expected.get(o["name"], (0, ""))
        kept = o.get("kept_for", "")
        if o["activation_bytes"] != size or not kept.startswith(gradient) or bool(kept) != bool(size):
            why.append(f"{o['name']}: {o['activation_bytes']} until {kept}, not {size} until {gradient}")
    return ", ".join(map(str, why))


class Scripted:
    """An allocator that has given out `base` bytes, and at most some more each time that it is asked."""

    base = 50000

    def __init__(self):
        self.said, self.rng = [], random.Random(int(os.environ.get("SYNCOPATE_TEST_SEED") or 1))

    def held(self):
        return self.base

    def most(self):
        self.said.append(self.base + self.rng.choice([-49500, 0, self.rng.randint(1, 90000)]))
        return self.said[-1]


def temporary_is_what_is_left(folder):
    """By a plain reading of the file: what the allocator said of an operator, without variables, Adam's states, the gradients
    that are there, and what operators before it have left and none before it used last."""
    why = []
    for clear in (False, True):
        allocator, usual = Scripted(), syncopate_torch.profile.__globals__["allocator_of"]
        layers = [torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)]
        syncopate_torch.profile.__globals__["allocator_of"] = lambda device, allocator=allocator: allocator
        try:
            made = f"{folder}/held-{clear}.json", torch.optim.Adam, torch.ones(5, 4)
            found = profiled(torch.nn.Sequential(*layers), *made, evaluate=False, clear=clear)
        finally:
            syncopate_torch.profile.__globals__["allocator_of"] = usual
        why += not_left(found, allocator, clear) if found else []
    return ", ".join(why)


def not_left(found, allocator, clear):
    """What of the file is something else."""
    operators, sizes, why = found["operators"], [4 * n for n in (32, 8, 24, 3)], []
    bytes_of = {v["name"]: size for v, size in zip(found["variables"], sizes)}
    place = {o["name"]: i for i, o in enumerate(operators)}
    # The first operator ends before the forward pass begins, the last is after the last gradient.
    said = [allocator.base, *allocator.said[1:], 0]
    for i, operator in enumerate(operators):
        left = [o["activation_bytes"] for o in operators[: i + 1] if o.get("kept_for") and place[o["kept_for"]] >= i]
        made = [bytes_of[name] for o in operators[: i + 1] for name in o.get("produces", [])] if clear else sizes
        rest = said[i] - 3 * sum(sizes) - sum(made) - sum(left)
        if operator.get("temporary_bytes", 0) != max(rest, 0):
            why.append(f"{operator['name']}: {operator.get('temporary_bytes')}, not {rest}")
    return why or ([] if len(said) == len(operators) else [f"{len(said)} answers of {len(operators)}"])


def optimizers_are_known(folder):
    found = {}
    for name, make in {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "adamw": torch.optim.AdamW,
        "amsgrad": lambda p: torch.optim.Adam(p, amsgrad=True),
    }.items():
        model = profiled(torch.nn.Linear(5, 3), f"{folder}/{name}.json", make, torch.ones(2, 5))
        found[name] = (model or {}).get("optimizer")
        gc.collect()
    if dist.get_rank():
        return ""
    expected = {name: name for name in found} | {"amsgrad": {"bytes_per_element": 12}}
    return "" if found == expected else str(found)


def rank_runs_bench(rank, port, arguments):
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo"
    )
    sys.argv[1:] = arguments
    interference.WINDOW_S, interference.REPETITIONS = 0.05, 3  # shares of which only the range is tested here
    runpy.run_module("syncopate_torch.bench", run_name="__main__", alter_sys=True)


def ranks_push(rank, port, results):
    """What the bench times moves what it says: sums of all ranks, time after time."""
    start(rank, port)
    trip, why = RoundTrip(64), ""
    buffer = trip.messages[0].buffer
    for step in range(4):
        buffer.fill_(10.0**rank + step)
        trip()
        if not buffer.eq(sum(10.0**r + step for r in range(RANKS))).all():
            why = why or f"step {step}: {buffer.tolist()}"
    trip.settle()
    results.put({f"rank_{rank}_has_the_sum_of_a_timed_push": why})


def ranks_lose_one(rank, port, strategy, results):
    """Rank 2 is gone in the midst of training: the others are to hear of it, not to wait."""
    start(rank, port)
    model = module()
    optimizer = OPTIMIZERS["sgd"](list(model.parameters()))
    model = distribute(model, strategy, optimizer)
    why = "trained on as if nobody was gone"
    try:
        for step in range(STEPS):
            if step == STEPS // 2 and rank == 2:
                os._exit(0)
            optimizer.zero_grad()
            model(torch.zeros(4, 6, dtype=torch.int64)).sum().backward()
            optimizer.step()
        model.synchronize()
    except RuntimeError:
        why = ""
    results.put({f"rank_{rank}_hears_that_another_is_gone_{strategy['name']}": why})
    os._exit(0)  # so that who waits for this rank hears of it, too


def one_each(server=None):
    """Groups of one variable."""
    serves = {} if server is None else {"server": {"node": "n", "rank": server}}
    return [{"variables": [name], "needed": i, **serves} for i, (name, _) in enumerate(module().named_parameters())]


def rank_gives_up(rank, port, server, results):
    """Rank 1 fails while the others sleep, so that what it has sent never comes back."""
    start(rank, port)
    model = module()
    optimizer = OPTIMIZERS["sgd"](list(model.parameters()))
    strategy = {"groups": one_each(server), "cross_iteration": True, "node_ranks": [1] * RANKS}
    model = distribute(model, strategy, optimizer)
    if rank != 1:
        time.sleep(100)  # ended before
    model(torch.zeros(4, 6, dtype=torch.int64)).sum().backward()
    results.put("it gives up")
    sys.exit(3)


def who_gives_up_is_soon_gone(server=None):
    results = torch.multiprocessing.get_context("fork").SimpleQueue()
    ranks = fork(rank_gives_up, (free_port(), server, results), join=False)
    results.get()
    began = time.monotonic()
    ranks.processes[1].join(60)
    took, status = time.monotonic() - began, ranks.processes[1].exitcode
    for process in ranks.processes:
        process.kill()
        process.join()
    assert status == 3 and took < 15, f"status {status} after {took:.1f} s"


LOSSES = [
    {"name": "with_a_barrier", "cross_iteration": False},
    {"name": "without_one", "cross_iteration": True},
    {"name": "led_by_priority", "cross_iteration": True, "policy": "priority", "credit_bytes": 2000},
    {"name": "served_by_it", "cross_iteration": True, "policy": "priority", "credit_bytes": 2000, "server": 2},
    {"name": "served_by_another", "cross_iteration": False, "server": 1},
]


WARNINGS = []


def start(rank, port):
    warnings.filterwarnings("ignore", "Sparse invariant checks")  # PyTorch 2 says it once of any tensor that is made so
    warnings.showwarning = lambda message, category, file, line, *_: WARNINGS.append(f"{file}:{line} {message}")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)


# ---- lines without a network ----


def urgent_goes_first():
    sent = []
    leader = Leader([4] * 5, 0, sent.append, [9, 1, 5, 1, 7], lambda i: sent.append(f"word {i}"))
    for i in range(5):
        leader.ready(i)
    for i in (0, 1, 3, 2, 4):
        leader.returned(i)
    assert sent == ["word 0", 0, "word 1", 1, "word 3", 3, "word 2", 2, "word 4", 4], sent


def credit_is_never_exceeded():
    rng = random.Random(3)
    for _ in range(50):
        sizes = [rng.randint(1, 9) for _ in range(12)]
        credit, flying, sent = rng.choice([0, 4, 12, 30]), [], []

        def send(i):
            flying.append(i)
            sent.append(i)
            assert len(flying) == 1 or sum(sizes[k] for k in flying) <= credit, (flying, credit)

        line, coming = Line(sizes, credit, send), rng.sample(range(12), 12)
        while len(sent) < 12 or flying:
            if coming and (not flying or rng.random() < 0.5):
                line.ready(coming.pop())
            elif flying:
                line.returned(flying.pop(rng.randrange(len(flying))))


def fixed_order_waits_for_its_next():
    sent = []
    line = Line([1] * 3, None, sent.append, order=[2, 0, 1])
    for _ in range(2):
        line.ready(0)
        line.ready(1)
        assert sent == []
        line.ready(2)
        assert sent == [2, 0, 1]
        for i in sent:
            line.returned(i)
        sent.clear()


def followers_wait_for_word_and_gradient():
    sent, asked = [], []
    line = Follower([1] * 3, sent.append, lambda: asked.append(1))
    line.ready(1)
    assert sent == [] and len(asked) == 1
    line.told(0)
    assert sent == [] and len(asked) == 2
    line.ready(0)
    line.told(1)
    assert sent == [0, 1] and len(asked) == 3
    line.told(2)
    line.ready(2)
    assert sent == [0, 1, 2] and len(asked) == 3, asked


def ends_at_once():
    """A collective may be back before send() returns."""
    sent = []

    def send(i):
        sent.append(i)
        line.returned(i)

    line = Line([1] * 4, 0, send)
    for i in range(4):
        line.ready(i)
    assert sent == [0, 1, 2, 3], sent


def check(name, test):
    try:
        test()
        verdict(name, "")
    except Exception as error:  # each test says what went wrong and lets the others run
        verdict(name, f"{type(error).__name__} {error}")


def fork(function, arguments, join=True):
    """Ranks that need not import torch again, which takes longer than the tests."""
    return torch.multiprocessing.start_processes(function, arguments, nprocs=RANKS, join=join, start_method="fork")


def train(function, *arguments, reports=1):
    port = free_port()
    results = torch.multiprocessing.get_context("fork").SimpleQueue()
    fork(function, (port, *arguments, results))
    for _ in range(reports):
        for name, why in results.get().items():
            verdict(name, why)


if __name__ == "__main__":
    if sys.argv[2] == "profile":
        train(ranks_profile, sys.argv[3])
    elif sys.argv[2] == "bench":
        ranks = fork(rank_runs_bench, (free_port(), sys.argv[3:]), join=False).processes
        for process in ranks:
            process.join()
        sys.exit(max(process.exitcode for process in ranks))
    else:
        for line_test in (
            urgent_goes_first,
            credit_is_never_exceeded,
            fixed_order_waits_for_its_next,
            followers_wait_for_word_and_gradient,
            ends_at_once,
        ):
            check(f"line_{line_test.__name__}", line_test)
        OPTIMIZERS["sgd"](list(module().parameters()))  # PyTorch 2 imports much for its first one: here, not in each rank
        number = int(os.environ.get("SYNCOPATE_TEST_SEED") or time.time_ns() % 2**32)
        print(f"seed {number}")
        train(ranks_train, number, sys.argv[3:])
        train(ranks_push, reports=RANKS)
        check("who_gives_up_is_soon_gone", who_gives_up_is_soon_gone)
        check("a_worker_that_gives_up_is_soon_gone", lambda: who_gives_up_is_soon_gone(0))
        check("a_server_that_gives_up_is_soon_gone", lambda: who_gives_up_is_soon_gone(1))
        for strategy in LOSSES:
            groups = one_each(strategy.get("server"))
            train(ranks_lose_one, {**strategy, "groups": groups, "node_ranks": [1] * RANKS}, reports=RANKS - 1)
