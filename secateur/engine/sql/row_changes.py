"""Row changes: the effect of a statement on a table's rows, as a table, or of an upsert of one row as plain values.

Statements that one member computes for all partitions (MERGE, UPDATE ... FROM, ON CONFLICT DO UPDATE, and every other
change that has to read beyond the partition of its row) are queries for a table with one line for each inserted,
updated or deleted row. Its columns, whatever their names: the action, the old key of the row (NULL for an insertion),
and all columns of the table: the new row, or for a deletion the old one.

``INSERT ... ON CONFLICT DO UPDATE`` of one row does without DuckDB. Every value of the new row is a literal or a
parameter. Where no row has its key, it is the result. Otherwise each column keeps its value, takes a value of the new
row, or is computed by the arrow kernel from both; and where the condition of DO UPDATE is not true, nothing changes. As
everywhere, the arrow kernel answers exactly as DuckDB or not at all: a value that is not one of its column's type as it
stands leaves the statement to DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from secateur.engine.kernels.arrow.fragment import ArrowFragment, ConstantExpression, ParameterExpression
from secateur.engine.kernels.arrow.row_values import DeclinedError, RowEvaluator, compile_over_row
from secateur.errors import ProgrammingError, ProtocolError
from secateur.partitioning.tables.conform import conform, first_of_each_key, first_positions
from secateur.partitioning.tables.row_ids import filled_row_ids
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.arrow_layout import comparable
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.python_column import as_they_stand, canonical_as_it_stands
from secateur.protocol.changes import DuplicateMatchPolicy

GivenValue: TypeAlias = ConstantExpression | ParameterExpression | None
"""A literal or parameter of its column's type; None is NULL."""


class RowAction(StrEnum):
    """The action for a row. The value is in the first column; a line without one is left out."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes, sorted by kind.

    Attributes:
        removed: Keys of rows that are removed: deleted ones, and the old keys of those that are updated to another key.
        added: Rows whose keys must be new once those are removed.
        replaced: Rows that replace those with the same keys.
        actions: The action of each changed row.
        rows: The changed rows, with the columns of the query, in the same order.
    """

    removed: pa.Table
    added: pa.Table
    replaced: pa.Table
    actions: pa.ChunkedArray
    rows: pa.Table

    @classmethod
    def of(cls, found: pa.Table, table: TableDef, duplicate_match: DuplicateMatchPolicy) -> RowChanges:
        """Sort the result of a query for row changes.

        Args:
            found: The query's result.
            table: The table that is changed.
            duplicate_match: The treatment of a row that is found twice.

        Raises:
            ProgrammingError: A row is found twice, and that is refused.
            DataError, NullKeyError: A row that the table cannot hold.
            ProtocolError: The result has no actions: the query is not that of a change.

        Cost: vectorised, a few passes over the rows.
        """
        named = found.column(0).type if found.num_columns else pa.null()
        if not (pa.types.is_string(named) or pa.types.is_large_string(named) or pa.types.is_dictionary(named)):
            raise ProtocolError(
                f"{table.name}: the plan of a change begins with the action of each row, and this one begins with"
                f" {named}"
            )
        found = _once(found.filter(found.column(0).is_valid()), table, duplicate_match)
        actions = found.column(0)
        rows = _rows(found, table)
        deleted, inserted = pc.equal(actions, RowAction.DELETE.value), pc.equal(actions, RowAction.INSERT.value)
        moved = pc.and_(pc.equal(actions, RowAction.UPDATE.value), _differ(_keys(found, table), rows, table))
        is_new = pc.or_(inserted, moved)
        return cls(
            removed=_keys(found.filter(pc.or_(deleted, moved)), table),
            added=conform(rows.filter(is_new), table),
            replaced=conform(rows.filter(pc.invert(pc.or_(deleted, is_new))), table),
            actions=actions,
            rows=rows,
        )

    def resulting(self, table: TableDef) -> pa.Table:
        """The rows that are to be written when none goes and none moves: of rows with one key the first.

        Raises:
            ProgrammingError: One does.
        """
        if self.removed.num_rows:
            raise ProgrammingError(f"{table.name}: rows go away, which this change does not allow")
        return first_of_each_key(pa.concat_tables([self.replaced, self.added]), table)


