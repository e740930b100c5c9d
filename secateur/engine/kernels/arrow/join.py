"""Joins of few rows, compiled once: keys are matched in plain Python, and columns are gathered by row numbers.

Arrow's own hash join takes 150 us or more to start. Ten rows of a customer and a replicated table are joined here in a
tenth of that. What one side does not need of a large other side is left out first: by binary search where the rows are
in order of the key, else by one scan of the key. What remains large is left to DuckDB.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine.kernels.arrow.evaluate import (
    JOINED_ROWS_MAX,
    EvaluationContext,
    Evaluator,
    Rows,
    compile_expression,
    loaded,
)
from secateur.engine.kernels.arrow.exact_values import InexactError
from secateur.engine.kernels.arrow.fragment import ArrowSource, ColumnExpression, Expression, SourceJoin, columns_in
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.storage.key_column import INTEGER_FORMATS, CellView, IntegerFormat, bytes_view, integer_view

Join = Callable[[Mapping[str, pa.Table], Sequence[Any]], Rows]
"""A function from relations by name, and parameters, to the columns of the joined rows and their number."""

_MATCHED_ROWS_MAX: Final = 4_096
"""Above so many rows on a side, DuckDB joins as fast, and with more than one thread."""
_PAIRS_MAX: Final = 16_384
_ALL_ROWS_MAX: Final = 64
"""Up to so many rows are matched without leaving out those that the other side does not need."""
_SEARCHES_MAX: Final = 256
_SCANNED_ROWS_PER_SEARCH: Final = 200
"""A binary search costs some 2 us, and a scan of the column 10 ns a row."""

_TAKE: Final = pc.get_function("take")
_UNCHECKED: Final = pc.TakeOptions(boundscheck=False)
_IS_IN: Final = pc.get_function("is_in")
_INDICES_NONZERO: Final = pc.get_function("indices_nonzero")

_NUMBERS: Final[dict[TypeKind, pa.DataType]] = {
    TypeKind.DATE: pa.int32(),
    TypeKind.TIME: pa.int64(),
    TypeKind.TIMESTAMP: pa.int64(),
    TypeKind.TIMESTAMPTZ: pa.int64(),
}
"""Python has no object for some values of these types; their numbers are equal where they are."""

_Gather = Callable[["_JoinedRows"], Any]


class _JoinedRows:
    """Rows of the relations that are joined so far: for each the numbers of its rows, None for all in their order."""

    __slots__ = ("count", "numbers", "tables")

    def __init__(self, tables: Sequence[pa.Table], numbers: list[Any], count: int) -> None:
        self.tables = tables
        self.numbers = numbers
        self.count = count

    def picked(self, positions: Sequence[int]) -> _JoinedRows:
        """Some of the rows, some of them perhaps more than once."""
        if len(positions) == self.count and list(positions) == list(range(self.count)):
            return self
        return self.at(pa.array(positions, pa.int64()))

    def at(self, positions: pa.Array) -> _JoinedRows:
        """As :meth:`picked`, for positions that Arrow has found."""
        return _JoinedRows(self.tables, [_composed(numbers, positions) for numbers in self.numbers], len(positions))


def compile_join(sources: Sequence[ArrowSource], read: Mapping[str, SqlType]) -> Join:
    """Turn a join into a closure.

    Args:
        sources: The relations in the order in which they are joined.
        read: Name and type of each column of the result.

    The closure raises InexactError where there are many rows, and as expressions do. Cost: some 15 us for each relation
    after the first.
    """
    names = [source.relation for source in sources]
    own = None if sources[0].where is None else _Scope([sources[0].where], names)
    steps = [_compile_step(position, source, names) for position, source in enumerate(sources) if position]
    results = {name: _compile_gather(name, type_, names) for name, type_ in read.items()}

    def join(relations: Mapping[str, pa.Table], params: Sequence[Any]) -> Rows:
        tables = [relations[name] for name in names]
        rows = _JoinedRows(tables, [None], tables[0].num_rows)
        if own is not None:
            (mask,) = own.evaluated(rows, params)
            rows = _filtered(rows, mask)
        for step in steps:
            rows = step(rows, params)
        return {name: gather(rows) for name, gather in results.items()}, rows.count

    return join


class _Scope:
    """Expressions with the columns that they read."""

    def __init__(self, expressions: Sequence[Expression], names: Sequence[str]) -> None:
        self._evaluators: list[Evaluator] = [compile_expression(expression) for expression in expressions]
        self._columns = [(name, _compile_gather(name, type_, names)) for name, type_ in columns_in(expressions).items()]

    def evaluated(self, rows: _JoinedRows, params: Sequence[Any]) -> list[Any]:
        """The values of each expression for each row, as one Array."""
        scope = EvaluationContext({name: gather(rows) for name, gather in self._columns}, params)
        return [_one_array(evaluate(scope)) for evaluate in self._evaluators]


def _compile_step(
    position: int, source: ArrowSource, names: Sequence[str]
) -> Callable[[_JoinedRows, Sequence[Any]], _JoinedRows]:
    """Join one relation to those before it."""
    kinds = [left.type.kind for left, _ in source.keys]
    left_keys = _Scope([left for left, _ in source.keys], names)
    right_keys = _Scope([right for _, right in source.keys], names)
    where = None if source.where is None else _Scope([source.where], names)
    condition = None if source.condition is None else _Scope([source.condition], names)
    searched = source.keys[0][1] if source.is_searched else None
    search = (
        _compile_search(searched.name.removeprefix(f"{source.relation}."), searched.type)
        if isinstance(searched, ColumnExpression)
        else None
    )
    drops_left = source.kind in (SourceJoin.INNER, SourceJoin.SEMI)
    before: list[Any] = [None] * position

    def step(left: _JoinedRows, params: Sequence[Any]) -> _JoinedRows:
        table = left.tables[position]
        left_values = left_keys.evaluated(left, params)
        numbers = None
        if search is not None and table.num_rows > _ALL_ROWS_MAX:
            numbers = search(table, left_values[0])
        if numbers is None and table.num_rows > JOINED_ROWS_MAX:
            raise InexactError("many rows to join")
        right = _JoinedRows(left.tables, [*before, numbers], table.num_rows if numbers is None else len(numbers))
        if where is not None:
            (mask,) = where.evaluated(right, params)
            right = _filtered(right, mask)
        right_values = right_keys.evaluated(right, params)
        if right.count > max(_ALL_ROWS_MAX, 2 * left.count):
            right, right_values = _with_value_among(right, right_values, left_values[0])
        elif drops_left and left.count > max(_ALL_ROWS_MAX, 2 * right.count):
            left, left_values = _with_value_among(left, left_values, right_values[0])
        if left.count > _MATCHED_ROWS_MAX or right.count > _MATCHED_ROWS_MAX:
            raise InexactError("many rows to join")
        pairs = _matches(_keys_of(left_values, kinds), _keys_of(right_values, kinds))
        if condition is not None and pairs[0]:
            (mask,) = condition.evaluated(_paired(left, right, *pairs), params)
            pairs = _where_true(pairs, mask.to_pylist())
        return _joined(source.kind, left, right, *pairs)

    return step


def _joined(
    kind: SourceJoin, left: _JoinedRows, right: _JoinedRows, left_rows: list[int], right_rows: list[int]
) -> _JoinedRows:
    """The rows of a join whose matching rows are known."""
    if kind is SourceJoin.INNER:
        return _paired(left, right, left_rows, right_rows)
    matched = set(left_rows)
    if kind is SourceJoin.LEFT:
        alone = [row for row in range(left.count) if row not in matched]
        numbers: list[int | None] = [*right_rows, *[None] * len(alone)]
        return _paired(left, right, left_rows + alone, numbers)
    wanted = kind is SourceJoin.SEMI
    found = left.picked([row for row in range(left.count) if (row in matched) is wanted])
    return _JoinedRows(found.tables, [*found.numbers, None], found.count)


def _paired(
    left: _JoinedRows, right: _JoinedRows, left_rows: Sequence[int], right_rows: Sequence[int | None]
) -> _JoinedRows:
    picked = left.picked(left_rows)
    numbers = _composed(right.numbers[-1], pa.array(right_rows, pa.int64()))
    return _JoinedRows(left.tables, [*picked.numbers, numbers], picked.count)


def _matches(left: Sequence[Any], right: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The pairs of rows with equal keys."""
    rows_of: dict[Any, list[int]] = {}
    for row, key in enumerate(right):
        if key is not None:
            rows_of.setdefault(key, []).append(row)
    left_rows: list[int] = []
    right_rows: list[int] = []
    for row, key in enumerate(left):
        found = rows_of.get(key)
        if found is not None:
            left_rows += [row] * len(found)
            right_rows += found
            if len(left_rows) > _PAIRS_MAX:
                raise InexactError("many pairs of rows")
    return left_rows, right_rows


