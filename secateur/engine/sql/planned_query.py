"""The SELECT of a source, planned, with the values of its parameters and the partitions that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from secateur.engine.sql.select_plan import SelectPlan


class PlannedQuery(NamedTuple):
    """A SELECT of a source, for one run of a job.

    Attributes:
        plan: Its plan.
        params: The values of the parameters of its fragments, in order.
        partitions: For each scan of the plan, the partitions to read.
    """

    plan: SelectPlan
    params: Sequence[Any]
    partitions: Sequence[Sequence[int]]
