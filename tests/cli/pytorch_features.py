"""What DistributedDataParallel and PyTorch offer beside plain training, each with the hook: the same parameters as with
plain DDP and the same arguments, whatever kind of strategy. Called by pytorch.sh as

    pytorch_features.py MODULE_FOLDER

Prints ok, not ok and skip lines; docs/pytorch.md has them as a table."""

import atexit
import contextlib
import gc
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from pytorch import Network, Normalised, OPTIMIZERS, Sometimes, TOO_FAR, furthest, start, train
from syncopate_torch import served
from syncopate_torch.hook import distribute

STEPS, RANKS = 5, 3


class Tied(torch.nn.Module):
    """The table of words is the output layer too, as in language models."""

    def __init__(self):
        super().__init__()
        self.words, self.middle = torch.nn.Embedding(40, 16), torch.nn.Linear(16, 16)
        self.head = torch.nn.Linear(16, 40, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.middle(self.words(tokens))))


def strategies(model):
    """One of each kind."""
    named = [name for name, _ in model.named_parameters()]

    def groups(**serves):
        return [{"variables": [name], "needed": i, "partition_bytes": 1024, **serves} for i, name in enumerate(named)]

    served = {"groups": groups(server={"node": "n2", "rank": 1}), "node_ranks": [1] * RANKS}
    urgent = {"policy": "priority", "credit_bytes": 4000, "cross_iteration": True}
    return {
        "barrier": {"groups": groups()},
        "priority": {"groups": groups(), **urgent},
        "served": served,
        "served by priority": {**served, **urgent, "pulls": "priority"},
    }


def tokens_and_answers(step):
    tokens = torch.randint(40, (4, 6), generator=torch.Generator().manual_seed(10 * step + dist.get_rank()))
    return tokens, (tokens.flatten() * 7 + 1) % 40


def loss_of_words(model, step):
    tokens, answers = tokens_and_answers(step)
    return torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), answers)


def loss_of_numbers(model, step):
    return model(torch.arange(12.0).view(3, 4).double() * (step + dist.get_rank() + 1) / 50).square().mean()


class Feature:
    """How it is used. What is plain is neither compiled before nor after."""

    def __init__(
        self, kind=Network, loss=loss_of_words, wrap=lambda m: m, first=lambda m: m, too_far=TOO_FAR, only=None, **arguments
    ):
        self.kind, self.loss, self.wrap, self.first, self.too_far = kind, loss, wrap, first, too_far
        self.only, self.arguments = only, arguments

    def run(self, strategy):
        torch.manual_seed(7)
        model = self.kind()
        if self.too_far == TOO_FAR:
            model = model.double()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        plain = model
        if strategy is None:
            call = model = DistributedDataParallel(model, **self.arguments)
        else:
            model = distribute(self.first(model), strategy, optimizer, **self.arguments)
            call = self.wrap(model)
        for step in range(STEPS):
            optimizer.zero_grad()
            self.step(model, call, optimizer, step)
        getattr(model, "synchronize", lambda: None)()
        return [p.clone() for p in plain.state_dict().values()]

    def step(self, model, call, optimizer, step):
        self.loss(call, step).backward()
        optimizer.step()

    def apart(self):
        """Empty, or which strategies come to something else than plain DDP."""
        plain, apart = self.run(None), []
        for name, strategy in strategies(self.kind()).items():
            if self.only and name not in self.only:
                continue
            away = furthest(plain, self.run(strategy))
            apart += [] if away < self.too_far else [f"{name} {away:.1e} apart"]
        return ", ".join(apart)


class Accumulated(Feature):
    def step(self, model, call, optimizer, step):
        for part in range(2):
            with contextlib.nullcontext() if part else model.no_sync():
                self.loss(call, 2 * step + part).backward()
        optimizer.step()


class Autocast(Feature):
    def step(self, model, call, optimizer, step):
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.loss(call, step)
        loss.backward()
        optimizer.step()


class Scaled(Feature):
    """The third step is skipped by all, because one rank's loss is infinite."""

    def run(self, strategy):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        parameters = super().run(strategy)
        return [*parameters, torch.tensor(self.scaler.get_scale() / 1024)]

    def step(self, model, call, optimizer, step):
        loss = self.loss(call, step)
        if step == 2 and dist.get_rank() == 1:
            loss = loss * float("inf")
        self.scaler.scale(loss).backward()
        self.scaler.step(optimizer)
        self.scaler.update()

    def apart(self):
        plain, kinds = self.run(None), strategies(self.kind())
        apart = [name for name in ("barrier", "served") if not furthest(plain, self.run(kinds[name])) < self.too_far]
        return ", ".join(apart) or ("" if plain[-1] == 0.5 else "no step was skipped")


