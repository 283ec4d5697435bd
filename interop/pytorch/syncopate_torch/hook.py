"""Train by a strategy in DistributedDataParallel, exactly, whatever DDP's buckets are.

    from syncopate_torch.hook import distribute
    model = distribute(model, "pytorch-hook.json", optimizer=optimizer)

in place of DistributedDataParallel(model). The file is what `syncopate strategy export --to pytorch-hook` writes.
Gradients come from DDP in buckets as small as it makes them. The hook divides each by the number of ranks, as DDP
does, and puts it into its group's buffer. A message is a part of such a buffer. It is ready when all gradients in it
are there, and is sent in the order and with the credit of the strategy (`line.py`).

A group with an "encoding" travels as 16-bit floats: gradients are rounded to them on their way into the buffer, after
the division, and sums are converted back. That changes what is learned, so it needs allow_lossy=True.

With a barrier, DDP's way, the backward pass ends when all sums are back. Without one (cross_iteration) it ends at once,
and so does optimizer.step(): a parameter is updated when the forward pass is about to read it (`deferred.py`), while
messages of others still travel. Every parameter is updated with the same sum before it is used, so losses are those
of plain DDP but for the order of floating point sums, where nothing is encoded.
"""

import threading

import torch
import torch.distributed
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from .deferred import Deferred
from .description import read
from .lanes import lanes_of
from .line import Follower, Leader, Line
from .waiter import Waiter

ONE_BYTE = 1 / 2**20  # in the MiB that bucket_cap_mb counts
EMBEDDINGS = (torch.nn.Embedding, torch.nn.EmbeddingBag)
ENCODINGS = {"f16": torch.float16, "bf16": torch.bfloat16}
POLICIES = ("fifo", "priority", "preemptive")


def distribute(module, strategy, optimizer=None, allow_lossy=False, **arguments):
    """DistributedDataParallel of the module with the strategy of a file, or of a parsed one; other arguments are DDP's.

    `optimizer` is the one that updates the module; only strategies without a barrier need it. Then
      - what reads gradients between backward() and step() (clipping, GradScaler) sees this rank's own;
      - model.synchronize() brings all parameters up to date. Call it before reading them outside of a forward pass, and
        at the end of training. state_dict() calls it.
    """
    strategy = checked(strategy, allow_lossy)
    if "bucket_cap_mb" in arguments:
        raise ValueError("bucket_cap_mb: the strategy says what travels together; leave it out")
    sparse = [n for n, m in module.named_modules() if getattr(m, "sparse", False) and isinstance(m, EMBEDDINGS)]
    if sparse:
        raise ValueError(f"{', '.join(sparse[:3])}: the hook cannot send sparse gradients; use sparse=False")
    cross = strategy.get("cross_iteration", False)
    if cross and optimizer is None:
        raise ValueError("this strategy has no barrier, so updates wait for the forward pass: pass the optimizer")
    model = DistributedDataParallel(module, bucket_cap_mb=ONE_BYTE, **arguments)
    exchange = Exchange(model, strategy, cross)
    deferred = Deferred(optimizer, module, exchange) if cross else None
    model.synchronize = deferred.finish if cross else lambda: None
    model.register_comm_hook(exchange, take)
    return model


def check_encodings(name, groups, allow_lossy):
    encodings = sorted({str(group["encoding"]) for group in groups if "encoding" in group})
    for encoding in encodings:
        if encoding not in ENCODINGS:
            raise ValueError(f"{name}: the encoding \"{encoding}\" is none of {', '.join(ENCODINGS)}")
    if encodings and not allow_lossy:
        raise ValueError(f"{name}: gradients would be rounded to {' and '.join(encodings)}: pass allow_lossy=True")


def checked(strategy, allow_lossy):
    """Check the strategy, after reading it if it is a path, and return it."""
    name = "the strategy"
    if not isinstance(strategy, dict):
        name = strategy
        strategy = read(strategy)
    groups = strategy.get("groups") if isinstance(strategy, dict) else None
    if not isinstance(groups, list) or not all(isinstance(g, dict) and g.get("variables") for g in groups):
        raise ValueError(f"{name}: no groups of variables; syncopate strategy export --to pytorch-hook writes them")
    check_encodings(name, groups, allow_lossy)
    if strategy.get("policy", "fifo") not in POLICIES:
        raise ValueError(f"{name}: the policy \"{strategy['policy']}\" is none of {', '.join(POLICIES)}")
    if not isinstance(strategy.get("credit_bytes", 0), (int, type(None))):
        raise ValueError(f"{name}: credit_bytes is no whole number")
    return strategy


def take(exchange, bucket):
    """The communication hook."""
    return exchange.take(bucket)


