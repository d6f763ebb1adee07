from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

_RETRY = 1.0  # seconds after a renewal that failed


class LeafError(Exception):
    """A call failed. reason is the server's, or empty if no server answered."""

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Layout:
    """The bits of a pool's IDs, from the highest on: time, worker ID, sequence."""

    epoch: int  # Unix milliseconds
    tick_ms: int
    time_bits: int
    worker_bits: int
    sequence_bits: int


class WorkerLease:
    """The right of this process to make IDs of one worker ID.

    The IDs must have a time t, in Unix milliseconds, with floor <= t < limit. The lease renews itself
    in the background, so limit grows. It may be used up to limit, whatever happens to the server.
    """

    def __init__(
        self,
        servers: Sequence[str],
        pool: str,
        *,
        ttl: Optional[str] = None,
        holder: Optional[str] = None,
        token: Optional[str] = None,
        timeout: float = 5.0,
        context: Optional[ssl.SSLContext] = None,
        on_lost: Optional[Callable[[LeafError], None]] = None,
    ) -> None:
        """Claims the lease: of ttl, such as "90s", by default 5 minutes. on_lost is called, in another
        thread, when the lease can be renewed no more; it lasts up to limit."""
        if not servers:
            raise ValueError("no server")
        self._servers = [s.rstrip("/") for s in servers]
        self._token, self._timeout, self._context = token, timeout, context
        self._on_lost = on_lost
        self._ttl = {"ttl": ttl} if ttl else {}
        self._ended = threading.Event()
        self.pid = os.getpid()
        claim = {"pool": pool, "holder": holder or socket.gethostname(), **self._ttl}
        got = self._call("POST", "", claim)
        self.id: str = got["lease"]
        self.pool: str = got["pool"]
        self.worker: int = got["worker"]
        self.layout = Layout(**got["layout"])
        self.floor: int = got["floor"]
        self.limit: int = got["limit"]
        self._renewer = threading.Thread(target=self._renew, args=(got,), name="leaf-lease", daemon=True)
        self._renewer.start()

    def _renew(self, got: dict[str, Any]) -> None:
        pause = (got["renew_at"] - got["now"]) / 1000
        while not self._ended.wait(pause):
            try:
                got = self._call("POST", "/" + self.id, self._ttl)
                self.limit = max(self.limit, got["limit"])
                pause = (got["renew_at"] - got["now"]) / 1000
            except LeafError as err:
                pause = _RETRY
                if err.status == 409 and err.reason == "LEASE_LOST":
                    if self._on_lost is not None:
                        self._on_lost(err)
                    return

    def release(self, used: Optional[int]) -> None:
        """Ends the lease. used is the latest time in an ID, in Unix milliseconds; None if there is
        none. Stop the generator first. After an error the worker ID is free at limit."""
        self._ended.set()
        if os.getpid() != self.pid:
            return  # the lease is the parent's
        text = "none" if used is None else str(used)
        try:
            self._call("DELETE", "/" + self.id + "?used=" + text, None)
        except LeafError as err:
            if err.reason != "LEASE_LOST":
                raise

    def _call(self, method: str, path: str, body: Optional[dict[str, Any]]) -> dict[str, Any]:
        """Asks one server after the other. A claim whose answer is lost costs a worker ID for one ttl;
        renewals and releases may be repeated."""
        problem = LeafError("no server")
        for server in list(self._servers):
            try:
                return self._ask(server, method, path, body)
            except LeafError as err:
                problem = err
                if 0 < err.status < 500 and err.status != 429:
                    raise
                self._servers = [s for s in self._servers if s != server] + [server]
        raise problem

    def _ask(self, server: str, method: str, path: str, body: Optional[dict[str, Any]]) -> dict[str, Any]:
        request = urllib.request.Request(server + "/v1/workers/leases" + path, method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", "Bearer " + self._token)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout, context=self._context) as answer:
                text = answer.read()
                return json.loads(text) if text else {}
        except urllib.error.HTTPError as err:
            raise _problem(err) from None
        except (OSError, ValueError) as err:
            raise LeafError(f"no usable answer from {urllib.parse.urlsplit(server).netloc}: {err}") from err


def _problem(err: urllib.error.HTTPError) -> LeafError:
    try:
        p = json.loads(err.read())
        return LeafError(p["detail"], err.code, p["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return LeafError(f"HTTP status {err.code}", err.code)
