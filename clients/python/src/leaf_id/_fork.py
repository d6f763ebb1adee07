from __future__ import annotations

import os
import weakref
from typing import Protocol


class _Forked(Protocol):
    def forked(self) -> None:
        """Called in the child of a fork."""


_watched: "weakref.WeakSet[_Forked]" = weakref.WeakSet()


def watch(thing: _Forked) -> None:
    """Has thing.forked called in the child of every fork."""
    _watched.add(thing)


def _forked() -> None:
    for thing in list(_watched):
        thing.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
