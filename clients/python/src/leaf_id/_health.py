from __future__ import annotations

import random
import time
from typing import Optional

from ._errors import LeafError

_FIRST_BACKOFF, _WAITED_BACKOFF, _MAX_BACKOFF = 0.01, 0.1, 1.0
_FINAL = {"OVERFLOW", "CLOSED"}
_REFUSED = {"INVALID_ARGUMENT", "BAD_KEY", "STRICT_ORDER", "PERIODIC", "MASKED"}
_VERDICTS = _FINAL | _REFUSED | {"UNSUPPORTED"}
TOLD = _FINAL | _REFUSED | {"UNAUTHENTICATED", "FORBIDDEN"}  # callers without stock see these, not EXHAUSTED


class StoreHealth:
    """What is wrong with the servers at present, as one tag sees it."""

    def __init__(self) -> None:
        self.error: Optional[LeafError] = None
        self._since = self._retry_at = 0.0
        self._failures = 0

    def failed(self, error: LeafError, waited: bool) -> None:
        """Takes in a failed call; waited: callers wait for IDs."""
        now = time.monotonic()
        if self.error is None:
            self._since = now
        self.error = error
        bound = min(_WAITED_BACKOFF if waited else _MAX_BACKOFF, _FIRST_BACKOFF * 2 ** min(self._failures, 10))
        self._failures += 1
        self._retry_at = now + random.uniform(0, bound)

    def succeeded(self) -> None:
        self.error = None
        self._failures = 0

    def pause(self) -> float:
        """Returns how long to wait before the next call."""
        return 0 if self.error is None else self._retry_at - time.monotonic()

    def resume(self, wait: float) -> None:
        """A failure that is older than a caller waits does not tell how long the servers have been failing."""
        now = time.monotonic()
        if self.error is not None and now - self._retry_at > wait:
            self._since = now

    def verdict(self, wait: float, trying: bool) -> Optional[LeafError]:
        """Returns why a caller should not even wait, or None; trying: a call was under way already."""
        now = time.monotonic()
        if self.error is None or not trying and now > self._retry_at:
            return None
        return self.error if self.is_verdict() or now - self._since >= wait else None

    def is_verdict(self) -> bool:
        """Reports whether waiting does not help."""
        return self.error is not None and self.error.reason in _VERDICTS