class Variable:
    """A parameter, its place in its group's buffer, and what of its sum is on its way."""

    def __init__(self, parameter, group, start):
        self.parameter, self.group = parameter, group
        self.start, self.end = start, start + parameter.numel()
        self.messages = []  # indices
        self.left = 0  # messages that are not back; 0: the sum is there, or nothing was sent
        self.sent = False  # the gradient was taken, and nobody has used the sum
        self.gradient = self.bucket = None  # with a barrier: where the sum goes, and what waits for it


class Bucket:
    """What DDP waits for: a future with the buffer, once the sums of its `left` variables are in it. On a GPU DDP's stream
    waits for what is on the current stream of the thread that sets the result, and only because the result has a tensor
    there. Variables can come back in several threads, so the last one's stream waits for the others."""

    def __init__(self, buffer, variables):
        self.buffer, self.left, self.copied = buffer, variables, []
        self.future = Future(devices=[buffer.device] if buffer.is_cuda else None)

    def has(self):
        """The sum of one more variable is being copied on the current stream; the lock is held. Whether it was the last."""
        self.left -= 1
        if self.buffer.is_cuda:
            self.copied.append(torch.cuda.current_stream().record_event())
        return self.left == 0

    def done(self):
        for event in self.copied:
            torch.cuda.current_stream().wait_event(event)
        self.future.set_result(self.buffer)


class Message:
    """A part of a group's buffer."""

    def __init__(self, group, buffer, variables):
        self.group, self.buffer, self.variables = group, buffer, variables
        self.bytes = buffer.numel() * buffer.element_size()
        self.word = None  # its number, as rank 0 tells it
        self.missing = len(variables)


def named_parameters(model, groups):
    """Check that the groups have each of the module's parameters exactly once, and return the parameters by name."""
    named = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
    names = [name for group in groups for name in group["variables"]]
    if sorted(names) != sorted(named):
        odd = sorted(set(names) ^ set(named)) or sorted(n for n in set(names) if names.count(n) > 1)
        raise ValueError(f"the groups are not of this module: {', '.join(odd[:3])}")
    return named


