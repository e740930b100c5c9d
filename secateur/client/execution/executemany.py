"""One statement for many sets of parameters: those that one member answers go to it in one frame.

All members are asked at the same time. A query over several members, with many rows or with an error runs as it does
alone.

Changes of one partition are made in the order of their sets, since one frame brings them to one primary; those of
different partitions have no order among themselves, and need none. A set that changes several partitions, or whose
statement reads other rows as well, waits for all before it and is waited for.

Batched changes: an ``INSERT ... ON CONFLICT DO UPDATE`` of very many rows as one statement with list parameters.

The rows of one batch have distinct keys, so the order in which they meet the table does not matter; the next row of a
key that has come before begins the next batch. Values that are not exactly of their columns' types are left to the
user's own statement, row by row, and so are the rows of a small batch: many in one frame to each primary.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import structs

from secateur.client.dbapi.parameters import ordered_values, values_of
from secateur.client.dbapi.rows import Rows
from secateur.client.execution.change import AskedBefore, Change, change_in_frames, run_change
from secateur.client.execution.execute import Params, StatementCall, planned
from secateur.client.execution.insert import Insertion, insert_select, insert_values
from secateur.client.execution.member_reads import heard
from secateur.client.execution.reads import RunOptions, SelectResult
from secateur.client.execution.routing import ExecutionMode, MemberBatch, partitions_of
from secateur.client.execution.select import placed, run_select
from secateur.client.session import Session
from secateur.errors import Error, InterfaceError, NotSupportedError
from secateur.partitioning.types.python_column import as_they_stand
from secateur.protocol.changes import ROW_CHANGES
from secateur.protocol.hello import Pruning
from secateur.protocol.many import ChangeMany, ExecuteMany
from secateur.protocol.query import Executed
from secateur.protocol.statements import (
    BatchInsert,
    ChangeStatement,
    CoordinatedChange,
    Done,
    EvaluatedInsert,
    InsertRows,
    InsertSelect,
    SelectStatement,
)
from secateur.wire import ShortTable

_SETS_AT_ONCE: Final = 4096
"""Executions that are under way at the same time."""

_Call: TypeAlias = StatementCall[Change]


def execute_many(session: Session, sql: str, sets: Iterable[Params]) -> tuple[int, list[SelectResult]]:
    """Execute a statement for many sets of plain parameters.

    Returns:
        The number of changed rows, -1 for a query; and the results of a query, one for each set.

    Raises:
        NotSupportedError: The statement is none that has parameters.
        Error: The error of an execution; what was executed before it stays.
    """
    changed = ManyChanges(session)
    try:
        try:
            return _executed(session, sql, sets, changed)
        except Error:
            changed.finish()  # those before the set with the error
            raise
    except Error as error:
        if changed.has_made and error.retry_safe:
            error.unsafe_to_retry()
        raise


def _executed(
    session: Session, sql: str, sets: Iterable[Params], changed: ManyChanges
) -> tuple[int, list[SelectResult]]:
    total = -1
    queries: list[StatementCall[SelectStatement]] = []
    pending: list[Insertion] = []
    changes: list[_BatchedCall] = []
    for params in sets:
        call = planned(session, sql, params)
        match call.statement:
            case SelectStatement() as query:
                queries.append(call.of(query))
            case InsertRows() | EvaluatedInsert() as insert:
                pending.append(call.of(insert))
            case InsertSelect() | ChangeStatement() | CoordinatedChange() as change:
                session.note_change()
                total = 0
                if isinstance(change, InsertSelect):
                    changed.made(insert_select(call.of(change)).rows)
                elif isinstance(change, ChangeStatement):
                    changed.add(call.of(change))
                else:
                    changes.append(call.of(change))
            case Done():
                session.note_change()
            case _:
                raise NotSupportedError(
                    "executemany() is for queries, INSERT, UPDATE and DELETE: call execute() for each set of parameters"
                )
    if changes:
        _add_coordinated_changes(changed, changes)
    if total == 0:
        total = changed.finish()
    if pending:  # all rows or none
        total = insert_values(pending).rows
        session.note_change()
    return total, _run_selects(queries)


def _run_selects(calls: Sequence[StatementCall[SelectStatement]]) -> list[SelectResult]:
    """Run a planned SELECT for many sets of parameters; each is a statement of its own, with rows of its own moment."""
    return [
        result
        for start in range(0, len(calls), _SETS_AT_ONCE)
        for result in _results(calls[start : start + _SETS_AT_ONCE])
    ]


def _results(calls: Sequence[StatementCall[SelectStatement]]) -> Iterator[SelectResult]:
    found: dict[int, SelectResult] = {}
    batches = _batches(calls)
    while batches:
        left = []
        asked = [
            (batch.member, ExecuteMany(calls[batch.positions[0]].statement.plan_id, batch.params)) for batch in batches
        ]
        for batch, answer in zip(batches, calls[0].session.answers_of(asked), strict=True):
            if isinstance(answer, Error):
                continue  # each says for itself what is wrong, or follows partitions that have moved
            said = answer.message.answers
            found.update((at, _found(calls[at], one)) for at, one in zip(batch.positions, said, strict=False))
            rest = batch.behind(len(said), len(said) + batch.alone)
            if len(rest.positions) > 1:
                left.append(rest)
        batches = left
    for position, call in enumerate(calls):
        yield found.get(position) or run_select(call)


def _found(call: StatementCall[SelectStatement], said: Executed) -> SelectResult:
    return SelectResult(Rows(ShortTable(said.values or [], said.rows), call.statement.columns), heard(call, said))


def _batches(calls: Sequence[StatementCall[SelectStatement]]) -> list[MemberBatch[int]]:
    """The executions that are worth a frame for several, by member and plan."""
    begun: dict[tuple[str, str], MemberBatch[int]] = {}
    batches: list[MemberBatch[int]] = []
    for position, call in enumerate(calls):
        member, params = _placed(call)
        if member is None:
            continue
        key = member, call.statement.plan_id
        batch = begun.get(key)
        if batch is None or batch.is_full:
            batch = begun[key] = MemberBatch(member, [], [])
            batches.append(batch)
        batch.add(position, params)
    return [batch for batch in batches if len(batch.positions) > 1]


def _placed(call: StatementCall[SelectStatement]) -> tuple[str | None, Sequence[Any]]:
    """The member that can be asked for an execution together with others, or None, and the parameters of the plan."""
    session, statement = call.session, call.statement
    if session.pruning is not Pruning.ON or statement.steps is not None:
        return None, ()
    try:
        read = session.when_known(lambda: placed(call, RunOptions.ROWS, pruning=True))
    except Error:
        return None, ()  # said, or solved, when it runs alone
    is_whole = read.route.execution_mode is ExecutionMode.LOCAL
    return read.member() if is_whole else None, read.params


class ManyChanges:
    """The executions of one UPDATE, DELETE or change that one member works out, begun when they are worth a frame.

    Args:
        session: The connection.

    Attributes:
        has_made: Whether an execution has been carried out.
    """

    def __init__(self, session: Session) -> None:
        self.has_made = False
        self._session = session
        self._batches: dict[str, MemberBatch[_Call]] = {}
        self._begun_with: tuple[str, int] | None = None  # the plan, and the version of the owners
        self._rows = 0

    def add(self, call: _Call) -> None:
        """The next execution.

        Raises:
            Error: As :func:`~secateur.client.execution.change.run_change`, of this execution or of one before; those
                before that one are made, and some of those between them may be.
        """
        member, params, version = self._placed(call)
        if member is None:
            self.finish()
            self.made(run_change(call).rows)
            return
        begun_with = call.statement.select.plan_id, version
        if begun_with != self._begun_with:
            # A frame to another member, or of another plan, may overtake one with changes of the same row.
            self.finish()
            self._begun_with = begun_with
        batch = self._batches.get(member)
        if batch is None:
            batch = self._batches[member] = MemberBatch(member, [], [])
        batch.add(call, params)
        if batch.is_full:
            self.finish()

    def made(self, rows: int) -> None:
        """An execution has changed so many rows."""
        self.has_made = True
        self._rows += rows

    def finish(self) -> int:
        """Carry out what was added; returns how many rows all executions have changed.

        Raises:
            Error: As :meth:`add`.
        """
        batches, self._batches = list(self._batches.values()), {}
        if batches:
            table = batches[0].positions[0].statement.table
            change_in_frames(self._session, table, batches, _asked, _changed, self.made)
        return self._rows

    def _placed(self, call: _Call) -> tuple[str | None, Sequence[Any], int]:
        """The primary that can be asked for a change together with others, or None.

        With it come the parameters of the plan, and the version of the topology that names the primary.
        """
        select, session = call.statement.select, self._session
        if session.pruning is not Pruning.ON or len(select.scans) != 1 or select.scans[0].replicated:
            return None, (), 0
        if isinstance(call.statement, CoordinatedChange) and not call.statement.is_single_partition:
            return None, (), 0
        scan = select.scans[0]

        def primary() -> tuple[str | None, Sequence[Any], int]:
            params, topology = values_of(select, call.params, call.started), session.topology
            ids = partitions_of(scan, params)
            if len(ids) != 1:
                return None, (), 0
            member = topology.ownership(scan.group).primary(ids[0])
            topology.check_live([member])
            return member, params, topology.version

        try:
            return session.when_known(primary)
        except Error:
            return None, (), 0  # said, or solved, when it runs alone


def _changed(call: _Call, before: AskedBefore | None) -> int:
    return run_change(call, before=before).rows


def _asked(batch: MemberBatch[_Call]) -> ChangeMany:
    statement = batch.positions[0].statement
    operation = ROW_CHANGES if isinstance(statement, CoordinatedChange) else statement.kind
    return ChangeMany(statement.select.plan_id, batch.params, operation, uuid.uuid4().hex)


_ROWS_MAX: Final = 10_000
_ROWS_MIN: Final = 8
"""Fewer rows cost less one by one, each by a kernel at the owner of its key, than one statement about them all."""
_COMPILED_ROWS_MIN: Final = 10
"""The same for each partition of the table where no kernel is needed for a row: such rows travel together.

