"""The time limit of a statement: ``SET statement_timeout`` of its connection, or the ``timeout`` of its call."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Final

from secateur.errors import DeadlineError, ParameterError
from secateur.wire import CallControl

_SETS_TIMEOUT: Final = re.compile(r"\s*SET\s+(SESSION\s+)?statement_timeout\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StatementTimeout:
    """The setting of one connection.

    Attributes:
        text: As the user wrote it, such as ``5s``.
        milliseconds: The same as a number; 0 for none.
    """

    text: str
    milliseconds: int

    def control(self) -> CallControl:
        """Return the control that ends the calls of a statement that begins now. For a setting that is not 0."""
        late = DeadlineError(
            f"the statement took longer than statement_timeout = '{self.text}' and was cancelled; its work"
            " ends on every member. Raise it with SET statement_timeout = '...', or lift it with SET"
            " statement_timeout = 0",
            setting="statement_timeout",
        )
        return CallControl(time.monotonic() + self.milliseconds / 1000, late)


NO_TIMEOUT: Final = StatementTimeout("0", 0)


def sets_timeout(sql: str) -> bool:
    """Whether a statement sets the time-out of its connection: one that is too short for this could not be lifted."""
    return _SETS_TIMEOUT.match(sql) is not None


def call_timeout(timeout_s: float) -> CallControl:
    """Return the control for a call that has a timeout of its own.

    Raises:
        ParameterError: It is not a positive number of seconds.
    """
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < float("inf"):
        raise ParameterError(
            f"timeout={timeout_s!r}: a positive number of seconds, or None for the connection's setting"
        )
    late = DeadlineError(
        f"the statement took longer than its timeout={timeout_s:g} seconds and was cancelled; its work ends on every"
        " member",
        setting="timeout",
    )
    return CallControl(time.monotonic() + timeout_s, late)
