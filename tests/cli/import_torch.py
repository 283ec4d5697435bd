"""syncopate_torch on small jobs whose times are known; prints ok and not ok lines. Called by import.sh with a folder for
the files, which syncopate reads afterwards.
"""

import dataclasses
import functools
import json
import sys
import unittest.mock
import warnings

import torch
import torch.utils.checkpoint

import syncopate_torch

folder = sys.argv[1]


class Clock:
    """Stands in for the time of the machine: it goes on only when a layer works."""

    def __init__(self):
        self.ns = 0

    def perf_counter_ns(self):
        return self.ns

    def work(self, us):
        self.ns += us * 1000


class Slow(torch.autograd.Function):
    """Does nothing, for a stated time of a Clock forward and backward."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        layer.clock.work(layer.forward_us)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.layer.clock.work(ctx.layer.backward_us)
        return gradient.clone(), None


class Layer(torch.nn.Linear):
    def __init__(self, clock, forward_us, backward_us):
        super().__init__(4, 4)
        self.clock, self.forward_us, self.backward_us = clock, forward_us, backward_us

    def forward(self, x):
        return Slow.apply(super().forward(x), self)


def train(model, inputs, steps, loss=lambda y: y.sum()):
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(inputs)).backward()
        optimizer.step()


def load(name):
    with open(f"{folder}/{name}.json", encoding="utf-8") as f:
        return json.load(f)


def check(name, test):
    try:
        test()
        print(f"ok {name}")
    except Exception as e:  # each test says what went wrong and lets the others run
        print(f"not ok {name}: {type(e).__name__} {e}".replace("\n", " "))


def times_and_order_are_those_of_the_job():
    clock = Clock()
    model = torch.nn.Sequential(Layer(clock, 10000, 50000), Layer(clock, 40000, 20000))
    with unittest.mock.patch("syncopate_torch.clock.time", clock):
        profile = syncopate_torch.profile(model, f"{folder}/slow.json", warmup=2, iterations=5)
        train(model, torch.randn(8, 4), 6)
        assert not profile.done
        train(model, torch.randn(8, 4), 1)
        assert profile.done
    m = load("slow")
    assert m["name"] == "Sequential" and m["batch_per_device"] == 8, m
    assert [(v["name"], v["shape"], v["dtype"]) for v in m["variables"]] == [
        ("0.weight", [4, 4], "f32"),
        ("0.bias", [4], "f32"),
        ("1.weight", [4, 4], "f32"),
        ("1.bias", [4], "f32"),
    ], m["variables"]
    forward = [o for o in m["operators"] if o["phase"] == "forward"]
    backward = [o for o in m["operators"] if o["phase"] == "backward"]
    assert [o["name"] for o in forward] == ["0 forward", "1 forward", "loss forward"]
    assert [o["time_us"] for o in forward] == [10000, 40000, 0], forward
    layers = [o["produces"][0].split(".")[0] for o in backward if "produces" in o]
    assert layers == ["1", "1", "0", "0"], backward
    assert sum(o["time_us"] for o in backward[:2]) == 20000, backward
    assert sum(o["time_us"] for o in backward[2:4]) == 50000, backward
    assert forward[0]["reads"] == ["0.weight", "0.bias"] and forward[1]["after"] == ["0 forward"], forward


def hooks_are_gone_when_the_file_is_there():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    syncopate_torch.profile(model, f"{folder}/gone.json", warmup=0, iterations=1)
    train(model, torch.randn(2, 4), 1)
    assert not model._forward_hooks and not model._forward_pre_hooks and not model[0]._forward_hooks
    before = load("gone")
    train(model, torch.randn(3, 4), 3)
    assert load("gone") == before


def the_job_computes_the_same():
    def run(hooked):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        if hooked:
            syncopate_torch.profile(model, f"{folder}/same.json", warmup=1, iterations=3)
        train(model, torch.randn(5, 4), 6)
        return [p.detach().clone() for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True)))


def shared_sparse_and_repeated():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rare = torch.nn.Embedding(50, 4, sparse=True)
            self.first = torch.nn.Linear(4, 4)
            self.tied = torch.nn.Linear(4, 4)
            self.tied.weight = self.first.weight
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return self.tied(self.first(self.first(self.rare(x)))) * self.scale

    model = Model()
    syncopate_torch.profile(model, f"{folder}/shared.json", name="shared", batch=7, warmup=1, iterations=2)
    train(model, torch.tensor([[1, 2, 3], [1, 2, 4]]), 3)
    m = load("shared")
    assert m["name"] == "shared" and m["batch_per_device"] == 7
    names = [v["name"] for v in m["variables"]]
    assert sorted(names) == ["first.bias", "first.weight", "rare.weight", "scale", "tied.bias"], names
    sparse = {v["name"]: v["sparse_rows"] for v in m["variables"] if "sparse_rows" in v}
    assert list(sparse) == ["rare.weight"] and 4 <= sparse["rare.weight"] <= 6, sparse
    forward = {o["name"]: o["reads"] for o in m["operators"] if o["phase"] == "forward"}
    first = ["between iterations forward", "rare forward", "first forward", "first #2 forward", "tied forward"]
    assert list(forward)[:5] == first, forward
    assert "first.weight" in forward["tied forward"] and "first.weight" in forward["first #2 forward"], forward
    produced = [n for o in m["operators"] for n in o.get("produces", [])]
    assert sorted(produced) == sorted(names) and produced[-1] == "rare.weight", produced


def parameters_without_gradient_are_left_out():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.used(x)

    model = Model()
    syncopate_torch.profile(model, f"{folder}/idle.json", warmup=0, iterations=2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        train(model, torch.randn(2, 4), 2)
    assert any("idle.weight" in str(w.message) for w in said), said
    assert [v["name"] for v in load("idle")["variables"]] == ["used.weight", "used.bias"]


def attention_and_checkpoints():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
            self.layer = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())

        def forward(self, x):
            y, _ = self.attention(x, x, x)
            return torch.utils.checkpoint.checkpoint(self.layer, y)

    model = Model()
    profile = syncopate_torch.profile(model, f"{folder}/attention.json", warmup=1, iterations=2)
    train(model, torch.randn(2, 3, 8), 3)
    assert profile.done
    m = load("attention")
    reads = [n for o in m["operators"] for n in o.get("reads", [])]
    assert sorted(reads) == sorted(n for n, _ in model.named_parameters()), reads


def a_device_is_asked_for_times_when_it_is_done():
    """A clock as a GPU's: moments are tickets whose times are known after wait()."""

    class Stream:
        def __init__(self):
            self.tickets, self.done = 0, 0

        def now(self):
            self.tickets += 1
            return self.tickets

        def wait(self):
            self.done = self.tickets

        def between_us(self, start, end):
            assert start <= end <= self.done, (start, end, self.done)
            return 10.0 * (end - start)

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    profile = syncopate_torch.profile(model, f"{folder}/stream.json", warmup=1, iterations=3)
    profile.clock = Stream()
    train(model, torch.randn(2, 4), 4)
    times = [o["time_us"] for o in load("stream")["operators"]]
    # Between iterations a tick before the optimizer's step and one after it. Forward: three modules a tick each, then two
    # to the loss, past the end of the forward pass. Backward: a tick each.
    assert times == [20, 10, 10, 10, 20, 10, 10, 10, 10, 10] and load("stream")["update_us"] == 10, times


