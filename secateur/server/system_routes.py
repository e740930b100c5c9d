"""The system tables under ``/api/v1``, each with the columns that it has in SQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Response

from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.server.answers import json_answer, system_rows
from secateur.server.forms import PAGE_ROWS, Offset, PageRows, page_of_table
from secateur.server.state import Server, ServerOfCaller

router = APIRouter(prefix="/api/v1")

_NAMES: Final = ("members", "tables", "columns", "partitions", "events", "loads", "latencies", "settings")
_NEWEST_FIRST: Final = frozenset({"events", "loads"})

TableName = Annotated[
    str | None, Query(min_length=1, max_length=256, description="rows of this table only", examples=["orders"])
]


def _add(name: str) -> None:
    table = SYSTEM_TABLES[name]
    order = "DESC" if name in _NEWEST_FIRST else "ASC"
    keys = ", ".join(f'"{column}" {order}' for column in table.primary_key)
    answers: Callable[..., Awaitable[Response]]

    async def page(server: ServerOfCaller, where: str, params: list[str], offset: int, limit: int) -> Response:
        sql = f"SELECT * FROM secateur.{name}{where} ORDER BY {keys}"
        found = await server.in_thread(system_rows, server, sql, params, offset, limit)
        return json_answer({"items": msgspec.Raw(found.rows), "next_offset": found.next_offset})

    if any(column.name == "table_name" for column in table.columns):

        async def rows_of_table(
            server: Server, table: TableName = None, offset: Offset = 0, limit: PageRows = PAGE_ROWS
        ) -> Response:
            where = "" if table is None else " WHERE lower(table_name) = lower(?)"
            return await page(server, where, [] if table is None else [table], offset, limit)

        answers = rows_of_table
    else:

        async def rows(server: Server, offset: Offset = 0, limit: PageRows = PAGE_ROWS) -> Response:
            return await page(server, "", [], offset, limit)

        answers = rows
    router.add_api_route(
        f"/{name}",
        answers,
        name=f"get_{name}",
        summary=f"Rows of secateur.{name}",
        description=f"The rows of `secateur.{name}`" + (", the newest first." if order == "DESC" else "."),
        responses={200: {"model": page_of_table(table)}},
    )


for _name in _NAMES:
    _add(_name)
