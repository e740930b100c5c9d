"""Counts the estimates of a member's statements that were badly wrong, by table.

The member tells the controller with its lease, which has the statistics of such a table collected anew if rows were
written since the last time; see :mod:`secateur.cluster.controller.statistics_cache`. Compared are numbers that are
counted anyway: the values of steps, and the rows that scans send to other stages. A statement that one member answers
by itself has neither, and does not pay for the comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from secateur.engine.sql.select_job import vertex_names
from secateur.engine.sql.select_plan import SelectPlan
from secateur.protocol.metrics import VertexMetrics
from secateur.protocol.steps import QueryStep

_NOISE: Final = 10
"""Added to compared numbers: between one value and a few, no plan is much better than another."""


class EstimateMisses:
    """Counts the misses. Lives on the member's event loop.

    Args:
        factor: A number of values or rows that is more than this many times the estimate, or less than the estimate by
            the same factor, is a miss.
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
        # A step stops at the first value too many, so the factor says nothing then.
        if found > step.values_max or self._is_far(step.estimate, found):
            self._by_table.update({scan.table_id for scan in plan.scans})

    def compare_scans(self, plan: SelectPlan, metrics: Sequence[VertexMetrics]) -> None:
        """Count a miss for each table of which a scan found far more or far fewer rows than its estimate.

        Args:
            plan: The plan of a statement that several members have answered.
            metrics: The metrics of its job, which has run to its end.
        """
        for name, stage in zip(vertex_names(plan), plan.stages, strict=True):
            found = [entry for entry in metrics if entry.vertex == name]
            if stage.estimate is None or not found:
                continue
            # Every consumer is offered the same rows.
            rows = sum(max((output.rows for output in entry.outputs), default=0) for entry in found)
            if self._is_far(stage.estimate, rows):
                self._by_table.update({plan.scans[number].table_id for number in stage.scans})

    def _is_far(self, estimate: int, found: int) -> bool:
        low, high = sorted((estimate, found))
        return high + _NOISE > self._factor * (low + _NOISE)

    def by_table(self) -> dict[int, int]:
        """The number of misses since the member started, by table id; tables without any are left out."""
        return dict(self._by_table)

    def forget_dropped(self, is_there: Callable[[int], bool]) -> None:
        """Forget tables that are not there any more: each lease that the member asks for brings the others."""
        for table_id in [table_id for table_id in self._by_table if not is_there(table_id)]:
            del self._by_table[table_id]
