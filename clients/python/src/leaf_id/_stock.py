from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from os import getpid
from typing import Callable, Deque, List, Optional, Protocol

from . import _fork
from ._errors import LeafError, again, invalid, wrapped
from ._health import TOLD, StoreHealth
from ._servers import Server
from ._sizing import RecentUse, refill_size


@dataclass(frozen=True)
class Grant:
    """A range that a server has taken off its memory for this program."""

    start: int
    end: int
    step: int  # of the tag
    server: Server
    version: str  # names the grant when it is given back


class Source(Protocol):
    def advance(self, tag: str, n: int) -> Grant:
        """Takes a range of up to n IDs; 0 means the step of the tag."""

    def give_back(self, tag: str, last: Grant, start: int) -> None:
        """Gives the IDs from start to the end of the last grant back."""


@dataclass(frozen=True)
class StockOptions:
    """What all stocks of a client have in common; times in seconds."""

    outage_budget: float
    max_stock: int
    wait: float
    call_timeout: float


@dataclass(frozen=True)
class TagStats:
    """The figures of a tag."""

    tag: str
    stock: int  # IDs in memory
    issued: int
    granted: int  # IDs received from servers
    returned: int  # IDs that the servers have taken back
    failures: int  # calls for IDs that failed


class Waiter:
    """A caller that the stock did not serve at once. signal wakes it when done or deadline have changed."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.ranges: List[range] = []
        self.delivered = False  # the servers have delivered while it waited
        self.deadline = 0.0
        self.done = False
        self.error: Optional[LeafError] = None
        self.signal: Callable[[], object] = lambda: None

    def add(self, start: int, n: int) -> None:
        if self.ranges and self.ranges[-1].stop == start:
            self.ranges[-1] = range(self.ranges[-1].start, start + n)
        else:
            self.ranges.append(range(start, start + n))
        self.left -= n

    def finish(self, error: Optional[LeafError]) -> None:
        self.done, self.error = True, error
        self.signal()


class Stock:
    """The IDs of one tag in memory. It fetches the next range before the last one is missed.

    It holds as many IDs as the last outage budget used, at least a step of the tag. It is granted at
    most twice the IDs that it issues, plus two steps, and what lost answers cost.
    """

    def __init__(self, tag: str, options: StockOptions, source: Source, on_unknown: Callable[[], None]) -> None:
        self.tag, self._options, self._source, self._on_unknown = tag, options, source, on_unknown
        self._begin(None)
        _fork.watch(self)

    def _begin(self, over: Optional[LeafError]) -> None:
        """Begins without IDs; what a parent process had stays the parent's."""
        self._due = 0  # the ID from which on a caller looks at the stock
        self._end = self._next = 0  # the current range; it is drained if _next >= _end
        self._grant: Optional[Grant] = None
        self._queue: Deque[Grant] = deque()  # what follows
        self._over = over  # why no ID will ever be issued again
        self._lock = threading.Lock()
        self._stopped = threading.Condition(self._lock)  # the refill should stop, or has stopped
        self._waiters: List[Waiter] = []
        self._health = StoreHealth()
        self._refilling = self._closing = False
        self._issued_before_end = 0
        self._step = self._grants = self._granted = self._returned = self._failures = 0
        self._use: Optional[RecentUse] = None  # None: no more than a step was issued yet

    def forked(self) -> None:
        self._begin(self._over or (LeafError("the client is closed", reason="CLOSED") if self._closing else None))

    def try_next(self) -> Optional[int]:
        """Returns the next ID if one is in memory."""
        if getpid() != _fork.known:  # check() in short: this is the fast path
            _fork.check()
        with self._lock:
            got = self._next
            if got < self._due:
                self._next = got + 1
                return got
            if self._next >= self._end and not self._pop():
                self._start_refill()
                return None
            got = self._next
            self._next += 1
            self._look()
            return got

    def next(self) -> int:
        got = self.try_next()
        return self.take(1)[0].start if got is None else got

    def take(self, n: int) -> List[range]:
        """Takes n IDs as few ranges."""
        waiter = Waiter(n)
        try:
            if not self.begin(waiter):
                event = threading.Event()
                waiter.signal = event.set
                while not self.is_over(waiter):
                    event.wait(max(0.0, waiter.deadline - time.monotonic()))
                    event.clear()
        finally:
            self.give_up(waiter)
        return self.result(waiter)

    def begin(self, waiter: Waiter) -> bool:
        """Begins a call, and reports whether it is done, because the stock suffices."""
        n = waiter.left
        if not 1 <= n <= self._options.max_stock:
            raise invalid(f'take from "{self.tag}": n = {n} is not in 1 … {self._options.max_stock}')
        _fork.check()
        with self._lock:
            waiter.done = self._serve(waiter)
            if not waiter.done:
                self._enqueue(waiter)
            return waiter.done

    def _enqueue(self, waiter: Waiter) -> None:
        if self._over is not None:
            raise again(self._over)
        trying = self._refilling
        self._start_refill()
        verdict = self._health.verdict(self._options.wait, trying)
        if verdict is not None:
            raise self._exhausted(verdict)
        waiter.deadline = time.monotonic() + self._options.wait
        self._waiters.append(waiter)

    def is_over(self, waiter: Waiter) -> bool:
        """Reports whether a caller need not wait any more."""
        with self._lock:
            if not waiter.done and time.monotonic() >= waiter.deadline:
                self._waiters.remove(waiter)
                waiter.finish(self._exhausted(self._health.error))
            return waiter.done

    def give_up(self, waiter: Waiter) -> None:
        """Ends a call whose caller does not want its IDs any more."""
        if waiter.done:
            return
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def result(self, waiter: Waiter) -> List[range]:
        if waiter.error is not None:
            raise waiter.error
        return waiter.ranges

    def _serve(self, waiter: Waiter) -> bool:
        """Gives a caller what it may have, and reports whether that is all."""
        while waiter.left > 0:
            here = self._end - self._next
            if here <= 0:
                if not self._pop():
                    return False
                continue
            if waiter.left > here and not self._affords(waiter):
                return False
            n, start = min(waiter.left, here), self._next
            self._next = start + n  # before the caller has them: an interruption loses IDs
            waiter.add(start, n)
            if self._next > self._due:
                self._look()
        return True

    def _affords(self, waiter: Waiter) -> bool:
        """Reports whether a caller should take the available IDs although it may have to wait for the
        rest. A batch that cannot be complete must not use up IDs that single calls could get."""
        stock = self._stock()
        return stock >= waiter.left or waiter.delivered or stock > self._issued() + self._step

    def _serve_waiters(self) -> None:
        waiting = self._waiters
        self._waiters = []
        for waiter in waiting:
            waiter.delivered = True
            if self._serve(waiter):
                waiter.finish(None)
            else:  # the servers deliver, even if to other callers
                waiter.deadline = time.monotonic() + self._options.wait
                waiter.signal()
                self._waiters.append(waiter)

    def _fail_waiters(self, error: LeafError) -> None:
        for waiter in self._waiters:
            waiter.finish(again(error))
        self._waiters = []

    def _pop(self) -> bool:
        """Makes the next range current; the current one is drained. An exception of a signal handler
        between any two steps leaves a drained range, or the next one."""
        if not self._queue:
            return False
        grant = self._queue.popleft()
        size = grant.end - grant.start
        due = grant.start + max(0, min(size // 10 + 1, size - 1))
        self._due = 0
        self._end = 0
        self._grant = grant
        self._next = grant.start
        self._end = grant.end
        self._due = due
        return True

    def _look(self) -> None:
        """Looks at the stock, and says when to look next."""
        assert self._grant is not None
        tenth = (self._grant.end - self._grant.start) // 10
        self._due = min(self._end, self._next + max(1, min(tenth, (self._end - self._next) // 2)))
        if self._size() >= 0:
            self._start_refill()

    def _start_refill(self) -> None:
        if self._refilling or self._closing or self._over is not None:
            return
        self._health.resume(self._options.wait)
        thread = threading.Thread(target=self._refill, name="leaf-refill", daemon=True)
        try:
            self._refilling = True
            thread.start()
        except BaseException as err:
            self._refilling = thread.is_alive()
            if not isinstance(err, RuntimeError):  # such as "can't start new thread"
                raise
            self._failures += 1
            self._health.failed(wrapped(err), True)

    def _refill(self) -> None:
        """Calls the servers until the stock is full again. One thread does it at a time."""
        pid = getpid()
        while True:
            n = self._prepare()
            if n < 0:
                return
            grant, error = None, None
            try:
                grant = self._source.advance(self.tag, n)
            except LeafError as err:
                error = err
            except BaseException as err:  # such as MemoryError, or what an observer raises
                error = LeafError(repr(err), reason="INTERNAL")
            if getpid() != pid or not self._apply(grant, error):
                return

    def _prepare(self) -> int:
        """Waits out the back-off and returns how much to ask for, or -1 if nothing is due."""
        with self._lock:
            while self._health.pause() > 0 and not self._ending():
                self._stopped.wait(self._health.pause())
            n = -1 if self._ending() else self._size()
            if n >= 0 and self._health.error is not None and self._health.error.reason == "FOREIGN_STORE":
                n = 1  # the grant will be discarded
            if n < 0:
                self._refill_done()
            return n

    def _ending(self) -> bool:
        return self._closing or self._over is not None

    def _refill_done(self) -> None:
        self._refilling = False
        self._stopped.notify_all()

    def _size(self) -> int:
        """Returns how many IDs to ask for now; 0: a step of the tag; -1: none."""
        if self._grants == 0:
            return 0
        stock, step, issued = self._stock(), self._step, self._issued()
        missing = sum(w.left for w in self._waiters)
        n = refill_size(stock=stock, missing=missing, step=step, issued=issued, recent=self._recent(issued), max_stock=self._options.max_stock)
        if n > 0 and self._health.error is not None:  # answers may be lost again and again: that must cost little
            n = max(1, min(n, max(step, missing - stock)))
        return n if n > 0 else -1

    def _recent(self, issued: int) -> int:
        if self._use is None:
            if issued <= self._step:
                return issued
            self._use = RecentUse(self._options.outage_budget, time.monotonic())
        return self._use.observe(time.monotonic(), issued)

    def _apply(self, grant: Optional[Grant], error: Optional[LeafError]) -> bool:
        """Applies the result of a call and reports whether to call again."""
        unknown = False
        with self._lock:
            repeat = False
            if grant is not None:
                self._granted += grant.end - grant.start
                if self._over is None:
                    repeat = True  # _prepare says whether more is due
                    self._accept(grant)
            elif error is not None and self._over is None:
                unknown = error.reason == "UNKNOWN_TAG"
                repeat = not unknown and self._refused(error)
                if unknown:
                    self._finish(error)
            if not repeat:
                self._refill_done()
        if unknown:
            self._on_unknown()
        return repeat

    def _accept(self, grant: Grant) -> None:
        self._grants += 1
        self._step = grant.step
        self._health.succeeded()
        self._queue.append(grant)
        self._serve_waiters()

    def _refused(self, error: LeafError) -> bool:
        self._failures += 1
        self._health.failed(error, bool(self._waiters))
        verdict = self._health.verdict(self._options.wait, True)
        if verdict is not None:
            self._fail_waiters(self._exhausted(verdict))
        return not self._health.is_verdict() and (bool(self._waiters) or self._grants > 0)

    def close(self, give_back: bool = True) -> None:
        """Stops for good, and gives the unused end of the stock back if no other program took IDs since."""
        _fork.check()
        with self._lock:
            if self._ending():
                return
            self._closing = True
            self._stopped.notify_all()
            quiet = self._stopped.wait_for(lambda: not self._refilling, self._options.call_timeout)
            start, last = self._finish(LeafError(f'tag "{self.tag}": the client is closed', reason="CLOSED"))
        if give_back and quiet and last is not None:
            self._source.give_back(self.tag, last, start)
            with self._lock:
                self._returned += last.end - start

    def _finish(self, error: LeafError) -> "tuple[int, Optional[Grant]]":
        """Drops the stock and fails the waiting callers. Returns where the unused IDs at the end of the
        last grants that follow one another begin, and the last grant."""
        rest, last = 0, None
        current = [(self._next, self._grant)] if self._grant is not None and self._next < self._end else []
        for start, grant in current + [(g.start, g) for g in self._queue]:
            follows = last is not None and last.end == start and last.server is grant.server
            rest, last = rest if follows else start, grant
        self._issued_before_end = self._issued()
        self._over = error
        self._queue.clear()
        self._due = self._end = 0
        self._fail_waiters(error)
        self._stopped.notify_all()
        return rest, last

    def _exhausted(self, cause: Optional[LeafError]) -> LeafError:
        prefix = f'tag "{self.tag}": no IDs in memory'
        if cause is None:
            return LeafError(f"{prefix}, and no server has answered within {self._options.wait:g} s", reason="EXHAUSTED")
        return again(cause, f"{prefix}: {cause}", cause.reason if cause.reason in TOLD else "EXHAUSTED")

    def _stock(self) -> int:
        return max(0, self._end - self._next) + sum(g.end - g.start for g in self._queue)

    def _issued(self) -> int:
        return self._issued_before_end if self._over is not None else self._granted - self._stock()

    def stats(self) -> TagStats:
        _fork.check()
        with self._lock:
            return TagStats(self.tag, self._stock(), self._issued(), self._granted, self._returned, self._failures)
