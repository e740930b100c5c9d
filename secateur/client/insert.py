"""INSERT from the client: the controller says which rows, the client takes them to their owners."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from secateur.client.load import LoadMode, load_rows
from secateur.client.rows import as_table
from secateur.client.select import run_select
from secateur.client.session import Session
from secateur.client.statement import InsertRows, InsertSelect

__all__ = ["insert_many", "insert_rows", "insert_select"]


def insert_rows(session: Session, insert: InsertRows) -> int:
    """Load the rows of an ``INSERT ... VALUES``; returns their number.

    Raises:
        Error: As :func:`~secateur.client.load.load_rows`.
    """
    return load_rows(session, insert.table, insert.rows, LoadMode.of(insert.mode)).rows


def insert_many(session: Session, inserts: Sequence[InsertRows]) -> int:
    """Load the rows of one statement with many sets of parameters, all at once; returns their number.

    Raises:
        Error: As :func:`~secateur.client.load.load_rows`.
    """
    rows = pa.concat_tables([insert.rows for insert in inserts], promote_options="default")
    return load_rows(session, inserts[0].table, rows, LoadMode.of(inserts[0].mode)).rows


def insert_select(session: Session, sql: str, params: list[Any] | dict[str, Any], insert: InsertSelect) -> int:
    """Run the query of an ``INSERT ... SELECT`` and load its rows; returns their number. The rows pass through this process.

    Raises:
        Error: As :func:`~secateur.client.select.run_select` and :func:`~secateur.client.load.load_rows`.
    """
    selected = run_select(session, sql, params, insert.source, cached=False, started_s=time.perf_counter())
    rows = as_table(selected.result, selected.columns).rename_columns(list(insert.columns))
    return load_rows(session, insert.table, rows, LoadMode.of(insert.mode)).rows