def _where_true(pairs: tuple[list[int], list[int]], mask: Sequence[bool | None]) -> tuple[list[int], list[int]]:
    left_rows, right_rows = pairs
    return (
        [row for row, is_true in zip(left_rows, mask, strict=True) if is_true],
        [row for row, is_true in zip(right_rows, mask, strict=True) if is_true],
    )


def _keys_of(values: Sequence[pa.Array], kinds: Sequence[TypeKind]) -> Sequence[Any]:
    """The key of each row as something that Python can compare; None where it has a NULL."""
    lists = [
        (array.view(_NUMBERS[kind]) if kind in _NUMBERS else array).to_pylist()
        for array, kind in zip(values, kinds, strict=True)
    ]
    if len(lists) == 1:
        return lists[0]
    return [None if None in key else key for key in zip(*lists, strict=True)]


def _with_value_among(
    rows: _JoinedRows, keys: Sequence[pa.Array], values: pa.Array
) -> tuple[_JoinedRows, list[pa.Array]]:
    """The rows whose first key is among some values, and their keys."""
    mask = _IS_IN.call([keys[0]], pc.SetLookupOptions(values, skip_nulls=True))
    positions = _INDICES_NONZERO.call([mask])
    return rows.at(positions), [_TAKE.call([array, positions], _UNCHECKED) for array in keys]


