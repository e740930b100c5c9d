"""INSERT of many rows of literals: the rows that were taken out of the text become its rows again, without DuckDB."""

from __future__ import annotations

import pyarrow as pa

from secateur.partitioning.tables.conform import conform
from secateur.partitioning.tables.distinct_keys import first_of_each_key
from secateur.partitioning.tables.row_ids import without_row_ids
from secateur.planner.dml.literal_columns import literal_column
from secateur.planner.text.literal_rows import LiteralRows
from secateur.protocol.statements import EvaluatedInsert, InsertMode, Statement


def with_literal_rows(statement: Statement, taken: LiteralRows) -> EvaluatedInsert | None:
    """An INSERT whose rows were taken out of its text, with these rows; None where DuckDB has to make a column.

    Args:
        statement: The plan of its text with the first row alone.
        taken: All rows.

    Raises:
        DataError, NullKeyError: A value that its column cannot hold.
    """
    if not isinstance(statement, EvaluatedInsert):
        return None
    insert = statement.insert
    columns = [insert.table.column(name) for name in taken.columns] or insert.table.visible_columns
    found = [
        literal_column(texts, column.type) for texts, column in zip(zip(*taken.rows, strict=True), columns, strict=True)
    ]
    if any(column is None for column in found):
        return None
    rows = without_row_ids(conform(pa.table(found, names=[column.name for column in columns]), insert.table))
    return EvaluatedInsert(insert, first_of_each_key(rows, insert.table) if insert.mode is InsertMode.UPSERT else rows)
