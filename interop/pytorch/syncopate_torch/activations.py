"""What a forward pass leaves in memory for its backward pass, by operator, and which optimizer updates what.

autograd hands over each tensor that it saves (torch.autograd.graph.saved_tensors_hooks) and asks for it again where the
backward pass uses it. A storage counts once, whole, for the operator that saved it first, however many tensors look at
it. Parameters, buffers and the batch do not count. What an operator saved is kept for the gradient that is the first to
be ready after its last use.

Not seen: what torch.utils.checkpoint holds to compute again, and tensors that a function of one's own keeps without
save_for_backward.
"""

import gc
import threading

import torch


def identity_of(tensor):
    """Of the storage, which a tensor without one (sparse, or a subclass) is by itself; and its bytes."""
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()
        return storage._cdata, storage.nbytes()
    except (RuntimeError, NotImplementedError):
        return id(tensor), tensor.numel() * tensor.element_size()


class Activations:
    """Watches one forward and backward pass, from `begin` to `end_forward`, which may come from a thread of autograd's.
    `operator(name)` says that what was saved since the operator before is this one's, and `gradient(name)` that one is
    ready. `close` is for the thread of `begin`; until then nothing but time is lost."""

    def __init__(self):
        self.bytes = {}  # by operator
        self.last_use = {}  # by operator: how many gradients were ready
        self.order = []  # of gradients, by readiness
        self._saved, self._owner, self._new = {}, {}, []
        self._hooks, self._thread, self._elsewhere = None, None, None

    def begin(self, elsewhere):
        """`elsewhere`: tensors that are there in any case."""
        self._elsewhere = {identity_of(t)[0] for t in elsewhere}
        self._hooks, self._thread = torch.autograd.graph.saved_tensors_hooks(self._save, self._use), threading.get_ident()
        self._hooks.__enter__()

    def _save(self, tensor):
        key, size = identity_of(tensor)
        kept = tensor.detach()  # itself would be a circle where it is what the operator returns
        if self._elsewhere is not None and key not in self._elsewhere and key not in self._saved:
            self._saved[key] = size, kept  # as long as it is held its address is no other's
            self._new.append(key)
        return key, kept

    def _use(self, saved):
        key, tensor = saved
        if key in self._owner:
            self.last_use[self._owner[key]] = len(self.order)
        return tensor

    def end_forward(self):
        self._elsewhere = None
        self._saved.clear()

    def close(self):
        self.end_forward()
        if self._hooks and self._thread == threading.get_ident():
            self._hooks.__exit__()
            self._hooks = None

    def operator(self, name):
        self.bytes[name] = self.bytes.get(name, 0) + sum(self._saved[key][0] for key in self._new)
        self._owner.update((key, name) for key in self._new)
        self._new = []

    def gradient(self, name):
        if name not in self.order:
            self.order.append(name)

    def describe(self, operators):
        """Add "activation_bytes" and "kept_for" to the operators of a description."""
        there = {o["produces"][0] for o in operators if o.get("produces")}
        last = next(o["name"] for o in reversed(operators) if o["phase"] == "backward")
        for operator in operators:
            if operator["phase"] != "forward":
                continue
            name = operator["name"].removesuffix(" forward")
            operator["activation_bytes"] = self.bytes.get(name, 0)
            if operator["activation_bytes"]:
                after = self.order[self.last_use.get(name, 0) :]
                gradient = next((g for g in after if g in there), None)
                operator["kept_for"] = f"{gradient} backward" if gradient else last


# ---- the optimizer ----


def states_bytes(optimizers):
    """What they keep now. Counters are left out."""
    states = [state for optimizer in optimizers for state in optimizer.state.values()]
    return sum(t.numel() * t.element_size() for state in states for t in state.values() if torch.is_tensor(t) and t.dim())


def state_bytes_per_element(optimizers):
    """What they keep of each element, whatever they are; None before their first step. Counters are left out."""
    elements = sum(parameter.numel() for optimizer in optimizers for parameter in optimizer.state)
    return states_bytes(optimizers) / elements if elements else None


def word_for(optimizer):
    """The word of syncopate (strategy/optimizer.h) for one of torch.optim, None where it has no word for it."""
    kind, all_of = type(optimizer).__name__.lower(), optimizer.param_groups
    if type(optimizer).__module__.split(".")[:2] != ["torch", "optim"]:
        return None
    if kind == "sgd":
        momenta = {bool(group["momentum"]) for group in all_of}
        return {(False,): "sgd", (True,): "momentum"}.get(tuple(momenta))
    more = any(group.get(option) for group in all_of for option in ("amsgrad", "centered", "momentum"))
    return kind if kind in ("adagrad", "rmsprop", "adam", "adamw", "adafactor") and not more else None


def optimizers_of(parameters):
    """Those that hold one of the parameters."""
    ours = {id(p) for p in parameters}
    there = [o for o in gc.get_objects() if issubclass(type(o), torch.optim.Optimizer)]
    return [o for o in there if any(id(p) in ours for group in o.param_groups for p in group["params"])]


def optimizer_of(parameters):
    """The member "optimizer" of a model. None: not known."""
    there = optimizers_of(parameters)
    words = {word_for(o) for o in there}
    if len(words) == 1 and None not in words:
        return words.pop()
    kept = state_bytes_per_element(there)
    return None if kept is None else {"bytes_per_element": round(kept, 3)}
