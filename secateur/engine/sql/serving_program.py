"""Serving programs as data: what a plan over few rows of one table computes, for the native executor.

A program is compiled from a plan whose rows a search by key finds. It says all that the executor does, which decides
nothing by itself: a plan that needs more has no program, and is executed in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from secateur.engine.kernels.arrow.fragment import (
    ArrowFragment,
    ArrowSource,
    CallExpression,
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
    ScalarFunction,
    SourceJoin,
    conjuncts,
    slot_name,
    source_column,
)
from secateur.engine.kernels.arrow.plain_rows import plain_program
from secateur.engine.kernels.arrow.row_values import DeclinedError
from secateur.engine.sql.key_search import KeyEnd, KeyOperand
from secateur.engine.sql.plain_join import JOINED_MAX, compile_plain_join
from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.partitioning.pruning.nodes import Everywhere, Keys, Partitions
from secateur.partitioning.pruning.operand import Constant, Parameter
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.schemes.hashing import first_seed
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import WORD_INTEGERS, SqlType, TypeKind
from secateur.protocol.query import FOUND_ROWS_MAX
from secateur.storage.stored_columns import is_native
from secateur.wire import SHORT_CHARACTERS_MAX, SHORT_ROWS_MAX

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
_JOINED: Final = WORD_INTEGERS | {TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP}
"""The types of join keys."""
_SORTED: Final = _JOINED | {TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.DECIMAL}
"""The types by which rows are sorted."""
_SORTED_MAX: Final = 4096
"""More rows of one search are sorted by a kernel."""
_KERNEL_CHARACTERS_MAX: Final = 1800
"""Of the result of a kernel: it measures the bytes of each column, which are at most four for a character."""


class KeyParameter(msgspec.Struct, frozen=True):
    """A parameter, as a value of a column.

    Attributes:
        index: Its place among the parameters.
        kind: The kind of value that is taken: ``"integer"``, ``"text"``, ``"date"``, ``"timestamp"`` or ``"uuid"``.
        bounds: The least and the greatest integer that the column can have; None for the others.
    """

    index: int
    kind: str
    bounds: tuple[int, int] | None

    @classmethod
    def of(cls, index: int, kind: SqlType) -> KeyParameter:
        """The parameter for a column of one of :data:`_KEYS`."""
        return cls(index, _KEYS[kind.kind], kind.integer_range if kind.is_integer else None)


ProgramOperand: TypeAlias = KeyParameter | int | str
"""A value that is searched for or compared with: a parameter, or one of the statement's text. Days and instants of the
text are the numbers as which they lie in memory.
"""


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
    operand: ProgramOperand


class ProgramAggregate(msgspec.Struct, frozen=True):
    """One aggregate: the name of its function, and the place of its argument; None for ``count(*)``."""

    function: str
    column: int | None


class ProgramOrder(msgspec.Struct, frozen=True):
    """A term by which the result is sorted: a place in ``columns``, or with ``keys`` a slot, and how."""

    slot: int
    descending: bool
    nulls_first: bool


class SpanEnd(msgspec.Struct, frozen=True):
    """One end of a span of values of the key column behind the prefix, and whether it belongs to the span."""

    value: ProgramOperand
    is_closed: bool


class ProgramJoin(msgspec.Struct, frozen=True):
    """How a relation is joined to those before it.

    Attributes:
        kind: ``"inner"``, ``"left"``, ``"semi"`` or ``"anti"``.
        left: The keys of the rows before, as places in ``columns`` of the program.
        right: The same of this relation, as places in its table.
        is_searched: Whether the keys of the rows before are searched for in the only partition of a replicated table,
            whose primary key begins with them, instead of values of the statement.
    """

    kind: str
    left: tuple[int, ...]
    right: tuple[int, ...]
    is_searched: bool


class ProgramSource(msgspec.Struct, frozen=True):
    """One relation, and how its rows are found.

    Attributes:
        prefix: The leading values of the key.
        choices: The values of an IN list of the next column; nothing where there is none.
        lower: The lower end of a span of the next column; None for none.
        upper: The upper end of it.
        routes: The hashes that lead to the partition of a key; nothing for a replicated table.
        conditions: Those that rows have to pass beside having the key, by places in the table.
        rows_max: More rows than these are left to Python.
        join: How it is joined to those before it; None for the first.
    """

    prefix: tuple[ProgramOperand, ...]
    choices: tuple[ProgramOperand, ...]
    lower: SpanEnd | None
    upper: SpanEnd | None
    routes: tuple[HashRoute, ...]
    conditions: tuple[ProgramCondition, ...]
    rows_max: int
    join: ProgramJoin | None = None


class ServingProgram(msgspec.Struct, frozen=True):
    """What the native executor does for one plan.

    Attributes:
        parameter_count: How many parameters the statement has.
        sources: The relations; each one behind the first is joined to those before it.
        columns: The columns that are read: the number of the source, and the place in its table.
        chosen_max: More rows than these that pass are left to Python.
        keys: The places in ``columns`` of the columns of GROUP BY; None for rows as they are.
        aggregates: The aggregates of each group.
        outputs: What the result has: places in ``columns``, or with ``keys`` those among the keys and, behind them, the
            aggregates.
        order: The terms by which the result is sorted; nothing for the order of the rows, or of the first rows of
            groups.
        offset: The rows that are left out at the start of the result, a number or a parameter; None for none.
        limit: The most rows behind these; None for all.
        result_max: More rows of the result than these are left to Python.
        characters_max: More characters of texts, and bytes of blobs, in the result are left to Python.
    """

    parameter_count: int
    sources: tuple[ProgramSource, ...]
    columns: tuple[tuple[int, int], ...]
    chosen_max: int
    keys: tuple[int, ...] | None
    aggregates: tuple[ProgramAggregate, ...]
    outputs: tuple[int, ...]
    order: tuple[ProgramOrder, ...]
    offset: KeyParameter | int | None
    limit: KeyParameter | int | None
    result_max: int
    characters_max: int = SHORT_CHARACTERS_MAX


def serving_program(
    plan: SelectPlan, tables: Sequence[TableDef], *, is_first_stage: bool = False
) -> ServingProgram | None:
    """The program of a plan; None where it needs what programs do not say.

    Args:
        plan: The plan.
        tables: The table of each of its scans.
        is_first_stage: Whether the program is that of its first stage, over the partitions of one member.
    """
    if not plan.scans or plan.reads_fetched_rows or plan.expressions or plan.views:
        return None
    fragment = plan.over_few_rows if len(plan.scans) == 1 else plan.local
    if is_first_stage:
        fragment = plan.first_stage_over_few_rows if len(plan.scans) == 1 and plan.scatter_partitions_max else None
    arrow = None if fragment is None else fragment.arrow
    if arrow is None:
        return None
    try:
        return _of_join(plan, tables, arrow) if arrow.sources else _of_one(plan, tables[0], arrow, is_first_stage)
    except DeclinedError:
        return None


def _of_one(plan: SelectPlan, table: TableDef, arrow: ArrowFragment, is_first_stage: bool) -> ServingProgram:
    (scan,) = plan.scans
    names = [column.name for column in table.columns]
    unfiltered = replace(arrow, where=None)
    computed = _computed(unfiltered, list(scan.columns))
    plain, chosen = plain_program(arrow), plain_program(unfiltered)
    is_cut = bool(arrow.order) or arrow.limit is not None or arrow.offset is not None
    characters_max = SHORT_CHARACTERS_MAX
    if arrow.keys is None and not is_first_stage and (is_cut or (scan.keys.direct and scan.keys.direct.is_span)):
        # Few of perhaps many rows, which Python reads from Arrow tables.
        rows_max = chosen_max = _SORTED_MAX
        characters_max = _KERNEL_CHARACTERS_MAX
    elif plain is not None and chosen is not None:
        rows_max, chosen_max = plain.rows_max, chosen.rows_max
    else:
        raise DeclinedError("it needs a kernel over whole columns")
    source = _source(scan, table, arrow.where, names, rows_max)
    if is_first_stage and (source.lower or source.upper):
        raise DeclinedError("a first stage reads a range of keys")
    columns = tuple((0, names.index(column)) for column in scan.columns)
    result_max = SHORT_ROWS_MAX if arrow.keys is None else chosen_max
    return ServingProgram(plan.parameter_count, (source,), columns, chosen_max, *computed, result_max, characters_max)


def _of_join(plan: SelectPlan, tables: Sequence[TableDef], arrow: ArrowFragment) -> ServingProgram:
    """The program of a join that is one over plain values as well, in the same steps."""
    keys = [table.primary_key for table in tables]
    plain = plain_program(arrow)
    if plain is None or compile_plain_join(arrow, plan.scans, keys.__getitem__) is None:
        raise DeclinedError("it is no join over plain values")
    numbers = {scan.relation: number for number, scan in enumerate(plan.scans)}
    sources: list[ProgramSource] = []
    names: list[str] = []
    columns: list[tuple[int, int]] = []
    for position, joined in enumerate(arrow.sources):
        number = numbers[joined.relation]
        if number != position or joined.condition is not None:
            raise DeclinedError("a join in another order, or with a condition beside its keys")
        scan, table = plan.scans[number], tables[number]
        own = [source_column(joined.relation, column.name) for column in table.columns]
        if not position:
            source = _source(scan, table, joined.where, own, plain.rows_max)
        elif scan.keys.direct is not None and not scan.keys.direct.is_span:
            source = _source(scan, table, joined.where, own, JOINED_MAX)
        else:
            source = _source_of_keys(scan, joined.where, own)
        if source.lower is not None or source.upper is not None:
            raise DeclinedError("a join reads a range of keys")
        if position:
            source = replace(source, join=_join(joined, source, names, own, table))
        sources.append(source)
        if joined.kind in (SourceJoin.INNER, SourceJoin.LEFT) or not position:
            read = [source_column(joined.relation, column) for column in scan.columns]
            names += read
            columns += [(number, own.index(column)) for column in read]
    computed = _computed(replace(arrow, sources=()), names)
    chosen_max = plain.rows_max
    result_max = SHORT_ROWS_MAX if arrow.keys is None else chosen_max
    return ServingProgram(plan.parameter_count, tuple(sources), tuple(columns), chosen_max, *computed, result_max)


def _source(
    scan: ScanPlan, table: TableDef, where: Expression | None, names: Sequence[str], rows_max: int
) -> ProgramSource:
    """A relation whose rows have keys that begin with values of the statement; ``names`` are those of its columns."""
    search = scan.keys.direct
    if search is None:
        raise DeclinedError(f"{scan.table} is not searched by its key")
    prefix, choices = tuple(map(_operand, search.prefix)), tuple(map(_operand, search.choices))
    if len(choices) > scan.tree.limit or not _is_placed(scan, choices):
        raise DeclinedError(f"the key does not say which partitions of {scan.table} are read")
    routes = _routes(table, len(prefix) + bool(choices))
    conditions = _conditions(where, names)
    return ProgramSource(
        prefix, choices, _span_end(search.lower), _span_end(search.upper), routes, conditions, rows_max
    )


def _is_placed(scan: ScanPlan, choices: Sequence[ProgramOperand]) -> bool:
    """Whether the values of the key alone say which partitions a scan reads."""
    match scan.tree.root:
        case Partitions(ids):  # of constants
            return len(ids) == 1 and not choices and not scan.replicated
        case root:
            return isinstance(root, Everywhere if scan.replicated else Keys)


def _source_of_keys(scan: ScanPlan, where: Expression | None, names: Sequence[str]) -> ProgramSource:
    """A replicated table whose rows have keys that begin with those of the rows before."""
    if not scan.replicated or not isinstance(scan.tree.root, Everywhere):
        raise DeclinedError(f"rows of {scan.table} may be on other members")
    return ProgramSource((), (), None, None, (), _conditions(where, names), JOINED_MAX)


def _join(
    joined: ArrowSource, source: ProgramSource, names: Sequence[str], own: Sequence[str], table: TableDef
) -> ProgramJoin:
    """How a relation is joined to rows with columns of some names, where ``own`` are those of its table's columns."""
    pairs = []
    for left, right in joined.keys:
        if not isinstance(left, ColumnExpression) or not isinstance(right, ColumnExpression):
            raise DeclinedError("a join key is computed")
        if left.type != right.type or left.type.kind not in _JOINED:
            raise DeclinedError(f"join keys of the types {left.type} and {right.type}")
        pairs.append((names.index(left.name), own.index(right.name)))
    is_searched = not source.prefix and not source.choices
    if is_searched:
        key = [own.index(source_column(joined.relation, column)) for column in table.primary_key[: len(pairs)]]
        if sorted(right for _, right in pairs) != sorted(key):
            raise DeclinedError("the join keys are not those that lead the primary key")
        pairs.sort(key=lambda pair: key.index(pair[1]))
    lefts, rights = tuple(left for left, _ in pairs), tuple(right for _, right in pairs)
    return ProgramJoin(joined.kind.value, lefts, rights, is_searched)


