"""What a push and a pull cost, by the code that the hook serves with (served.py): words, threads of Python and all.

The last rank serves one message: every other rank pushes its part and pulls the sum. The bench times push and pull.
"""

import threading

import torch
import torch.distributed as dist

from .layout import Message
from .served import Served


class RoundTrip:
    """What hook.py's Exchange is to Served, for one message of `size` bytes. Every rank must make it and call it."""

    def __init__(self, size):
        group = {"server": {"rank": dist.get_world_size() - 1}}
        self.strategy, self.line = {}, self
        self.messages = [Message(group, [], torch.zeros(size // 4))]
        self.is_back, self.error = threading.Event(), None
        self.served = Served(self, [1] * dist.get_world_size(), led=False)

    def __call__(self):
        self.is_back.clear()
        self.served.send(0)
        self.is_back.wait()
        if self.error:
            raise self.error

    def settle(self):
        self.served.settle()

    # ---- what Served calls ----

    def returned(self, i):
        """The push is out."""

    def back(self, i):
        self.is_back.set()

    def go_on(self, error, step):
        try:
            if error:
                raise error
            step()
        except Exception as failure:  # the caller is to know, not the waiter's thread
            self.error = failure
            self.is_back.set()
