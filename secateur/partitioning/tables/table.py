"""The description of one table: columns, primary key, partition scheme, copies.

Beside it the catalog describes external tables, whose rows are elsewhere and read by a connector, and types that users
have given names.

A table is a frozen value that is sent between processes: the controller keeps it in the catalog, members build their
partitions from it, and clients route with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import force_setattr, replace

from secateur.cached_properties import cached_property
from secateur.errors import UnknownColumnError
from secateur.partitioning.schemes.components import HashComponent, RangeColumns
from secateur.partitioning.schemes.scheme import PartitionScheme, find_scheme, scheme_of_reference
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.default_value import DefaultValue


class IndexDef(msgspec.Struct, frozen=True, array_like=True):
    """A sorted index over columns of a table, inside each of its partitions.

    Attributes:
        name: Unique in the cluster, without regard to case.
        columns: Its columns, most significant first.
    """

    name: str
    columns: tuple[str, ...]


class CheckDef(msgspec.Struct, frozen=True, array_like=True):
    """A condition that no row of a table fails: it is TRUE, or NULL.

    Attributes:
        name: Unique in the table, without regard to case.
        condition: An expression of DuckDB over columns of one row, equal for equal rows at any time and place.
        columns: The columns that it reads, as the table spells them.
    """

    name: str
    condition: str
    columns: tuple[str, ...]


class Column(msgspec.Struct, frozen=True, array_like=True):
    """A column.

    Attributes:
        name: As written in CREATE TABLE; matched without regard to case, as the dialect does.
        type: Its type.
        nullable: False for NOT NULL columns and all primary-key columns.
        default: What a row gets that does not name it: the text of a
            :class:`~secateur.partitioning.types.default_value.DefaultValue`; None for NULL.
        comment: By COMMENT ON COLUMN; None for none.
        hidden: Whether it is the row id of a table without a primary key, which users neither see nor write; see
            :mod:`~secateur.partitioning.tables.row_ids`.
    """

    name: str
    type: SqlType
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    hidden: bool = False


class Succession(msgspec.Struct, frozen=True, array_like=True):
    """How the rows that a table had under its id of before, with other columns, become those that it has now.

    Attributes:
        before: The id.
        sources: For each column, the one of before whose values it takes; None for a new column.
        fill: One row of the values that the rows of then have in the new columns, as rows travel
            (:func:`secateur.wire.short_table.encode_rows`); empty where there are none.
    """

    before: int
    sources: tuple[str | None, ...]
    fill: bytes


class TableDef(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A table.

    Attributes:
        name: As written in CREATE TABLE; matched without regard to case.
        table_id: Never reused: a table that is dropped and created again gets another, and so does one whose columns
            change.
        columns: All that are stored, in the order declared.
        primary_key: Column names in key order; rows inside a partition are sorted by them. Those of a table without a
            primary key are its partitioning columns and its hidden row id.
        scheme_or_reference: The scheme, or the reference of a large one, by which it travels; see
            :class:`TableDefinition`.
        backups: Copies beside the primary.
        replicated: Whether every member holds a full copy.
        version: Grows with every ALTER TABLE.
        indexes: Secondary indexes; the rows that members hold do not depend on them.
        change_feed: Whether members keep the last changes of its rows for those who follow them.
        checks: The conditions that its rows have to satisfy.
        comment: By COMMENT ON TABLE; None for none.
        created_as: The id with which it was created; 0 if that is its own.
        succession: How its rows have come from those before the last ALTER TABLE that changed its columns.
    """

    name: str
    table_id: int
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    scheme_or_reference: PartitionScheme | str
    backups: int = 1
    replicated: bool = False
    version: int = 1
    indexes: tuple[IndexDef, ...] = ()
    change_feed: bool = False
    checks: tuple[CheckDef, ...] = ()
    comment: str | None = None
    created_as: int = 0
    succession: Succession | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "scheme_or_reference", self.scheme.reference or self.scheme)

    def __reduce__(self) -> tuple[Any, ...]:
        # Where it is unpickled, nobody may have sent the scheme before.
        return TableDef, tuple(
            self.scheme if name == "scheme_or_reference" else getattr(self, name) for name in self.__struct_fields__
        )

    @cached_property
    def scheme(self) -> PartitionScheme:
        """The mapping of rows to partitions.

        A replicated table has the scheme without components: one partition.
        """
        return find_scheme(self.scheme_or_reference, table=self.name)

    @cached_property
    def visible_columns(self) -> tuple[Column, ...]:
        """The columns that users see, in the order declared: all but a hidden row id."""
        return tuple(column for column in self.columns if not column.hidden)

    @cached_property
    def visible_schema(self) -> pa.Schema:
        """:attr:`arrow_schema` of the columns that users see."""
        return pa.schema([self.arrow_schema.field(column.name) for column in self.visible_columns])

    @cached_property
    def has_row_ids(self) -> bool:
        """Whether it was made without a primary key: its rows have hidden ids, and duplicates stay."""
        return len(self.visible_columns) < len(self.columns)

    @property
    def declared_key(self) -> tuple[str, ...]:
        """The primary key that users know; empty for a table without one."""
        return () if self.has_row_ids else self.primary_key

    @property
    def origin(self) -> int:
        """The id with which it was created, which stays when columns change.

        It stands for the table in what outlives that: numbers of loads, positions in its change feed, batches of
        streams.
        """
        return self.created_as or self.table_id

    @property
    def never_null(self) -> frozenset[str]:
        """The names of the columns that do not hold NULL."""
        return frozenset(column.name for column in self.columns if not column.nullable)

    @cached_property
    def defaults(self) -> Mapping[str, DefaultValue]:
        """The defaults of its columns that have one, by their names."""
        return {c.name: DefaultValue.of(c.default, c.type) for c in self.columns if c.default is not None}

    @property
    def partition_count(self) -> int:
        return self.scheme.partition_count

    @property
    def is_placed_by_key(self) -> bool:
        """Whether the primary key of a row is enough to know the one partition that has it."""
        scheme = self.scheme
        return not self.replicated and scheme.is_known_function and set(scheme.columns) <= set(self.primary_key)

    @cached_property
    def partition_of_row(self) -> Callable[[Sequence[Any]], int]:
        """The partition of a row by the canonical values of all columns, as the scheme's ``partition_of`` says it."""
        return self.scheme.partition_function([column.name for column in self.columns])

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of a batch of this table: columns in declared order, ``nullable`` as declared. Computed once."""
        return pa.schema([pa.field(c.name, c.type.arrow, c.nullable) for c in self.columns])

    def column(self, name: str) -> Column:
        """Find a column without regard to case.

        Raises:
            UnknownColumnError: No such column; the message lists those that exist.
        """
        return self._column(name, self.columns)

    def visible_column(self, name: str) -> Column:
        """Find a column that users see, without regard to case.

        Raises:
            UnknownColumnError: No such column; the message lists those that exist.
        """
        return self._column(name, self.visible_columns)

    def _column(self, name: str, columns: Sequence[Column]) -> Column:
        folded = name.casefold()
        for column in columns:
            if column.name.casefold() == folded:
                return column
        raise UnknownColumnError(
            f"table {self.name} has no column {name!r}; it has {', '.join(c.name for c in self.visible_columns)}",
            table=self.name,
        )


class LargeScheme(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A scheme with many ranges as it travels to a process that has it under its reference from then on.

    The fields behind the reference are those of :attr:`~.PartitionScheme.in_columns`.
    """

    reference: str
    rest: PartitionScheme
    hash_lists: tuple[tuple[HashComponent, ...], ...]
    columns: RangeColumns
    names: tuple[str | None, ...] | None

    def __post_init__(self) -> None:
        scheme = scheme_of_reference(self.reference)
        if scheme is None:
            component = self.rest.range
            if component is not None:
                ranges = tuple(self.columns.ranges(self.hash_lists, self.names))
                component = replace(component, ranges=ranges)
            scheme = replace(self.rest, range=component, reference=self.reference)
        self.__dict__["scheme"] = scheme

    @classmethod
    def of(cls, scheme: PartitionScheme) -> LargeScheme:
        """A scheme as it is sent. Cost: some microseconds per range; nothing for one that was sent before."""
        assert scheme.reference is not None
        rest, own, columns, names = scheme.in_columns
        return cls(scheme.reference, replace(rest, group=scheme.group), own, columns, names)

    @property
    def scheme(self) -> PartitionScheme:
        """The scheme: the one of this process with that reference, if there is one."""
        scheme: PartitionScheme = self.__dict__["scheme"]
        return scheme


