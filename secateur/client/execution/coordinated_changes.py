"""Batched changes: an ``INSERT ... ON CONFLICT DO UPDATE`` of many rows as one statement with list parameters.

The rows of one batch have distinct keys, so the order in which they meet the table does not matter; the next row of a
key that has come before begins the next batch. Values that are not exactly of their columns' types are left to the
user's own statement, row by row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from secateur.client.dbapi.parameters import ordered_values
from secateur.client.execution.coordinated_change import run_coordinated_change
from secateur.client.execution.statement_call import Params, StatementCall
from secateur.client.session import Session
from secateur.errors import InterfaceError
from secateur.partitioning.types.plain_values import as_they_stand
from secateur.protocol.statements import BatchInsert, CoordinatedChange, SelectStatement

__all__ = ["run_coordinated_changes"]

_ROWS_MAX: Final = 10_000
_ROWS_MIN: Final = 8
"""Fewer rows cost less one by one, each at the owner of its key, than one statement about them all."""


def run_coordinated_changes(
    session: Session, sql: str, changes: Sequence[tuple[CoordinatedChange[SelectStatement], Params]]
) -> int:
    """Carry out one statement for many sets of parameters, in order; returns the number of rows changed.

    Raises:
        Error: As :func:`~secateur.client.execution.coordinated_change.run_coordinated_change`; what was before is done.
    """
    first = changes[0][0]
    together = (
        None
        if first.batch is None or len(changes) < _ROWS_MIN
        else _cells(first, first.batch, [params for _, params in changes])
    )
    if first.batch is None or together is None:
        return sum(_run(session, sql, params, change) for change, params in changes)
    rows = 0
    for start, stop in _runs_of_keys(first, first.batch, together):
        if stop - start < _ROWS_MIN:
            rows += sum(_run(session, sql, params, change) for change, params in changes[start:stop])
            continue
        lists: Params = [values[start:stop] for values in together]
        prepared, _ = session.prepare(first.batch.sql, lists)
        if not isinstance(prepared, CoordinatedChange):
            raise InterfaceError(f"{first.batch.sql!r} should be a change of rows")
        rows += _run(session, first.batch.sql, lists, prepared)
    return rows


def _run(session: Session, sql: str, params: Params, change: CoordinatedChange[SelectStatement]) -> int:
    return run_coordinated_change(
        StatementCall(session, sql, params, change, True, time.perf_counter(), time.time())
    ).rows


def _cells(
    change: CoordinatedChange[SelectStatement], batch: BatchInsert, params: Sequence[Params]
) -> list[list[Any]] | None:
    """The values of each cell; None when one is not of its column's type as it stands."""
    source = change.select
    count = source.parameter_count - source.reads_clock
    ordered = [ordered_values(given, count, source.parameter_names) for given in params]
    cells = [[values[index] for values in ordered] for index, _ in batch.cells]
    fitting = (
        as_they_stand(values, change.table.column(name).type)
        for values, (_, name) in zip(cells, batch.cells, strict=True)
    )
    return None if any(column is None for column in fitting) else cells


def _runs_of_keys(
    change: CoordinatedChange[SelectStatement], batch: BatchInsert, cells: Sequence[list[Any]]
) -> Iterator[tuple[int, int]]:
    """The first row and the end of each run of rows without repeated keys, which are sent together."""
    keys = zip(
        *(values for values, (_, name) in zip(cells, batch.cells, strict=True) if name in change.table.primary_key),
        strict=True,
    )
    start, position = 0, 0
    seen: set[tuple[Any, ...]] = set()
    for position, key in enumerate(keys):
        if key in seen or position - start == _ROWS_MAX:
            yield start, position
            start, seen = position, set()
        seen.add(key)
    yield start, position + 1
