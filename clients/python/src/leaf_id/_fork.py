from __future__ import annotations

import os
import threading
import weakref
from typing import Dict, Protocol


class _Forked(Protocol):
    def forked(self) -> None:
        """Called in the child of a fork, perhaps more than once."""


known = os.getpid()  # the process whose state the things have
generation = 0  # how many forks led to it
_watched: "weakref.WeakSet[_Forked]" = weakref.WeakSet()
_locks: Dict[int, threading.Lock] = {}  # by process: another thread may have held that of the parent at the fork


def watch(thing: _Forked) -> None:
    """Has thing.forked called in the child of every fork."""
    check()  # or the child would call it for its own thing, too
    _watched.add(thing)


def check() -> None:
    """Calls what a fork has not called yet: one made in C, as uWSGI does it, runs no hooks of Python. Whatever
    takes a lock or uses state that may be the parent's calls this before; it calls nothing in the parent."""
    global known, generation
    pid = os.getpid()
    if pid == known:
        return
    with _locks.setdefault(pid, threading.Lock()):
        if pid != known:  # no other thread was first
            for thing in list(_watched):
                thing.forked()
            generation += 1
            known = pid  # the last step: after an exception the next call does it all again
            _locks.clear()


def _forked() -> None:
    """Is called in the child of a fork, which may have the number of its parent in another PID namespace."""
    global known
    known = -1
    check()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
