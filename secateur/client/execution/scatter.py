"""The execution mode *scatter* from the client: it asks the owners of a few partitions itself, and merges their rows.

One round trip for all of them, where a member that coordinates costs another one. Consistency is that of a statement
which a member coordinates: each owner refuses partitions that are not its own, and answers once the changes that it
has read are acknowledged. Rows of two publications are never combined: each owner says which one it has read.

Whatever is out of the ordinary is left to a member: owners that have many rows or another publication than the others,
and errors in the data, which need not be errors of the statement.

What the kernels would refuse or decide otherwise, such as a sum that its type cannot hold, is not decided here: there
is no answer then, and a member is asked for it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from secateur.client.dbapi.rows import Rows
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.reads import PlacedRead, SelectResult
from secateur.client.execution.routing import ExecutionMode
from secateur.client.member_calls import MEMBERS_AT_ONCE
from secateur.errors import DataError
from secateur.partitioning.types.column_type import TypeKind, parse_type
from secateur.partitioning.types.decimals import added, below_power_of_ten
from secateur.protocol.query import ExecuteFirstStage, ScatteredRun
from secateur.protocol.query_parts import MergedOrder, MergeFunction, RowMerge
from secateur.protocol.statements import ResultColumn, SelectStatement
from secateur.wire import ShortTable, decode_tables


def scatter(read: PlacedRead) -> SelectResult | None:
    """The answer of the owners of a few partitions, all of whom the client asks itself; None where a member has to."""
    call, partitions = read.call, read.route.partitions
    statement = call.statement
    if partitions is None or not read.pruning or read.wanted.is_profiled or not _are_few(statement, len(partitions)):
        return None  # before the owner of each is looked for, which a client may have to ask for
    primary = read.topology.ownership(statement.scans[0].group).primary
    by_owner: dict[str, list[int]] = {}
    for partition in partitions:
        by_owner.setdefault(primary(partition), []).append(partition)
    return ask_owners(call, read.params, by_owner)


def _are_few(statement: SelectStatement, partitions: int) -> bool:
    """Whether a client may ask the owners of so many partitions itself: not of all, and of no more than can be few."""
    merge = statement.merge
    return merge is not None and partitions < statement.partitions_total and partitions <= merge.partitions_max


def ask_owners(
    call: StatementCall[SelectStatement], params: Sequence[Any], by_owner: Mapping[str, list[int]]
) -> SelectResult | None:
    """Run a statement whose partitions are on several members, if the client can merge their rows.

    Args:
        call: The call.
        params: The parameters of the plan.
        by_owner: The partitions of its only scan, by the members that own them.

    Returns:
        None if a member has to coordinate the statement.

    Raises:
        Error: An owner cannot be reached, or refuses: as for a statement that one member answers.
    """
    session, statement = call.session, call.statement
    merge, partitions = statement.merge, sum(map(len, by_owner.values()))
    if merge is None or not _are_few(statement, partitions):
        return None
    if len(by_owner) > MEMBERS_AT_ONCE or not session.scatter_backoff.is_due(statement.plan_id):
        return None
    run: ScatteredRun | None = ScatteredRun(list(by_owner), partitions, statement.partitions_total)
    values, asked = list(params), []
    for member, own in by_owner.items():
        asked.append((member, ExecuteFirstStage(statement.plan_id, values, [own], None, run)))
        run = None  # one of them is enough to list the statement
    try:
        answers = session.ask_members(asked)
    except DataError:
        return None
    published, topology_version, statistics_version = answers[0].message.published, 0, 0
    parts: list[pa.Table | ShortTable] = []
    for answer in answers:
        said = answer.message
        topology_version = max(topology_version, said.topology_version)
        statistics_version = max(statistics_version, said.statistics_version)
        if said.is_declined:
            continue
        if said.published != published:
            return None
        parts.append(decode_tables(answer.parts) if said.values is None else ShortTable(said.values, said.rows))
    rows = merge_rows(merge, parts) if len(parts) == len(answers) else None
    session.scatter_backoff.note(statement.plan_id, used=rows is not None)
    if rows is None:
        return None
    if isinstance(rows, pa.Table):
        rows = rows.rename_columns([column.name for column in statement.columns])
    session.note_topology(topology_version)
    session.note_statistics(statistics_version)
    total = statement.partitions_total
    stats = call.stats(ExecutionMode.SCATTER, len(by_owner), partitions, total, topology_version)
    return SelectResult(Rows(rows, statement.columns), stats)


_ROWS_MAX: Final = 1_000
"""More rows are grouped and ordered faster by a kernel, though it costs another round trip."""
_HUGEINT_MAX: Final = 2**127 - 1
_Rows: TypeAlias = list[tuple[Any, ...]]
_Fold: TypeAlias = Callable[[Any, Any], Any]


def merge_rows(merge: RowMerge, parts: Sequence[pa.Table | ShortTable]) -> pa.Table | ShortTable | None:
    """The answer.

    Args:
        merge: How rows become the answer.
        parts: The rows of each owner.

    Returns:
        The answer; None if a kernel has to give it: of many rows that are grouped or ordered, of values for which
        Python has no object, or of a sum that is too large.

    Cost: some microseconds for a few rows.
    """
    if merge.is_grouped or merge.order or all(isinstance(part, ShortTable) for part in parts):
        return _merged(merge, parts)
    return _concatenated(merge, parts)


def _concatenated(merge: RowMerge, parts: Sequence[pa.Table | ShortTable]) -> pa.Table | None:
    """Rows in any order, of which some came as Arrow."""
    fields = [(f"c{index}", parse_type(column.type)) for index, column in enumerate(merge.columns)]
    names = [name for name, _ in fields]
    try:
        tables = [
            part.to_table(fields) if isinstance(part, ShortTable) else part.rename_columns(names) for part in parts
        ]
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, OverflowError, ValueError):
        return None  # values that their columns do not hold: a kernel says so
    rows = whole.slice(merge.offset) if merge.limit is None else whole.slice(merge.offset, merge.limit)
    return rows.select([names[index] for index in merge.outputs])


def _merged(merge: RowMerge, parts: Sequence[pa.Table | ShortTable]) -> ShortTable | None:
    if sum(part.num_rows for part in parts) > _ROWS_MAX:
        return None
    rows: _Rows = []
    try:
        for part in parts:
            rows.extend(_tuples(merge, part))
    except DataError:
        return None  # a value for which Python has no object
    if merge.is_grouped:
        grouped = _grouped(merge, rows)
        if grouped is None:
            return None
        rows = grouped
    for term in reversed(merge.order):
        rows = _ordered(rows, term)
    if merge.offset or merge.limit is not None:
        rows = rows[merge.offset : None if merge.limit is None else merge.offset + merge.limit]
    outputs = [[row[index] for row in rows] for index in merge.outputs]
    for index in merge.counts:
        outputs[index] = [value or 0 for value in outputs[index]]
    return ShortTable(outputs, len(rows))


def _tuples(merge: RowMerge, part: pa.Table | ShortTable) -> Iterable[tuple[Any, ...]]:
    """The rows of an owner, each with the values of the merged columns."""
    if not part.num_rows:
        return ()
    sources = _sources(merge)
    if isinstance(part, ShortTable):
        return zip(*map(part.columns.__getitem__, sources), strict=True)
    columns = [ResultColumn(f"c{column.source}", column.type) for column in merge.columns]
    return Rows(part.select(sources), columns).take_all()


@lru_cache(maxsize=512)
def _sources(merge: RowMerge) -> list[int]:
    return [column.source for column in merge.columns]


def _grouped(merge: RowMerge, rows: _Rows) -> _Rows | None:
    """One row for each group; None if a sum is too large."""
    folds = _folds(merge)
    keys = folds.count(None)  # they stand in front
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        group = groups.get(row[:keys])
        if group is None:
            groups[row[:keys]] = list(row)
            continue
        for index in range(keys, len(row)):
            value, so_far, fold = row[index], group[index], folds[index]
            if value is not None:
                group[index] = value if so_far is None or fold is None else fold(so_far, value)
    return list(map(tuple, groups.values())) if all(map(_checks(merge), groups.values())) else None


@lru_cache(maxsize=512)
def _folds(merge: RowMerge) -> tuple[_Fold | None, ...]:
    return tuple(None if column.function is None else _fold(column.function, column.type) for column in merge.columns)


def _fold(function: MergeFunction, type_: str) -> _Fold:
    match function:
        case MergeFunction.MIN:
            return min
        case MergeFunction.MAX:
            return max
        case MergeFunction.SUM:
            return added if parse_type(type_).kind is TypeKind.DECIMAL else operator.add


@lru_cache(maxsize=512)
def _checks(merge: RowMerge) -> Callable[[list[Any]], bool]:
    """Whether the types of the sums can hold those of a group."""
    checks = []
    for index, column in enumerate(merge.columns):
        if column.function is MergeFunction.SUM:
            kind = parse_type(column.type)
            checks.append((index, kind.precision - kind.scale if kind.kind is TypeKind.DECIMAL else None))

    def check(group: list[Any]) -> bool:
        return all(_holds(group[index], digits) for index, digits in checks)

    return check


def _holds(value: Any, digits: int | None) -> bool:
    match value:
        case None:
            return True
        case float():
            return math.isfinite(value)
        case Decimal():
            return digits is None or below_power_of_ten(value, digits)
        case _:
            return bool(-_HUGEINT_MAX <= value <= _HUGEINT_MAX)


def _ordered(rows: _Rows, term: MergedOrder) -> _Rows:
    column = operator.itemgetter(term.column)
    nulls = [row for row in rows if column(row) is None]
    values = sorted((row for row in rows if column(row) is not None), key=column, reverse=term.descending)
    return [*nulls, *values] if term.nulls_first else [*values, *nulls]
