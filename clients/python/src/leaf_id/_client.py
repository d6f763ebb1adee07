from __future__ import annotations

import os
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _fork
from ._errors import LeafError, invalid
from ._servers import Call, Server, Servers, connect
from ._stock import Grant, Stock, StockOptions, TagStats

_UNKNOWN_FOR = 1.0  # seconds that an unknown tag is refused without another call
_MAX_ID = 2**63 - 1
_MAX_MAX_STOCK = 2**40


class ServerSource:
    """Takes ranges off what servers hold in memory."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._places = threading.BoundedSemaphore(64)  # calls under way
        self._latest: Dict[str, str] = {}  # tag to the version of its latest grant
        self._store = ""  # identity of the servers' store
        _fork.watch(self)

    def forked(self) -> None:
        self._places = threading.BoundedSemaphore(64)
        self._latest = {}

    def advance(self, tag: str, n: int) -> Grant:
        body = {"tag": tag, "count": str(n), "before": self._latest.get(tag)}

        def read(answer: Dict[str, Any], server: Server) -> Grant:
            ids = read_range(answer["range"])
            step = int(answer["step"])
            if n > 0 and len(ids) > n or step < 1:
                raise ValueError(f"it granted {ids} with step {step} when asked for {n}")
            self.check_store(server, answer.get("store", ""))
            return Grant(ids.start, ids.stop, step, server, answer.get("version", ""))

        with self._places:
            grant = self._servers.repeat(connect("Advance", body, read), hedged=True)
        self._latest[tag] = grant.version
        return grant

    def check_store(self, server: Server, identity: str) -> None:
        """Refuses a server of another store than the first one: its IDs may be in use."""
        if not identity:
            return
        self._store = self._store or identity
        server.proven = self._store == identity
        if not server.proven:
            text = f"leaf server {server.host} has another store: its identity is {identity}, that of the known store is {self._store}"
            raise LeafError(text, reason="FOREIGN_STORE")

    def give_back(self, tag: str, last: Grant, start: int) -> None:
        body = {"tag": tag, "start": str(start), "end": str(last.end), "version": last.version}
        self._servers.once(connect("Return", body, lambda answer, server: None), last.server)


def read_range(fields: Dict[str, Any]) -> range:
    start, end = int(fields.get("start", 0)), int(fields.get("end", 0))
    if not 0 <= start < end <= _MAX_ID:
        raise ValueError(f"it has the range [{start}, {end})")
    return range(start, end)


class TagGenerator:
    """The IDs of one tag, as long as its client works."""

    def __init__(self, client: "LeafClient", tag: str) -> None:
        self._client, self._tag = client, tag

    def next(self) -> int:
        """Returns the next ID."""
        return self._client.next(self._tag)

    def take(self, n: int) -> List[range]:
        """Takes n IDs as few ranges."""
        return self._client.take(self._tag, n)


@dataclass(frozen=True)
class Issued:
    """Numbers of a tag or their texts, and the first day of the period that they belong to; empty: the tag has no periods."""

    ranges: List[range]
    period: str
    texts: List[str]


class OrderedGenerator:
    """Makes a call for each ID and keeps no stock, for IDs that increase over all programs, as those of
    one server do. A call that repeats after a slow or lost answer may bring IDs of another server."""

    def __init__(self, servers: Servers, source: ServerSource, scheme: str, key: str) -> None:
        self._servers, self._source, self._scheme, self._key = servers, source, scheme, key

    def next(self) -> int:
        """Returns the next ID."""
        return self.take(1)[0].start

    def take(self, n: int) -> List[range]:
        """Takes n IDs as few ranges."""
        return self._issue(n, "", False, hedged=True).ranges

    def _issue(self, n: int, period: str, form: bool, hedged: bool) -> Issued:
        if n < 1:
            raise invalid(f"n = {n} is below 1")

        def read(answer: Dict[str, Any], server: Server) -> Issued:
            self._source.check_store(server, answer.get("store", ""))
            got = str(answer.get("period", ""))
            if period and got != period:
                raise LeafError(f"leaf server {server.host} knows no periods: upgrade it", reason="UNSUPPORTED")
            texts = [str(t) for t in answer.get("texts", [])]
            if form and not texts:
                raise LeafError(f"leaf server {server.host} knows no forms: upgrade it", reason="UNSUPPORTED")
            ranges = [read_range(r) for r in answer.get("ranges", [])]
            if sum(len(r) for r in ranges) + len(texts) != n:
                raise ValueError(f"it has the ranges {ranges} when asked for {n} IDs")
            return Issued(ranges, got, texts)

        body = {"scheme": self._scheme, "key": self._key, "count": n, "tellStore": True, "period": period, "form": form}
        return self._servers.repeat(connect("Take", body, read), hedged=hedged)


class LeafClient:
    """Takes IDs from Leaf servers at the speed of memory. It keeps a stock of each tag in the program.

    1. No ID is issued twice, by this program or any other. A call whose answer is lost costs IDs.
    2. next makes no call while there is stock.
    3. A crash loses at most the stock; close gives it back unless another program took IDs since.
    4. The IDs of one tag increase within a range. Between ranges and programs they interleave.

    Several threads may use it. A child of a fork drops the stock and takes IDs of its own.
    """

    def __init__(
        self,
        servers: Union[str, Sequence[str]],
        *,
        token: Optional[str] = None,
        token_file: Union[str, "os.PathLike[str]", None] = None,
        context: Optional[ssl.SSLContext] = None,
        outage_budget: float = 600.0,
        max_stock: int = 10_000_000,
        wait: float = 1.0,
        call_timeout: float = 5.0,
        hedge: float = 0.1,
        on_call: Optional[Callable[[Call], None]] = None,
    ) -> None:
        """servers is a URL such as http://h1:8080,h2:8080, or several. It connects at the first request.

        outage_budget: the seconds whose use the stock of a tag covers. max_stock: the most IDs of a tag in
        memory, so the most that a crash may cost. wait: the seconds that a call waits for a server when
        the stock is used up. hedge: the seconds after which a call also asks a second server; 0: never.
        context is for https. on_call observes each finished call to a server; its exceptions are logged."""
        if not outage_budget > 0 or not wait > 0 or not 1 <= max_stock <= _MAX_MAX_STOCK:
            raise invalid("outage_budget and wait are above 0, max_stock is in 1 … 2^40")
        self._servers = Servers(
            servers, token=token, token_file=token_file, context=context, timeout=call_timeout, hedge=hedge, on_call=on_call
        )
        self._source = ServerSource(self._servers)
        self._options = StockOptions(outage_budget, max_stock, wait, call_timeout)
        self._stocks: Dict[str, Stock] = {}
        self._unknown: Dict[str, float] = {}  # tag to when it may be asked for again
        self._lock = threading.Lock()
        self._closed = False
        _fork.watch(self)

    def forked(self) -> None:
        self._lock = threading.Lock()

    def stock(self, tag: str) -> Stock:
        stock = self._stocks.get(tag)
        if stock is None or self._unknown:
            _fork.check()  # a stock does so itself
            with self._lock:
                stock = self._known(tag)
                if stock is None:
                    if self._closed:
                        raise LeafError("the client is closed", reason="CLOSED")
                    stock = self._stocks[tag] = Stock(tag, self._options, self._source, lambda: self._set_unknown(tag))
        return stock

    def _known(self, tag: str) -> Optional[Stock]:
        """Returns the stock of a tag unless it is time to ask again whether the tag exists."""
        if tag in self._unknown and time.monotonic() >= self._unknown[tag] and not self._closed:
            self._stocks.pop(tag, None)  # first: an interruption must not leave a stock that has ended
            del self._unknown[tag]
        return self._stocks.get(tag)

    def _set_unknown(self, tag: str) -> None:
        with self._lock:
            self._unknown[tag] = time.monotonic() + _UNKNOWN_FOR

    def next(self, tag: str) -> int:
        """Returns the next ID of a tag. Raises LeafError."""
        return self.stock(tag).next()

    def take(self, tag: str, n: int) -> List[range]:
        """Takes n IDs of a tag, at most max_stock, as few ranges in the order of issue."""
        return self.stock(tag).take(n)

    def tag(self, tag: str) -> TagGenerator:
        """Returns the generator of a tag."""
        return TagGenerator(self, tag)

    def ordered(self, scheme: str, key: str = "") -> OrderedGenerator:
        """Returns a generator that makes a call for each ID. scheme is segment, snowflake, uid or ticket;
        key is a tag or the name of a layout."""
        return OrderedGenerator(self._servers, self._source, scheme, key)

    def issue(self, tag: str, n: int = 1, *, period: str = "", form: bool = False) -> Issued:
        """Makes one call for n numbers of a tag, and keeps no stock: for tags whose numbers start again with
        each period. period is its first day, such as 2026-11-23; empty: the present one. form: the texts that
        the tag's form makes of the numbers, in place of ranges."""
        return self.ordered("segment", tag)._issue(n, period, form, hedged=False)

    def stats(self) -> List[TagStats]:
        """Describes each tag in use."""
        _fork.check()
        with self._lock:
            stocks = list(self._stocks.values())
        return sorted((s.stats() for s in stocks), key=lambda s: s.tag)

    def close(self) -> None:
        """Gives unused IDs back and ends the connections. Later calls fail. IDs that another program has
        taken some behind are lost."""
        _fork.check()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            stocks = list(self._stocks.values())
        deadline = time.monotonic() + 2 * self._options.call_timeout
        for stock in stocks:
            try:
                stock.close(give_back=time.monotonic() < deadline)
            except LeafError:
                pass
        self._servers.close()

    def __enter__(self) -> "LeafClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
