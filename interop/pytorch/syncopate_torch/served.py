"""Messages that go from rank to rank: those of servers, and touched rows that all ranks gather.

A server is a rank, the first one of its node. Every rank sends its part of a message there (a push), the server adds
them up and sends the sum back (a pull). With local_reduction the ranks of a node send to their first rank, which adds
up, sends one push for the node, and passes the sum on. So each rank has a parent and children for a message: it waits
for its children's parts, adds its own, sends the sum to its parent, waits for the whole sum and sends that to its
children. Rows that are gathered go from everyone to everyone, and each rank adds them up, in the order of ranks.

gloo sends a message when its receiver has asked for it; words, and parts and sums of known size, are asked for beforehand.
Before each part and each sum goes a word: its message's number, and how many rows will come. So a rank hears in which order
others send, which under priority is not its own order, and can wait for what comes next. Under "pulls": "priority" a
rank that hears of a sum asks for the most urgent ones first, with a credit of their own.
"""

import collections
import threading

import torch
import torch.distributed as dist

from .layout import INDEX_BYTES
from .line import Leader
from .waiter import Waiter


def first_ranks(node_ranks):
    """Of nodes that have any."""
    return [sum(node_ranks[:k]) for k, n in enumerate(node_ranks) if n]


def family(message, node_ranks, rank, world):
    """(parent, children) of a rank for a message; parent is None where the sum is made."""
    if message.gathered and not message.server:
        return None, [r for r in range(world) if r != rank]
    root = message.server["rank"]
    if not message.server.get("local_reduction"):
        return (None, [r for r in range(world) if r != rank]) if rank == root else (root, [])
    starts = first_ranks(node_ranks)
    leader = max(start for start in starts if start <= rank)
    if rank != leader:
        return leader, []
    mates = list(range(leader + 1, min([start for start in starts if start > leader] or [world])))
    if rank != root:
        return root, mates
    return None, mates + [start for start in starts if start != root]


class All:
    """Several works as one, which may be waited for more than once. (gloo's own sends and receives may not.)"""

    def __init__(self, *works):
        self.works, self.lock = list(works), threading.Lock()

    def wait(self):
        with self.lock:
            while self.works:
                self.works.pop().wait()


class Cargo:
    """What travels for a message. `tag` is that of its parts and its sum."""

    def __init__(self, message, tag, group, children):
        self.message, self.tag, self.group, self.children = message, tag, group, children
        self.missing = len(children) + 1  # parts that are not here yet
        self.answers = []  # what is on its way to children

    def ask_for_parts(self):
        """As far as their sizes are known."""

    def ask_for_sum(self, parent):
        """Likewise."""

    def open_sum(self):
        """It has come."""


class Dense(Cargo):
    """A part of a buffer. `sum` is this rank's and its children's, then that of all."""

    def __init__(self, *of):
        super().__init__(*of)
        self.own = self.message.buffer
        self.sum = torch.empty_like(self.own) if self.children else self.own
        self.parts = [torch.empty_like(self.own) for _ in self.children]

    def ask_for_parts(self):
        self.works = {c: dist.irecv(p, c, self.group, self.tag) for p, c in zip(self.parts, self.children)}

    def ask_for_sum(self, parent):
        self.coming = dist.irecv(self.sum, parent, self.group, self.tag)

    def counts(self):
        return []

    def take_part(self, child, counts):
        self.works[child].wait()

    def add_up(self):
        self.sum.copy_(self.own)
        for part in self.parts:
            self.sum.add_(part)
        self.ask_for_parts()

    def send(self, rank):
        return dist.isend(self.sum, rank, self.group, self.tag)

    def receive(self, parent, counts):
        return self.coming

    def take_sum(self):
        if self.sum is not self.own:
            self.own.copy_(self.sum)


class Rows(Cargo):
    """Touched rows of pieces: for each a pair of numbers and values. `sum` is None before there is one."""

    def __init__(self, *of):
        super().__init__(*of)
        self.pieces, self.parts, self.sum = self.message.pieces, {}, None

    def counts(self):
        return [len(numbers) for numbers, _ in self.pairs()]

    def pairs(self):
        if self.sum is None:
            return [piece.rows for piece in self.pieces]
        return self.sum

    def take_part(self, child, counts):
        parcel = Parcel(self, child, counts)
        parcel.wait()
        self.parts[child] = parcel.pairs

    def add_up(self):
        """In the order of ranks, since of gathered rows each rank makes the sum."""
        self.parts[dist.get_rank()] = [piece.rows for piece in self.pieces]
        parts = [self.parts[rank] for rank in sorted(self.parts)]
        self.sum = [self._added(piece, rows) for piece, rows in zip(self.pieces, zip(*parts))]

    def _added(self, piece, parts):
        """Each row once."""
        numbers, values = torch.cat([n for n, _ in parts]), torch.cat([v for _, v in parts])
        rows, place = torch.unique(numbers, return_inverse=True)
        out = torch.zeros(len(rows), *piece.row_shape(), dtype=piece.dtype)
        return rows, out.index_add_(0, place, values)

    def send(self, rank):
        flat = [t.reshape(-1).view(torch.uint8) for pair in self.pairs() for t in pair]
        return dist.isend(torch.cat(flat), rank, self.group, self.tag)

    def receive(self, parent, counts):
        self.coming = Parcel(self, parent, counts)
        return self.coming

    def open_sum(self):
        self.sum = self.coming.pairs

    def take_sum(self):
        for piece, rows in zip(self.pieces, self.pairs()):
            piece.rows = rows
        self.sum = None


