"""Joins of few rows as plain values: rows that keys find are matched by a dict, and no Arrow array is made.

The first relation is searched by its primary key, with values of the statement. Each further one is searched in the
same way, or by the values that its join key has in the rows before. What a statement does with joined rows is that of
:mod:`~secateur.engine.kernels.arrow.plain_rows`. Whatever is not certain to be what the dialect says is left to the
arrow kernel: this module declines, and never guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from secateur.engine.kernels.arrow.fragment import (
    ArrowFragment,
    ArrowSource,
    ColumnExpression,
    Expression,
    SourceJoin,
    can_search,
    source_column,
)
from secateur.engine.kernels.arrow.row_values import (
    COMPUTED_CLASSES,
    DeclinedError,
    RowFilter,
    TupleEvaluator,
    compile_row_filter,
    compile_row_tuples,
)
from secateur.engine.sql.select_plan import ScanPlan
from secateur.wire import ShortTable

JOINED_MAX: Final = 512
"""More rows on a side, or pairs of rows, are left to Arrow."""

_Row: TypeAlias = tuple[Any, ...]
_Prefixes: TypeAlias = Sequence[tuple[Any, ...]]
FindRows: TypeAlias = Callable[[int, _Prefixes, int], ShortTable | None]
"""The rows of a scan, by its number, whose keys begin with some values, none of them twice.

