"""``SET statement_timeout``: how long a statement of this connection may take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from secateur.errors import DeadlineError
from secateur.wire import CallControl

__all__ = ["NO_TIMEOUT", "StatementTimeout"]


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
