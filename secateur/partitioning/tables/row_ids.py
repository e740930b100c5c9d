"""The hidden ids of rows of tables without a primary key.

Storage keeps rows in the order of a key, and replication, logs and retries know rows by it. A table that is made
without one gets a hidden column behind its own, and its key in storage are its partitioning columns and this column. So
a key still tells the partition of a row, and all that is below the statements sees a table with one column more.

An id is given where a row enters: by the client that inserts it, by the task that loads it, or by the member that works
out the change. What is repeated under the same change has the same ids. Ids are UUIDs of version 7, which grow with
time, so new rows of a partition come behind those that are there.

Source: the auto-incrementing column of Apache Kudu, by which a non-unique primary key becomes unique, and CockroachDB's
hidden ``rowid``; both are given by the server that stores the row, so a repeated INSERT may store it twice there.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import ProgrammingError
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.default_value import first_of, new_uuids

ROW_ID_COLUMN: Final = Column(ROW_ID, SqlType(TypeKind.UUID), nullable=False, hidden=True)
WITH_ROW_IDS: Final = "with row ids"
"""The schema in which a table has its row ids: queries of changes read it there, all others do not see them."""


def new_row_ids(count: int) -> list[UUID]:
    """Ids for some rows, ascending. Costs about a microsecond a row."""
    return new_uuids(count)


def row_id_array(count: int) -> pa.Array:
    """Ids for many rows as Arrow has them, ascending. Costs some nanoseconds a row."""
    high, low = first_of(count)
    words = np.empty((count, 2), dtype=">u8")
    words[:, 0] = high
    words[:, 1] = np.arange(count, dtype=np.uint64) + np.uint64(low)
    type_ = ROW_ID_COLUMN.type.arrow
    storage = pa.FixedSizeBinaryArray.from_buffers(type_.storage_type, count, [None, pa.py_buffer(words)])
    return pa.ExtensionArray.from_storage(type_, storage)


def with_row_ids(rows: pa.Table, table: TableDef) -> pa.Table:
    """Rows with the ids that those of the table have, if it has such and the rows lack them."""
    if not table.has_row_ids or ROW_ID in rows.schema.names:
        return rows
    return rows.append_column(table.arrow_schema.field(ROW_ID), row_id_array(rows.num_rows))


def without_row_ids(rows: pa.Table) -> pa.Table:
    """Rows without their ids, if they have such: each time that they are written they get others."""
    return rows.drop_columns([ROW_ID]) if ROW_ID in rows.schema.names else rows


def filled_row_ids(ids: pa.ChunkedArray) -> pa.Array:
    """Ids of rows, with new ones in place of NULL."""
    storage = ids.combine_chunks().storage if ids.num_chunks else pa.array([], ids.type.storage_type)
    return pa.ExtensionArray.from_storage(ids.type, pc.coalesce(storage, row_id_array(len(ids)).storage))


def check_writable(schema: pa.Schema, table: TableDef) -> None:
    """Refuse data of a user that have a column with the name of the ids, where the table has such.

    Raises:
        UnknownColumnError: They have.
    """
    if table.has_row_ids and any(name.casefold() == ROW_ID for name in schema.names):
        table.visible_column(ROW_ID)


def check_has_key(table: TableDef, what: str) -> None:
    """Refuse what only a table with a primary key can do.

    The message has ``what`` was to be done, such as ``a load with mode 'upsert' has no keys to compare``.

    Raises:
        ProgrammingError: The table has none.
    """
    if table.has_row_ids:
        raise ProgrammingError(
            f"table {table.name} has no primary key, so {what}: create it with PRIMARY KEY (...), or change and read"
            " its rows by their columns (INSERT, UPDATE and DELETE ... WHERE, SELECT)",
            table=table.name,
        )
