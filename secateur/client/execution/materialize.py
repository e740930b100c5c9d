"""Queries in steps: subqueries run first, and their values decide which partitions and members the rest needs.

Every step is a statement of its own, with its own execution mode. Values that replace a subquery are those of the
moment at which it ran. Keys of a join are valid only for the rows that they were found in: the rest reads those again,
and if they have changed the query runs undivided.

Source: Apache Ignite IEP-24, "Materialization".
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, assert_never

import pyarrow as pa

from secateur.client.dbapi.rows import Rows
from secateur.client.execution.outcome import RunOutcome, StepResult, combined_outcome
from secateur.errors import DataError, KeysChangedError
from secateur.protocol.query import Since
from secateur.protocol.statements import QueryStep, SelectStatement, SteppedQuery, SubqueryUse

__all__ = ["ANY_STATE", "RowState", "RunPart", "run_in_steps"]

_LIST_BYTES_MAX: Final = 1 << 20
"""Longer lists are left where they are: parameters travel in headers, which are bounded."""
_JOINED_MAX: Final = 8
"""Among more relations than this DuckDB finds no good order of joins once some of them have no row: TPC-DS 64, with 19,
then takes 24 s instead of 1.
"""


class RowState(NamedTuple):
    """The state of the rows in a request: ``mark`` and ``since`` of its :class:`~secateur.protocol.query.Execute`."""

    mark: str | None = None
    since: Since | None = None


ANY_STATE: Final = RowState()
RunPart = Callable[[SelectStatement, Sequence[Any], RowState], RunOutcome]
"""Runs a part of a query with its parameters, in a state of the rows."""


def run_in_steps(
    materialized: SteppedQuery,
    params: Sequence[Any],
    run_step: RunPart,
    run_outer: RunPart,
    run_whole: Callable[[], RunOutcome],
) -> RunOutcome:
    """Run the steps, then the rest with their values.

    Args:
        materialized: The query.
        params: Its parameters in order, plain.
        run_step: Runs one of the subqueries.
        run_outer: Runs the rest.
        run_whole: Runs the query undivided: when a step has more values than are worth sending, or an error that the
            whole may not have, or when the rows have changed in which keys were found.

    Raises:
        Error: One of the three functions fails; after a DataError of a step, or for keys of the rest, the whole query
            runs instead.
    """
    state = _State(secrets.token_hex(8), materialized.watched)
    found: list[RunOutcome] = []
    values = list(params)
    for step in materialized.steps:
        try:
            outcome = run_step(step.query, values[: step.query.parameter_count], state.of_step())
        except DataError:
            return _undivided(found, run_whole)
        lists = _values(step, outcome.result)
        found.append(replace(outcome, steps=(StepResult(outcome.result.num_rows, used=lists is not None),)))
        if (
            lists is None
            or not state.agrees(outcome)
            or (not outcome.result.num_rows and state.watched and len(materialized.outer.scans) > _JOINED_MAX)
        ):
            return _undivided(found, run_whole)
        values += lists
    if materialized.watched is None:
        return combined_outcome([*found, run_outer(materialized.outer, values, ANY_STATE)])
    try:
        return combined_outcome([*found, run_outer(materialized.outer, values, state.of_rest(found))])
    except (KeysChangedError, DataError):
        # Over fewer rows DuckDB may evaluate in another order, and come to an error that the whole query does not have.
        return _undivided(found, run_whole)


@dataclass(slots=True)
class _State:
    """The read state that requests carry when the keys found by a step are valid for one state of the rows alone.

    Attributes:
        mark: Names the reads of this run.
        watched: The scans of the rest that have to read what the steps read; None where it does not matter.
        topology_version: The owners from whom all steps have read, as soon as one has.
    """

    mark: str
    watched: tuple[int, ...] | None
    topology_version: int | None = None

    def of_step(self) -> RowState:
        return ANY_STATE if self.watched is None else RowState(self.mark)

    def agrees(self, outcome: RunOutcome) -> bool:
        """Whether a step has read from the owners that those before it did."""
        self.topology_version = self.topology_version or outcome.topology_version
        return self.watched is None or outcome.topology_version == self.topology_version

    def of_rest(self, steps: Sequence[RunOutcome]) -> RowState:
        published = [entry for step in steps for entry in step.published]
        return RowState(since=Since(self.mark, list(self.watched or ()), self.topology_version, published))


def _undivided(found: Sequence[RunOutcome], run_whole: Callable[[], RunOutcome]) -> RunOutcome:
    """The query as a whole, with the cost of the steps that were for nothing."""
    return combined_outcome(
        [
            *(replace(step, steps=tuple(replace(entry, used=False) for entry in step.steps)) for step in found),
            run_whole(),
        ]
    )


def _values(step: QueryStep, result: Any) -> list[Any] | None:
    """Return the parameters that a step yields.

    None when it has too many values, too large ones, or some that Python cannot represent.
    """
    if result.num_rows > step.values_max or (isinstance(result, pa.Table) and result.nbytes > _LIST_BYTES_MAX):
        return None
    try:
        rows = Rows(result, step.query.columns).take(result.num_rows)
    except (DataError, pa.ArrowException):
        return None
    match step.use:
        case SubqueryUse.VALUE:
            return [rows[0][0] if rows else None]
        case SubqueryUse.LIST:
            return [[value for (value,) in rows]]
        case SubqueryUse.KEYS:
            return [list(dict.fromkeys(row[position] for row in rows)) for position in range(len(step.query.columns))]
        case _:
            assert_never(step.use)
