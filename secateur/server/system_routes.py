"""The system tables under ``/api/v1``, each with the columns that it has in SQL, and the health of the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Response

from secateur.errors import AuthenticationError, Error
from secateur.planner.system.tables import SYSTEM_TABLES
from secateur.server.answers import json_answer, system_rows
from secateur.server.forms import PAGE_ROWS, Offset, PageRows, page_of_table
from secateur.server.state import Server, ServerOfCaller, ServerState

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


_FRESH_S: Final = 1.0
"""However many ask, the cluster is asked once in that time."""


class Health:
    """The last look at the cluster. Lives on one event loop.

    Args:
        server: Whose cluster.
    """

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._looked_s = 0.0
        self._is_reachable = False
        self._lock = asyncio.Lock()

    async def is_reachable(self) -> bool:
        """Whether the controller answered, at most a second ago."""
        async with self._lock:
            if time.monotonic() - self._looked_s > _FRESH_S:
                self._is_reachable = await self._server.in_thread(self._look)
                self._looked_s = time.monotonic()
            return self._is_reachable

    def _look(self) -> bool:
        try:
            with self._server.connections.lent() as connection:
                connection.jobs()  # the controller alone answers this, from memory
        except AuthenticationError:
            return True  # it has answered
        except Error:
            return False
        return True
