from __future__ import annotations

from collections import deque
from typing import Deque, Tuple

_SAMPLES = 20


def refill_size(*, stock: int, missing: int, step: int, issued: int, recent: int, max_stock: int) -> int:
    """Returns the number of IDs to ask for now, or 0. When less than nine tenths of the recent use, at
    least a step, are left, it fills the stock up to that. Callers who need more get more, but the
    stock never exceeds all IDs issued so far plus two steps."""
    target = min(max(step, recent), max_stock)
    if stock >= missing and stock * 10 >= target * 9 or stock > issued + step:
        return 0
    wanted = max(step, target - stock, missing - stock)
    return max(0, min(wanted, max(step, issued - stock), max_stock - stock))


class RecentUse:
    """Counts the IDs issued within the last outage budget; all samples but the first are within it."""

    def __init__(self, budget: float, now: float) -> None:
        self._budget = budget
        self._samples: Deque[Tuple[float, int]] = deque([(now, 0)])

    def observe(self, now: float, issued: int) -> int:
        """Takes in how many IDs have been issued by now, and returns how many of them are recent."""
        samples = self._samples
        if now - samples[-1][0] >= self._budget / _SAMPLES:
            samples.append((now, issued))
        while len(samples) > 1 and samples[1][0] <= now - self._budget:
            samples.popleft()
        return issued - samples[0][1]
