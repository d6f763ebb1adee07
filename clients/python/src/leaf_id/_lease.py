from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

from . import _fork
from ._errors import LeafError, invalid, wrapped
from ._servers import Call, Request, Server, Servers

_PATH = "/v1/workers/leases"
_MAX_RETRY, _MIN_RETRY = 1000, 50  # milliseconds after a renewal that failed


@dataclass(frozen=True)
class Layout:
    """The bits of a pool's IDs, from the highest on: time, worker ID, sequence."""

    epoch: int  # Unix milliseconds
    tick_ms: int
    time_bits: int
    worker_bits: int
    sequence_bits: int

    def __post_init__(self) -> None:
        bits = (self.time_bits, self.worker_bits, self.sequence_bits)
        if self.tick_ms < 1 or self.time_bits < 1 or min(bits) < 0 or sum(bits) > 63:
            raise invalid(f"a layout of {bits} bits with ticks of {self.tick_ms} ms")

    def compose(self, tick: int, worker: int, sequence: int) -> int:
        """Makes an ID."""
        parts = ((tick, self.time_bits), (worker, self.worker_bits), (sequence, self.sequence_bits))
        if any(not 0 <= value < 1 << bits for value, bits in parts):
            raise invalid(f"tick {tick}, worker ID {worker} or sequence {sequence} does not fit the layout")
        return (tick << self.worker_bits | worker) << self.sequence_bits | sequence

    def decode(self, id: int) -> "IdParts":
        """Takes an ID apart."""
        if not 0 <= id < 1 << self.time_bits + self.worker_bits + self.sequence_bits:
            raise invalid(f"{id} has bits beyond the layout")
        tick = id >> self.worker_bits + self.sequence_bits
        worker = id >> self.sequence_bits & (1 << self.worker_bits) - 1
        return IdParts(tick, worker, id & (1 << self.sequence_bits) - 1, self.epoch + tick * self.tick_ms)


@dataclass(frozen=True)
class IdParts:
    """What an ID consists of. time is when its tick begins, in Unix milliseconds."""

    tick: int
    worker: int
    sequence: int
    time: int


class _RegistryClock:
    """The registry's clock, as far as the answers tell it. Between them the monotonic clock counts, so
    this machine's date does not matter."""

    def __init__(self, millis: int, sent: float) -> None:
        self._earliest = millis - time.monotonic() * 1000
        self._latest = millis - sent * 1000

    def earliest(self) -> int:
        """Returns the time that has certainly come."""
        return int(self._earliest + time.monotonic() * 1000)

    def latest(self) -> int:
        """Returns the time that has come at most."""
        return int(self._latest + time.monotonic() * 1000) + 1


