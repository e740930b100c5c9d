"""Brings incoming data into the exact schema of a table, or raises a clear error before anything is stored."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import DataError, NullKeyError, UnknownColumnError
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.cast import cast_column
from secateur.partitioning.types.held_values import check_held

__all__ = ["conform"]


def conform(table: pa.Table | pa.RecordBatch, tdef: TableDef) -> pa.Table:
    """Bring rows into ``tdef.arrow_schema``.

    Args:
        table: Rows with columns in any order, matched by name without regard to case. Nullable columns may be missing:
            they become NULL.
        tdef: The table they are for.

    Returns:
        The same rows in exactly ``tdef.arrow_schema``; columns that fit already are not copied.
        :mod:`~secateur.partitioning.types.cast` says which types convert.

    Raises:
        UnknownColumnError: A column that the table does not have.
        NullKeyError: A NULL in, or no data for, a column that is NOT NULL.
        DataError: A value that its column cannot hold, or a column given twice.
    """
    rows = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    schema = tdef.arrow_schema
    given = _by_name(rows, tdef)
    columns = [_conform_column(rows, given.get(column.name.casefold()), column, tdef) for column in tdef.columns]
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    return pa.Table.from_arrays(columns, schema=schema)


def _by_name(rows: pa.Table, tdef: TableDef) -> dict[str, int]:
    given: dict[str, int] = {}
    known = {column.name.casefold() for column in tdef.columns}
    for position, name in enumerate(rows.schema.names):
        folded = name.casefold()
        if folded not in known:
            expected = ", ".join(c.name for c in tdef.columns)
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


def _conform_column(rows: pa.Table, position: int | None, column: Column, tdef: TableDef) -> pa.ChunkedArray:
    if position is None:
        if not column.nullable and rows.num_rows:
            raise NullKeyError(
                f"table {tdef.name}: column {column.name} is NOT NULL and the data lack it",
                table=tdef.name,
                column=column.name,
            )
        return pa.chunked_array([pa.nulls(rows.num_rows, column.type.arrow)])
    converted = cast_column(rows.column(position), column.type, name=column.name)
    check_held(converted, column.name)
    if not column.nullable and converted.null_count:
        first = pc.index(converted.is_null(), True).as_py()
        nulls = f"{converted.null_count} of {len(converted)} rows are NULL there, the first is row {first}"
        raise NullKeyError(
            f"table {tdef.name}: column {column.name} is NOT NULL, but {nulls}", table=tdef.name, column=column.name
        )
    return converted
