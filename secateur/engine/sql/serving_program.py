"""Serving programs as data: what a plan over few rows of one table computes, for the native executor.

A program is compiled from a plan whose rows a search by key finds. It says all that the executor does, which decides
nothing by itself: a plan that needs more has no program, and is executed in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from secateur.engine.kernels.arrow.expression import (
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
    ScalarFunction,
    conjuncts,
)
from secateur.engine.kernels.arrow.fragment import ArrowFragment, slot_name
from secateur.engine.kernels.arrow.plain_rows import plain_columns, plain_program
from secateur.engine.sql.key_search import KeyOperand
from secateur.engine.sql.plain_join import compile_plain_join
from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.partitioning.pruning.nodes import Everywhere, Keys
from secateur.partitioning.pruning.operand import Parameter
from secateur.partitioning.schemes.hashing import first_seed
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.protocol.key_value import FOUND_ROWS_MAX
from secateur.storage.native_rows import is_native

_COMPARISONS: Final = frozenset(
    {
        ScalarFunction.EQUAL,
        ScalarFunction.NOT_EQUAL,
        ScalarFunction.LESS,
        ScalarFunction.LESS_EQUAL,
        ScalarFunction.GREATER,
        ScalarFunction.GREATER_EQUAL,
    }
)

_KEYS: Final = {
    **dict.fromkeys(WORD_INTEGERS, "integer"),
    TypeKind.VARCHAR: "text",
    TypeKind.DATE: "date",
    TypeKind.TIMESTAMP: "timestamp",
    TypeKind.UUID: "uuid",
}
"""The types of key columns, and of columns in conditions, and how their values come."""


class KeyParameter(msgspec.Struct, frozen=True):
    """A parameter that is a leading value of the key.

    Attributes:
        index: Its place among the parameters.
        kind: The kind of value that is taken: ``"integer"``, ``"text"``, ``"date"``, ``"timestamp"`` or ``"uuid"``.
        bounds: The least and the greatest integer that its column can have; None for the others.
    """

    index: int
    kind: str
    bounds: tuple[int, int] | None

    @classmethod
    def of(cls, index: int, kind: SqlType) -> KeyParameter:
        """The parameter for a column of one of :data:`_KEYS`."""
        return cls(index, _KEYS[kind.kind], kind.integer_range if kind.is_integer else None)


class HashRoute(msgspec.Struct, frozen=True):
    """One hash component of the partition function.

    Attributes:
        seed: The hash before the first value.
        partitions: How many partitions it has.
        columns: The places of its columns in the key.
    """

    seed: int
    partitions: int
    columns: tuple[int, ...]


class ProgramCondition(msgspec.Struct, frozen=True):
    """A comparison of the column at a place with a parameter, or with a value of the statement's text.

    NULL passes none.
    """

    column: int
    comparison: str
    operand: KeyParameter | int | str


class ProgramAggregate(msgspec.Struct, frozen=True):
    """One aggregate: the name of its function, and the place of its argument; None for ``count(*)``."""

    function: str
    column: int | None


class ProgramOrder(msgspec.Struct, frozen=True):
    """The slot by which groups are sorted, and how."""

    slot: int
    descending: bool
    nulls_first: bool


class ServingProgram(msgspec.Struct, frozen=True):
    """What the native executor does for one plan.

    Attributes:
        parameter_count: How many parameters the statement has.
        prefix: The leading values of the key.
        choices: The values of an IN list of the next column; nothing where there is none.
        routes: The hashes that lead to the partition of a key; nothing for a replicated table.
        columns: The columns that are read, as their places in the table.
        rows_max: More rows than these are left to Python.
        conditions: Those that rows have to pass beside having the key.
        chosen_max: More rows than these that pass are left to Python.
        keys: The places in ``columns`` of the columns of GROUP BY; None for rows as they are.
        aggregates: The aggregates of each group.
        outputs: What the result has: places in ``columns``, or with ``keys`` those among the keys and, behind them, the
            aggregates.
        order: The order of the groups; None for that of their first rows.
    """

    parameter_count: int
    prefix: tuple[KeyParameter, ...]
    choices: tuple[KeyParameter, ...]
    routes: tuple[HashRoute, ...]
    columns: tuple[int, ...]
    rows_max: int
    conditions: tuple[ProgramCondition, ...]
    chosen_max: int
    keys: tuple[int, ...] | None
    aggregates: tuple[ProgramAggregate, ...]
    outputs: tuple[int, ...]
    order: ProgramOrder | None


def serving_program(plan: SelectPlan, table: TableDef, *, is_first_stage: bool = False) -> ServingProgram | None:
    """The program of a plan; None where it needs what programs do not say.

    Args:
        plan: The plan.
        table: The table that it reads.
        is_first_stage: Whether the program is that of its first stage, over the partitions of one member.
    """
    if len(plan.scans) != 1 or plan.reads_fetched_rows or plan.expressions or plan.views:
        return None
    (scan,), fragment = plan.scans, plan.over_few_rows
    if is_first_stage:
        fragment = plan.first_stage_over_few_rows if plan.scatter_partitions_max else None
    arrow = None if fragment is None else fragment.arrow
    search = scan.keys.direct
    if arrow is None or search is None or search.is_span:
        return None
    prefix, choices = _parameters(search.prefix), _parameters(search.choices)
    if prefix is None or choices is None or len(choices) > scan.tree.limit:
        return None
    is_placed = isinstance(scan.tree.root, Everywhere if scan.replicated else Keys)
    routes = _routes(table, len(prefix) + bool(choices)) if is_placed else None
    unfiltered, conditions = replace(arrow, where=None), _conditions(arrow.where, scan)
    computed, plain, chosen = _computed(unfiltered, scan), plain_program(arrow), plain_program(unfiltered)
    if routes is None or conditions is None or computed is None or plain is None or chosen is None:
        return None
    names = [column.name for column in table.columns]
    columns = tuple(map(names.index, scan.columns))
    return ServingProgram(
        plan.parameter_count,
        prefix,
        choices,
        routes,
        columns,
        plain.rows_max,
        conditions,
        chosen.rows_max,
        *computed,
    )


def not_served(plan: SelectPlan, primary_key: Callable[[int], Sequence[str]]) -> str | None:
    """Why a member has no serving program for a query, in words a user can act on; None where it has one.

    A member compiles a program in Python where this says None, and the native executor one of its own of many of them.

    Args:
        plan: The plan of the query.
        primary_key: The columns of the primary key of a scan's table, by the number of the scan.
    """
    if not plan.scans:
        return "it reads no table"
    if plan.reads_fetched_rows:
        return "it reads a system table or an external table, whose rows are fetched when it runs"
    if len(plan.scans) == 1:
        scan, fragment, search = plan.scans[0], plan.over_few_rows, plan.scans[0].keys.direct
        if fragment is None or search is None:
            columns = ", ".join(primary_key(0))
            return f"it does not search {scan.table} by its key: compare the first columns of ({columns}) with values"
        if search.is_span:
            return f"it reads a range of keys of {scan.table}"
    else:
        fragment = plan.local
    if fragment.arrow is None or plain_program(fragment.arrow) is None:
        return "its expressions, types or clauses need a kernel over whole columns"
    if len(plan.scans) > 1 and compile_plain_join(fragment.arrow, plan.scans, primary_key) is None:
        return "it does not find the rows that it joins by their keys"
    return None


def key_program(table: TableDef) -> ServingProgram | None:
    """The program that reads the row of a whole key, of which each value is a parameter; None as above.

    Its ``rows_max`` is for all keys of one request.
    """
    key = [table.column(name).type for name in table.primary_key]
    routes, columns = _routes(table, len(key)), tuple(range(len(table.columns)))
    if routes is None or not all(map(_is_key, key)) or not all(is_native(column.type) for column in table.columns):
        return None
    prefix = tuple(KeyParameter.of(index, kind) for index, kind in enumerate(key))
    rows_max = FOUND_ROWS_MAX
    return ServingProgram(len(prefix), prefix, (), routes, columns, rows_max, (), rows_max, None, (), columns, None)


def _parameters(keys: Sequence[KeyOperand]) -> tuple[KeyParameter, ...] | None:
    found = []
    for key in keys:
        if not isinstance(key.operand, Parameter) or not _is_key(key.type):
            return None
        found.append(KeyParameter.of(key.operand.index, key.type))
    return tuple(found)


def _is_key(kind: SqlType) -> bool:
    return kind.kind in _KEYS


def _routes(table: TableDef, width: int) -> tuple[HashRoute, ...] | None:
    """The hashes that lead from the leading values of a key to its one partition; None where there may be several."""
    scheme, searched = table.scheme, table.primary_key[:width]
    if table.replicated:
        return ()
    if scheme.range is not None or scheme.partial is not None or not scheme.is_known_function or not scheme.hashes:
        return None
    if not all(column in searched for component in scheme.hashes for column in component.columns):
        return None
    return tuple(
        HashRoute(
            first_seed(component.seed), component.partitions, tuple(searched.index(name) for name in component.columns)
        )
        for component in scheme.hashes
    )


def _conditions(where: Expression | None, scan: ScanPlan) -> tuple[ProgramCondition, ...] | None:
    found = []
    for condition in conjuncts(where):
        match condition:
            case CallExpression(
                function,
                (ColumnExpression(name, kind), ParameterExpression() | ConstantExpression() as operand),
            ) if function in _COMPARISONS and _is_key(kind) and operand.type == kind:
                value: KeyParameter | int | str
                if isinstance(operand, ParameterExpression):
                    value = KeyParameter.of(operand.number - 1, kind)
                elif kind.is_integer or kind.kind is TypeKind.VARCHAR:
                    value = operand.value
                else:  # a day or an instant, in the form in which it lies in memory
                    value = pa.scalar(operand.value, kind.arrow).value
                found.append(ProgramCondition(scan.columns.index(name), function.value, value))
            case _:
                return None
    return tuple(found)


_Computed = tuple[tuple[int, ...] | None, tuple[ProgramAggregate, ...], tuple[int, ...], ProgramOrder | None]


def _computed(fragment: ArrowFragment, scan: ScanPlan) -> _Computed | None:
    chosen = plain_columns(fragment)
    if chosen is not None:
        types = [expression.type for _, expression in fragment.outputs]
        return (None, (), tuple(map(scan.columns.index, chosen)), None) if all(map(is_native, types)) else None
    if fragment.keys is None or fragment.limit is not None or fragment.offset is not None:
        return None
    keys = [_column(key, scan) for key in fragment.keys]
    aggregates = []
    for aggregate in fragment.aggregates:
        column = None if aggregate.argument is None else _column(aggregate.argument, scan)
        if aggregate.argument is not None and (column is None or not is_native(aggregate.argument.type)):
            return None
        aggregates.append(ProgramAggregate(aggregate.function.value, column))
    slots = {slot_name(position): position for position in range(len(keys) + len(aggregates))}
    outputs = [_slot(expression, slots) for _, expression in fragment.outputs]
    order = None
    if fragment.order:
        term = fragment.order[0]
        slot = _slot(term.expression, slots)
        if slot is None:
            return None
        order = ProgramOrder(slot, term.descending, term.nulls_first)
    if None in keys or None in outputs:
        return None
    return (
        tuple(key for key in keys if key is not None),
        tuple(aggregates),
        tuple(output for output in outputs if output is not None),
        order,
    )


def _column(expression: Expression, scan: ScanPlan) -> int | None:
    return scan.columns.index(expression.name) if isinstance(expression, ColumnExpression) else None


def _slot(expression: Expression, slots: dict[str, int]) -> int | None:
    return slots.get(expression.name) if isinstance(expression, ColumnExpression) else None
