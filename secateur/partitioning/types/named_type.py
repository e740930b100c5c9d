"""Types that users have given names."""

from __future__ import annotations

import msgspec

from secateur.partitioning.types.column_type import SqlType


class NamedType(msgspec.Struct, frozen=True, array_like=True):
    """A type of CREATE TYPE. Columns and plans have the type itself, so that they need nobody who knows the name.

    Attributes:
        name: As written in CREATE TYPE; matched without regard to case.
        type: What it names.
        type_id: Never reused among tables, views and types, so that no plan outlives the type that it was made of.
    """

    name: str
    type: SqlType
    type_id: int = 0

    @property
    def sql(self) -> str:
        """The statement that makes it."""
        quoted = self.name.replace('"', '""')
        return f'CREATE TYPE "{quoted}" AS {self.type}'
