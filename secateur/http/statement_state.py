"""The state of a statement that was submitted over HTTP."""

from __future__ import annotations

from enum import StrEnum


class StatementState(StrEnum):
    """The state of a statement; the last three are final."""

    WAITING = "waiting"
    """It waits for a thread of the server."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether it will not change any more."""
        return self in (StatementState.DONE, StatementState.FAILED, StatementState.CANCELLED)
