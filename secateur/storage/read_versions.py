"""Read versions: the version of a table on a member when it was read, so that a later read can detect changes.

The reader chooses a token and sends it with both reads; nothing is sent back. A member that does not have the token, or
has dropped it, reports a change.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

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
        """Record that a table was read under a token after ``changes`` changes; of several reads, the first counts."""
        self._changes.setdefault((mark, table_id), changes)
        if len(self._changes) > self._marks_max:
            self._changes.popitem(last=False)

    def is_unchanged(self, mark: str, table_id: int, changes: int) -> bool:
        """Whether a table with ``changes`` changes was read under a token and has not changed since."""
        return self._changes.get((mark, table_id)) == changes
