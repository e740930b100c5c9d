"""The description of a secondary index."""

from __future__ import annotations

import msgspec


class IndexDef(msgspec.Struct, frozen=True, array_like=True):
    """A sorted index over columns of a table, inside each of its partitions.

    Attributes:
        name: Unique in the cluster, without regard to case.
        columns: Its columns, most significant first.
    """

    name: str
    columns: tuple[str, ...]
