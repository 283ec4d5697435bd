"""Train by a strategy in DistributedDataParallel, exactly, whatever DDP's buckets are.

    from syncopate_torch.hook import distribute
    model = distribute(model, "pytorch-hook.json", optimizer=optimizer)

in place of DistributedDataParallel(model). The file is what `syncopate strategy export --to pytorch-hook` writes.
Gradients come from DDP in buckets as small as it makes them. The hook divides each by the number of ranks, as DDP
does, and puts it into its group's buffer. A message is a part of such a buffer (`layout.py`). It is ready when all
gradients in it are there, and is sent in the order and with the credit of the strategy (`line.py`): by an all-reduce, or
to the rank that serves it and back (`served.py`).

A sparse gradient travels as its touched rows where the strategy says so, else as the whole dense one. Its sum is sparse
again. Where it travelled dense, that holds the rows that are not zero.

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

from .clock import event_on, finish, wait_on_stream
from .deferred import Deferred, uncompiled
from .description import read_groups
from .lanes import lanes_of
from .layout import ENCODINGS, Layout
from .line import Follower, Leader, Line
from .parts import Parts, share_out
from .served import Served, first_ranks
from .waiter import Waiter

ONE_BYTE = 1 / 2**20  # in the MiB that bucket_cap_mb counts
USUAL_CAP = 25 * 2**20  # bytes
POLICIES, PULLS = ("fifo", "priority", "preemptive"), ("at_once", "priority")


def distribute(module, strategy, optimizer=None, allow_lossy=False, **arguments):
    """DistributedDataParallel of the module with the strategy of a file, or of a parsed one; other arguments are DDP's, of
    which gradient_as_bucket_view is true unless it is given.

    `optimizer` is the one that updates the module; only strategies without a barrier need it. Then
      - what reads gradients between backward() and step() (clipping, GradScaler) sees this rank's own;
      - model.synchronize() brings all parameters up to date. Call it before reading them outside of a forward pass, and
        at the end of training. state_dict() calls it.
    """
    strategy = checked(strategy, allow_lossy)
    if "bucket_cap_mb" in arguments:
        raise ValueError("bucket_cap_mb: the strategy says what travels together; leave it out")
    cross = strategy.get("cross_iteration", False)
    if cross and optimizer is None:
        raise ValueError("this strategy has no barrier, so updates wait for the forward pass: pass the optimizer")
    layout = Layout(strategy, module)
    check_parts(layout, optimizer, cross)
    check_ranks(strategy, layout, arguments.get("process_group"))
    # Gradients are the buckets: the messages' buffers are a copy already, and another would be one more than DDP's own.
    model = DistributedDataParallel(module, **{"bucket_cap_mb": ONE_BYTE, "gradient_as_bucket_view": True, **arguments})
    model.bucket_bytes_cap = USUAL_CAP  # by which torch.compile cuts the backward pass: not at each parameter
    exchange = Exchange(model, strategy, layout)
    deferred = None
    if layout.runs:
        deferred = Parts(optimizer, module, exchange, share_out(layout, exchange.lanes))
    elif cross:
        deferred = Deferred(optimizer, module, exchange)
    model.synchronize = lambda: (deferred and deferred.finish(), exchange.settle())
    if deferred and cross and exchange.device.type == "cuda":
        settle_before_own_messages(model, deferred)
    model.register_comm_hook(exchange, take)
    return model


def settle_before_own_messages(model, deferred):
    """DDP sends buffers before each forward pass, and the order of its buckets once, before the second one. With NCCL
    these are kernels of another communicator than the hook's. Ranks that start kernels of two communicators in other
    orders may wait for each other for ever, so all messages of the hook come first. gloo has no kernels."""
    order_sent = False

    def settle(*_):
        nonlocal order_sent
        if not order_sent or model.will_sync_module_buffers():
            order_sent = order_sent or bool(deferred.waiting and torch.is_grad_enabled())
            deferred.finish()

    model.register_forward_pre_hook(uncompiled(settle))


def check_encodings(name, groups, allow_lossy):
    encodings = sorted({str(group["encoding"]) for group in groups if "encoding" in group})
    for encoding in encodings:
        if encoding not in ENCODINGS:
            raise ValueError(f"{name}: the encoding \"{encoding}\" is none of {', '.join(ENCODINGS)}")
    if encodings and not allow_lossy:
        raise ValueError(f"{name}: gradients would be rounded to {' and '.join(encodings)}: pass allow_lossy=True")


def checked(strategy, allow_lossy):
    """Check the strategy, after reading it if it is a path, and return it."""
    strategy, name = read_groups(strategy, "pytorch-hook")
    check_encodings(name, strategy["groups"], allow_lossy)
    if strategy.get("policy", "fifo") not in POLICIES:
        raise ValueError(f"{name}: the policy \"{strategy['policy']}\" is none of {', '.join(POLICIES)}")
    if strategy.get("pulls", "at_once") not in PULLS:
        raise ValueError(f"{name}: the pulls \"{strategy['pulls']}\" are none of {', '.join(PULLS)}")
    if not isinstance(strategy.get("credit_bytes", 0), (int, type(None))):
        raise ValueError(f"{name}: credit_bytes is no whole number")
    return strategy


def take(exchange, bucket):
    """The communication hook."""
    return exchange.take(bucket)


def check_parts(layout, optimizer, cross):
    if not layout.runs:
        return
    if optimizer is None:
        raise ValueError("this strategy updates parameters in parts: pass the optimizer")
    if cross and not all(m.sharded for m in layout.messages):
        raise ValueError("without a barrier either all groups are updated in parts (\"sharded\": \"optimizer\") or none")


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
        self.copied.append(event_on(self.buffer))
        return self.left == 0

    def done(self):
        for event in self.copied:
            wait_on_stream(event, self.buffer)
        self.future.set_result(self.buffer)


def check_ranks(strategy, layout, process_group):
    """What goes from rank to rank needs gloo, and the ranks that the strategy counts on."""
    singles = [m for m in layout.messages if m.single]
    if not singles:
        return
    process_group = process_group or torch.distributed.group.WORLD
    world = torch.distributed.get_world_size()
    if torch.distributed.get_world_size(process_group) != world:
        raise ValueError("servers and gathered rows need all ranks in DDP's process group")
    for message in singles:
        place = message.variables[0].parameter.device
        if place.type != "cpu" or not torch.distributed.is_gloo_available():
            raise ValueError(f"servers and gathered rows need gloo and gradients on the CPU, not on {place.type}")
    for server in [m.server for m in singles if m.server]:
        if not isinstance(server.get("rank"), int):
            raise ValueError(f"node {server.get('node')} serves, but has no device and so no rank here")
        ranks = sum(strategy.get("node_ranks", []))
        if ranks != world:
            raise ValueError(f"the strategy is for {ranks} ranks, and these are {world}")
        if not 0 <= server["rank"] < world:
            raise ValueError(f"rank {server['rank']} is to serve, of {world}")
        if server.get("local_reduction") and server["rank"] not in first_ranks(strategy["node_ranks"]):
            raise ValueError(f"rank {server['rank']} is to serve with local_reduction, and is no node's first")


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

    def __init__(self, model, strategy, layout):
        self.strategy, self.cross = strategy, strategy.get("cross_iteration", False)
        self.world = torch.distributed.get_world_size(model.process_group)
        self.lanes = lanes_of(model.process_group, self.cross)
        self.came_back = threading.Condition()
        self.error = None
        self.variables, self.messages = layout.variables, layout.messages
        check_sums(model, [m.buffer for m in self.messages if not m.single])
        self.device = next(iter(self.variables)).device
        self.waiters = [Waiter(self.device) for _ in self.lanes]
        singles = [m for m in self.messages if m.single]
        ordered = self.cross and strategy.get("policy") == "priority" and strategy.get("credit_bytes") is not None
        led = ordered and not all(m.server for m in self.messages)
        self.served = Served(self, strategy.get("node_ranks"), led) if singles else None
        self.line = self._line(layout.order, ordered, led)
        self._connect()

    def _connect(self):
        """NCCL makes a communicator, connects it and loads kernels when a collective needs them first. That may wait
        for kernels that run, and these for other ranks. So each message is summed here once, while nothing else runs."""
        if self.device.type != "cuda":
            return
        for i, message in enumerate(self.messages):
            torch.distributed.all_reduce(message.buffer, group=self.lanes[i % len(self.lanes)])
        finish(self.device)

    def _line(self, order, ordered, led):
        """The order in which messages are sent. Without a limit of credit each goes as soon as it is ready."""
        sizes, urgency = [m.bytes for m in self.messages], [m.urgency for m in self.messages]
        credit = self.strategy.get("credit_bytes")
        if not ordered:
            return Line(sizes, credit, self._send, order or ())
        if not led:
            return Leader(sizes, credit, self._send, urgency)
        self.words = torch.distributed.new_group(backend="gloo")
        if torch.distributed.get_rank() == 0:
            for i, message in enumerate(self.messages):
                message.word = torch.tensor([i])
            return Leader(sizes, credit, self._send, urgency, self._announce)
        self.heard = torch.zeros(1, dtype=torch.int64)
        self.listener = Waiter(self.device)  # it sends, so on a GPU it needs a stream there
        return Follower(sizes, self._send, self._listen)

    # ---- from the backward pass ----

    def take(self, bucket):
        """Put the bucket's gradients into their groups' buffers and send what is ready. The future that is returned is
        done at once without a barrier, else when all of the bucket's sums are there."""
        buffer = bucket.buffer()
        variables = [self.variables[p] for p in bucket.parameters()]
        gradients = [buffer] if buffer.is_sparse else bucket.gradients()
        waits = Bucket(buffer, len(variables))
        for variable, gradient in zip(variables, gradients):
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
        variable.put(gradient, self.world)
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
                message.missing = len(message.pieces)
                message.written = event_on(gradient)
                self.line.ready(i)

    # ---- messages ----

    def _send(self, i):
        """Any thread may call this, so it first waits for the stream that wrote the message."""
        message, lane = self.messages[i], i % len(self.lanes)
        if message.single:
            self.served.send(i)
            return
        wait_on_stream(message.written, message.buffer)
        if message.sharded:
            work = message.share.scatter(message.buffer)
        else:
            work = torch.distributed.all_reduce(message.buffer, group=self.lanes[lane], async_op=True)
        self.waiters[lane].expect(work, lambda error: self.go_on(error, lambda: self._summed(i)))

    def _announce(self, i):
        torch.distributed.broadcast(self.messages[i].word, 0, group=self.words, async_op=True)

    def _listen(self):
        work = torch.distributed.broadcast(self.heard, 0, group=self.words, async_op=True)
        self.listener.expect(work, self._told)

    def _told(self, error):
        self.go_on(error, lambda: self.line.told(self.heard.item()))

    def _summed(self, i):
        """In the waiter's thread. On a GPU its stream waits for the sum; with a limit of credit the thread does too."""
        message = self.messages[i]
        if message.sharded:
            message.share.add_up()
        message.summed = event_on(message.buffer)
        if message.summed and self.line.credit is not None:
            message.summed.synchronize()
        self.line.returned(i)
        self.back(i)

    def back(self, i):
        """The sum of a message is there."""
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

    def go_on(self, error, step):
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
        if not self.error and variable.sparse:
            bucket.buffer = variable.sum()
        elif not self.error and not variable.sharded:
            gradient.copy_(variable.sum())
        with self.came_back:
            last = bucket.has()
        if last and self.error:
            bucket.future.set_exception(self.error)
        elif last:
            bucket.done()

    def settle(self):
        """Until others have what this rank serves."""
        if self.served:
            self.served.settle()

    # ---- for updates that wait ----

    def wait(self, variable):
        """Until the variable's sum is there; on a GPU, until the current stream will find it there."""
        with self.came_back:
            self.came_back.wait_for(lambda: variable.left == 0 or self.error)
        if self.error:
            raise self.error
        for i in variable.messages:
            wait_on_stream(self.messages[i].summed, variable.parameter)
        variable.sent = False
