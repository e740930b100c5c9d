"""Brings incoming data into the exact schema of a table, or raises a clear error before anything is stored.

Also finds the first row of each primary key, for statements in which only that row counts, and the rows with a key that
a load may not have, so that its error names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import DataError, DuplicateKeyError, NullKeyError, ParameterError, UnknownColumnError
from secateur.partitioning.tables.row_ids import row_id_array
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.arrow_layout import comparable
from secateur.partitioning.types.cast import cast_column
from secateur.partitioning.types.held_values import check_held, check_texts_of_column
from secateur.partitioning.types.python_column import canonical_column

_LOOKED_AT_MAX: Final = 100_000
"""Rows whose values are compared one by one, in some tenths of a second."""


class MissingColumns(StrEnum):
    """The treatment of columns of a table that the data do not have."""

    NULL = "null"
    """They have their default in each row, or NULL."""

    KEPT = "kept"
    """Rows that are there keep their values, and new ones have their default, or NULL: what an upsert does."""

    REFUSED = "refused"
    """Those without a default are an error that names them."""

    @classmethod
    def of_load(cls, missing: str | None, *, is_upsert: bool) -> MissingColumns:
        """Read the argument ``missing`` of a load: ``"null"``, or None for what is safe.

        Raises:
            ParameterError: It is something else.
        """
        if missing is None:
            return cls.KEPT if is_upsert else cls.REFUSED
        if missing != cls.NULL:
            raise ParameterError(
                f"missing={missing!r}: 'null' has the default or NULL in the columns that the data lack; leave it out"
            )
        return cls.NULL


def conform(
    table: pa.Table | pa.RecordBatch,
    tdef: TableDef,
    missing: MissingColumns = MissingColumns.NULL,
    *,
    first_row: int = 1,
    now: datetime | None = None,
    are_all: bool = False,
) -> pa.Table:
    """Bring rows into ``tdef.arrow_schema``.

    Args:
        table: Rows with columns in any order, matched by name without regard to case.
        tdef: The table they are for.
        missing: The treatment of nullable columns, and of those with a default, that the rows lack.
        first_row: The number of the first row among the caller's rows, for messages; they count from 1.
        now: The time at which the statement or load began, in UTC, for defaults of the clock; None for this moment.
        are_all: Whether no others come: then missing columns are an error also where there is no row.

    Returns:
        The same rows in exactly ``tdef.arrow_schema``, without the columns that they lack if those are kept: in place
        of one whose default is not constant stands what a new row gets (:func:`made_default_name`). Columns that fit
        already are not copied. :mod:`~secateur.partitioning.types.cast` says which types convert. Rows of a table
        without a primary key get the ids that they lack.

    Raises:
        UnknownColumnError: A column that the table does not have.
        NullKeyError: A NULL in, or no data for, a column that is NOT NULL.
        DataError: A value that its column cannot hold, a column given twice, or missing ones that are refused.
    """
    rows = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    schema = tdef.arrow_schema
    given = _by_name(rows, tdef)
    if len(given) < len(schema) and (rows.num_rows or (are_all and given)):
        lacking = [column for column in tdef.visible_columns if column.name.casefold() not in given]
        if lacking:
            _check_missing(lacking, tdef, missing)
    if now is None and tdef.defaults:
        now = datetime.now(UTC)
    names: list[str] = []
    columns: list[pa.ChunkedArray] = []
    for column in tdef.columns:
        name = column.name
        position = given.get(name.casefold())
        made = None if position is not None else given.get(made_default_name(name).casefold())
        if position is not None:
            values = _conform_column(rows.column(position), column, tdef, first_row)
        elif missing is not MissingColumns.KEPT or name in tdef.primary_key:
            values = _default_column(column, tdef, rows.num_rows, now)
        elif made is not None:  # the rows were conformed before
            name, values = made_default_name(name), rows.column(made)
        elif name in tdef.defaults and not tdef.defaults[name].is_constant:
            name, values = made_default_name(name), _default_column(column, tdef, rows.num_rows, now)
        else:
            continue
        names.append(name)
        columns.append(values)
    if names != schema.names:
        own = {field.name: field for field in schema}
        schema = pa.schema(
            [own.get(name, pa.field(name, values.type)) for name, values in zip(names, columns, strict=True)]
        )
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    return pa.Table.from_arrays(columns, schema=schema)


def made_default_name(column: str) -> str:
    """The name under which the rows of an upsert have what new rows get in a column that they lack.

    Whether a row is new is known where it is stored, by each copy for itself; but all copies have to store the same.
    """
    return f"\x01{column}"


def _default_column(column: Column, tdef: TableDef, count: int, now: datetime | None) -> pa.ChunkedArray:
    if column.hidden:
        return pa.chunked_array([row_id_array(count)])
    default = tdef.defaults.get(column.name)
    if default is None or now is None or (default.is_constant and default.constant is None):
        return pa.chunked_array([pa.nulls(count, column.type.arrow)])
    values = default.values(count, now)
    return pa.chunked_array([canonical_column(values, column.type)])


def _check_missing(lacking: list[Column], tdef: TableDef, missing: MissingColumns) -> None:
    needed = next((column for column in lacking if not column.nullable and column.default in (None, "NULL")), None)
    if needed is not None:
        raise NullKeyError(
            f"table {tdef.name}: column {needed.name} is NOT NULL and the data lack it",
            table=tdef.name,
            column=needed.name,
        )
    lacking = [column for column in lacking if column.default is None]
    if lacking and missing is MissingColumns.REFUSED:
        names = ", ".join(column.name for column in lacking)
        raise DataError(
            f"table {tdef.name}: the data lack {names}: give the columns, or pass missing='null' (--missing null) to"
            " have NULL there",
            table=tdef.name,
            column=lacking[0].name,
        )


def _by_name(rows: pa.Table, tdef: TableDef) -> dict[str, int]:
    given: dict[str, int] = {}
    known = {column.name.casefold() for column in tdef.columns}
    if tdef.defaults:
        known |= {made_default_name(name).casefold() for name in tdef.defaults}
    for position, name in enumerate(rows.schema.names):
        folded = name.casefold()
        if folded not in known:
            expected = ", ".join(c.name for c in tdef.visible_columns)
            raise UnknownColumnError(
                f"table {tdef.name} has no column {name!r}, which the data have; it has {expected}",
                table=tdef.name,
                column=name,
            )
        if folded in given:
            raise DataError(
                f"table {tdef.name}: the data have column {name} twice (names differ only in case); give it once",
                table=tdef.name,
                column=name,
            )
        given[folded] = position
    return given


def _conform_column(values: pa.ChunkedArray, column: Column, tdef: TableDef, first_row: int) -> pa.ChunkedArray:
    check_texts_of_column(values, column.name, first_row)
    converted = cast_column(values, column.type, name=column.name, first_row=first_row)
    check_held(converted, column.name)
    if not column.nullable and converted.null_count:
        first = first_row + pc.index(converted.is_null(), True).as_py()
        nulls = f"{converted.null_count} of {len(converted)} rows are NULL there, the first is row {first}"
        raise NullKeyError(
            f"table {tdef.name}: column {column.name} is NOT NULL, but {nulls}", table=tdef.name, column=column.name
        )
    return converted


_POSITION = "position"


def first_of_each_key(rows: pa.Table, tdef: TableDef) -> pa.Table:
    """The rows whose key has not come before among them, in the order given.

    The rows have the key columns of ``tdef``, in its types.

    Returns:
        ``rows`` itself when every key comes once. Cost: one hash table over the keys; nothing for a single row.
    """
    first = first_positions(rows, tdef)
    return rows if first is None else rows.take(first)


def first_positions(rows: pa.Table, tdef: TableDef) -> pa.Array | None:
    """Return the positions of the rows of :func:`first_of_each_key`, ascending int64; None for all rows."""
    if rows.num_rows < 2:
        return None
    names = [f"key{number}" for number in range(len(tdef.primary_key))]
    keys = [comparable(rows.column(name)) for name in tdef.primary_key]
    numbered = pa.table([*keys, pa.array(np.arange(rows.num_rows))], names=[*names, _POSITION])
    grouped = numbered.group_by(names, use_threads=False).aggregate([(_POSITION, "min")])
    if grouped.num_rows == rows.num_rows:
        return None
    return pa.array(np.sort(grouped.column(f"{_POSITION}_min").to_numpy()))


def with_rows_of_key(error: DuplicateKeyError, rows: pa.Table, columns: Sequence[str]) -> DuplicateKeyError:
    """The error with the numbers of the first two rows that have its key, counted from 1, as far as they are found.

    ``rows`` are all rows of the load, in the order in which the caller gave them; the key is in the ``details`` of the
    error.
    """
    key: list[Any] = error.details.get("key") or []
    if len(key) != len(columns):
        return error
    found = pc.is_valid(rows.column(columns[0]))
    for name, value in zip(columns, key, strict=True):
        kind = rows.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_string(kind):
            found = pc.and_(found, pc.equal(rows.column(name), value))
    numbers = pc.indices_nonzero(found)
    with suppress(OverflowError, ValueError):  # a date that Python has not
        candidates = rows.select(list(columns)).take(numbers.slice(0, _LOOKED_AT_MAX)).to_pylist()
        same = [
            number.as_py() + 1
            for number, row in zip(numbers, candidates, strict=False)
            if all(text in (str(given), repr(given)) for text, given in zip(map(str, key), row.values(), strict=True))
        ][:2]
        if same:
            where = f"row {same[0]}" if len(same) == 1 else f"rows {same[0]} and {same[1]}"
            return DuplicateKeyError(f"{error.message}: {where}", **error.details, row=same[-1])
    return error