def work_between_iterations_is_an_operator_and_evaluation_is_not():
    clock = Clock()
    model = torch.nn.Sequential(Layer(clock, 10, 20))
    with unittest.mock.patch("syncopate_torch.clock.time", clock):
        profile = syncopate_torch.profile(model, f"{folder}/between.json", warmup=0, iterations=4)
        for step in range(4):
            train(model, torch.randn(2, 4), 1)
            clock.work(7)
            if step < 2:
                with torch.no_grad():
                    model(torch.randn(2, 4))
    assert profile.done
    operators = [(o["name"], o["time_us"]) for o in load("between")["operators"]]
    assert operators[:2] == [("between iterations forward", 7), ("0 forward", 10)], operators


def an_update_is_in_no_operator_and_steps_are_as_before():
    clock = Clock()
    model = torch.nn.Sequential(Layer(clock, 10, 20))

    class SlowSgd(torch.optim.SGD):
        def step(self, closure=None):
            clock.work(5)
            return super().step(closure)

    optimizers = [SlowSgd(model.parameters(), lr=0.1) for _ in range(3)]
    optimizers[1].step = own = functools.partial(optimizers[1].step)
    with unittest.mock.patch("syncopate_torch.clock.time", clock), warnings.catch_warnings():
        warnings.simplefilter("error")
        profile = syncopate_torch.profile(model, f"{folder}/update.json", warmup=0, iterations=4)
        for k in range(4):
            train(model, torch.randn(2, 4), 1)
            clock.work(7)
            schedulers = [torch.optim.lr_scheduler.StepLR(optimizers[2], 1, gamma=0.5)] if k == 1 else []
            for each in optimizers + schedulers:
                each.step()
    assert profile.done and load("update")["update_us"] == 15, load("update")
    assert load("update")["operators"][0]["time_us"] == 7, load("update")["operators"][0]
    assert "step" not in vars(optimizers[0]) and optimizers[1].step is own
    before = clock.ns
    for each in optimizers:
        each.step()
    assert clock.ns - before == 15000


