"""The profile of a query or a change, by stage and member: the figures of EXPLAIN ANALYZE."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from secateur.protocol.changes import ChangedRows, ChangedTable
from secateur.protocol.profile import RunProfile

__all__ = ["combined_profile", "profile_of_change"]


def profile_of_change(changed: ChangedRows | ChangedTable) -> RunProfile:
    """Return the profile of a change from its answer.

    The rows are those that were changed, and have no bytes in the result.
    """
    return RunProfile(changed.rows, 0, changed.work)


def combined_profile(profiles: Sequence[RunProfile]) -> RunProfile:
    """The profile of a query in steps, from those of its statements in their order; the last one gave the result."""
    *steps, last = profiles
    work = [
        replace(entry, stage=f"step {number}: {entry.stage}")
        for number, step in enumerate(steps, 1)
        for entry in step.work
    ]
    return RunProfile(last.rows, last.bytes, (*work, *last.work))
