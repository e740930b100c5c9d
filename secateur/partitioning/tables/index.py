"""The description of a secondary index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["IndexDef"]


@dataclass(frozen=True, slots=True)
class IndexDef:
    """A sorted index over columns of a table, inside each of its partitions.

    Attributes:
        name: Unique in the cluster, without regard to case.
        columns: Its columns, most significant first.
    """

    name: str
    columns: tuple[str, ...]

    def to_wire(self) -> list[Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return [self.name, list(self.columns)]

    @classmethod
    def from_wire(cls, data: Sequence[Any]) -> IndexDef:
        name, columns = data
        return cls(name, tuple(columns))