def cuts_of(strategy, group, elements, element_bytes):
    """Lengths of a group's messages in elements, and their places in the fixed order of all slices, if there is one."""
    slices = [(place, s["bytes"]) for place, s in enumerate(strategy.get("slices", [])) if s["group"] == group]
    if slices:
        lengths = [size // element_bytes for _, size in slices]
        if sum(lengths) != elements:
            raise ValueError(f"the slices of group {group} do not add up to its gradients")
        return lengths, [place for place, _ in slices]
    partition = strategy["groups"][group].get("partition_bytes", 0)
    most = max(partition // element_bytes, 1) if partition else elements
    return [min(most, elements - start) for start in range(0, elements, most)], None


def check_sums(model, buffers):
    """Whether the backend sums all element types that travel. If it does not, every rank finds out here."""
    for dtype, device in sorted({(b.dtype, b.device) for b in buffers}, key=str):
        if dtype not in ENCODINGS.values():
            continue
        try:
            torch.distributed.all_reduce(torch.zeros(1, dtype=dtype, device=device), group=model.process_group)
        except RuntimeError as error:
            raise ValueError(f"this backend of torch.distributed cannot sum {dtype}") from error


class Exchange:
    """All messages of a strategy, and how far each is in this iteration."""

    def __init__(self, model, strategy, cross):
        self.strategy, self.cross = strategy, cross
        self.world = torch.distributed.get_world_size(model.process_group)
        self.lanes = lanes_of(model.process_group, cross)
        self.came_back = threading.Condition()
        self.error = None
        self.variables, self.messages, self.buffers, self.urgency = {}, [], [], []
        order = self._lay_out(named_parameters(model, strategy["groups"]))
        check_sums(model, self.buffers)
        self.waiters = [Waiter(self.buffers[0].device) for _ in self.lanes]
        self.line = self._line(order)

    def _line(self, order):
        """The order in which messages are sent. Without a limit of credit each goes as soon as it is ready."""
        sizes = [m.bytes for m in self.messages]
        credit = self.strategy.get("credit_bytes")
        if not self.cross or self.strategy.get("policy") != "priority" or credit is None:
            return Line(sizes, credit, self._send, order or ())
        self.words = torch.distributed.new_group(backend="gloo")
        if torch.distributed.get_rank() == 0:
            for i, message in enumerate(self.messages):
                message.word = torch.tensor([i])
            return Leader(sizes, credit, self._send, self.urgency, self._announce)
        self.heard = torch.zeros(1, dtype=torch.int64)
        self.listener = Waiter(self.heard.device)
        return Follower(sizes, self._send, self._listen)

    def _lay_out(self, named):
        """Buffers, variables and messages; returns the fixed order, or None."""
        places = {}
        for g, group in enumerate(self.strategy["groups"]):
            start, members = 0, []
            for name in group["variables"]:
                members.append(Variable(named[name], g, start))
                start = members[-1].end
                self.variables[named[name]] = members[-1]
            first = members[0].parameter
            dtype = ENCODINGS[group["encoding"]] if "encoding" in group else first.dtype
            self.buffers.append(torch.zeros(start, dtype=dtype, device=first.device))
            lengths, ranks = cuts_of(self.strategy, g, start, self.buffers[-1].element_size())
            self._cut(g, members, lengths, group.get("needed", 0))
            places.update(zip(range(len(self.messages) - len(lengths), len(self.messages)), ranks or []))
        return sorted(places, key=places.get) if places else None

    def _cut(self, g, members, lengths, needed):
        end = 0
        for length in lengths:
            start, end = end, end + length
            inside = [v for v in members if v.start < end and v.end > start]
            for v in inside:
                v.messages.append(len(self.messages))
            self.messages.append(Message(g, self.buffers[g][start:end], inside))
            self.urgency.append(needed)

    # ---- from the backward pass ----

    def take(self, bucket):
        """Put the bucket's gradients into their groups' buffers and send what is ready. The future that is returned is
        done at once without a barrier, else when all of the bucket's sums are there."""
        if bucket.buffer().is_sparse:
            raise RuntimeError("a sparse gradient, which the hook cannot send")
        variables = [self.variables[p] for p in bucket.parameters()]
        waits = Bucket(bucket.buffer(), len(variables))
        for variable, gradient in zip(variables, bucket.gradients()):
            self._put(variable, gradient, waits)
        if self.cross:
            waits.done()
        return waits.future

    def _put(self, variable, gradient, bucket):
        if variable.sent:
            raise RuntimeError(
                "two backward passes without a step of the optimizer between them: put the first one into no_sync(); "
                "or the step was skipped; or it was not the step of the optimizer given to distribute()"
            )
        place = self.buffers[variable.group][variable.start : variable.end].view(gradient.shape)
        torch.div(gradient, self.world, out=place)
        variable.left = len(variable.messages)
        variable.sent = self.cross
        with self.came_back:
            if self.error:
                raise self.error
            if not self.cross:
                variable.gradient, variable.bucket = gradient, bucket
        for i in variable.messages:
            message = self.messages[i]
            message.missing -= 1
            if message.missing == 0:
                message.missing = len(message.variables)
                message.written = torch.cuda.current_stream().record_event() if gradient.is_cuda else None
                self.line.ready(i)

    # ---- messages ----

    def _send(self, i):
        """Any thread may call this, so it first waits for the stream that wrote the message."""
        message, lane = self.messages[i], i % len(self.lanes)
        if message.written:
            torch.cuda.current_stream().wait_event(message.written)
        message.work = torch.distributed.all_reduce(message.buffer, group=self.lanes[lane], async_op=True)
        self.waiters[lane].expect(message.work, lambda error: self._back(i, error))

    def _announce(self, i):
        torch.distributed.broadcast(self.messages[i].word, 0, group=self.words, async_op=True)

    def _listen(self):
        work = torch.distributed.broadcast(self.heard, 0, group=self.words, async_op=True)
        self.listener.expect(work, self._told)

    def _told(self, error):
        self._go_on(error, lambda: self.line.told(self.heard.item()))

    def _back(self, i, error):
        self._go_on(error, lambda: self.line.returned(i))
        whole = []
        with self.came_back:
            for variable in self.messages[i].variables:
                variable.left -= 1
                if variable.left == 0:
                    whole.append(variable)
            self.came_back.notify_all()
        if not self.cross:
            for variable in whole:
                self._give_back(variable)

    def _go_on(self, error, step):
        """Run `step` in a waiter's thread. An error goes to those who wait for a sum, and does not end this thread."""
        try:
            if error:
                raise error
            step()
        except Exception as failure:
            self._fail(failure)

    def _fail(self, error):
        with self.came_back:
            self.error = error
            self.came_back.notify_all()
        for variable in self.variables.values():
            self._give_back(variable)

    def _give_back(self, variable):
        """Once the bucket's future has its result the next iteration may begin, in another thread."""
        with self.came_back:
            gradient, bucket = variable.gradient, variable.bucket
            variable.gradient = variable.bucket = None
        if not bucket:
            return
        if not self.error:
            gradient.copy_(self.sum_of(variable))
        with self.came_back:
            last = bucket.has()
        if last and self.error:
            bucket.future.set_exception(self.error)
        elif last:
            bucket.done()

    # ---- for updates that wait ----

    def sum_of(self, variable):
        place = self.buffers[variable.group][variable.start : variable.end].view(variable.parameter.shape)
        return place.to(variable.parameter.dtype)

    def wait(self, variable):
        """Until the variable's sum is there; on a GPU, until the current stream will find it there."""
        with self.came_back:
            self.came_back.wait_for(lambda: variable.left == 0 or self.error)
        if self.error:
            raise self.error
        if variable.parameter.is_cuda:
            for i in variable.messages:
                self.messages[i].work.wait()
        variable.sent = False
