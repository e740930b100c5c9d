"""Rows of a query as objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from secateur.client.dbapi.connection import Connection


def row_objects(
    connection: Connection, sql: str, params: Sequence[Any] = (), timeout_s: float | None = None
) -> Iterator[dict[str, Any]]:
    """Execute a query, and yield its rows by the names of their columns.

    Raises:
        DeadlineError: It has not ended in time.
        Error: The query failed.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params), timeout=timeout_s)
        assert cursor.description is not None, "a query has columns"
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))
