"""A query in steps: subqueries run first, and what they give decides which partitions and members the rest needs.

Every step is a statement of its own, with its own rung. A write between two of them is seen by the later one only.

Source: Apache Ignite IEP-24, "Materialization".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from secateur.client.outcome import Outcome, in_all
from secateur.client.rows import Rows
from secateur.client.statement import Materialized, SelectStatement, Step
from secateur.errors import DataError

__all__ = ["run_in_steps"]

_LIST_BYTES_MAX: Final = 1 << 20
"""Longer lists are left where they are: parameters travel in headers, which are bounded."""


def run_in_steps(
    materialized: Materialized,
    params: Sequence[Any],
    run_step: Callable[[SelectStatement, Sequence[Any]], Outcome],
    run_outer: Callable[[SelectStatement, Sequence[Any]], Outcome],
    run_whole: Callable[[], Outcome],
) -> Outcome:
    """Run the steps, then the rest with their values.

    Args:
        materialized: The query.
        params: Its parameters in order, plain.
        run_step: Runs one of the subqueries.
        run_outer: Runs the rest.
        run_whole: Runs the query undivided: when a step has more values than are worth sending, or an error that the whole may not have.

    Raises:
        Error: What the three raise; a DataError of a step is left to the whole query to find again.
    """
    outcomes: list[Outcome] = []
    values = list(params)
    for step in materialized.steps:
        try:
            outcomes.append(run_step(step.statement, params))
        except DataError:
            return in_all([*outcomes, run_whole()])
        found = _values(step, outcomes[-1].result)
        if found is None:
            return in_all([*outcomes, run_whole()])
        values.append(found if step.is_list else found[0] if found else None)
    return in_all([*outcomes, run_outer(materialized.outer, values)])


def _values(step: Step, result: Any) -> list[Any] | None:
    """The values of the one column, or None when they are too many, too large, or some of them beyond what Python can hold."""
    if result.num_rows > step.values_max or (isinstance(result, pa.Table) and result.nbytes > _LIST_BYTES_MAX):
        return None
    try:
        return [value for (value,) in Rows(result, step.statement.columns).take(result.num_rows)]
    except (ValueError, OverflowError, pa.ArrowException):
        return None
