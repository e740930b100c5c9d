"""The profile of a change, by stage and member: the figures of EXPLAIN ANALYZE."""

from __future__ import annotations

from secateur.protocol.changes import ChangedRows, ChangedTable
from secateur.protocol.profile import RunProfile


def profile_of_change(changed: ChangedRows | ChangedTable) -> RunProfile:
    """Return the profile of a change from its answer.

    The rows are those that were changed, and have no bytes in the result.
    """
    return RunProfile(changed.rows, 0, changed.work)