class WorkerLease:
    """The right of this process to make IDs of one worker ID, for a snowflake library of your own.

    The time t inside each ID, in Unix milliseconds, must be floor <= t < limit: ask use(t) before you
    return an ID. The lease renews itself in the background, so limit grows. It may be used up to limit,
    whatever happens to the servers. No clock has to be right for that. Several threads may use it; a
    child of a fork may not: it claims a lease of its own.
    """

    def __init__(
        self,
        servers: Union[str, Sequence[str]],
        pool: str,
        *,
        ttl: Optional[str] = None,
        holder: Optional[str] = None,
        token: Optional[str] = None,
        token_file: Union[str, "os.PathLike[str]", None] = None,
        timeout: float = 5.0,
        context: Optional[ssl.SSLContext] = None,
        on_call: Optional[Callable[[Call], None]] = None,
        on_lost: Optional[Callable[[LeafError], None]] = None,
        on_renewed: Optional[Callable[[], None]] = None,
    ) -> None:
        """Claims the lease: of ttl, such as "90s", by default 5 minutes. on_lost is called once, in another
        thread, when the lease will not be renewed any more; it may be used up to limit."""
        self._servers = Servers(
            servers, token=token, token_file=token_file, context=context, timeout=timeout, hedge=0, on_call=on_call
        )
        self._on_lost, self._on_renewed = on_lost, on_renewed
        self._ttl = {"ttl": ttl} if ttl else {}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._used: Optional[int] = None  # latest time in an ID
        self._sealed = self._lost = self._released = False
        _fork.check()
        self._generation = _fork.generation
        try:
            got, self._clock = self._call("ClaimLease", "POST", "", {"pool": pool, "holder": holder or socket.gethostname(), **self._ttl})
        except BaseException:
            self._servers.close()
            raise
        self.id: str = got["lease"]
        self.pool: str = got["pool"]
        self.worker: int = got["worker"]
        self.layout = Layout(**got["layout"])
        self.floor: int = got["floor"]
        self.limit: int = got["limit"]
        self._lasts = self.limit - got["now"]
        self._renewer = threading.Thread(target=self._renew, args=(got,), name="leaf-lease", daemon=True)
        try:
            self._renewer.start()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:  # without the secret
        return f"<worker ID {self.worker} of pool {self.pool} for times from {self.floor} up to {self.limit}>"

    def _renew(self, got: Dict[str, Any]) -> None:
        pause = got["renew_at"] - got["now"]
        while not self._ended.wait(max(1, pause) / 1000):
            try:
                got, clock = self._call("RenewLease", "POST", "/" + self.id, self._ttl)
                self.limit = max(self.limit, got["limit"])
                self._clock = clock
                pause = got["renew_at"] - got["now"]
                if self._on_renewed is not None:
                    self._on_renewed()
            except Exception as err:
                why, left = wrapped(err), self.limit - self._clock.latest()
                if why.reason == "LEASE_LOST" or left < self._lasts / 10:
                    self._lose(why)
                    return
                pause = max(_MIN_RETRY, min(_MAX_RETRY, int(left - self._lasts / 10) // 4))

    def _lose(self, err: LeafError) -> None:
        self._lost = True
        if not self._sealed and self._on_lost is not None:
            self._on_lost(err)

    def _is_parents(self) -> bool:
        """Reports whether this process is a child of a fork of the one that has the lease."""
        _fork.check()
        return self._generation != _fork.generation

    def use(self, time: int, last: Optional[int] = None) -> bool:
        """Reports whether an ID with this time, or with the times up to last, may be returned, and
        remembers the latest time for the release. Call it after the ID was made."""
        last = time if last is None else last
        if self._is_parents():  # before the lock, which another thread of the parent may have held at the fork
            return False
        with self._lock:
            if self._sealed or time < self.floor or last >= self.limit:
                return False
            if self._used is None or last > self._used:
                self._used = last
            return True

    def seal(self) -> None:
        """Ends the use of the lease: use returns False from now on."""
        if self._is_parents():
            return  # it does already
        with self._lock:
            self._sealed = True
        self._ended.set()

    def release(self, used: Optional[int] = None) -> None:
        """Seals the lease and gives the worker ID back. used is the latest time in an ID, in Unix
        milliseconds, unless use has been told all. After an error the worker ID is free at limit."""
        if self._is_parents():
            return  # the lease is the parent's
        self.seal()
        latest = max((t for t in (used, self._used) if t is not None), default=None)
        with self._lock:
            if self._released:
                return
        path = f"{_PATH}/{self.id}?used={'none' if latest is None else latest}"
        try:
            self._servers.repeat(Request("ReleaseLease", "DELETE", path, None, lambda answer, server: None))
        except LeafError as err:
            if err.reason != "LEASE_LOST":  # it is over already
                raise
        with self._lock:
            self._released = True

    def close(self) -> None:
        """Releases the lease, and does not tell if that fails."""
        try:
            self.release()
        except LeafError:
            pass
        self._servers.close()

    def now(self) -> int:
        """Returns the time of the registry's clock, in Unix milliseconds."""
        return self._clock.earliest()

    def is_valid(self) -> bool:
        """Reports whether the lease has certainly not ended, by the registry's clock."""
        return not self._sealed and not self._is_parents() and self._clock.latest() < self.limit

    def _call(self, procedure: str, method: str, path: str, body: Dict[str, Any]) -> Tuple[Dict[str, Any], _RegistryClock]:
        """Asks one server after the other. A claim whose answer is lost costs a worker ID for one ttl;
        renewals and releases may be repeated."""
        sent = time.monotonic()  # of the first request: earlier than that of the one which is answered

        def read(answer: Dict[str, Any], server: Server) -> Tuple[Dict[str, Any], _RegistryClock]:
            if not all(isinstance(answer[name], int) for name in ("now", "limit", "renew_at")):
                raise ValueError("it has no lease")
            return answer, _RegistryClock(answer["now"], sent)

        return self._servers.repeat(Request(procedure, method, _PATH + path, body, read))