class Parcel:
    """Rows that another rank sends; `pairs` after wait()."""

    def __init__(self, cargo, rank, counts):
        self.pieces, self.sizes = cargo.pieces, []
        for piece, count in zip(self.pieces, counts):
            wide = torch.empty(0, dtype=piece.dtype).element_size()
            self.sizes += [INDEX_BYTES * count, piece.elements // piece.row_count() * count * wide]
        self.bytes = torch.empty(sum(self.sizes), dtype=torch.uint8)
        self.work = dist.irecv(self.bytes, rank, cargo.group, cargo.tag)

    def wait(self):
        self.work.wait()
        flat, self.pairs = iter(self.bytes.split(self.sizes)), []
        for piece, numbers, values in zip(self.pieces, flat, flat):
            values = values.clone().view(piece.dtype).view(-1, *piece.row_shape())
            self.pairs.append((numbers.clone().view(torch.int64), values))


class Words:
    """Words that another rank sends, `most` in an iteration. heard(number, counts) is called in a thread of their own, once
    for each of those that more() says will come. All are asked for beforehand: a request to send one would wait behind
    the sums that go the same way."""

    def __init__(self, rank, tag, group, length, most, go_on, heard):
        self.rank, self.tag, self.group, self.go_on, self.heard = rank, tag, group, go_on, heard
        self.asked, self.still, self.lock = collections.deque(), 0, threading.Lock()
        self.waiter = Waiter(torch.device("cpu"))
        with self.lock:
            for _ in range(most):
                self._ask(torch.zeros(length, dtype=torch.int64))

    def _ask(self, word):
        self.asked.append((word, dist.irecv(word, self.rank, self.group, self.tag)))
        self._expect()

    def more(self, n):
        """The word of an iteration may be on its way when the next one's is expected, so fewer than n may be asked for."""
        with self.lock:
            self.still += n
            self._expect()

    def _expect(self):
        while self.still and self.asked:
            self.still -= 1
            word, work = self.asked.popleft()
            self.waiter.expect(work, lambda error, word=word: self.go_on(error, lambda: self._came(word)))

    def _came(self, word):
        number, *counts = word.tolist()
        with self.lock:
            self._ask(word)
        self.heard(number, counts)


class Served:
    """`exchange` is told what is sent (line.returned) and what is back (back). gloo hands a part of megabytes to the kernel
    at once. So where credit is limited a parent sends a word when it has a part, and credit comes back with that. A
    server's own part needs no sending, so its credit comes back at once; but not where rank 0 leads, because then its
    credit is everyone's."""

    def __init__(self, exchange, node_ranks, led):
        self.exchange, self.led = exchange, led
        self.group = dist.new_group(backend="gloo")
        self.cargos, self.parents = {}, {}
        self.lock, self.flying = threading.Lock(), {}  # message -> what its push is known by
        self.answers_parts = exchange.strategy.get("credit_bytes") is not None
        self.unanswered = collections.defaultdict(collections.deque)  # message -> pushes whose word is still to come
        for i, message in enumerate(exchange.messages):
            if message.single:
                self.parents[i], children = family(message, node_ranks, dist.get_rank(), dist.get_world_size())
                kind = Rows if message.buffer is None else Dense
                self.cargos[i] = kind(message, i, self.group, children)
                self.cargos[i].ask_for_parts()
        self.left = 0  # of this iteration's messages
        self._open_mail()
        self.pulls = self._line_of_pulls() if exchange.strategy.get("pulls") == "priority" else None

    def _open_mail(self):
        """Threads: one for sums, one for answers to children, one for the words of each child and each parent, and two
        for what goes to and comes from each parent."""
        n, go_on = len(self.exchange.messages), self.exchange.go_on
        self.up_tag, self.down_tag = n, n + 1
        self.length = 1 + max(len(cargo.message.pieces) for cargo in self.cargos.values())
        children = [c for cargo in self.cargos.values() for c in cargo.children]
        self.numbers = {c: children.count(c) for c in sorted(set(children))}
        upward = [p for p in self.parents.values() if p is not None]
        parents = sorted(set(upward))

        def heard_part_of(child):
            return lambda i, counts: self._take_part(i, child, counts)

        self.from_children = {
            c: Words(c, self.up_tag, self.group, self.length, n, go_on, heard_part_of(c)) for c, n in self.numbers.items()
        }
        self.from_parents = {
            p: Words(p, self.down_tag, self.group, self.length, upward.count(p), go_on, self._take_word_of_sum) for p in parents
        }
        self.taken_tag = n + 2
        self.of_taken_parts = {
            p: Words(p, self.taken_tag, self.group, 1, upward.count(p), go_on, self._hear_of_taken_part)
            for p in parents if self.answers_parts
        }
        kinds = [("sums",), ("answers",)] + [(way, p) for p in parents for way in ("push", "pull")]
        self.waiters = {kind: Waiter(torch.device("cpu")) for kind in kinds}

    def _line_of_pulls(self):
        pulled = [i for i in self.cargos if self.parents[i] is not None]
        self.turns = {i: k for k, i in enumerate(pulled)}
        self.coming = {}  # message -> how many rows its sum has
        messages = [self.exchange.messages[i] for i in pulled]
        sizes, urgency = [m.bytes for m in messages], [m.urgency for m in messages]
        credit = self.exchange.strategy.get("credit_bytes")
        return Leader(sizes, credit, lambda k: self._pull(pulled[k], self.coming[pulled[k]]), urgency)

    def _expect(self, kind, work, step):
        self.waiters[kind].expect(work, lambda error: self.exchange.go_on(error, step))

    def _send(self, cargo, rank, tag):
        """A word, and what it says."""
        word = torch.zeros(self.length, dtype=torch.int64)
        word[: 1 + len(cargo.counts())] = torch.tensor([cargo.tag, *cargo.counts()])
        return All(dist.isend(word, rank, self.group, tag), cargo.send(rank))

    # ---- parts go up ----

    def send(self, i):
        """Any thread may call this, one at a time."""
        if self.left == 0:
            self.left = len(self.cargos)
            for child, words in self.from_children.items():
                words.more(self.numbers[child])
        self.left -= 1
        cargo = self.cargos[i]
        self.flying[i] = object()
        if not cargo.message.server:
            cargo.answers = [self._send(cargo, other, self.up_tag) for other in cargo.children]
        elif self.parents[i] is None and not self.led:
            self._returned(i, self.flying[i])
        self._arrived(i)

    def _take_part(self, i, child, counts):
        cargo = self.cargos[i]
        cargo.take_part(child, counts)
        if self.answers_parts and cargo.message.server:
            word = torch.tensor([cargo.tag])
            self._expect(("answers",), All(dist.isend(word, child, self.group, self.taken_tag)), lambda: None)
        self._arrived(i)

    def _hear_of_taken_part(self, i, _):
        self._returned(i, self.unanswered[i].popleft())

    def _arrived(self, i):
        cargo = self.cargos[i]
        with self.lock:
            cargo.missing -= 1
            if cargo.missing:
                return
            cargo.missing = len(cargo.children) + 1
        if cargo.children:
            self._expect(("sums",), All(*cargo.answers), lambda: self._add_up(i))
        else:
            self._pass_on(i)

    def _add_up(self, i):
        self.cargos[i].add_up()
        self._pass_on(i)

    def _pass_on(self, i):
        cargo, parent, push = self.cargos[i], self.parents[i], self.flying.get(i)
        if parent is None:
            self._back(i)
            return
        if not self.pulls:
            cargo.ask_for_sum(parent)
        if self.answers_parts:
            self.unanswered[i].append(push)
            self.of_taken_parts[parent].more(1)
        self._expect(("push", parent), self._send(cargo, parent, self.up_tag), lambda: self._sent(i, push))
        self.from_parents[parent].more(1)

    def _sent(self, i, push):
        if not self.answers_parts:
            self._returned(i, push)

    def _returned(self, i, push):
        """The push's credit is back. Where the sum came before that was heard, this is the second call."""
        with self.lock:
            if push is None or self.flying.get(i) is not push:
                return
            del self.flying[i]
        self.exchange.line.returned(i)

    # ---- sums come down ----

    def _take_word_of_sum(self, i, counts):
        if self.pulls:
            self.coming[i] = counts
            self.pulls.ready(self.turns[i])
        else:
            self._pull(i, counts)

    def _pull(self, i, counts):
        cargo, parent = self.cargos[i], self.parents[i]
        if self.pulls:
            cargo.ask_for_sum(parent)
        self._expect(("pull", parent), cargo.receive(parent, counts), lambda: self._pulled(i))

    def _pulled(self, i):
        self.cargos[i].open_sum()
        if self.pulls:
            self.pulls.returned(self.turns[i])
        self._back(i)

    def _back(self, i):
        cargo = self.cargos[i]
        if cargo.message.server:
            cargo.answers = [self._send(cargo, child, self.down_tag) for child in cargo.children]
            self._expect(("answers",), All(*cargo.answers), lambda: None)  # so that a rank's end waits for them
        cargo.take_sum()
        self._returned(i, self.flying.get(i))
        self.exchange.back(i)

    def settle(self):
        for cargo in self.cargos.values():
            All(*cargo.answers).wait()