def accumulation_does_not_hide_the_update():
    clock = Clock()
    model = torch.nn.Sequential(Layer(clock, 10, 20))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain = optimizer.step
    optimizer.step = lambda: (clock.work(5), plain())
    with unittest.mock.patch("syncopate_torch.clock.time", clock):
        syncopate_torch.profile(model, f"{folder}/accumulated.json", warmup=0, iterations=12)
        for k in range(12):
            model(torch.randn(2, 4)).sum().backward()
            if k % 4 == 3:
                optimizer.step()
    assert load("accumulated")["update_us"] == 5, load("accumulated")
    assert load("accumulated")["operators"][0]["name"] == "0 forward", load("accumulated")["operators"]


def evaluation_between_steps_is_not_an_iteration():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    profile = syncopate_torch.profile(model, f"{folder}/eval.json", warmup=0, iterations=3)
    for _ in range(2):
        train(model, torch.randn(2, 4), 1)
        with torch.no_grad():
            model(torch.randn(9, 4))
    assert not profile.done
    train(model, torch.randn(2, 4), 1)
    assert profile.done


def what_cannot_be_profiled_is_refused():
    for model, arguments in ((torch.nn.ReLU(), {}), (torch.nn.Linear(2, 2), {"iterations": 0})):
        try:
            syncopate_torch.profile(model, f"{folder}/never.json", **arguments)
        except ValueError:
            continue
        raise AssertionError("accepted")
    for path in (folder, f"{folder}/no/such/folder.json"):
        try:
            syncopate_torch.profile(torch.nn.Linear(2, 2), path)
        except OSError as error:
            assert path in str(error), error
            continue
        raise AssertionError(f"accepted: {path}")


@dataclasses.dataclass
class Answer:
    loss: torch.Tensor
    words: str = ""


class Answering(torch.nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.layer, self.answer = torch.nn.Linear(4, 1), answer

    def forward(self, x):
        self.loss = self.layer(x).square().mean()
        return self.answer(self.loss)


def what_a_model_returns_may_be_a_dataclass():
    model = Answering(Answer)
    profile = syncopate_torch.profile(model, f"{folder}/answer.json", warmup=0, iterations=2)
    for _ in range(2):
        model(torch.randn(2, 4)).loss.backward()
    assert profile.done


def a_model_that_returns_no_tensor_is_told_of():
    model = Answering(lambda loss: "done")
    profile = syncopate_torch.profile(model, f"{folder}/silent.json", warmup=0, iterations=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model(torch.randn(2, 4))
        model.loss.backward()
    assert not profile.done and any("no tensor in what" in str(w.message) for w in caught), caught
    profile.close()


for test in (
    what_a_model_returns_may_be_a_dataclass,
    a_model_that_returns_no_tensor_is_told_of,
    times_and_order_are_those_of_the_job,
    hooks_are_gone_when_the_file_is_there,
    the_job_computes_the_same,
    shared_sparse_and_repeated,
    parameters_without_gradient_are_left_out,
    attention_and_checkpoints,
    a_device_is_asked_for_times_when_it_is_done,
    work_between_iterations_is_an_operator_and_evaluation_is_not,
    an_update_is_in_no_operator_and_steps_are_as_before,
    accumulation_does_not_hide_the_update,
    evaluation_between_steps_is_not_an_iteration,
    what_cannot_be_profiled_is_refused,
):
    check(f"torch_{test.__name__}", test)
