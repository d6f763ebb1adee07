from __future__ import annotations

import base64
import http.client
import json
import logging
import math
import os
import queue
import random
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar, Union

from . import _fork
from ._errors import LeafError, again, invalid
from ._url import parse_servers

T = TypeVar("T")
_LOG = logging.getLogger("leaf_id")
"".encode("idna")  # socket imports this at its first connection; a fork meanwhile would leave the import locked
_FIRST_BACKOFF, _MAX_BACKOFF = 0.1, 5.0
_IDLE = 20.0  # seconds that an unused connection is kept: less than servers and proxies do
_TURN = 2.0  # seconds that the others have to answer after a server of the known store lacked the tag
_TOKEN_AGE = 1.0  # after it a token's file is read again
_MAX_ANSWER = 1 << 20


@dataclass(frozen=True)
class Call:
    """One finished call to a server."""

    server: str  # host:port
    procedure: str  # such as Advance or ClaimLease
    took: float  # seconds
    error: Optional[LeafError]


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request that any of the servers can answer. read raises an exception if an answer is not usable."""

    procedure: str
    method: str
    path: str
    body: Optional[Dict[str, Any]]
    read: Callable[[Dict[str, Any], "Server"], T]


def connect(procedure: str, body: Dict[str, Any], read: Callable[[Dict[str, Any], "Server"], T]) -> Request[T]:
    """A call of LeafService."""
    return Request(procedure, "POST", "/leaf.v1.LeafService/" + procedure, body, read)


class Server:
    """One of the servers, its unused connections, and how its latest calls ended."""

    def __init__(self, base: str) -> None:
        self.secure = base.startswith("https:")
        self.host = base.split("://")[1]
        self.idle: List[Tuple[float, http.client.HTTPConnection]] = []
        self.fails = 0  # in a row
        self.proven = False  # its latest answer with an identity had that of the known store
        self._retry_at = 0.0

    def failed(self) -> None:
        pause = min(_MAX_BACKOFF, _FIRST_BACKOFF * 2 ** min(self.fails, 10))
        self.fails += 1
        self._retry_at = time.monotonic() + pause * random.uniform(0.5, 1)

    def is_failing(self) -> bool:
        """Reports whether calls should ask it last."""
        return self.fails > 0 and time.monotonic() < self._retry_at


class _Token:
    """The token for the servers: a fixed one, that of a file, or none."""

    def __init__(self, value: Optional[str], file: Union[str, "os.PathLike[str]", None]) -> None:
        self._value, self._file, self._read = value and value.strip(), file, 0.0

    def get(self) -> Optional[str]:
        if self._file is not None and (self._value is None or time.monotonic() - self._read > _TOKEN_AGE):
            with open(self._file, encoding="utf-8") as file:
                text = file.read().strip()
            if not text:
                raise OSError(f"read the token: {os.fspath(self._file)} is empty")
            self._value, self._read = text, time.monotonic()
        return self._value


class Servers:
    """Calls one of several servers with one store. It asks the one that answered last first, unless that did
    not know the tag, and those with a recent failure last."""

    def __init__(
        self,
        servers: Union[str, Sequence[str]],
        *,
        token: Optional[str],
        token_file: Union[str, "os.PathLike[str]", None],
        context: Optional[ssl.SSLContext],
        timeout: float,
        hedge: float,
        on_call: Optional[Callable[[Call], None]],
    ) -> None:
        urls, own = parse_servers(servers)
        if sum(t is not None for t in (own, token, token_file)) > 1:
            raise invalid("a token is given twice: in the URL, as token or by token_file")
        if not timeout > 0 or not hedge >= 0:
            raise invalid("a time-out is above 0, and hedge is not negative")
        self.timeout = timeout
        self._hedge, self._on_call, self._context = hedge, on_call, context
        self._token = _Token(own if own is not None else token, token_file)
        self._all = [Server(url) for url in urls]
        self._active = random.randrange(len(urls))  # so that not all programs begin with the first
        self._lock = threading.Lock()
        self._closed = False
        _fork.watch(self)

    def close(self) -> None:
        _fork.check()
        self._closed = True
        with self._lock:
            for server in self._all:
                while server.idle:
                    server.idle.pop()[1].close()

    def forked(self) -> None:
        """The connections are the parent's."""
        self._lock = threading.Lock()
        for server in self._all:
            idle, server.idle = server.idle, []
            for _, connection in idle:
                connection.close()

    def repeat(self, request: Request[T], hedged: bool = False) -> T:
        """Makes a call that may be repeated at another server, and at two at once if hedged."""
        _fork.check()
        turned = self._all[self._active :] + self._all[: self._active]
        order = sorted(turned, key=Server.is_failing)  # which keeps the order otherwise
        if self._closed:
            raise LeafError("the client is closed", reason="CLOSED")
        return _Attempt(self, request, order, self._hedge if hedged and len(order) > 1 else 0).run()

    def once(self, request: Request[T], server: Server) -> T:
        """Makes a call that must not be repeated, to one server."""
        _fork.check()
        return _Attempt(self, request, [server], 0).run()

    def ask(self, server: Server, request: Request[T]) -> Tuple[Optional[T], Optional[LeafError], bool]:
        """Asks one server. Returns the result, or the error and whether another server should be asked."""
        begun = time.monotonic()
        result: Optional[T] = None
        error, faulty = None, False
        try:
            status, text = self._exchange(server, request)
            if status >= 300:
                error, leafs = _explain(server, status, text)
                faulty = not leafs or status >= 500 or status in (401, 403)
            else:
                result = request.read(_object(text) if text else {}, server)
        except LeafError as err:
            error, faulty = err, True
        except (OSError, http.client.HTTPException) as err:
            error, faulty = _unavailable(server, f"is unavailable: {str(err) or type(err).__name__}"), True
        except Exception as err:  # whatever it is, another server may do better
            error, faulty = _unavailable(server, f"gave no usable answer: {str(err) or type(err).__name__}"), True
        self._observe(Call(server.host, request.procedure, time.monotonic() - begun, error))
        return result, error, faulty

    def _observe(self, call: Call) -> None:
        """Tells the observer, whose failure is no reason to lose an answer."""
        try:
            if self._on_call is not None:
                self._on_call(call)
        except Exception:
            _LOG.exception("on_call failed")

    def _exchange(self, server: Server, request: Request[Any]) -> Tuple[int, bytes]:
        headers = {"Accept": "application/json"}
        token = self._token.get()
        if token:
            headers["Authorization"] = "Bearer " + token
        body = None
        if request.body is not None:
            body = json.dumps(request.body).encode()
            headers["Content-Type"] = "application/json"
        connection = self._connection(server)
        try:
            connection.request(request.method, request.path, body, headers)
            answer = connection.getresponse()
            text = answer.read(_MAX_ANSWER + 1)
            if len(text) > _MAX_ANSWER:
                raise ValueError("the answer is too long")
        except BaseException:
            connection.close()
            raise
        if answer.will_close or self._closed:
            connection.close()
        else:
            with self._lock:
                server.idle.append((time.monotonic(), connection))
        return answer.status, text

    def _connection(self, server: Server) -> http.client.HTTPConnection:
        with self._lock:
            while server.idle:
                since, connection = server.idle.pop()
                if time.monotonic() - since < _IDLE:
                    return connection
                connection.close()
        if server.secure:
            return http.client.HTTPSConnection(server.host, timeout=self.timeout, context=self._context)
        return http.client.HTTPConnection(server.host, timeout=self.timeout)

    def answered(self, server: Server) -> None:
        server.fails = 0
        if server in self._all:
            self._active = self._all.index(server)


