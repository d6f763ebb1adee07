from __future__ import annotations

import asyncio
import time
from typing import Any, List, Sequence, Union

from ._client import Issued, LeafClient
from ._stock import Stock, TagStats, Waiter


class AsyncLeafClient:
    """A LeafClient for asyncio. A call that the stock serves does not yield to the loop. Threads of its
    own make the calls to servers, so a busy loop does not delay them."""

    def __init__(self, servers: Union[str, Sequence[str]], **options: Any) -> None:
        """Takes the options of LeafClient."""
        self._client = LeafClient(servers, **options)

    async def next(self, tag: str) -> int:
        """Returns the next ID of a tag. Raises LeafError."""
        stock = self._client.stock(tag)
        got = stock.try_next()
        return (await _take(stock, 1))[0].start if got is None else got

    async def take(self, tag: str, n: int) -> List[range]:
        """Takes n IDs of a tag as few ranges."""
        return await _take(self._client.stock(tag), n)

    async def issue(self, tag: str, n: int = 1, *, period: str = "", form: bool = False) -> Issued:
        """Makes one call for n numbers of a tag, or their texts: see LeafClient.issue."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: self._client.issue(tag, n, period=period, form=form))

    def stats(self) -> List[TagStats]:
        """Describes each tag in use."""
        return self._client.stats()

    async def close(self) -> None:
        """Gives unused IDs back and ends the connections. Later calls fail."""
        await asyncio.get_running_loop().run_in_executor(None, self._client.close)

    async def __aenter__(self) -> "AsyncLeafClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _take(stock: Stock, n: int) -> List[range]:
    waiter = Waiter(n)
    loop = asyncio.get_running_loop()
    event = asyncio.Event()

    def signal() -> None:
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:  # the loop is closed: nobody waits
            pass

    waiter.signal = signal
    try:
        over = stock.begin(waiter)
        while not over and not stock.is_over(waiter):
            timer = loop.call_later(max(0.0, waiter.deadline - time.monotonic()), event.set)
            try:  # wait_for of older Pythons may lose a cancellation
                await event.wait()
            finally:
                timer.cancel()
            event.clear()
    finally:
        stock.give_up(waiter)
    return stock.result(waiter)
