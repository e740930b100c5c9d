"""Counts the estimates of a member's statements that were badly wrong, by table.

The member tells the controller with its lease, which has the statistics of such a table collected anew if rows were
written since the last time; see :mod:`secateur.cluster.controller.statistics_cache`. Only steps are compared: their
values are counted anyway, so that no other statement pays for the comparison.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from secateur.engine.sql.select_plan import SelectPlan
from secateur.protocol.steps import QueryStep

__all__ = ["EstimateMisses"]

_NOISE: Final = 10
"""Added to compared numbers: between one value and a few, no plan is much better than another."""


class EstimateMisses:
    """Lives on the member's event loop.

    Args:
        factor: A number of values that is more than this many times the estimate, or less than the estimate by the
            same factor, is a miss.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._by_table: Counter[int] = Counter()

    def compare(self, step: QueryStep, plan: SelectPlan, found: int) -> None:
        """Count a miss for each table that a step reads, if it found far more or far fewer values than its estimate.

        Args:
            step: The step.
            plan: Its plan.
            found: The number of values that it found, one more than its ``values_max`` if there are more.
        """
        if step.estimate is None:
            return
        low, high = sorted((step.estimate, found))
        # A step stops at the first value too many, so the factor says nothing then.
        if found > step.values_max or high + _NOISE > self._factor * (low + _NOISE):
            self._by_table.update({scan.table_id for scan in plan.scans})

    def by_table(self) -> dict[int, int]:
        """The number of misses since the member started, by table id; tables without any are left out."""
        return dict(self._by_table)
