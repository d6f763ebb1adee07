from __future__ import annotations

import os
import threading
import time
from typing import Any, List, Optional, Sequence, Union

from . import _fork
from ._errors import LeafError, again, invalid, wrapped
from ._lease import Layout, WorkerLease

_AHEAD = 2000  # milliseconds that IDs may be ahead of the clock
_MAX_PAUSE = 2.0  # seconds between two claims that failed
_SPREAD = 3  # bits of the sequence that an idle tick leaves to those that follow
_MIX = 0x9E3779B97F4A7C15


class Snowflake:
    """Makes snowflake IDs in this process, with a worker ID that it leases from Leaf servers.

    It renews the lease, and claims another one when that fails. It compares the time inside each ID
    with the lease before it returns the ID, so a process that was paused makes no old IDs. Its time is
    that of the registry, counted by the monotonic clock: the date of this machine does not matter.
    Several threads may use it. The first call in a child of a fork claims a lease of the child's own.
    """

    def __init__(
        self, servers: Union[str, Sequence[str]], pool: str, *, wait: float = 1.0, start_wait: float = 10.0, **options: Any
    ) -> None:
        """options are those of WorkerLease. wait: the seconds that a call waits for a lease, or for the
        clock. start_wait: how long the claim is repeated while no server answers or no worker ID is free."""
        if not wait > 0 or not start_wait >= 0:
            raise invalid("wait is above 0, and start_wait is not negative")
        self._servers, self._pool, self._options = servers, pool, options
        self._wait = wait
        self._closed = False
        self._begin()
        self._take(self._first_claim(start_wait))
        _fork.watch(self)

    def _begin(self) -> None:
        self._lease: Optional[WorkerLease] = None
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # another lease, a later limit, or the end
        self._error: Optional[LeafError] = None  # why there is no lease
        self._claimer: Optional[threading.Thread] = None  # the latest one

    def forked(self) -> None:
        self._begin()  # the lease is the parent's; many children need none, so the first call claims one

    def _claim(self) -> WorkerLease:
        return WorkerLease(self._servers, self._pool, on_lost=self._replace, on_renewed=self._signal, **self._options)

    def _first_claim(self, start_wait: float) -> WorkerLease:
        """Claims a lease, and waits if there may be one soon: a stopped process may have been ahead of the clock."""
        deadline = time.monotonic() + start_wait
        tries = 0
        while True:
            try:
                return self._claim()
            except LeafError as err:
                soon = err.status == 503 or err.reason in ("UNAVAILABLE", "CONFLICT")
                if not soon or time.monotonic() + _pause(tries) > deadline:
                    raise
                time.sleep(_pause(tries))
                tries += 1

    def _take(self, lease: WorkerLease) -> None:
        layout = lease.layout
        first = -(-(max(lease.floor, layout.epoch) - layout.epoch) // layout.tick_ms)
        self._lease = None  # an interruption leaves no lease, rather than the one before with an earlier tick
        self._tick, self._sequence = first - 1, (1 << layout.sequence_bits) - 1  # the next ID is of the first whole tick
        self._lease = lease

    def next(self) -> int:
        """Returns an ID that no process of the pool has returned or will return."""
        _fork.check()
        with self._changed:
            made, why = self._try()
            if made >= 0:
                return made
            deadline = time.monotonic() + self._wait
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise why
                self._changed.wait(min(left, 0.001) if why.reason == "EXHAUSTED" else left)
                made, why = self._try()
                if made >= 0:
                    return made

    def take(self, n: int) -> List[int]:
        """Returns n IDs."""
        if n < 1:
            raise invalid(f"n = {n} is below 1")
        return [self.next() for _ in range(n)]

    def _try(self) -> "tuple[int, LeafError]":
        """Returns an ID, or a negative number and why a call fails unless that changes."""
        if self._closed:
            raise LeafError("the generator is closed", reason="CLOSED")
        lease = self._lease
        if lease is None:
            self._start_claim()
            return -1, self._no_lease()
        layout = lease.layout
        now = lease.now()
        tick, sequence = self._candidate(layout, now)
        begin = layout.epoch + tick * layout.tick_ms
        last = begin + layout.tick_ms - 1
        if tick >> layout.time_bits:
            raise LeafError("the layout has no ID of this time", reason="OVERFLOW")
        if last < lease.limit and begin > now + _AHEAD:
            return -1, LeafError("more IDs in a second than the layout has", reason="EXHAUSTED")
        if last >= lease.limit or not lease.use(begin, last):
            return -1, self._no_lease()
        self._tick, self._sequence = tick, sequence
        return (tick << layout.worker_bits | lease.worker) << layout.sequence_bits | sequence, _NOTHING

    def _candidate(self, layout: Layout, now: int) -> "tuple[int, int]":
        """Returns tick and sequence number of the ID after the latest one."""
        tick = (now - layout.epoch) // layout.tick_ms
        if tick > self._tick:
            bits = layout.sequence_bits - _SPREAD  # so that IDs of quiet times are not all even
            return tick, 0 if bits <= 0 else (tick * _MIX & (1 << 64) - 1) >> 64 - bits
        if self._sequence + 1 < 1 << layout.sequence_bits:
            return self._tick, self._sequence + 1
        return self._tick + 1, 0

    def _no_lease(self) -> LeafError:
        text = "this process has no lease of a worker ID"
        if self._error is None:
            return LeafError(text, reason="NO_WORKER_ID")
        return again(self._error, f"{text}: {self._error}", "NO_WORKER_ID")

    def _start_claim(self) -> None:
        """Has a thread claim the first lease of a child. The lock is held, so it must not be this one."""
        if self._claimer is None or not self._claimer.is_alive():
            self._claimer = threading.Thread(target=self._replace, name="leaf-claim", daemon=True)
            self._claimer.start()

    def _signal(self) -> None:
        with self._changed:
            self._error = None
            self._changed.notify_all()

    def _replace(self, why: Optional[LeafError] = None) -> None:
        """Claims another lease, in the thread that renewed the lost one, and gives that back; or the first
        lease of a child."""
        pid, failures = os.getpid(), 0
        self._claimer = threading.current_thread()
        while not self._closed and os.getpid() == pid:
            try:
                lease = self._claim()
            except Exception as err:  # such as "can't start new thread"
                with self._changed:
                    self._error = wrapped(err)
                    self._changed.wait_for(lambda: self._closed, _pause(failures))
                failures += 1
                continue
            with self._changed:
                old = lease if self._closed else self._lease
                if not self._closed:
                    self._take(lease)
                self._error = None
                self._changed.notify_all()
            if old is not None:
                old.close()
            return

    @property
    def layout(self) -> Layout:
        """The bits of the pool's IDs."""
        return self.lease.layout

    @property
    def lease(self) -> WorkerLease:
        """The present lease, for figures."""
        _fork.check()
        with self._changed:
            if self._lease is None and not self._closed:
                self._start_claim()
                self._changed.wait_for(lambda: self._lease is not None or self._closed, self._wait)
            if self._lease is None:
                raise self._no_lease()
            return self._lease

    def close(self) -> None:
        """Gives the worker ID back. Later calls fail."""
        _fork.check()
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
            lease, claimer = self._lease, self._claimer
        if lease is not None:
            lease.close()
        if claimer is not None and claimer is not threading.current_thread():
            claimer.join()  # it gives a lease back that it has claimed meanwhile

    def __enter__(self) -> "Snowflake":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_NOTHING = LeafError("")


def _pause(failures: int) -> float:
    return min(_MAX_PAUSE, 0.05 * float(2 ** min(failures, 10)))