class _Tally:
    """The errors of a call that no server has answered yet."""

    def __init__(self) -> None:
        self._failures: List[str] = []
        self._worst: Optional[LeafError] = None
        self._away = False  # a server that may have the store has failed
        self._unknown: Optional[LeafError] = None  # of a server that does not know the tag
        self._proven = False  # such a server has the known store
        self.settled = math.inf  # when the call ends because of that

    def failed(self, error: LeafError) -> None:
        self._failures.append(str(error))
        self._worst = error if self._worst is None or error.status > 0 else self._worst
        self._away = self._away or error.reason != "FOREIGN_STORE"

    def unknown(self, server: Server, error: LeafError) -> None:
        self._unknown = error
        if server.proven and not self._proven:
            self._proven = True
            self.settled = time.monotonic() + _TURN

    def error(self) -> LeafError:
        """Returns the error of the call. A tag is unknown only if a server of the known store says so, or if all
        servers do: the tags of another store say nothing."""
        if self._unknown is not None and (self._proven or not self._away):
            return self._unknown
        assert self._worst is not None
        return again(self._worst, "; ".join(self._failures))


class _Attempt(Generic[T]):
    """One call to several servers, by the thread that needs the answer."""

    def __init__(self, servers: Servers, request: Request[T], order: List[Server], hedge: float) -> None:
        self._servers, self._request, self._order, self._hedge = servers, request, order, hedge
        self._outcomes: "queue.SimpleQueue[Tuple[Server, Any]]" = queue.SimpleQueue()
        self._asked = 0
        self._running = 0

    def run(self) -> T:
        tally = _Tally()
        self._ask()
        while True:
            outcome = self._await(tally.settled)
            if outcome is None:
                if time.monotonic() >= tally.settled:
                    raise tally.error()
                self._ask()  # the answer takes long
                continue
            self._running -= 1
            server, (result, error, faulty) = outcome
            if faulty:
                server.failed()
                tally.failed(error)
            elif error is not None and error.reason == "UNKNOWN_TAG":  # its store may be another one than the others have
                server.fails = 0
                tally.unknown(server, error)
            else:
                self._servers.answered(server)
                if error is not None:
                    raise error
                return result  # type: ignore[no-any-return]
            if self._asked < len(self._order):
                self._ask()
            elif self._running == 0:
                raise tally.error()

    def _ask(self) -> None:
        server = self._order[self._asked]
        self._asked += 1
        self._running += 1

        def ask() -> None:
            outcome: Any = (None, _unavailable(server, "was not asked"), True)
            try:
                outcome = self._servers.ask(server, self._request)
            finally:  # run waits for it
                self._outcomes.put((server, outcome))

        if self._hedge > 0:
            try:
                threading.Thread(target=ask, name="leaf-call", daemon=True).start()
            except Exception as err:  # such as "can't start new thread"
                self._outcomes.put((server, (None, _unavailable(server, f"was not asked: {err}"), True)))
        else:
            ask()

    def _await(self, settled: float) -> Optional[Tuple[Server, Any]]:
        """Returns the next outcome, or None when another server should be asked meanwhile, or the call is settled."""
        more = self._hedge > 0 and self._asked < len(self._order)
        wait = min(self._hedge if more else math.inf, max(0.0, settled - time.monotonic()))
        try:
            return self._outcomes.get(timeout=wait if wait < math.inf else None)
        except queue.Empty:
            return None