def _span_end(end: KeyEnd | None) -> SpanEnd | None:
    return None if end is None else SpanEnd(_operand(end.key), end.closed)


def not_served(plan: SelectPlan, primary_key: Callable[[int], Sequence[str]]) -> str | None:
    """Why a member has no serving program for a query, in words a user can act on; None where it has one.

    A member compiles a program in Python where this says None, and the native executor one of its own of many of them.
    """
    if not plan.scans:
        return "it reads no table"
    if plan.reads_fetched_rows:
        return "it reads a system table or an external table, whose rows are fetched when it runs"
    if len(plan.scans) == 1:
        scan, fragment, search = plan.scans[0], plan.over_few_rows, plan.scans[0].keys.direct
        if fragment is None or search is None:
            columns = ", ".join(name for name in primary_key(0) if name != ROW_ID)
            if not columns:
                return f"{scan.table} has no primary key, and its rows are spread at random"
            return f"it does not search {scan.table} by its key: compare the first columns of ({columns}) with values"
        if search.is_span:
            return f"it reads a range of keys of {scan.table}, for which the native executor alone has a program"
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
    columns = tuple(range(len(table.columns)))
    if not all(map(_is_key, key)) or not all(is_native(column.type) for column in table.columns):
        return None
    try:
        routes = _routes(table, len(key))
    except DeclinedError:
        return None
    prefix = tuple(KeyParameter.of(index, kind) for index, kind in enumerate(key))
    source = ProgramSource(prefix, (), None, None, routes, (), FOUND_ROWS_MAX)
    read = tuple((0, place) for place in columns)
    return ServingProgram(
        len(prefix), (source,), read, FOUND_ROWS_MAX, None, (), columns, (), None, None, FOUND_ROWS_MAX
    )


