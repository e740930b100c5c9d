"""The most frequent values of a stream, in bounded memory.

Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

V = TypeVar("V", bound=Hashable)


class FrequentValue(NamedTuple, Generic[V]):
    """A value that has a counter.

    Attributes:
        value: The value.
        times: It has come at most so often,
        error: and at least so many times less: those that were counted before it got the counter.
    """

    value: V
    times: int
    error: int


class SpaceSaving(Generic[V]):
    """Counts values with few counters: a value without one takes over the smallest.

    Each value that makes up more than ``1 / counters_max`` of the stream has a counter, and none is counted too low.

    Args:
        counters_max: Counters.
        total_max: Values after which all counts are halved, so that what was frequent once is forgotten.

    Attributes:
        total: Values that have come, halved as the counts are.
    """

    def __init__(self, counters_max: int, total_max: int) -> None:
        self._counters_max = counters_max
        self._total_max = total_max
        self._counts: dict[V, int] = {}
        self._errors: dict[V, int] = {}
        self.total = 0

    def add(self, value: V) -> None:
        """Count a value. Costs a fraction of a microsecond, and for one without a counter a look at all counters."""
        counts = self._counts
        if value in counts:
            counts[value] += 1
        elif len(counts) < self._counters_max:
            counts[value], self._errors[value] = 1, 0
        else:
            smallest = min(counts, key=counts.__getitem__)
            count = counts.pop(smallest)
            del self._errors[smallest]
            counts[value], self._errors[value] = count + 1, count
        self.total += 1
        if self.total >= self._total_max:
            self._halve()

    def values(self) -> list[FrequentValue[V]]:
        """The values that have a counter, the most frequent first."""
        found = [FrequentValue(value, count, self._errors[value]) for value, count in self._counts.items()]
        return sorted(found, key=lambda one: -one.times)

    def _halve(self) -> None:
        self._errors = {value: self._errors[value] // 2 for value, count in self._counts.items() if count > 1}
        self._counts = {value: count // 2 for value, count in self._counts.items() if count > 1}
        self.total //= 2
