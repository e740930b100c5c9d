"""Errors as JSON problems.

Source: RFC 9457, Problem Details for HTTP APIs.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from secateur import errors

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


async def answer_error(_: Request, error: Exception) -> Response:
    """The handler of ours."""
    assert isinstance(error, errors.Error)
    return problem_response(problem_of(error))


async def answer_http_error(_: Request, error: Exception) -> Response:
    """The handler of what the routes refuse."""
    assert isinstance(error, HTTPException)
    return problem_response(of_status(error.status_code, str(error.detail)), dict(error.headers or {}))


async def refuse_invalid_request(_: Request, error: Exception) -> Response:
    """The handler of a request whose parameters or body do not have the form that openapi.json describes."""
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5]]
    said = "; ".join(found).encode("utf-8", "backslashreplace").decode()
    return problem_response(of_status(HTTPStatus.UNPROCESSABLE_ENTITY, f"{said}; /docs has the form of the request"))


async def answer_bug(_: Request, error: Exception) -> Response:
    """The handler of everything that should not happen: the caller learns its class, the log has the rest."""
    return problem_response(
        problem_of(
            errors.InternalError(f"a bug of the HTTP server ({type(error).__name__}): please report it with its log")
        )
    )


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