def _filtered(rows: _JoinedRows, mask: pa.Array) -> _JoinedRows:
    """The rows for which a mask is true."""
    return rows if mask.true_count == rows.count else rows.at(_INDICES_NONZERO.call([mask]))


def _composed(numbers: Any, positions: pa.Array) -> pa.Array:
    """The row numbers at some positions; for None the positions, as all rows are there."""
    return positions if numbers is None else _TAKE.call([numbers, positions], _UNCHECKED)


def _compile_gather(name: str, type_: SqlType, names: Sequence[str]) -> _Gather:
    """A function that computes one column of joined rows."""
    relation, _, column = name.partition(".")
    position = names.index(relation)

    def gather(rows: _JoinedRows) -> Any:
        values = loaded(rows.tables[position], column, type_)
        numbers = rows.numbers[position]
        return values if numbers is None else _one_array(_TAKE.call([values, numbers], _UNCHECKED))

    return gather


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _compile_search(column: str, type_: SqlType) -> Callable[[pa.Table, pa.Array], pa.Array | None]:
    """A function that finds the rows with one of some values; None where a scan costs less, or the column has NULLs."""
    form = INTEGER_FORMATS.get(type_.kind)

    def search(table: pa.Table, values: pa.Array) -> pa.Array | None:
        cells = _cells(values, type_, form)
        chunks = [chunk for chunk in table.column(column).chunks if len(chunk)]
        searches = len(cells) * len(chunks)
        if table.num_rows <= JOINED_ROWS_MAX and searches * _SCANNED_ROWS_PER_SEARCH > table.num_rows:
            return None
        if searches > _SEARCHES_MAX or any(chunk.null_count for chunk in chunks):
            return None
        found: list[int] = []
        first = 0
        for chunk in chunks:
            view: CellView = bytes_view(chunk) if form is None else integer_view(chunk, form)
            count = len(chunk)
            for cell in cells:
                start = bisect_left(view, cell)
                if start == count or view[start] != cell:
                    continue
                if start + 1 == count or view[start + 1] != cell:  # a key of one column has one row
                    found.append(first + start)
                    continue
                found.extend(range(first + start, first + bisect_right(view, cell, start)))
                if len(found) > _PAIRS_MAX:
                    raise InexactError("many rows to join")
            first += count
        return pa.array(found, pa.int64())

    return search


def _cells(values: pa.Array, type_: SqlType, form: IntegerFormat | None) -> set[Any]:
    """The distinct values, in the form in which keys are compared."""
    numbers = _NUMBERS.get(type_.kind)
    distinct = set((values if numbers is None else values.view(numbers)).to_pylist())
    distinct.discard(None)
    return {value.encode() for value in distinct} if form is None else distinct
