"""Hooks that record when the parts of training iterations end, and the operators and times that follow from this.

Forward: a module without children, or with parameters of its own, ends an operator when it returns. The operator's time
begins where the one before ended, so what runs between modules counts for the next one. The operator "loss" lasts from
the end of the forward pass to the first gradient. What runs from the end of a backward pass to the next forward pass
(zero_grad(), the next images) is the first operator, "between iterations", without the optimizer's step, which is the
model's "update_us": a device that has a part of the optimizer's states updates that part alone. Backward: a gradient
is ready when autograd has accumulated it (the hook that PyTorch's and Horovod's own data parallelism use), and each
gradient's operator takes the time since the gradient before. Times are medians over iterations; the order is that of
the medians. Each hook costs a few microseconds of the processor.

The first iteration also shows what the forward pass leaves for the backward pass (activations.py), and the last one
of several, on a GPU, what else each operator holds (temporary.py).

DistributedDataParallel sends a module's buffers (those of BatchNorm) from rank 0 before each forward pass. With
broadcast_buffers=True, which all ranks must give, that is timed at the end, and is the operator "broadcast buffers".
"""

import dataclasses
import functools
import types
import warnings

import torch

from .activations import Activations, optimizer_of, optimizers_of, states_bytes
from .clock import clock_of
from .description import check_writable, describe, write
from .temporary import Temporary, allocator_of

BROADCASTS, BROADCAST_BYTES = 5, 250 << 20  # how often it is timed; the largest message, which is DDP's


def tensors_in(value):
    """All tensors in what a module took or returned."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in(vars(value))


def is_writer():
    """Of several ranks the first one writes."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return not distributed or torch.distributed.get_rank() == 0


class Iteration:
    """Moments of one iteration."""

    def __init__(self, start, before, updates):
        self.start = start
        self.before = before  # when the backward pass before it ended; None: there was none
        self.updates = updates  # (begin, end) of the optimizer's steps since then
        self.marks = []  # (operator, moment) in the order of the forward pass
        self.forward_end = None
        self.backward_start = None
        self.ready = {}  # parameter -> moment
        self.backward_end = None