def _once(found: pa.Table, table: TableDef, duplicate_match: DuplicateMatchPolicy) -> pa.Table:
    """The lines of rows that are there, each once, and all insertions, in the order given."""
    is_there = pc.not_equal(found.column(0), RowAction.INSERT.value)
    there = found.filter(is_there)
    first = first_positions(_keys(there, table), table)
    if first is None:
        return found
    if duplicate_match is DuplicateMatchPolicy.REFUSED:
        raise ProgrammingError(
            f"{table.name}: the statement would change a row more than once, since it matches several source rows: "
            "make the rows of the source distinct, or the condition unique",
            table=table.name,
        )
    positions = pc.indices_nonzero(is_there).take(first)
    kept = pa.concat_arrays([positions.cast(pa.int64()), pc.indices_nonzero(pc.invert(is_there)).cast(pa.int64())])
    return found.take(kept.take(pc.sort_indices(kept)))


def _keys(found: pa.Table, table: TableDef) -> pa.Table:
    """The old keys, in the types of the table."""
    schema = table.arrow_schema
    columns = [found.column(1 + position) for position in range(len(table.primary_key))]
    return pa.table(
        [column.cast(schema.field(name).type) for column, name in zip(columns, table.primary_key, strict=True)],
        names=list(table.primary_key),
    )


def _rows(found: pa.Table, table: TableDef) -> pa.Table:
    first = 1 + len(table.primary_key)
    columns = found.columns[first:]
    if table.has_row_ids:  # inserted rows have none yet
        columns = [
            filled_row_ids(ids) if column.hidden else ids for ids, column in zip(columns, table.columns, strict=True)
        ]
    return pa.table(columns, names=[column.name for column in table.columns])


def _differ(old: pa.Table, new: pa.Table, table: TableDef) -> pa.ChunkedArray:
    """Whether the new key of each row differs from the old one; NULL counts as different."""
    different = [
        pc.fill_null(pc.not_equal(comparable(old.column(name)), comparable(new.column(name))), True)
        for name in table.primary_key
    ]
    return reduce(pc.or_, different)


