"""Marks: how far a table had come on a member when somebody read it, so that a later read can tell whether it sees the
same rows.

The reader makes up the mark, and names it with both reads; nothing travels back. A member that has never heard of a
mark, or has forgotten it, says no.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

__all__ = ["ReadVersions"]

_MARKS_MAX: Final = 4096
"""Reads whose second half is milliseconds away, each for some tables."""


class ReadVersions:
    """The marks of one member. Lives on its event loop.

    Args:
        marks_max: How many are kept; the oldest go first.
    """

    def __init__(self, marks_max: int = _MARKS_MAX) -> None:
        self._changes: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._marks_max = marks_max

    def note(self, mark: str, table_id: int, changes: int) -> None:
        """A table is read under a mark, when it has seen so many changes; of several reads under one mark the first
        counts.
        """
        self._changes.setdefault((mark, table_id), changes)
        if len(self._changes) > self._marks_max:
            self._changes.popitem(last=False)

    def is_unchanged(self, mark: str, table_id: int, changes: int) -> bool:
        """Whether a table that has seen so many changes by now was read under a mark, and has not changed since."""
        return self._changes.get((mark, table_id)) == changes
