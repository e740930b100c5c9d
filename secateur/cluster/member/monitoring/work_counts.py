"""What a member counts of the work that it is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WorkCounts:
    """Counts since the member is there; changed on its event loop.

    Attributes:
        executions: Statements, changes and jobs that it was asked to run, or to run a part of.
        frames_received: Frames of statements, jobs, loads and data; housekeeping does not count.
    """

    executions: int = 0
    frames_received: int = 0
