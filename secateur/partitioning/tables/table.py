"""The description of one table: columns, primary key, partition scheme, copies.

A frozen value that is sent between processes: the controller keeps it in the catalog, members build their partitions
from it, and clients route with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from secateur.errors import UnknownColumnError
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.schemes.scheme_registry import read_scheme, scheme_to_wire
from secateur.partitioning.tables.index import IndexDef
from secateur.partitioning.types.column_type import SqlType, parse_type

__all__ = ["Column", "TableDef"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name: As written in CREATE TABLE; matched without regard to case, as the dialect does.
        type: Its type.
        nullable: False for NOT NULL columns and all primary-key columns.
    """

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableDef:
    """A table.

    Attributes:
        name: As written in CREATE TABLE; matched without regard to case.
        table_id: Never reused: a table that is dropped and created again gets another.
        columns: In the order declared.
        primary_key: Column names in key order; rows inside a partition are sorted by them.
        scheme: How rows map to partitions. A replicated table has the scheme without components: one partition.
        backups: Copies beside the primary.
        replicated: Whether every member holds a full copy.
        version: Grows with every ALTER TABLE.
        indexes: Secondary indexes; the rows that members hold do not depend on them.
    """

    name: str
    table_id: int
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    scheme: PartitionScheme
    backups: int = 1
    replicated: bool = False
    version: int = 1
    indexes: tuple[IndexDef, ...] = ()
    _schema: pa.Schema | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def never_null(self) -> frozenset[str]:
        """The names of the columns that do not hold NULL."""
        return frozenset(column.name for column in self.columns if not column.nullable)

    @property
    def partition_count(self) -> int:
        return self.scheme.partition_count

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of a batch of this table: columns in declared order, ``nullable`` as declared. Computed once."""
        if self._schema is None:
            object.__setattr__(
                self, "_schema", pa.schema([pa.field(c.name, c.type.arrow, c.nullable) for c in self.columns])
            )
        return self._schema

    @property
    def partitioning_columns(self) -> tuple[Column, ...]:
        """The columns of the partitioning key in the order in which the scheme names them."""
        return tuple(self.column(name) for name in self.scheme.columns)

    def column(self, name: str) -> Column:
        """Find a column without regard to case.

        Raises:
            UnknownColumnError: No such column; the message lists those that exist.
        """
        folded = name.casefold()
        for column in self.columns:
            if column.name.casefold() == folded:
                return column
        raise UnknownColumnError(
            f"table {self.name} has no column {name!r}; it has {', '.join(c.name for c in self.columns)}",
            table=self.name,
        )

    def to_wire(self, *, by_reference: bool = False) -> dict[str, Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back.

        By reference, a large scheme is named instead: for who has the table at this version.
        """
        return {
            "name": self.name,
            "table_id": self.table_id,
            "columns": [[c.name, str(c.type), c.nullable] for c in self.columns],
            "primary_key": list(self.primary_key),
            "scheme": scheme_to_wire(self.scheme, by_reference=by_reference),
            "backups": self.backups,
            "replicated": self.replicated,
            "version": self.version,
            "indexes": [index.to_wire() for index in self.indexes],
        }

    @classmethod
    def from_wire(cls, data: dict[str, Any]) -> TableDef:
        """Read :meth:`to_wire`.

        Raises:
            TopologyChangedError: It names a scheme that is not known here.
        """
        return cls(
            name=data["name"],
            table_id=data["table_id"],
            columns=tuple(Column(name, parse_type(text), nullable) for name, text, nullable in data["columns"]),
            primary_key=tuple(data["primary_key"]),
            scheme=read_scheme(data["scheme"], table=data["name"]),
            backups=data["backups"],
            replicated=data["replicated"],
            version=data["version"],
            indexes=tuple(map(IndexDef.from_wire, data.get("indexes", ()))),
        )
