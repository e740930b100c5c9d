"""The place where a member's changes are recorded, as seen by the parts that make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

MakeBody: TypeAlias = Callable[[], Sequence[bytes | memoryview]]
"""Encodes a record, in the log's thread: it uses nothing that changes."""


class Journal(Protocol):
    """Takes the records of changes, in the order in which they are made. Lives on the member's event loop."""

    def append(self, body: MakeBody) -> None:
        """Record a change that was made in this turn of the loop.

        Cannot fail: whether the record is on disk is found out later.
        """
