"""The hottest keys of a member: the request, and what it has sampled."""

from __future__ import annotations

import msgspec

from secateur.protocol.message import Message


class HotKey(msgspec.Struct, frozen=True, array_like=True):
    """A value of the partitioning key that statements have named often.

    Attributes:
        key: Its columns and their values, as JSON.
        partition: Its partition; None if no range of the table has it any more.
        count: It was sampled at most so often,
        error: and at least so many times less.
    """

    key: str
    partition: int | None
    count: int
    error: int


class HotTable(msgspec.Struct, frozen=True, array_like=True):
    """The sampled keys of a table.

    Attributes:
        table_id: The table.
        sampled: All keys of it that were sampled, the newest counting most.
        keys: The hottest, in this order.
    """

    table_id: int
    sampled: int
    keys: list[HotKey]


class HotKeys(msgspec.Struct, frozen=True):
    """The tables of which keys were sampled."""

    tables: list[HotTable]


class GetHotKeys(Message[HotKeys], frozen=True):
    """Ask a member for the hottest keys that it has sampled."""
