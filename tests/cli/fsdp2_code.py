"""fsdp2_code.py SYNCOPATE: the pages that `strategy export --to fsdp2-code` writes for random trees of modules, run with a
fully_shard that only notes what it takes. The groups are to be those of --to fsdp2. Needs no PyTorch; prints ok or not ok
lines. SYNCOPATE_TEST_SEED sets the seed."""

import json
import os
import random
import subprocess
import sys
import time
import types

INSTANCES, RANKS = 25, 8
syncopate = sys.argv[1]
seed = int(os.environ.get("SYNCOPATE_TEST_SEED") or time.time_ns() % 2**32)


class Module:
    """A module of a tree: own variables, and children by name. A list is never called."""

    def __init__(self, name, depth, rng):
        self.name, self.is_list, self.asked = name, depth > 0 and rng.random() < 0.3, []
        within = f"{name}." if name else ""
        self.own = [within + v for v in rng.sample(["weight", "bias", "a\u00e9"], 0 if self.is_list else rng.randint(0, 2))]
        self.children = []
        for i in range(rng.randint(1, 4) if depth < 3 else 0):
            child = str(i) if self.is_list else rng.choice("xyz") + str(i)
            self.children.append(Module(within + child, depth + 1, rng))

    def variables(self):
        return self.own + [v for child in self.children for v in child.variables()]

    def get_submodule(self, name):
        if name == self.name:
            return self
        return next(c for c in self.children if (name + ".").startswith(c.name + ".")).get_submodule(name)

    def parameters(self):
        yield types.SimpleNamespace(device=types.SimpleNamespace(type="cpu"))

    def set_modules_to_forward_prefetch(self, modules):
        self.asked.append(("forward", [m.name for m in modules]))

    def set_modules_to_backward_prefetch(self, modules):
        self.asked.append(("backward", [m.name for m in modules]))


class Sharding:
    """What fully_shard does: it takes all variables in the modules but those that earlier calls wrapped."""

    def __init__(self):
        self.wrapped, self.groups, self.meshes = set(), [], set()

    def left_in(self, module):
        return module.own + [v for c in module.children if c.name not in self.wrapped for v in self.left_in(c)]

    def fully_shard(self, modules, mesh, mp_policy, reshard_after_forward=None):
        modules = modules if isinstance(modules, list) else [modules]
        assert not any(m.is_list or m.name in self.wrapped for m in modules), [m.name for m in modules]
        taken = sorted({v for m in modules for v in self.left_in(m)})
        self.wrapped |= {m.name for m in modules}
        self.meshes.add(mesh)
        if taken:
            self.groups.append((taken, reshard_after_forward))


def run(page, tree):
    sharding = Sharding()
    stubs = {
        "torch": {}, "torch.distributed": {"get_world_size": lambda: RANKS},
        "torch.distributed.device_mesh": {"init_device_mesh": lambda device, shape, **names: shape},
        "torch.distributed.fsdp": {"MixedPrecisionPolicy": dict, "fully_shard": sharding.fully_shard},
    }  # fmt: skip
    for name, members in stubs.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    sys.modules["torch"].distributed = sys.modules["torch.distributed"]
    inside = {}
    exec(compile(page, "fsdp2.py", "exec"), inside)
    assert inside["shard"](tree) is tree
    return sharding.groups, sharding.meshes


def store(name, value):
    with open(name, "w", encoding="utf-8") as file:
        json.dump(value, file)


def export(form):
    on = ["--model", "tree.json", "--cluster", "eight.json"]
    command = [syncopate, "strategy", "export", "tree-strategy.json", *on, "--to", form]
    return subprocess.run([*command, "--log", "warn"], check=True, capture_output=True, text=True)


