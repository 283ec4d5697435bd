"""Updates in parts by the hook ("sharded": "optimizer") on gloo ranks against plain DistributedDataParallel. Called as

    pytorch_sharded.py profile    writes model.json of the network below
    pytorch_sharded.py FILE...    trains by strategies that syncopate exported for it, and by random ones

Prints ok and not ok lines. SYNCOPATE_TEST_SEED sets the seed of the random strategies."""

import os
import random
import sys
import time
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import pytorch
import syncopate_torch
from gloo_ranks import run_ranks, verdict
from syncopate_torch.description import read
from syncopate_torch.hook import distribute

TOO_FAR, STEPS, RANDOM_STRATEGIES = 1e-10, 6, 8


class Network(pytorch.Network):
    """A parameter that is smaller than the number of ranks, too."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))


def network(seed=1):
    torch.manual_seed(seed)
    return Network().double()


def optimizer_of(model, kind):
    """Two groups of parameters with hyperparameters of their own."""
    biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
    others = [p for name, p in model.named_parameters() if not name.endswith("bias")]
    groups = [{"params": others, "weight_decay": 1e-2}, {"params": biases, "lr": 0.02}]
    return torch.optim.SGD(groups, lr=0.05, momentum=0.9) if kind == "sgd" else torch.optim.AdamW(groups, lr=0.01)


def train(strategy, kind):
    """Losses and parameters; plainly without a strategy."""
    model, losses = network(1 + dist.get_rank()), []
    optimizer = optimizer_of(model, kind)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    model = distribute(model, strategy, optimizer) if strategy else DistributedDataParallel(model)
    for step in range(STEPS):
        tokens = torch.randint(40, (4, 6), generator=torch.Generator().manual_seed(10 * step + dist.get_rank()))
        optimizer.zero_grad()
        if step == 2:  # two micro-batches
            with model.no_sync():
                torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), (tokens.flatten() * 7 + 1) % 40)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    parameters = [p.clone() for p in model.state_dict().values()]
    return losses, parameters, optimizer


def random_strategy(rng):
    names = [name for name, _ in network().named_parameters()]
    rng.shuffle(names)
    cuts = sorted(rng.sample(range(1, len(names)), rng.randint(0, len(names) - 1)))
    cross = rng.random() < 0.5
    groups = []
    for a, b in zip([0, *cuts], [*cuts, len(names)]):
        group = {"algorithm": "auto", "partition_bytes": rng.choice([0, 0, 1000, 4096]), "needed": rng.randint(0, 9)}
        if cross or rng.random() < 0.7:
            group["sharded"] = "optimizer"
        groups.append({**group, "variables": names[a:b]})
    out = {"policy": rng.choice(["fifo", "priority"]), "cross_iteration": cross, "groups": groups}
    if rng.random() < 0.7:
        out["credit_bytes"] = rng.choice([0, 2048, 100000])
    return out


def furthest(a, b):
    return max((x - y).abs().max().item() for x, y in zip(a, b))


def apart(plain, strategy, kind):
    losses, parameters, optimizer = train(strategy, kind)
    far = max(abs(a - b) for a, b in zip(plain[0], losses)), furthest(plain[1], parameters)
    elements = sum(p.numel() for p in network().parameters())
    state = sum(t.numel() for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t) and t.numel() > 1)
    whole = elements * (1 if kind == "sgd" else 2)
    if all("sharded" in g for g in strategy["groups"]) and abs(state - whole / dist.get_world_size()) > 200:
        return f"{state} elements of state, of {whole} in all"
    return "" if max(far) < TOO_FAR else f"losses {far[0]:.1e}, parameters {far[1]:.1e} apart"


def one_group(**more):
    return {"variables": [name for name, _ in network().named_parameters()], "sharded": "optimizer", **more}


def refusal(strategy, optimizer=None, model=None):
    model = model or network()
    try:
        distribute(model, strategy, optimizer(model) if optimizer else None)
    except ValueError as error:
        return str(error)
    return "nothing"


def refusals():
    def stepped(model):
        optimizer = optimizer_of(model, "adam")
        model(torch.zeros(1, 2, dtype=torch.int64)).sum().backward()
        optimizer.step()
        return optimizer

    def sgd(model):
        return optimizer_of(model, "sgd")

    names = one_group()["variables"]
    half = [{**one_group(), "variables": names[:5]}, {"variables": names[5:]}]
    cut = [{"variables": ["head.weight"], "sharded": "optimizer"}, {"variables": [n for n in names if n != "head.weight"]}]
    cut[0]["variables"] = [{"name": "head.weight", "from": 0, "to": 20}]
    sparse = torch.nn.Sequential(torch.nn.Embedding(9, 4, sparse=True), torch.nn.Linear(4, 4))
    return {
        "updates parameters in parts: pass the optimizer": refusal({"groups": [one_group()]}),
        "either all groups are updated in parts": refusal({"groups": half, "cross_iteration": True}, sgd),
        "call distribute before the first step": refusal({"groups": [one_group()]}, stepped),
        "sharded is 'parameters' and none of none, optimizer; for parameters see fsdp.py": refusal(
            {"groups": [one_group(sharded="parameters")]}, sgd
        ),
        "head.weight: a part of it is in a group that is updated in parts": refusal({"groups": cut}, sgd),
        "0.weight: its gradients are sparse, and cannot be updated in parts": refusal(
            {"groups": [{"variables": ["0.weight", "1.weight", "1.bias"], "sharded": "optimizer"}]},
            lambda m: torch.optim.SGD(m.parameters(), 0.1), sparse,
        ),
        "served or encoded too": refusal(
            {"groups": [one_group(server={"node": "n", "rank": 0})], "node_ranks": [1, 1, 1]}, sgd
        ),
    }  # fmt: skip


def three_ranks(rank, number, files):
    said, rng = {}, random.Random(number)
    missing = [f"'{must}' not in '{text}'" for must, text in refusals().items() if must not in text or "\n" in text]
    said["what_cannot_be_updated_in_parts_is_refused_in_a_line"] = ", ".join(missing)
    plain = {kind: train(None, kind) for kind in ("sgd", "adam")}
    for cross in (False, True):
        for kind in ("sgd", "adam"):
            strategy = {"groups": [one_group(partition_bytes=4096)], "cross_iteration": cross}
            said[f"{kind}_in_parts_{'without' if cross else 'with'}_a_barrier"] = apart(plain[kind], strategy, kind)
    for i in range(RANDOM_STRATEGIES):
        strategy, kind = random_strategy(rng), rng.choice(["sgd", "adam"])
        why = apart(plain[kind], strategy, kind)
        said[f"random_parts_{i}"] = why and f"{why} by {strategy} with {kind}"
    for file in files:
        strategy = read(file)
        sharded = all(group.get("sharded") == "optimizer" for group in strategy["groups"])
        said[os.path.basename(file)[:-5]] = apart(plain["adam"], strategy, "adam") if sharded else "nothing is in parts"
    return said


def write_profile():
    model = network().float()
    profile = syncopate_torch.profile(model, "model.json", name="network", warmup=1, iterations=3)
    while not profile.done:
        model(torch.zeros(4, 6, dtype=torch.int64)).sum().backward()


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    if sys.argv[1:] == ["profile"]:
        write_profile()
        sys.exit()
    optimizer_of(network(), "adam")  # PyTorch 2 imports much for its first one: here, not in each rank
    number = int(os.environ.get("SYNCOPATE_TEST_SEED") or time.time_ns() % 2**32)
    print(f"seed {number}")
    for name, why in run_ranks(3, three_ranks, number, sys.argv[1:]).items():
        verdict(name, why)
