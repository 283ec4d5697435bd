"""A thread that waits for collectives, in the order in which they were given to it, and tells when each is back.

Work.get_future().then() would call from threads of torch's own. Such a thread may still be in Python, if only to free
what the call held, when the process ends, and an interpreter that is ending kills it there: "terminate called without
an active exception". Here all Python runs in Python's threads, and the end of the process waits for them.
"""

import contextlib
import queue
import threading
import weakref

import torch

LONGEST_END_S = 5  # a rank that fails must not wait at its end for what others will never send


class Waiter:
    """`device` is where the collectives' buffers lie. On a GPU what `back` does goes to a stream of this thread, so
    that it holds up nobody's computing."""

    def __init__(self, device):
        self.works = queue.SimpleQueue()
        self.thread = threading.Thread(target=run, args=(self.works, device), name="syncopate-waiter", daemon=True)
        self.thread.start()
        weakref.finalize(self, end, self.works, self.thread)  # also when the process ends

    def expect(self, work, back):
        """back(error) is called when the work is done; error is None or the exception that its wait() raised."""
        self.works.put((work, back))


def run(works, device):
    stream = torch.cuda.stream(torch.cuda.Stream(device)) if device.type == "cuda" else contextlib.nullcontext()
    with stream:
        while item := works.get():
            work, back = item
            try:
                work.wait()
                error = None
            except Exception as raised:  # whoever needs the sum is to know, not this thread
                error = raised
            back(error)
            item = work = back = error = None  # a waiting thread keeps nothing alive


def end(works, thread):
    works.put(None)
    if thread is not threading.current_thread():
        thread.join(LONGEST_END_S)
