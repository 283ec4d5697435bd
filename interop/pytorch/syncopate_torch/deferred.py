"""Updates that wait for the forward pass: a parameter is updated when a module that reads it is about to run.

optimizer.step() stores the hyperparameters of that moment and returns. Before a module with parameters runs, their sums
are waited for, and the optimizer's own step runs on these parameters alone. That is the same update as long as the
optimizer treats each parameter by itself, as SGD and Adam do (LBFGS does not, nor one that uses a norm over all).
The idea is ByteScheduler's (SOSP 2019, §4: crossing the global barrier).

The first forward pass shows which module reads a parameter: the one that holds it, if that is called; else the nearest
module above it that is called, as for the output projection of nn.MultiheadAttention.
"""

import types

import torch


class Deferred:
    """Takes the place of optimizer.step; `finish` updates all that still waits."""

    def __init__(self, optimizer, module, exchange):
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("LBFGS looks at all parameters at once, which needs a strategy with a barrier")
        updated = {p for group in optimizer.param_groups for p in group["params"]}
        others = sum(1 for p in exchange.variables if p not in updated)
        if others:
            raise ValueError(f"the optimizer is not of this module: {others} of its parameters are not updated by it")
        self.optimizer, self.exchange = optimizer, exchange
        self.plain_step = optimizer.step
        self.waiting = set()  # parameters whose update is due
        self.unread = set()  # those that no rank's forward pass read: DDP leaves their gradients alone
        self.settings = []  # of the parameter groups when step() was called
        optimizer.step = types.MethodType(self._step_of(optimizer.step), optimizer)
        optimizer._step_supports_amp_scaling = True  # so that GradScaler calls step(), which refuses it
        self._settle_before(optimizer, "state_dict")
        self._settle_before(module, "state_dict")
        self._settle_before(optimizer, "load_state_dict")
        module._register_load_state_dict_pre_hook(lambda *_: self.finish())
        Readers(module, self.need)
        module.register_forward_hook(uncompiled(lambda *_: self.finish()))  # what this forward pass did not read

    def _step_of(self, plain):
        """A `step` for the optimizer, with the attributes that learning rate schedulers put on its own `step`."""

        def step(optimizer, closure=None, **scaling):
            if scaling or hasattr(optimizer, "found_inf"):
                raise ValueError(
                    "GradScaler needs all sums before a step, and a strategy without a barrier does not wait for them: "
                    "use bfloat16, which needs no scaler, or a strategy with a barrier"
                )
            optimizer._step_count = getattr(optimizer, "_step_count", 0) + 1  # they ask that there was one,
            optimizer._opt_called = True  # PyTorch 2 by this
            return self.step(closure)

        step.__dict__.update(getattr(plain, "__dict__", {}))
        return step

    def _settle_before(self, owner, method):
        plain = getattr(owner, method)

        def settled(*args, **options):
            self.finish()
            return plain(*args, **options)

        setattr(owner, method, settled)

    def step(self, closure=None):
        if closure is not None:
            raise ValueError("a strategy without a barrier cannot run a closure")
        self.finish()
        self.settings = [{k: v for k, v in g.items() if k != "params"} for g in self.optimizer.param_groups]
        variables = self.exchange.variables
        every = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.waiting = {p for p in every if p in variables and variables[p].sent}
        self.unread = {p for p in self.waiting if p.grad is None}  # zeros were sent for these
        self._update([p for p in every if p not in self.waiting], summed=False)

    def finish(self):
        self.need(list(self.waiting))

    def need(self, parameters):
        due = [p for p in parameters if p in self.waiting]
        if not due:
            return
        for parameter in due:
            self.exchange.wait(self.exchange.variables[parameter])
        self._update(due, summed=True)
        self.waiting.difference_update(due)

    def _update(self, parameters, summed):
        """The optimizer's own step on these alone, with their sums in place of this rank's gradients."""
        these, all_groups = set(parameters), self.optimizer.param_groups
        chosen = [
            {**settings, "params": [p for p in group["params"] if p in these]}
            for settings, group in zip(self.settings, all_groups)
        ]
        own = [p.grad for p in parameters]
        try:
            self.optimizer.param_groups = [group for group in chosen if group["params"]]
            if summed:
                for parameter in parameters:
                    there = parameter not in self.unread
                    parameter.grad = self.exchange.variables[parameter].sum() if there else None
            if self.optimizer.param_groups:
                self.plain_step()
        finally:
            self.optimizer.param_groups = all_groups
            for parameter, gradient in zip(parameters, own):
                parameter.grad = gradient


def uncompiled(function):
    """A hook that torch.compile leaves as it is."""
    return torch.compiler.disable(function) if hasattr(torch, "compiler") else function


def is_compiled(module):
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


class Readers:
    """Calls need(parameters) before each module that reads some, from the second forward pass on. A compiled module
    reads all of its parameters when it begins."""

    def __init__(self, module, need):
        self.need, self.called = need, set()
        self.modules = dict(module.named_modules())
        for name in [name for name, m in self.modules.items() if is_compiled(m)]:
            inside = name and name + "."
            self.modules = {n: m for n, m in self.modules.items() if n == name or not n.startswith(inside)}
        self.handles = [m.register_forward_pre_hook(self._saw(name)) for name, m in self.modules.items()]
        self.handles.append(module.register_forward_hook(uncompiled(self._settle)))

    def _saw(self, name):
        return uncompiled(lambda module, inputs: self.called.add(name))

    def _settle(self, module, inputs, output):
        for handle in self.handles:
            handle.remove()
        reads = {}
        for owner, part in self.modules.items():
            reader = owner
            while reader not in self.called:
                reader = reader.rpartition(".")[0]
            for at in {owner, reader}:
                reads.setdefault(at, []).extend(part.parameters(recurse=is_compiled(part)))
        for name, parameters in reads.items():
            if parameters:
                self.modules[name].register_forward_pre_hook(self._before(parameters))

    def _before(self, parameters):
        return uncompiled(lambda module, inputs: self.need(parameters))
