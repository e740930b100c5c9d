"""Rows of system tables as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from secateur.errors import InternalError
from secateur.server.results import JsonPage, fetched, json_page
from secateur.server.state import ServerOfCaller


def system_rows(server: ServerOfCaller, sql: str, params: Sequence[Any], offset: int, rows_max: int) -> JsonPage:
    """Execute a query of system tables, and return some of its rows as objects. Blocks.

    Args:
        server: Where.
        sql: The query, without LIMIT.
        params: Its parameters.
        offset: The number of the first row.
        rows_max: Rows, at most.

    Raises:
        Error: The query failed.
    """
    limits = server.limits
    with server.connections.lent() as connection, connection.cursor() as cursor:
        # One row more tells whether there is a next page.
        cursor.execute(f"{sql} LIMIT {rows_max + 1} OFFSET {offset}", list(params))
        result = fetched(cursor, limits.result_bytes_max)
    if result is None:
        raise InternalError("a query of system tables has no rows")
    page = json_page(result, 0, rows_max, limits.page_bytes_max, objects=True)
    return JsonPage(page.rows, None if page.next_offset is None else offset + page.next_offset)
