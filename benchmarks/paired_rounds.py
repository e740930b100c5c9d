"""Compares two states of one system on a machine that other work disturbs: short rounds in turn, and how sure that is.

A block is four rounds, without, with, with, without: what grows or sinks steadily while they last, such as the load of
the machine or the size of a log, counts for both states alike. The median over blocks leaves out those that something
else has disturbed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeVar

__all__ = ["MedianInterval", "abba_block", "median_interval"]

T = TypeVar("T")

_DOUBT_MAX: Final = 0.05


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """A median, and where that of infinitely many measurements lies.

    Attributes:
        median: Of the values.
        low: The median is lower only in one of forty such samples.
        high: The same above.
    """

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def median_interval(values: Sequence[float]) -> MedianInterval:
    """The median, with the interval that contains it at a confidence of 95 %; of fewer than six values, all of them.

    Source: the distribution-free interval between order statistics, for which the number of values below the median is
    binomial.
    """
    ordered, count = sorted(values), len(values)
    left_out, doubt = 0, 2 * 0.5**count
    while left_out + 1 < (count + 1) // 2:
        doubt += 2 * math.comb(count, left_out + 1) * 0.5**count
        if doubt > _DOUBT_MAX:
            break
        left_out += 1
    return MedianInterval(statistics.median(ordered), ordered[left_out], ordered[-1 - left_out])


def abba_block(
    measure: Callable[[], T], changed: Callable[[], AbstractContextManager[None]]
) -> tuple[list[T], list[T]]:
    """Measure without, twice with, and without the change.

    Args:
        measure: One round.
        changed: What differs while it is open.

    Returns:
        Two rounds without, and two with.
    """
    first = measure()
    with changed():
        both = [measure(), measure()]
    return [first, measure()], both
