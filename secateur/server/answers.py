"""Answers whose body is made here, in JSON or Arrow, rather than by FastAPI: rows of system tables, and problems.

Source: RFC 9457, Problem Details for HTTP APIs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from itertools import chain, islice
from typing import Any, Final

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from secateur import errors
from secateur.errors import InternalError
from secateur.http.answers import ARROW_TYPE
from secateur.server.state import ServerOfCaller
from secateur.server.statements import JsonPage, KeptResult, arrow_stream, fetched, json_page, text_stream

PROBLEM_TYPE: Final = "application/problem+json"
_RETRY_AFTER_S: Final = 1

_STATUS: Final[tuple[tuple[type[errors.Error], HTTPStatus], ...]] = (
    (errors.UnknownJobError, HTTPStatus.NOT_FOUND),
    (errors.TableExistsError, HTTPStatus.CONFLICT),
    (errors.JobExistsError, HTTPStatus.CONFLICT),
    (errors.IntegrityError, HTTPStatus.CONFLICT),
    (errors.JobCancelledError, HTTPStatus.CONFLICT),
    (errors.DataError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.JobFailedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.AuthenticationError, HTTPStatus.FORBIDDEN),
    (errors.ProtocolError, HTTPStatus.BAD_GATEWAY),
    (errors.DeadlineError, HTTPStatus.GATEWAY_TIMEOUT),
    (errors.OperationalError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.InternalError, HTTPStatus.INTERNAL_SERVER_ERROR),
)
"""The first class that an error has; any other error is the request's own, and has status 400."""

PROBLEM_ANSWER: Final[dict[str, Any]] = {
    "description": "The request failed.",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
"""What openapi.json says of every failure."""
NOT_ADMITTED_ANSWER: Final = PROBLEM_ANSWER | {"description": "The token is missing, wrong, over or revoked."}
FORBIDDEN_ANSWER: Final = PROBLEM_ANSWER | {"description": "The role of the token does not allow it."}


class Problem(BaseModel):
    """Why a request failed."""

    type: str = Field(
        description="`urn:secateur:error:` and the class of the error; `about:blank` where the status says all",
    )
    title: str = Field(description="the first sentence of the class's documentation, or the name of the status")
    status: int = Field(description="the status of the answer; in the record of a statement, that of its result")
    detail: str = Field(description="what happened, where, what was expected, and what to do")
    error: str | None = Field(default=None, description="the class, as the Python client raises it")
    details: dict[str, Any] = Field(default={}, description="plain values for programs, such as `line` and `column`")
    retry_safe: bool = Field(
        default=False, description="whether repeating the request may help, and cannot do anything twice"
    )
    id: str | None = Field(default=None, description="the statement or job that failed, where it has a record")


def status_of(error: errors.Error) -> HTTPStatus:
    """The status of the answer to a request that failed with an error."""
    if isinstance(error, errors.LimitExceededError) and not error.retry_safe:
        return HTTPStatus.UNPROCESSABLE_ENTITY  # a larger thing than the limit stays larger
    return next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)


def problem_of(error: errors.Error, resource_id: str | None = None) -> Problem:
    """An error as a problem.

    Args:
        error: The error.
        resource_id: The statement or job that failed.
    """
    name = type(error).__name__
    return Problem(
        type=f"urn:secateur:error:{name}",
        title=(type(error).__doc__ or name).partition("\n")[0].partition(". ")[0].rstrip("."),
        status=status_of(error),
        detail=error.message,
        error=name,
        details={key: _plain(value) for key, value in error.details.items()},
        retry_safe=error.retry_safe,
        id=resource_id,
    )


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """A problem as an answer."""
    found = dict(headers or {})
    if problem.retry_safe:
        found.setdefault("Retry-After", str(_RETRY_AFTER_S))
    return Response(
        msgspec.json.encode(problem.model_dump()), status_code=problem.status, media_type=PROBLEM_TYPE, headers=found
    )


def of_status(status: int, detail: str) -> Problem:
    """A problem of HTTP itself, which no error of ours describes."""
    return Problem(type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=detail)


def answer_to(error: Exception) -> Response:
    """What went wrong as an answer: an error of ours, or what the routes refuse.

    Of a bug the caller learns the class; the log has the rest.
    """
    match error:
        case errors.Error():
            return problem_response(problem_of(error))
        case HTTPException():
            return problem_response(of_status(error.status_code, str(error.detail)), dict(error.headers or {}))
        case RequestValidationError():  # it does not have the form that openapi.json describes
            found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5]]
            said = "; ".join(found).encode("utf-8", "backslashreplace").decode()
            detail = f"{said}; /docs has the form of the request"
            return problem_response(of_status(HTTPStatus.UNPROCESSABLE_ENTITY, detail))
        case _:
            bug = f"a bug of the HTTP server ({type(error).__name__}): please report it with its log"
            return problem_response(problem_of(errors.InternalError(bug)))


async def answer_error(_: Request, error: Exception) -> Response:
    """The handler of whatever went wrong."""
    return answer_to(error)


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else str(value)
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case _:
            return str(value)


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
