"""The request for changes of partitions from their change feeds; see :mod:`secateur.storage.change_feed`."""

from __future__ import annotations

from typing import Final

import msgspec

from secateur.protocol.message import Message

LATEST: Final = -1
"""Stands for the newest version: a reader gets only later changes."""
EARLIEST: Final = -2
"""Stands for the oldest version from which a reader can follow."""


class ChangesRead(msgspec.Struct, frozen=True):
    """The changes of some partitions; their rows are the payload, if there are any.

    Attributes:
        reached: By partition, the version behind which to read on.
        has_more: Whether there are more changes already.
        rows: How many rows the payload has.
    """

    reached: list[tuple[int, int]]
    has_more: bool
    rows: int


class ReadChanges(Message[ChangesRead], frozen=True):
    """Read the changes of partitions at their primary.

    Attributes:
        table_id: The table.
        after: By partition, the version behind which changes are wanted; or :data:`LATEST` or :data:`EARLIEST`.
        bytes_max: About as many bytes of rows are wanted.
        until: By partition, the last version that is wanted; none for all.
    """

    table_id: int
    after: list[tuple[int, int]]
    bytes_max: int
    until: list[tuple[int, int]] = []  # noqa: RUF012 -- msgspec copies it


class ChangesBound(msgspec.Struct, frozen=True):
    """The versions up to which about so many changes reach: by partition, the version of the last change."""

    reached: list[tuple[int, int]]


class BoundChanges(Message[ChangesBound], frozen=True):
    """Find out how far about so many changes of partitions reach, without reading them; at their primary.

    Each partition gets an equal share, and what others leave of theirs; of each that has changes, at least one counts,
    and no change is divided.

    Attributes:
        table_id: The table.
        after: By partition, the version behind which changes count.
        size_max: So many of them are wanted at most: rows, or bytes.
        in_rows: Whether ``size_max`` is a number of rows.
        until: By partition, the last version that is wanted; none for all.
    """

    table_id: int
    after: list[tuple[int, int]]
    size_max: int
    in_rows: bool
    until: list[tuple[int, int]] = []  # noqa: RUF012 -- msgspec copies it