class TableDefinition(msgspec.Struct, frozen=True, array_like=True):
    """A table for a receiver that may not have its scheme yet.

    The scheme stands in front, so that the reference is known when the table is read.

    Attributes:
        whole: The scheme of the table where the table refers to it; None where the table has it in itself, the receiver
            has it already, or gets the outline.
        outline: The scheme without its ranges, for a receiver that fetches those that it needs.
        table: The table.
    """

    whole: LargeScheme | None
    outline: PartitionScheme | None
    table: TableDef

    @classmethod
    def of(cls, table: TableDef, *, known: str | None = None, outline: bool = False) -> TableDefinition:
        """Define a table. With many ranges, that takes some microseconds per range.

        ``known`` is the reference of a scheme that the receiver has; with ``outline``, a large scheme comes without its
        ranges.
        """
        scheme = table.scheme
        if scheme.reference in (None, known):
            return cls(None, None, table)
        if outline:
            return cls(None, scheme.outline(), table)
        return cls(LargeScheme.of(scheme), None, table)


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


class ExternalTable(msgspec.Struct, frozen=True):
    """An external table.

    Attributes:
        table: Its name, id and columns, each of which may be NULL. It has no primary key: its rows need not be unique.
            The planner treats it as replicated, because any member can get its rows.
        connector: The encoded connector.
        title: The connector in words, for EXPLAIN and errors.
        sql: The statement that makes it; None for a connector of the user's.
    """

    table: TableDef
    connector: bytes
    title: str
    sql: str | None = None

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.table.name
