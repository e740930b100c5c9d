"""Batched changes: an ``INSERT ... ON CONFLICT DO UPDATE`` of very many rows as one statement with list parameters.

The rows of one batch have distinct keys, so the order in which they meet the table does not matter; the next row of a
key that has come before begins the next batch. Values that are not exactly of their columns' types are left to the
user's own statement, row by row, and so are the rows of a small batch: many in one frame to each primary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from secateur.client.dbapi.parameters import ordered_values
from secateur.client.execution.coordinated_change import run_coordinated_change
from secateur.client.execution.many_changes import ManyChanges
from secateur.client.execution.statement_call import Params, StatementCall
from secateur.errors import InterfaceError
from secateur.partitioning.types.python_column import as_they_stand
from secateur.protocol.statements import BatchInsert, CoordinatedChange, SelectStatement

_ROWS_MAX: Final = 10_000
_ROWS_MIN: Final = 8
"""Fewer rows cost less one by one, each by a kernel at the owner of its key, than one statement about them all."""
_COMPILED_ROWS_MIN: Final = 10
"""The same for each partition of the table where no kernel is needed for a row: such rows travel together.

One statement merges its rows into the sorted rows of every partition: on three members with one backup it took as long
as the rows by themselves at 80 rows in 8 partitions, 700 in 64, and more than 1,500 in 271.
"""

_Call: TypeAlias = StatementCall[CoordinatedChange[SelectStatement]]


def run_coordinated_changes(calls: Sequence[_Call]) -> int:
    """Carry out one statement for many sets of parameters, in order; returns the number of rows changed.

    Args:
        calls: The executions, at least one.

    Raises:
        Error: As :func:`~secateur.client.execution.coordinated_change.run_coordinated_change`; what was before is done.
    """
    first = calls[0].statement
    many = ManyChanges(calls[0].session)
    runs: Iterable[tuple[int, int]] = [(0, len(calls))]
    cells = None
    rows_min = _ROWS_MIN
    if first.batch is not None and first.batch.is_row_compiled:
        rows_min = max(rows_min, _COMPILED_ROWS_MIN * first.table.scheme.live_partition_count)
    if first.batch is not None and len(calls) >= rows_min:
        cells = _cells(first, first.batch, [call.params for call in calls])
        if cells is not None:
            runs = _runs_of_keys(first, first.batch, cells)
    rows = 0
    for start, stop in runs:
        if cells is None or first.batch is None or stop - start < rows_min:
            for call in calls[start:stop]:
                many.add(call)
            continue
        many.finish()  # they may be changes of the same rows
        rows += _together(calls[start], first.batch, [values[start:stop] for values in cells])
    return rows + many.finish()


def _together(call: _Call, batch: BatchInsert, lists: list[Any]) -> int:
    """Carry out the statement about many rows that an execution is the first one of."""
    prepared, cached = call.session.prepare(batch.sql, lists)
    if not isinstance(prepared, CoordinatedChange):
        raise InterfaceError(f"{batch.sql!r} should be a change of rows")
    return run_coordinated_change(
        StatementCall(call.session, batch.sql, lists, prepared, cached, call.started_s, call.started)
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
        as_they_stand(values, change.table.column(name).type, column=name)
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