class Profile:
    """Hooks on a model until enough iterations were seen. Then the first rank writes the file and sets `done`."""

    def __init__(self, model, path, name=None, batch=None, warmup=5, iterations=20, broadcast_buffers=None, optimizer=None):
        if iterations < 1 or warmup < 0:
            raise ValueError("iterations must be at least 1 and warmup at least 0")
        if is_writer():
            check_writable(path)
        distributed = isinstance(model, torch.nn.parallel.DistributedDataParallel)
        self.gradients_are_buckets = distributed and model.gradient_as_bucket_view
        if distributed:
            model = model.module
        self.model, self.path, self.batch = model, path, batch
        self.name, self.optimizer = name or type(model).__name__, optimizer
        self.names = {p: n for n, p in model.named_parameters() if p.requires_grad}
        if not self.names:
            raise ValueError("the model has no parameter that is trained")
        self.buffers = self._buffers_to_time(broadcast_buffers)
        self.left = warmup + iterations
        self.keep = iterations
        self.clock = clock_of(next(iter(self.names)).device)
        self.iterations = []
        self.now = None
        self.last_end, self.updates = None, []
        self.timed = []  # (optimizer, its step meanwhile, what was in place of its class's step before)
        self.reads = {}  # operator -> names of parameters
        self.pending = []  # parameters of modules that have begun and wait for the next operator
        self.sparse_rows = {}
        self.activations = None  # of the first iteration
        self.temporary = None  # of the last one
        self.gradients, self.gradients_bytes = set(), 0  # that are there; counted in that one
        self.buckets_bytes = bytes_of(self.names) if distributed else 0  # that DistributedDataParallel keeps
        self.done = False
        self.handles = []
        self.accumulators = []  # must live as long as their hooks
        self._hook()

    def _buffers_to_time(self, broadcast):
        buffers = list(self.model.buffers())
        if broadcast and not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            raise ValueError("broadcast_buffers=True times messages between ranks: start them, and init_process_group()")
        if buffers and broadcast is None and is_writer():
            size = sum(b.numel() * b.element_size() for b in buffers)
            warnings.warn(
                f"DistributedDataParallel sends {size} bytes of buffers before each forward pass, which is not in this "
                "profile: give broadcast_buffers=True on all ranks, or False to both if they need not be sent",
                stacklevel=4,
            )
        return buffers if broadcast else []

    def _broadcast_us(self):
        """The time of what DDP does before a forward pass, with copies, until the last rank has them: rank 0 only sends."""
        buffers, times = [b.detach().clone() for b in self.buffers], []
        for _ in range(BROADCASTS if buffers else 0):
            torch.distributed.barrier()
            start = self.clock.now()
            torch.distributed._broadcast_coalesced(torch.distributed.group.WORLD, buffers, BROADCAST_BYTES, 0)
            end = self.clock.now()
            self.clock.wait()
            longest = torch.tensor([self.clock.between_us(start, end)], device=buffers[0].device)
            torch.distributed.all_reduce(longest, torch.distributed.ReduceOp.MAX)
            times.append(longest.item())
        return round(median(times or [0]), 3)

    def close(self):
        """Remove the hooks; nothing is written any more."""
        for handle in self.handles:
            handle.remove()
        for optimizer, timed, before in self.timed:
            if vars(optimizer)["step"] is timed:  # else somebody else's step calls it
                del optimizer.step
                vars(optimizer).update(before)
        self.timed, self.last_end = [], None
        self.handles, self.accumulators, self.now = [], [], None
        if self.activations:
            self.activations.close()

    def _hook(self):
        self.handles.append(self.model.register_forward_pre_hook(self._begin))
        for name, module in self.model.named_modules():
            own = [self.names[p] for p in module.parameters(recurse=False) if p in self.names]
            if own:
                self.handles.append(module.register_forward_pre_hook(self._reader(own)))
            if own or not any(True for _ in module.children()):
                self.handles.append(module.register_forward_hook(self._marker(name or self.name)))
        self.handles.append(self.model.register_forward_hook(self._end_forward))
        for parameter in self.names:
            with torch.enable_grad():
                node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            self.accumulators.append(node)
            self.handles.append(node.register_hook(self._ready(parameter)))

    def _begin(self, module, inputs):
        if self.now is not None and self.now.backward_start is not None:
            return  # called again by its own backward pass
        if self.batch is None:
            self.batch = next((t.shape[0] for t in tensors_in(inputs) if t.dim()), None)
        self.pending = []
        self._watch_activations(inputs)
        self._watch_allocator()
        self.now = Iteration(self.clock.now(), self.last_end, self.updates)
        self.last_end, self.updates = None, []  # an evaluation may come before the next backward pass

    def _watch_activations(self, inputs):
        """Of the first iteration, however often a forward pass begins before its backward pass does. Not of an only one:
        what it saves is watched until the next begins, since PyTorch 1.13 crashes where that ends within a backward pass."""
        if self.activations:
            self.activations.close()
        if not self.iterations and self.left > 1 and torch.is_grad_enabled():
            self.activations = Activations()
            self.activations.begin([*self.model.parameters(), *self.model.buffers(), *tensors_in(inputs)])

    def _watch_allocator(self):
        allocator = allocator_of(next(iter(self.names)).device)
        if self.left == 1 and self.iterations and allocator and torch.is_grad_enabled():
            self._see_gradients()
            self.temporary = Temporary(allocator, states_bytes(optimizers_of(self.names)), self._apart())

    def _see_gradients(self):
        self.gradients = {p for p in self.names if p.grad is not None and not p.grad.is_sparse}
        self.gradients_bytes = bytes_of(self.gradients)

    def _apart(self):
        """Bytes of the gradients that are there, and of DistributedDataParallel's buckets, which may be the same."""
        return self.buckets_bytes + (0 if self.gradients_are_buckets else self.gradients_bytes)

    def _held_by(self, operator):
        if self.temporary:
            self.temporary.operator(operator, self._apart())

    def _in_forward(self):
        return self.now is not None and self.now.backward_start is None

    def _reader(self, names):
        def begin(module, inputs):
            if self._in_forward():
                self.pending.extend(names)

        return begin

    def _marker(self, name):
        def end(module, inputs, output):
            if not self._in_forward():
                return
            again = sum(1 for operator, _ in self.now.marks if operator == name or operator.startswith(name + " #"))
            operator = f"{name} #{again + 1}" if again else name
            self.reads.setdefault(operator, []).extend(n for n in self.pending if n not in self.reads[operator])
            self.pending = []
            self.now.marks.append((operator, self.clock.now()))
            self._held_by(f"{operator} forward")
            if not self.iterations and self.activations:
                self.activations.operator(operator)

        return end

    def _end_forward(self, module, inputs, output):
        if not self._in_forward():
            return
        self.now.forward_end = self.clock.now()
        ends = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        for tensor in ends:
            tensor.register_hook(self._begin_backward)
        if not ends and torch.is_grad_enabled():
            warnings.warn("no tensor in what the model returned can begin a backward pass", stacklevel=2)

    def _begin_backward(self, gradient):
        if self._in_forward() and self.now.forward_end is not None:
            self.now.backward_start = self.clock.now()
            self._held_by("loss forward")
            if self.temporary:
                self._see_gradients()  # the old ones may be gone
            if not self.iterations and self.activations:
                self.activations.operator("loss")
                self.activations.end_forward()
            torch.autograd.Variable._execution_engine.queue_callback(self._end)

    def _ready(self, parameter):
        name = self.names[parameter]

        def ready(*_):
            if self.now is None or self.now.backward_start is None:
                return
            self.now.ready[name] = self.clock.now()
            if parameter not in self.gradients and parameter.grad is not None and not parameter.grad.is_sparse:
                self.gradients.add(parameter)
                self.gradients_bytes += bytes_of([parameter])
            self._held_by(f"{name} backward")
            if not self.iterations and self.activations:
                self.activations.gradient(name)
            if parameter.grad is not None and parameter.grad.is_sparse:
                rows = min(parameter.grad._nnz(), parameter.shape[0])
                self.sparse_rows[name] = max(rows, 1)

        return ready

    def _time_updates(self):
        """PyTorch 1.13 has no hooks on steps, so what is called as one is replaced."""
        for optimizer in optimizers_of(self.names):
            before = {k: v for k, v in vars(optimizer).items() if k == "step"}
            optimizer.step = self._timed(optimizer, optimizer.step)
            self.timed.append((optimizer, optimizer.step, before))

    def _timed(self, optimizer, step):
        """A method with the attributes of the one before, as schedulers want it."""

        @functools.wraps(step)
        def timed(_, *args, **options):
            begin = self.clock.now()
            try:
                return step(*args, **options)
            finally:
                if self.last_end is not None:
                    self.updates.append((begin, self.clock.now()))

        return types.MethodType(timed, optimizer)

    def _end(self):
        iteration, self.now = self.now, None
        if iteration is None or not iteration.ready:
            return
        if not self.iterations:
            self._time_updates()
        iteration.backward_end = self.last_end = self.clock.now()
        self.iterations = (self.iterations + [iteration])[-self.keep :]
        self.left -= 1
        if self.left == 0:
            self._finish()

    def _finish(self):
        iterations = self.iterations
        self.close()
        self.clock.wait()
        parameters = {n: p for p, n in self.names.items()}
        never = [n for n in parameters if any(n not in i.ready for i in iterations)]
        if never:
            warnings.warn(f"no gradient in some iteration, left out: {', '.join(never)}", stacklevel=2)
        times = Times(self.clock, iterations, [n for n in parameters if n not in never], self._broadcast_us())
        if not is_writer():
            return
        try:
            write(self.path, self._describe(parameters, times))
        except OSError as error:  # training goes on
            warnings.warn(f"{self.path} was not written: {error}", stacklevel=2)
        else:
            self.done = True

    def _describe(self, parameters, times):
        out = describe(self.name, self.batch, parameters, self.reads, self.sparse_rows, times)
        optimizer = self.optimizer or optimizer_of(parameters.values())
        if optimizer:
            out["optimizer"] = optimizer
        if times.update_us:
            out["update_us"] = times.update_us
        if self.activations:
            self.activations.describe(out["operators"])
        if self.temporary:
            described = [parameters[v["name"]] for v in out["variables"]]
            self.temporary.describe(out["operators"], bytes_of(described))
        return out


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Times:
    """Medians in microseconds, from the end of the backward pass before: when operators of the forward pass ended; and
    from the start of the backward pass: when gradients were ready."""

    def __init__(self, clock, iterations, parameters, broadcast_us):
        last = iterations[-1]
        same = [i for i in iterations if [o for o, _ in i.marks] == [o for o, _ in last.marks]]
        us = clock.between_us
        later = [i for i in iterations if i.before is not None]
        updates = [sum(us(*moments) for moments in i.updates) for i in later]
        self.update_us = round(median([update for update in updates if update] or [0]), 3)
        between = median([us(i.before, i.start) - update for i, update in zip(later, updates)] or [0])
        self.forward = [("between iterations", between)] if between else []
        begin = between + broadcast_us
        if broadcast_us:
            self.forward.append(("broadcast buffers", begin))
        for k, (operator, _) in enumerate(last.marks):
            self.forward.append((operator, begin + median([us(i.start, i.marks[k][1]) for i in same])))
        self.loss_end = begin + median([us(i.start, i.backward_start) for i in same])
        self.ready = {n: median([us(i.backward_start, i.ready[n]) for i in iterations]) for n in parameters}
        self.backward_end = median([us(i.backward_start, i.backward_end) for i in iterations])


def profile(model, path, name=None, batch=None, warmup=5, iterations=20, broadcast_buffers=None, optimizer=None):
    """Write the file `path` after `warmup` + `iterations` iterations, each one call of `model` and one backward pass.

    `batch` is the number of samples an iteration, by default the first size of the first tensor that the model is
    called with. `broadcast_buffers` says what DistributedDataParallel will be given: True on all ranks, and the time is in
    the file; False, and nobody is warned of buffers. `optimizer` is the model's member "optimizer", for predictions of
    memory; by default what torch.optim's optimizer of these parameters is, or keeps. Returns the Profile, whose `done`
    says whether the file is there and whose `close()` gives up.
    """
    return Profile(model, path, name, batch, warmup, iterations, broadcast_buffers, optimizer)


if __name__ == "__main__":
    from .script import main

    main()