def scalers_refused(scale):
    """Without a barrier a step that scales is refused."""
    for name in ("priority", "served by priority"):
        try:
            scale(strategies(Network())[name])
            return f"{name} takes it"
        except ValueError as error:
            if "GradScaler needs all sums" not in str(error):
                return str(error)
    return ""


def step_as_torch_1_does(strategy):
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    distribute(model, strategy, optimizer)
    optimizer.step(grad_scaler=object())


FEATURES = {
    "static_graph": lambda: Feature(static_graph=True),
    "gradient_as_bucket_view": lambda: Feature(gradient_as_bucket_view=True),
    "both_of_these": lambda: Feature(static_graph=True, gradient_as_bucket_view=True),
    "find_unused_parameters": lambda: Feature(Sometimes, loss_of_numbers, find_unused_parameters=True),
    "no_sync": Accumulated,
    "tied_weights": lambda: Feature(Tied),
    "buffers_broadcast_in_forward": lambda: Feature(lambda: Normalised(16), loss_of_numbers),
    "autocast_to_bfloat16": lambda: Autocast(too_far=1e-2),
}
PYTORCH_2 = {
    "GradScaler": lambda: Scaled(),
    # Compiling takes seconds: a small model, and each kind of strategy has one of these.
    "a_module_compiled_before": lambda: Feature(Tied, first=compiled, only=("barrier", "served by priority")),
    "a_module_compiled_after": lambda: Feature(Tied, wrap=compiled, only=("priority", "served")),
}


def compiled(module):
    torch._dynamo.reset()
    return torch.compile(module, backend="aot_eager")


def ranks_use_features(rank, port, results):
    start(rank, port)
    said = {f"hook_with_{name}": feature().apart() for name, feature in FEATURES.items()}
    for name, feature in PYTORCH_2.items():
        said[f"hook_with_{name}"] = feature().apart() if hasattr(torch, "compile") else "skip: needs PyTorch 2"
    said["hook_refuses_GradScaler_without_a_barrier"] = scalers_refused(
        Scaled().run if hasattr(torch, "compile") else step_as_torch_1_does
    )
    said["hook_leaves_no_thread_when_its_model_is_gone"] = threads_left()
    if rank == 0:
        results.put(said)
    dist.barrier()


def threads_left():
    """A thread may have its last message in hand for a moment."""
    if not hasattr(torch, "compile"):
        return "skip: PyTorch 1 keeps what a hook holds until the process ends"
    deadline, left = time.monotonic() + 10, ["all"]
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        gc.collect()
        left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    return ", ".join(left)


def rank_ends_at_once(rank, port, results):
    """Rank 1 serves, and ends after its last step while others still pull one sum after the other, and slowly."""
    start(rank, port)
    ask, pause = served.Dense.ask_for_sum, 0 if rank == 1 else 0.05
    served.Dense.ask_for_sum = lambda cargo, parent: time.sleep(pause) or ask(cargo, parent)
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(500, 500) for _ in range(8))).double()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    strategy = {**strategies(model)["served by priority"], "credit_bytes": 0}
    for group in strategy["groups"]:
        group["partition_bytes"] = 0
    model = distribute(model, strategy, optimizer)
    why = ""
    try:
        for step in range(2):
            optimizer.zero_grad()
            model(torch.ones(1, 500).double() * (rank + step)).sum().backward()
            optimizer.step()
        model.synchronize()
    except RuntimeError as error:
        why = str(error)
    if rank != 1:
        results.put({f"rank_{rank}_has_all_sums_of_a_server_that_ends_first": why})
    atexit._run_exitfuncs()  # a forked process does not
    os._exit(0)


def ranks_hear_late(rank, port, results):
    """That a server has a part is heard after the next iteration has sent its own."""
    start(rank, port)
    came = served.Words._came
    served.Words._came = lambda words, word: late(words) or came(words, word)
    why = Feature().apart()
    if rank == 0:
        results.put({"hook_goes_on_while_words_are_late": why})
    dist.barrier()


def late(words):
    if words.heard.__name__ == "_hear_of_taken_part":
        time.sleep(0.03)


if __name__ == "__main__":
    OPTIMIZERS["sgd"]([torch.nn.Parameter(torch.zeros(1))])  # PyTorch 2 imports much for the first one
    if hasattr(torch, "compile"):
        import torch._dynamo  # here, not in each rank
    train(ranks_use_features)
    train(ranks_hear_late)
    train(rank_ends_at_once, reports=RANKS - 1)