class RowUpsert(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change, as data.

    Attributes:
        given: The value of the new row for each column of the table.
        assigned: The columns that are assigned a literal or a parameter, which may be one of the new row.
        computed: The columns that are assigned anything else, and the condition, over the row that is there; None
            where there is neither. It gives no row where the condition is not true.
    """

    given: tuple[GivenValue, ...]
    assigned: dict[str, GivenValue]
    computed: ArrowFragment | None = None

    def inserted(self, table: TableDef, params: Sequence[Any]) -> pa.Table | None:
        """The new row in the schema of the table; None where only DuckDB can make it. NOT NULL is not checked."""
        columns = [_array(value, column.type, params) for column, value in zip(table.columns, self.given, strict=True)]
        return (
            None
            if any(column is None for column in columns)
            else pa.Table.from_arrays(columns, schema=table.arrow_schema)
        )

    def updated(
        self, table: TableDef, old: Sequence[pa.ChunkedArray], position: int, params: Sequence[Any]
    ) -> pa.Table | None:
        """The row that replaces another one, or no row; None where only DuckDB can compute it.

        Args:
            table: The table.
            old: Columns with the row that is there, all of the table.
            position: The place of that row in them.
            params: The values of the parameters.
        """
        schema = table.arrow_schema
        row = pa.Table.from_arrays([column.slice(position, 1) for column in old], schema=schema)
        values = {name: _array(value, table.column(name).type, params) for name, value in self.assigned.items()}
        if self.computed is not None:
            import secateur.engine.kernels.arrow.kernel as arrow_kernel  # its functions take long to load

            found = arrow_kernel.run(self.computed, row, params)
            if found is None or not found.num_rows:
                return None if found is None else row.slice(0, 0)
            values.update(zip(found.column_names, found.columns, strict=True))
        columns = [values.get(name, column) for name, column in zip(schema.names, row.columns, strict=True)]
        return None if any(column is None for column in columns) else pa.Table.from_arrays(columns, schema=schema)


class UpsertProgram:
    """A :class:`RowUpsert` over plain values, compiled for one definition of its table.

    Args:
        upsert: The change.
        table: The table.

    Attributes:
        replaces_row: Whether the new row takes the place of the row with its key, whatever that one has.
    """

    __slots__ = ("_assigned", "_computed", "_constants", "_given", "_kept", "replaces_row")

    def __init__(self, upsert: RowUpsert, table: TableDef) -> None:
        # The constants stand behind the parameters, and are counted from the end: only a call says how many those are.
        self._constants: tuple[Any, ...] = ()
        self._given = [self._place(given) for given in upsert.given]
        self._kept: list[int] = []  # the columns that take the value of the new row
        self._assigned: list[tuple[int, SqlType, int]] = []
        for at, (column, given) in enumerate(zip(table.columns, upsert.given, strict=True)):
            if column.name in upsert.assigned:
                assigned = upsert.assigned[column.name]
                if repr(assigned) == repr(given):  # two zeros are equal, and not the same
                    self._kept.append(at)
                else:
                    self._assigned.append((at, column.type, self._place(assigned)))
        self._computed = None if upsert.computed is None else _compiled(upsert.computed, table)
        others = [at for at, column in enumerate(table.columns) if column.name not in table.primary_key]
        self.replaces_row = upsert.computed is None and bool(others) and self._kept == others and not self._assigned

    def _place(self, given: GivenValue) -> int:
        if isinstance(given, ParameterExpression):
            return given.number - 1
        self._constants = (given and given.value, *self._constants)
        return -len(self._constants)

    def inserted(self, params: Sequence[Any]) -> list[list[Any]]:
        """The values of the new row for each column, as they are given."""
        given = (*params, *self._constants)
        return [[given[place]] for place in self._given]

    def updated(self, new: Sequence[list[Any]], old: Sequence[Any], params: Sequence[Any]) -> list[list[Any]] | None:
        """The values of the row that replaces another one, by column; None where nothing changes.

        Args:
            new: The canonical values of :meth:`inserted`.
            old: The values of the row that is there.
            params: The values of the parameters.

        Raises:
            DeclinedError, DataError: Only :meth:`RowUpsert.updated` can compute it, or DuckDB.
        """
        values = [[value] for value in old]
        if self._computed is not None:
            if isinstance(self._computed, DeclinedError):
                raise self._computed
            condition, outputs = self._computed
            if condition is not None and condition(old, params) is not True:
                return None
            for at, value in outputs:
                values[at] = [value(old, params)]
        for at in self._kept:
            values[at] = new[at]
        for at, type_, place in self._assigned:
            values[at] = [canonical_as_it_stands((*params, *self._constants)[place], type_)]
        return values


def _compiled(
    computed: ArrowFragment, table: TableDef
) -> tuple[RowEvaluator | None, list[tuple[int, RowEvaluator]]] | DeclinedError:
    positions = {column.name: position for position, column in enumerate(table.columns)}
    try:
        condition = None if computed.where is None else compile_over_row(computed.where, positions)
        outputs = []
        for name, expression in computed.outputs:
            at = positions[name]
            if expression.type != table.columns[at].type:
                raise DeclinedError(f"{name} is computed as another type")
            outputs.append((at, compile_over_row(expression, positions)))
        return condition, outputs
    except DeclinedError as error:
        return error


def _array(given: GivenValue, type_: SqlType, params: Sequence[Any]) -> pa.Array | None:
    value = params[given.number - 1] if isinstance(given, ParameterExpression) else given and given.value
    return as_they_stand([value], type_)
