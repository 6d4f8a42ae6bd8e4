"""Locks that do not outlive their owners."""

import os
import threading


class ForkSafeLock:
    """A lock that a forked process has anew: the thread that held it there is not in the child."""

    def __init__(self):
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self):
        self._lock = threading.RLock()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()