The last argument is how many they may be."""


class PlainJoin(NamedTuple):
    """A join, compiled.

    Attributes:
        names: The columns of the joined rows.
        run: A function of what finds rows, the parameters, and how many rows the first relation and the result may
            have. Its result are the joined rows and how many rows were read; None to leave the statement to Arrow.
    """

    names: list[str]
    run: Callable[[FindRows, Sequence[Any], int], tuple[ShortTable, int] | None]


class _Side(NamedTuple):
    """One relation of the join.

    Attributes:
        scan: The number of its scan.
        search: The values with which its keys begin, for the parameters; None where the rows before give them.
        where: Chooses the rows that take part; None for all.
    """

    scan: int
    search: Callable[[Sequence[Any]], _Prefixes | None] | None
    where: RowFilter | None


class _Step(NamedTuple):
    """A relation that is joined to those before it.

    Attributes:
        side: The relation.
        kind: How it is joined.
        left: The keys of the rows before.
        right: The keys of rows of this relation.
        searched: What leads the primary key of this relation in the keys of the rows before, in its order; None for
            nothing.
        condition: Chooses the pairs of rows that match; None for all with equal keys.
        width: How many columns this relation has.
    """

    side: _Side
    kind: SourceJoin
    left: TupleEvaluator
    right: TupleEvaluator
    searched: TupleEvaluator | None
    condition: RowFilter | None
    width: int


def compile_plain_join(
    fragment: ArrowFragment, scans: Sequence[ScanPlan], primary_key: Callable[[int], Sequence[str]]
) -> PlainJoin | None:
    """Compile the join of a fragment.

    Args:
        fragment: The fragment, whose WHERE over joined rows has to be empty.
        scans: The scans of its relations, all of them of stored tables.
        primary_key: The columns of the primary key of a scan's table, by the number of the scan.

    Returns:
        None if a relation is not searched by its key, or an expression is not computed over plain values.
    """
    if not fragment.sources or fragment.where is not None or len(fragment.sources) != len(scans):
        return None
    numbers = {scan.relation: number for number, scan in enumerate(scans)}
    first, *others = fragment.sources
    if first.relation not in numbers:
        return None
    try:
        start = _compile_side(first, numbers, scans)
        if start.search is None:
            return None
        positions = _positions(first.relation, scans[start.scan].columns)
        steps = []
        for source in others:
            step = _compile_step(source, numbers, scans, positions, primary_key)
            if step is None:
                return None
            steps.append(step)
            if source.kind in (SourceJoin.INNER, SourceJoin.LEFT):
                positions = _positions(source.relation, scans[step.side.scan].columns, positions)
    except (DeclinedError, KeyError):
        return None
    return PlainJoin(list(positions), _joining(start, steps, len(positions)))


def _joining(
    start: _Side, steps: Sequence[_Step], width: int
) -> Callable[[FindRows, Sequence[Any], int], tuple[ShortTable, int] | None]:
    def run(find: FindRows, params: Sequence[Any], rows_max: int) -> tuple[ShortTable, int] | None:
        assert start.search is not None
        try:
            prefixes = start.search(params)
            found = None if prefixes is None else find(start.scan, prefixes, rows_max)
            if found is None:
                return None
            read = found.num_rows
            rows = _passing(found, start.where, params)
            for step in steps:
                right = _right_rows(step, rows, find, params)
                if right is None:
                    return None
                read += right.num_rows
                rows = _joined(step, rows, _passing(right, step.side.where, params), params)
        except DeclinedError:
            return None
        columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
        return ShortTable(columns, len(rows)), read

    return run


def _right_rows(step: _Step, left: Sequence[_Row], find: FindRows, params: Sequence[Any]) -> ShortTable | None:
    """The rows of a relation that may match; None if they are many, or cannot be searched for these parameters."""
    side = step.side
    if side.search is not None:
        prefixes = side.search(params)
        return None if prefixes is None else find(side.scan, prefixes, JOINED_MAX)
    assert step.searched is not None
    given = [value for value in dict.fromkeys(step.searched(left, params)) if None not in value]
    if not given:
        return ShortTable([[] for _ in range(step.width)], 0)
    return find(side.scan, given, JOINED_MAX)


def _passing(found: ShortTable, where: RowFilter | None, params: Sequence[Any]) -> Sequence[_Row]:
    """The rows for which WHERE is true."""
    rows = list(zip(*found.columns, strict=True)) if found.num_rows else []
    return rows if where is None else where(rows, params)


def _joined(step: _Step, left: Sequence[_Row], right: Sequence[_Row], params: Sequence[Any]) -> Sequence[_Row]:
    rows_of: dict[_Row, list[_Row]] = {}
    for key, row in zip(step.right(right, params), right, strict=True):
        if None not in key:
            rows_of.setdefault(key, []).append(row)
    kind, condition = step.kind, step.condition
    joined: list[_Row] = []
    for key, row in zip(step.left(left, params), left, strict=True):
        pairs: Sequence[_Row] = [row + other for other in rows_of.get(key, ())]
        if condition is not None:
            pairs = condition(pairs, params)
        match kind:
            case SourceJoin.INNER:
                joined += pairs
            case SourceJoin.LEFT:
                joined += pairs or [row + (None,) * step.width]
            case SourceJoin.SEMI | SourceJoin.ANTI:
                if bool(pairs) is (kind is SourceJoin.SEMI):
                    joined.append(row)
        if len(joined) > JOINED_MAX:
            raise DeclinedError("many joined rows")
    return joined


def _compile_side(source: ArrowSource, numbers: Mapping[str, int], scans: Sequence[ScanPlan]) -> _Side:
    number = numbers[source.relation]
    scan = scans[number]
    direct = scan.keys.direct
    where = (
        None if source.where is None else compile_row_filter(source.where, _positions(source.relation, scan.columns))
    )
    is_searched = direct is not None and direct.lower is None and direct.upper is None
    return _Side(number, direct.prefixes if direct is not None and is_searched else None, where)


def _compile_step(
    source: ArrowSource,
    numbers: Mapping[str, int],
    scans: Sequence[ScanPlan],
    before: Mapping[str, int],
    primary_key: Callable[[int], Sequence[str]],
) -> _Step | None:
    side = _compile_side(source, numbers, scans)
    columns = scans[side.scan].columns
    own = _positions(source.relation, columns)
    if any(left.type.kind not in COMPUTED_CLASSES for left, _ in source.keys):
        return None
    searched = _searched([right for _, right in source.keys], source.relation, primary_key(side.scan))
    if side.search is None and not searched:
        return None
    left = [left for left, _ in source.keys]
    pair = _positions(source.relation, columns, before)
    return _Step(
        side,
        source.kind,
        compile_row_tuples(left, before),
        compile_row_tuples([right for _, right in source.keys], own),
        compile_row_tuples([left[at] for at in searched], before) if searched else None,
        None if source.condition is None else compile_row_filter(source.condition, pair),
        len(columns),
    )


def _searched(keys: Sequence[Expression], relation: str, primary_key: Sequence[str]) -> list[int]:
    """The places among the join keys whose columns lead the primary key, in its order."""
    places = {
        key.name: place for place, key in enumerate(keys) if isinstance(key, ColumnExpression) and can_search(key.type)
    }
    found = []
    for name in primary_key:
        place = places.get(source_column(relation, name))
        if place is None:
            break
        found.append(place)
    return found


def _positions(relation: str, columns: Sequence[str], before: Mapping[str, int] | None = None) -> dict[str, int]:
    """The place of each column in a row, behind those of the relations before."""
    positions = dict(before or {})
    for column in columns:
        positions[source_column(relation, column)] = len(positions)
    return positions
