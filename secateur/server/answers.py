"""Answers whose body is made here, in JSON or Arrow, rather than by FastAPI; rows of system tables among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Final

import msgspec
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from secateur.errors import InternalError
from secateur.http.answers import ARROW_TYPE
from secateur.server.problems import PROBLEM_TYPE
from secateur.server.state import ServerOfCaller
from secateur.server.statements import JsonPage, KeptResult, arrow_stream, fetched, json_page, text_stream

PROBLEM_ANSWER: Final[dict[str, Any]] = {
    "description": "The request failed.",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
"""What openapi.json says of every failure."""
NOT_ADMITTED_ANSWER: Final = PROBLEM_ANSWER | {"description": "The token is missing, wrong, over or revoked."}
FORBIDDEN_ANSWER: Final = PROBLEM_ANSWER | {"description": "The role of the token does not allow it."}


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Plain data as JSON; ``msgspec.Raw`` in it is JSON already."""
    return Response(
        msgspec.json.encode(body), status_code=status, media_type="application/json", headers=dict(headers or {})
    )


class RowsForm(StrEnum):
    """The media types of rows, those first that a caller gets who names none."""

    JSON = "application/json"
    ARROW = ARROW_TYPE
    CSV = "text/csv"
    LINES = "application/x-ndjson"


def rows_form(request: Request) -> RowsForm:
    """The form in which the caller wants rows.

    Source: RFC 9110, section 12.5.1. Of equally wanted ones, it is the one that is named first.

    Raises:
        HTTPException: Status 406: none of those that there are is accepted.
    """
    accept = request.headers.get("accept", "").lower() or "*/*"
    entries = [entry.split(";") for entry in accept.split(",")]
    for kind, *parameters in sorted(entries, key=_weight, reverse=True):
        for form in RowsForm:
            if kind.strip() in (form, "*/*", f"{form.partition('/')[0]}/*") and _weight(["", *parameters]) > 0:
                return form
    raise HTTPException(406, f"rows are answered as {', '.join(RowsForm)}: name one of these as Accept")


def _weight(entry: Sequence[str]) -> float:
    """Returns the weight of a media type."""
    given = [parameter.partition("=")[2] for parameter in entry[1:] if parameter.strip().startswith("q=")]
    try:
        return float(given[0]) if given else 1.0
    except ValueError:
        return 0.0


STREAMED_ANSWERS: Final[dict[str, Any]] = {
    RowsForm.ARROW: {"schema": {"type": "string", "format": "binary"}},
    RowsForm.CSV: {"schema": {"type": "string"}},
    RowsForm.LINES: {"schema": {"type": "string"}},
}
"""What openapi.json says of the forms other than JSON."""


async def result_answer(
    server: ServerOfCaller,
    form: RowsForm,
    result: KeptResult,
    description: Mapping[str, Any],
    offset: int,
    rows_max: int,
    headers: dict[str, str] | None = None,
) -> Response:
    """Some rows of a result in JSON, or all in another form, in parts that are made as the reader takes them.

    Args:
        server: Where the first part is made, so that an error in it is one of the answer.
        form: The form.
        result: The result.
        description: What a JSON answer says beside the rows and columns; it goes with the schema of Arrow.
        offset: The number of the first row of a JSON answer.
        rows_max: Rows of a JSON answer, at most.
        headers: Further headers.
    """
    limits = server.limits
    body = {**description, "columns": [{"name": column.name, "type": column.type} for column in result.columns]}
    if form is RowsForm.JSON:
        rows_max = min(rows_max, limits.page_rows_max)
        page = await server.in_thread(json_page, result, offset, rows_max, limits.page_bytes_max)
        return json_answer(body | {"rows": msgspec.Raw(page.rows), "next_offset": page.next_offset}, headers=headers)
    is_arrow = form is RowsForm.ARROW
    parts = arrow_stream(result, body) if is_arrow else text_stream(result, is_csv=form is RowsForm.CSV)
    first = await server.in_thread(lambda: b"".join(islice(parts, 2)))  # the head, and the first rows
    return StreamingResponse(chain([first], parts), media_type=form.value, headers=dict(headers or {}))


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
