from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Optional, Sequence

from ._lease import LeafError, WorkerLease

_AHEAD = 2000  # milliseconds that IDs may be ahead of the clock
_WAIT = 1000  # milliseconds that a call waits for the clock


class Snowflake:
    """Makes IDs of the layout of a pool. Its methods may be called by several threads."""

    def __init__(self, servers: Sequence[str], pool: str, *, clock: Optional[Callable[[], float]] = None, **options: Any) -> None:
        """options are those of WorkerLease. clock returns the Unix time in seconds."""
        self._claim = lambda: WorkerLease(servers, pool, **options)
        self._clock = clock or time.time
        self._lock = threading.Lock()
        self._closed = False
        self._take(self._claim())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lock = threading.Lock()  # another thread may have held it

    def _take(self, lease: WorkerLease) -> None:
        l = lease.layout
        self._lease: Optional[WorkerLease] = lease
        self._tick = -(-(max(lease.floor, l.epoch) - l.epoch) // l.tick_ms)  # the first whole tick
        self._sequence = 0
        self._used: Optional[int] = None

    def next(self) -> int:
        """Returns an ID that no process of the pool has returned or will return. Raises LeafError
        without a lease, and if this machine's clock is off."""
        while True:
            with self._lock:
                made, wait = self._try()
            if wait <= 0:
                return made
            time.sleep(wait)

    def _try(self) -> tuple[int, float]:
        """Returns an ID, or how many seconds to wait for one."""
        if self._closed:
            raise LeafError("the generator is closed")
        if self._lease is None or self._lease.pid != os.getpid():
            self._take(self._claim())
        assert self._lease is not None
        l = self._lease.layout
        now = int(self._clock() * 1000)
        tick = max((now - l.epoch) // l.tick_ms, self._tick)
        sequence = self._sequence if tick == self._tick else 0
        if sequence >> l.sequence_bits:
            tick, sequence = tick + 1, 0
        begin = l.epoch + tick * l.tick_ms
        if begin + l.tick_ms > self._lease.limit:
            self._replace(begin)
            return 0, 0.001
        if begin > now + _AHEAD + _WAIT:
            raise LeafError(f"this machine's clock is {begin - now} ms behind the last ID: set the clock")
        if begin > now + _AHEAD:
            return 0, (begin - now - _AHEAD) / 1000
        if tick >> l.time_bits or tick < 0 or begin < self._lease.floor:
            raise LeafError("the layout has no ID of this time")
        self._tick, self._sequence, self._used = tick, sequence + 1, begin + l.tick_ms - 1
        return (tick << l.worker_bits | self._lease.worker) << l.sequence_bits | sequence, 0

    def _replace(self, begin: int) -> None:
        """Claims another lease, because the next time lies beyond this one."""
        lease, self._lease = self._lease, None  # nothing is issued under a released lease
        try:
            if lease is not None:
                lease.release(self._used)
        except LeafError:
            pass  # it ends at its limit
        lease = self._claim()
        if begin >= lease.limit:
            lease.release(None)
            raise LeafError(f"this machine's clock is at least {begin - lease.limit} ms ahead of the registry's leases: set the clock")
        self._take(lease)

    def close(self) -> None:
        """Stops the generator and gives the worker ID back."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._lease is not None:
            self._lease.release(self._used)

    def __enter__(self) -> "Snowflake":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