One statement merges its rows into the sorted rows of every partition: on three members with one backup it took as long
as the rows by themselves at 80 rows in 8 partitions, 700 in 64, and more than 1,500 in 271.
"""

_BatchedCall: TypeAlias = StatementCall[CoordinatedChange[SelectStatement]]


def _add_coordinated_changes(many: ManyChanges, calls: Sequence[_BatchedCall]) -> None:
    """Add executions of one statement, in order; many of them may become one statement about all rows.

    Args:
        many: To these.
        calls: The executions, at least one.

    Raises:
        Error: As :meth:`ManyChanges.add`.
    """
    first = calls[0].statement
    runs: Iterable[tuple[int, int]] = [(0, len(calls))]
    cells = None
    rows_min = _ROWS_MIN
    if first.batch is not None and first.batch.is_row_compiled:
        rows_min = max(rows_min, _COMPILED_ROWS_MIN * first.table.scheme.live_partition_count)
    if first.batch is not None and len(calls) >= rows_min:
        cells = _cells(first, first.batch, [call.params for call in calls])
        if cells is not None:
            runs = _runs_of_keys(first, first.batch, cells)
    for start, stop in runs:
        if cells is None or first.batch is None or stop - start < rows_min:
            for call in calls[start:stop]:
                many.add(call)
            continue
        many.finish()  # they may be changes of the same rows
        many.made(_together(calls[start], first.batch, [values[start:stop] for values in cells]))


def _together(call: _BatchedCall, batch: BatchInsert, lists: list[Any]) -> int:
    """Carry out the statement about many rows that an execution is the first one of."""
    together = planned(call.session, batch.sql, lists)
    if not isinstance(together.statement, CoordinatedChange):
        raise InterfaceError(f"{batch.sql!r} should be a change of rows")
    return run_change(structs.replace(together.of(together.statement), started=call.started)).rows


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