def _operand(key: KeyOperand) -> ProgramOperand:
    kind = key.type
    match key.operand:
        case Parameter(index) if _is_key(kind):
            return KeyParameter.of(index, kind)
        case Constant() if kind.kind in WORD_INTEGERS or kind.kind is TypeKind.VARCHAR:
            value: ProgramOperand | None = key.bind(())
            if value is not None:
                return value
    raise DeclinedError(f"no such value of type {kind} is searched for")


def _is_key(kind: SqlType) -> bool:
    return kind.kind in _KEYS


def _routes(table: TableDef, width: int) -> tuple[HashRoute, ...]:
    """The hashes that lead from the leading values of a key to its one partition."""
    scheme, searched = table.scheme, table.primary_key[:width]
    if table.replicated:
        return ()
    if scheme.range is not None or scheme.partial is not None or not scheme.is_known_function or not scheme.hashes:
        raise DeclinedError(f"the partitions of {table.name} are not those of hashes")
    if not all(column in searched for component in scheme.hashes for column in component.columns):
        raise DeclinedError(f"the key leads to several partitions of {table.name}")
    return tuple(
        HashRoute(
            first_seed(component.seed), component.partitions, tuple(searched.index(name) for name in component.columns)
        )
        for component in scheme.hashes
    )


def _conditions(where: Expression | None, names: Sequence[str]) -> tuple[ProgramCondition, ...]:
    found = []
    for condition in conjuncts(where):
        match condition:
            case CallExpression(
                function,
                (ColumnExpression(name, kind), ParameterExpression() | ConstantExpression() as operand),
            ) if function in _COMPARISONS and _is_key(kind) and operand.type == kind:
                value: ProgramOperand
                if isinstance(operand, ParameterExpression):
                    value = KeyParameter.of(operand.number - 1, kind)
                elif kind.is_integer or kind.kind is TypeKind.VARCHAR:
                    value = operand.value
                else:  # a day or an instant, in the form in which it lies in memory
                    value = pa.scalar(operand.value, kind.arrow).value
                found.append(ProgramCondition(names.index(name), function.value, value))
            case _:
                raise DeclinedError("a condition that is no comparison of a column with a value")
    return tuple(found)


