"""``INSERT`` of one row without DuckDB: the row that results from the row that is there.

Every value of the new row is a literal or a parameter. Where no row has its key, it is the result. Otherwise each
column keeps its value, takes a value of the new row, or is computed by the arrow kernel from both; and where the
condition of DO UPDATE is not true, nothing changes. As everywhere, the arrow kernel answers exactly as DuckDB or not at
all: a value that is not one of its column's type as it stands leaves the statement to DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from secateur.engine.kernels.arrow.fragment import ArrowFragment, ConstantExpression, ParameterExpression
from secateur.engine.kernels.arrow.row_values import DeclinedError, RowEvaluator, compile_over_row
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.python_column import as_they_stand, canonical_as_it_stands

GivenValue: TypeAlias = ConstantExpression | ParameterExpression | None
"""A literal or parameter of its column's type; None is NULL."""


class RowConflict(StrEnum):
    """What an INSERT does with the row that has its key."""

    UPDATED = "updated"
    """It is changed."""
    KEPT = "kept"
    """Nothing: ``DO NOTHING``."""
    REFUSED = "refused"
    """It is an error, which the general way has words for."""


class RowUpsert(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change, as data.

    Attributes:
        given: The value of the new row for each column of the table.
        assigned: The columns that are assigned a literal or a parameter, which may be one of the new row.
        computed: The columns that are assigned anything else, and the condition, over the row that is there; None
            where there is neither. It gives no row where the condition is not true.
        conflict: What becomes of a row that is there. Only of the first kind are changes without RETURNING: the others
            are writes of rows.
    """

    given: tuple[GivenValue, ...]
    assigned: dict[str, GivenValue]
    computed: ArrowFragment | None = None
    conflict: RowConflict = RowConflict.UPDATED

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

        The one that is there stands at ``position`` in ``old``, which are all columns of the table.
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

    Attributes:
        replaces_row: Whether the new row takes the place of the row with its key, whatever that one has.
    """

    __slots__ = ("_assigned", "_computed", "_conflict", "_constants", "_given", "_kept", "replaces_row")

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
        self._conflict = upsert.conflict
        others = [at for at, column in enumerate(table.columns) if column.name not in table.primary_key]
        self.replaces_row = (
            upsert.conflict is RowConflict.UPDATED
            and upsert.computed is None
            and bool(others)
            and self._kept == others
            and not self._assigned
        )

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

        ``new`` are the canonical values of :meth:`inserted`.

        Raises:
            DeclinedError, DataError: Only :meth:`RowUpsert.updated` can compute it, or DuckDB; or it is an error.
        """
        if self._conflict is RowConflict.KEPT:
            return None
        if self._conflict is RowConflict.REFUSED:
            raise DeclinedError("there is a row with this key")
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
