"""A thread that waits for collectives, in the order in which they were given to it, and tells when each is back.

Work.get_future().then() would call from threads of torch's own. Such a thread may still be in Python, if only to free
what the call held, when the process ends, and an interpreter that is ending kills it there: "terminate called without
an active exception". Here all Python runs in Python's threads, and the end of the process waits for them.
"""

import atexit
import queue
import threading
import time
import weakref

from .clock import own_stream

LONGEST_END_S = 5  # a rank that fails must not wait at its end for what others will never send

queues = weakref.WeakKeyDictionary()  # of the threads that run


class Waiter:
    """`device` is where the collectives' buffers lie. On a GPU the work of `back` goes to a stream of this thread, so
    that it does not delay computation."""

    def __init__(self, device):
        self.works = queue.SimpleQueue()
        thread = threading.Thread(target=run, args=(self.works, device), name="syncopate-waiter", daemon=True)
        queues[thread] = self.works
        thread.start()
        weakref.finalize(self, self.works.put, None).atexit = False

    def expect(self, work, back):
        """back(error) is called when the work is done; error is None or the exception that its wait() raised."""
        self.works.put((work, back))


def run(works, device):
    with own_stream(device):
        while item := works.get():
            work, back = item
            try:
                work.wait()
                error = None
            except Exception as raised:  # whoever needs the sum is to know, not this thread
                error = raised
            back(error)
            item = work = back = error = None  # a waiting thread keeps nothing alive


@atexit.register
def end():
    deadline = time.monotonic() + LONGEST_END_S
    threads = list(queues.items())
    for _, works in threads:
        works.put(None)
    for thread, _ in threads:
        thread.join(max(0, deadline - time.monotonic()))