_Computed = tuple[
    tuple[int, ...] | None,
    tuple[ProgramAggregate, ...],
    tuple[int, ...],
    tuple[ProgramOrder, ...],
    KeyParameter | int | None,
    KeyParameter | int | None,
]


def _computed(fragment: ArrowFragment, names: Sequence[str]) -> _Computed:
    """What a fragment computes of columns of some names: from ``keys`` of a program to its ``limit``."""
    if fragment.having is not None or fragment.distinct:
        raise DeclinedError("HAVING or DISTINCT")
    keys, aggregates = None, []
    places = {name: place for place, name in enumerate(names)}
    read = [expression for _, expression in fragment.outputs]
    if fragment.keys is not None:
        read = [aggregate.argument for aggregate in fragment.aggregates if aggregate.argument is not None]
    if not all(is_native(expression.type) for expression in read):
        raise DeclinedError("values of a type that only Python writes")
    if fragment.keys is not None:
        keys = _slots(fragment.keys, places)
        for aggregate in fragment.aggregates:
            column = None if aggregate.argument is None else _slot(aggregate.argument, places)
            aggregates.append(ProgramAggregate(aggregate.function.value, column))
        places = {slot_name(position): position for position in range(len(keys) + len(aggregates))}
    outputs = _slots([expression for _, expression in fragment.outputs], places)
    return keys, tuple(aggregates), outputs, _order(fragment, places), _rows(fragment.offset), _rows(fragment.limit)


def _order(fragment: ArrowFragment, places: dict[str, int]) -> tuple[ProgramOrder, ...]:
    if fragment.keys is None and any(term.expression.type.kind not in _SORTED for term in fragment.order):
        raise DeclinedError("an order of a type that Python does not sort")
    return tuple(
        ProgramOrder(_slot(term.expression, places), term.descending, term.nulls_first) for term in fragment.order
    )


def _rows(clause: Expression | None) -> KeyParameter | int | None:
    """OFFSET or LIMIT."""
    match clause:
        case None:
            return None
        case ConstantExpression(value) if type(value) is int:
            return value
        case ParameterExpression(number, kind) if kind.kind is TypeKind.BIGINT:
            return KeyParameter.of(number - 1, kind)
        case _:
            raise DeclinedError("an OFFSET or LIMIT that is computed")


def _slots(expressions: Sequence[Expression], slots: dict[str, int]) -> tuple[int, ...]:
    return tuple(_slot(expression, slots) for expression in expressions)


def _slot(expression: Expression, slots: dict[str, int]) -> int:
    if not isinstance(expression, ColumnExpression) or expression.name not in slots:
        raise DeclinedError("a value that is computed")
    return slots[expression.name]