def _unavailable(server: Server, text: str) -> LeafError:
    return LeafError(f"leaf server {server.host} {text}", reason="UNAVAILABLE")


def _object(text: bytes) -> Dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


_STATUS_REASONS = {401: "UNAUTHENTICATED", 403: "FORBIDDEN"}


def _explain(server: Server, status: int, text: bytes) -> Tuple[LeafError, bool]:
    """Reads an error, of the HTTP API or of Connect. Reports also whether Leaf has answered: its errors have a reason."""
    try:
        problem = _object(text)
    except ValueError:
        problem = {}  # a proxy's page, say
    reason = problem.get("reason") or _detailed(problem.get("details"))
    leafs = isinstance(reason, str) and reason.isupper()  # other programs have reasons such as NotFound
    what = problem.get("detail") or problem.get("message") or f"HTTP status {status}"
    error = LeafError(f"leaf server {server.host}: {what}", status, reason if leafs else _STATUS_REASONS.get(status, "UNAVAILABLE"))
    return error, leafs


def _detailed(details: Any) -> str:
    """Returns the reason in a google.rpc.ErrorInfo: the first field of the message."""
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and detail.get("type") == "google.rpc.ErrorInfo":
            value = str(detail.get("value"))
            message = base64.b64decode(value + "=" * (-len(value) % 4))
            if message[:1] == b"\x0a":
                return message[2 : 2 + message[1]].decode()
    return ""
