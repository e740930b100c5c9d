"""Answers whose body is made here, in JSON or Arrow, rather than by FastAPI; rows of system tables among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from secateur.errors import InternalError
from secateur.http.arrow_answers import ARROW_TYPE
from secateur.server.problems import PROBLEM_TYPE
from secateur.server.results import JsonPage, KeptResult, arrow_stream, fetched, json_page
from secateur.server.state import ServerOfCaller

PROBLEM_ANSWER: Final[dict[str, Any]] = {
    "description": "The request failed.",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
"""What openapi.json says of every failure."""
NOT_ADMITTED_ANSWER: Final = PROBLEM_ANSWER | {"description": "The token is missing, wrong or was revoked."}
FORBIDDEN_ANSWER: Final = PROBLEM_ANSWER | {"description": "The role of the token does not allow it."}
ARROW_ANSWER: Final[dict[str, Any]] = {ARROW_TYPE: {"schema": {"type": "string", "format": "binary"}}}


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Plain data as JSON; ``msgspec.Raw`` in it is JSON already."""
    return Response(
        msgspec.json.encode(body), status_code=status, media_type="application/json", headers=dict(headers or {})
    )


def arrow_answer(result: KeptResult, description: Mapping[str, Any], headers: dict[str, str] | None = None) -> Response:
    """A result as an Arrow stream, in parts that are made as the reader takes them.

    Args:
        result: The result.
        description: What a JSON answer says beside the rows; it goes with the schema.
        headers: Further headers.
    """
    return StreamingResponse(arrow_stream(result, description), media_type=ARROW_TYPE, headers=dict(headers or {}))


def wants_arrow(request: Request) -> bool:
    """Whether the caller has asked for Arrow."""
    accepted = request.headers.get("accept", "").lower().split(",")
    return any(entry.partition(";")[0].strip() == ARROW_TYPE for entry in accepted)


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
