"""The arrow kernel over few rows that are plain values already: a filter, then a choice of columns or few groups.

No array is made. Of all other statements, and of rows that are too many, the kernel makes Arrow's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from msgspec.structs import force_setattr, replace

from secateur.engine.kernels.arrow.evaluate import EvaluationContext, compile_expression
from secateur.engine.kernels.arrow.exact_values import InexactError
from secateur.engine.kernels.arrow.fragment import ArrowFragment, ColumnExpression, Expression, columns_in
from secateur.engine.kernels.arrow.row_values import DeclinedError, compile_row_filter
from secateur.engine.kernels.arrow.small_groups import (
    SMALL_ROWS_MAX,
    compile_small_aggregation,
    plain_rows_max,
    sortable,
    sorted_rows,
)
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.wire import SHORT_ROWS_MAX, ShortTable, short_check, travels_short

_Run: TypeAlias = Callable[[Sequence[str], ShortTable, Sequence[Any]], ShortTable | None]


class PlainProgram(NamedTuple):
    """The program that answers a fragment over plain values.

    Attributes:
        rows_max: The most rows, before WHERE.
        run: A function of the names of the columns, the rows, and the parameters. None as its result: only Arrow or
            DuckDB can give the answer.
    """

    rows_max: int
    run: _Run


_FILTERED_MAX: Final = 64
"""The most rows that WHERE filters faster as plain values than in Arrow."""
_NONE: Final = PlainProgram(0, lambda _names, _rows, _params: None)
"""Stands for a fragment without such a program."""


def plain_program(fragment: ArrowFragment) -> PlainProgram | None:
    """The program of a fragment over one relation, or without WHERE over the rows of its join, compiled once.

    None if it has none.
    """
    program: PlainProgram | None = fragment.plain_program
    if program is None:
        program = _compiled(fragment) or _NONE
        force_setattr(fragment, "plain_program", program)
    return None if program is _NONE else program


def plain_columns(fragment: ArrowFragment) -> list[str] | None:
    """The columns of a fragment that only picks some, as after a search that has applied WHERE; else None."""
    return None if fragment.where is not None or fragment.sources else _chosen(fragment)


def _chosen(fragment: ArrowFragment) -> list[str] | None:
    if fragment.keys is not None or fragment.distinct or fragment.order:
        return None
    if fragment.limit is not None or fragment.offset is not None:
        return None
    names = [expression.name for _, expression in fragment.outputs if isinstance(expression, ColumnExpression)]
    return names if len(names) == len(fragment.outputs) else None


def _compiled(fragment: ArrowFragment) -> PlainProgram | None:
    if fragment.where is None:
        return _unfiltered(fragment)
    program = _unfiltered(replace(fragment, where=None))
    if program is None:
        return None
    try:
        return PlainProgram(max(program.rows_max, _FILTERED_MAX), _filtered(fragment.where, program))
    except DeclinedError:
        return None


def _filtered(where: Expression, program: PlainProgram) -> _Run:
    """A program over the rows for which a condition is true.

    Raises:
        DeclinedError: The condition is not computed over plain values.
    """
    tested = list(columns_in([where]))
    passing = compile_row_filter(where, {name: position for position, name in enumerate(tested)})

    def run(names: Sequence[str], rows: ShortTable, params: Sequence[Any]) -> ShortTable | None:
        columns = dict(zip(names, rows.columns, strict=True))
        numbered = list(zip(*[columns[name] for name in tested], range(rows.num_rows), strict=True))
        try:
            chosen = [row[-1] for row in passing(numbered, params)]
        except DeclinedError:
            return None
        if len(chosen) > program.rows_max:
            return None
        kept = ShortTable([[column[number] for number in chosen] for column in rows.columns], len(chosen))
        return program.run(names, kept, params)

    return run


def _unfiltered(fragment: ArrowFragment) -> PlainProgram | None:
    types = [expression.type for _, expression in fragment.outputs]
    if not travels_short(types):
        return None
    chosen = _chosen(fragment)
    if chosen is not None:
        return PlainProgram(SHORT_ROWS_MAX, _choice(chosen, types))
    if fragment.keys is None:
        return _ordered(fragment, types)
    small = compile_small_aggregation(fragment)
    if small is None:
        return None
    window, is_short = compile_window(fragment.offset, fragment.limit), short_check(types)

    def aggregated(names: Sequence[str], rows: ShortTable, params: Sequence[Any]) -> ShortTable | None:
        columns = dict(zip(names, rows.columns, strict=True))
        try:
            values = small(lambda name, _counts: columns[name], rows.num_rows, lambda groups: window(params, groups))
        except (InexactError, pa.ArrowInvalid, pa.ArrowNotImplementedError):  # as the kernel declines
            return None
        return ShortTable(values, len(values[0])) if is_short(values) else None

    return PlainProgram(plain_rows_max(fragment), aggregated)


def _choice(chosen: Sequence[str], types: Sequence[SqlType]) -> _Run:
    wide = [index for index, kind in enumerate(types) if kind.kind is TypeKind.HUGEINT]
    in_order, is_short = tuple(chosen), short_check(types)

    def choice(names: Sequence[str], rows: ShortTable, _params: Sequence[Any]) -> ShortTable | None:
        if names == in_order:  # all that was read
            values = list(rows.columns)
        else:
            columns = dict(zip(names, rows.columns, strict=True))
            values = [columns[name] for name in chosen]
        for index in wide:
            values[index] = [None if value is None else int(value) for value in values[index]]
        return ShortTable(values, rows.num_rows) if is_short(values) else None

    return choice


def _ordered(fragment: ArrowFragment, types: Sequence[SqlType]) -> PlainProgram | None:
    """Rows in an order, or some of them."""
    chosen = _chosen(replace(fragment, order=(), limit=None, offset=None))
    terms = [(column.name, term) for term in fragment.order if (column := sortable(term.expression)) is not None]
    if chosen is None or len(terms) < len(fragment.order):
        return None
    choose, window = _choice(chosen, types), compile_window(fragment.offset, fragment.limit)

    def ordered(names: Sequence[str], rows: ShortTable, params: Sequence[Any]) -> ShortTable | None:
        columns = dict(zip(names, rows.columns, strict=True))
        numbers: Sequence[int] = range(rows.num_rows)
        try:
            for name, term in reversed(terms):
                numbers = sorted_rows(columns[name], term, numbers)
            start, stop = window(params, rows.num_rows)
        except (InexactError, pa.ArrowInvalid, pa.ArrowNotImplementedError):  # as the kernel declines
            return None
        if stop - start > SHORT_ROWS_MAX:
            return None
        wanted = numbers[start:stop]
        kept = ShortTable([[column[number] for number in wanted] for column in rows.columns], len(wanted))
        return choose(names, kept, params)

    return PlainProgram(SMALL_ROWS_MAX, ordered)


def compile_window(
    offset: Expression | None, limit: Expression | None
) -> Callable[[Sequence[Any], int], tuple[int, int]]:
    """First row and end of the rows that OFFSET and LIMIT leave of ``count``."""
    if offset is None and limit is None:
        return lambda _params, count: (0, count)
    evaluators = [None if expression is None else compile_expression(expression) for expression in (offset, limit)]

    def window(params: Sequence[Any], count: int) -> tuple[int, int]:
        skipped, most = (
            None if evaluate is None else evaluate(EvaluationContext({}, params)).as_py() for evaluate in evaluators
        )
        if (skipped or 0) < 0 or (most or 0) < 0:
            raise InexactError("a negative LIMIT or OFFSET")
        start = min(skipped or 0, count)
        return start, count if most is None else min(start + most, count)

    return window
