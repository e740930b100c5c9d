"""Answers of the HTTP server that are no success, as the errors that the Python client raises."""

from __future__ import annotations

from typing import Any, Final

import httpx
import msgspec

from secateur import errors
from secateur.protocol.decoders import from_json

PROBLEM_TYPE: Final = "application/problem+json"
_SHOWN_CHARS: Final = 500
_BY_STATUS: Final[dict[int, type[errors.Error]]] = {
    401: errors.AuthenticationError,
    403: errors.AuthenticationError,
    408: errors.DeadlineError,
    410: errors.LimitExceededError,
    413: errors.LimitExceededError,
    429: errors.LimitExceededError,
    502: errors.OperationalError,
    503: errors.OperationalError,
    504: errors.DeadlineError,
}
"""For problems that name no class of ours; any other one is the request's own mistake."""


class ProblemAnswer(msgspec.Struct, frozen=True):
    """A problem of RFC 9457, as far as an error is made of it.

    Attributes:
        detail: What happened, where, what was expected, and what to do.
        error: The class; None if the server has none for it.
        details: Plain values for programs.
        retry_safe: Whether repeating the request may help, and cannot do anything twice.
    """

    detail: str
    error: str | None = None
    details: dict[str, Any] = {}
    retry_safe: bool = False

    def to_error(self, status: int) -> errors.Error:
        """The error.

        Args:
            status: The status of the answer that it came with.
        """
        if self.error is not None:
            found = errors.rebuilt(self.error, self.detail, self.details)
        else:
            found = _BY_STATUS.get(status, errors.ProgrammingError)(self.detail, **self.details)
        if found.retry_safe == self.retry_safe:
            return found
        return errors.rebuilt(type(found).__name__, self.detail, {**self.details, "retry_safe": self.retry_safe})


def error_of_answer(answer: httpx.Response) -> errors.Error:
    """The error of an answer whose body was read.

    An answer that is no problem comes from a proxy, from another service, or from a server that speaks HTTPS alone.
    """
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == PROBLEM_TYPE:
        try:
            problem = from_json(answer.content, ProblemAnswer)
        except msgspec.DecodeError:
            pass
        else:
            return problem.to_error(answer.status_code)
    said = answer.text[:_SHOWN_CHARS].strip() if kind.startswith("text/") else f"a body of the type {kind!a}"
    return errors.ProtocolError(
        f"{answer.request.url} answers with status {answer.status_code}, and not as secateur's HTTP server does; does"
        f" the address belong to it? It says: {said}",
        status=answer.status_code,
    )
