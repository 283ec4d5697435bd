"""Which message goes next, so that never more bytes are in flight than the credit.

Collectives must be issued in one order on all ranks. The order of readiness (fifo) is the same on all ranks, because DDP
hands out its buckets in one order. A fixed order (preemptive) is the same anyway; there a message that is not ready holds
up those behind it. Under priority ranks would differ, because they differ in what is ready when the credit allows another
message. So rank 0 leads: it sends the most urgent message that is ready there and tells the others, who send theirs in
that order (as ByteScheduler's master core does, SOSP 2019, §5). Pushes to servers and pulls need no common order, so
where nothing else is sent each rank goes by its own.

The credit of a collective comes back when the collective has ended, also with NCCL, although nobody waits for its
collectives on the host otherwise. They follow one another on the device, so a more urgent one comes behind all that are
queued there, and only the credit keeps that queue short.
"""

import collections
import heapq
import threading


class Line:
    """Messages 0..n-1 of an iteration, of sizes[i] bytes, in the order of readiness or in the given one. `send(i)`
    starts one, and returned(i) is called when it is done. Any thread may call."""

    def __init__(self, sizes, credit, send, order=()):
        self.sizes, self.credit, self.send, self.order = sizes, credit, send, order
        self.lock = threading.RLock()
        self._begin()

    def _begin(self):
        self.queue = collections.deque(self.order)
        self.is_ready = set()
        self.in_flight = self.left = 0
        self.sending = False

    def ready(self, i):
        with self.lock:
            if self.left == 0:
                self._begin()
                self.left = len(self.sizes)
                self.begun()
            self.is_ready.add(i)
            if not self.order:
                self.enter(i)
            self.advance()

    def returned(self, i):
        with self.lock:
            self.in_flight -= self.sizes[i]
            self.left -= 1
            self.advance()

    def advance(self):
        if self.sending:  # a collective that ends at once comes back here before send() has returned
            return
        self.sending = True
        try:
            while (i := self.head()) is not None and self.fits(i):
                self.leave()
                self.in_flight += self.sizes[i]
                self.send(i)
        finally:
            self.sending = False

    # ---- what kinds of lines differ in ----

    def begun(self):
        """An iteration's first message is ready."""

    def enter(self, i):
        self.queue.append(i)

    def head(self):
        return self.queue[0] if self.queue and self.queue[0] in self.is_ready else None

    def leave(self):
        self.queue.popleft()

    def fits(self, i):
        return self.in_flight == 0 or self.credit is None or self.in_flight + self.sizes[i] <= self.credit


class Leader(Line):
    """The most urgent first (the smallest urgency[i], then the first that was ready); announce(i) tells the others, if
    they are to do the same."""

    def __init__(self, sizes, credit, send, urgency, announce=lambda i: None):
        super().__init__(sizes, credit, send)
        self.urgency, self.announce = urgency, announce
        self.heap = []  # (urgency, how many were ready before, message)

    def enter(self, i):
        heapq.heappush(self.heap, (self.urgency[i], len(self.is_ready), i))

    def head(self):
        return self.heap[0][2] if self.heap else None

    def leave(self):
        self.announce(heapq.heappop(self.heap)[2])


class Follower(Line):
    """Sends in the order of the leader. listen() waits for the leader's next word, and told(i) is called with it."""

    def __init__(self, sizes, send, listen):
        super().__init__(sizes, None, send)
        self.listen = listen

    def begun(self):
        self.words = len(self.sizes)
        self.listen()

    def enter(self, i):
        """It waits for the leader's word."""

    def told(self, i):
        with self.lock:
            self.queue.append(i)
            self.words -= 1
            if self.words:
                self.listen()
            self.advance()