def one(rng):
    """Groups of whole modules, in runs of the forward order or anyhow. Returns how many there are; None: none or no order
    of calls that makes them."""
    tree = Module("", 0, rng)
    names = tree.variables() or tree.own
    if not names:
        return None
    modules = sorted({n.rpartition(".")[0] for n in names}, key=[n.rpartition(".")[0] for n in names].index)
    n = rng.randint(1, len(modules))
    cut = sorted(rng.randrange(n) for _ in modules) if rng.random() < 0.7 else [rng.randrange(n) for _ in modules]
    place = {g: i for i, g in enumerate(sorted(set(cut)))}
    group = {m: place[g] for m, g in zip(modules, cut)}
    store("tree.json", {
        "schema": "syncopate.model/1", "name": "tree", "variables": [{"name": v, "shape": [3]} for v in names],
        "layers": [{"name": v, "forward_us": 1, "backward_us": 1, "variables": [v]} for v in names],
    })  # fmt: skip
    ahead = [rng.randint(0, len(place)) for _ in range(2)]
    share = rng.choice([2, 4, RANKS])
    kept = [True, False, *(n for n in (2, 4) if n < share)]
    store("tree-strategy.json", {
        "schema": "syncopate.strategy/1", "name": "tree",
        "schedule": {"policy": "fifo", "credit_bytes": 0, "forward_prefetch": ahead[0], "backward_prefetch": ahead[1],
                     "shard_ranks": share},
        "groups": [{"id": k, "sharded": "parameters", "reshard_after_forward": rng.choice(kept)} for k in place.values()],
        "variables": [{"name": v, "sync": {"kind": "all_reduce", "group": group[v.rpartition(".")[0]]}} for v in names],
    })  # fmt: skip
    wanted, page = json.loads(export("fsdp2").stdout), export("fsdp2-code")
    circles = in_circles(tree, wanted["groups"])
    assert circles == ("lie in each other" in page.stderr), page.stderr
    if circles:
        return None
    assert "cannot say" not in page.stderr, page.stderr
    got, meshes = run(page.stdout, tree)
    assert meshes == {(RANKS,) if share == RANKS else (RANKS // share, share)}, f"{meshes}: {page.stdout}"
    expected = sorted((sorted(g["variables"]), g["reshard_after_forward"]) for g in wanted["groups"])
    assert sorted(got) == expected, f"{got} is not {expected}: {page.stdout}"
    n, asked = len(expected), sorted((phase, len(modules)) for phase, modules in asked_of(tree))
    depths = [("forward", min(ahead[0], n - 1 - i)) for i in range(n) if ahead[0]]
    depths += [("backward", min(ahead[1], i) or 1) for i in range(n)]
    assert asked == ([] if ahead == [2, 1] else sorted(depths)), f"{ahead}: {asked}: {page.stdout}"
    return n


def asked_of(module):
    return module.asked + [a for child in module.children for a in asked_of(child)]


def in_circles(tree, groups):
    """Whether modules of two groups lie in each other, which no order of calls can shard."""
    group_of = {v: k for k, g in enumerate(groups) for v in g["variables"]}
    before = set()

    def visit(module):
        inside = {group_of[v] for v in module.variables()}
        for own in {group_of[v] for v in module.own}:
            before.update((k, own) for k in inside - {own})
        for child in module.children:
            visit(child)

    visit(tree)
    for _ in groups:
        before |= {(a, d) for a, b in before for c, d in before if b == c}
    return any(a == b for a, b in before)


rng = random.Random(seed)
store("eight.json", {
    "schema": "syncopate.cluster/1", "name": "eight", "nodes": [{"name": "n", "count": RANKS, "nic_gbit_per_s": 1}],
})  # fmt: skip
try:
    found = [one(rng) for _ in range(INSTANCES)]
    found = [n for n in found if n]
    print(f"seed {seed}: {len(found)} trees of {max(found)} groups at most")
    assert len(found) > INSTANCES / 3 and max(found) > 3, found
    print("ok pages_of_code_shard_as_the_files_say")
except Exception as error:  # noqa: BLE001: whatever goes wrong is the result
    why = f"seed {seed}: {type(error).__name__} {error}".replace("\n", " ")[:1500]
    print(f"not ok pages_of_code_shard_as_the_files_say: {why}")
