"""Requests and replies about the catalog, external tables, the topology, interval ranges and statistics."""

from __future__ import annotations

from typing import Any

import msgspec

from secateur.partitioning.pruning.row_predicate import OpenPredicate
from secateur.partitioning.schemes.partial_ranges import KeyInterval, RangePage
from secateur.partitioning.tables.statistics import TableStatistics, TableSummary
from secateur.partitioning.tables.table import Column, ExternalTable, TableDefinition
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.hello import Versions
from secateur.protocol.message import Acknowledged, Message


class TopologyAnswer(Versions, frozen=True, kw_only=True):
    """The members and owners; outlines of large groups, whose owners are fetched by :class:`GetOwnerPages`."""

    topology: Topology


class GetTopology(Message[TopologyAnswer], frozen=True):
    """The members and owners, from the controller."""


class GetOwners(Message[TopologyAnswer], frozen=True):
    """The members and owners as far as a member knows: for clients out of the controller's reach."""


class OwnerPages(msgspec.Struct, frozen=True):
    """The primaries of some partitions, by number of their page; see :meth:`Ownership.with_pages`."""

    pages: dict[int, bytes]


class GetOwnerPages(Message[OwnerPages], frozen=True):
    """The primaries of some partitions of a large group, from the controller, or from a member if that is out of reach.

    Attributes:
        digest: The digest of the outline.
        pages: The numbers of the pages.
    """

    digest: bytes
    pages: list[int]


class TakeTopology(Message[Acknowledged], frozen=True):
    """Act on these members and owners, and keep the record; see :class:`secateur.protocol.recovery.ClusterRecord`.

    Attributes:
        topology: Members and owners.
        epoch: That of the controller which sends it; a member that knows a later one refuses it.
        version: The version of the record within the epoch; 0 where there is nothing to keep.
        state: The encoded rest of the record; None where it is the same as in the last message to this member.
    """

    topology: Topology
    epoch: int = 0
    version: int = 0
    state: bytes | None = None


class Tables(Versions, frozen=True, kw_only=True):
    """Definitions of tables."""

    tables: list[TableDefinition]


class GetTables(Message[Tables], frozen=True):
    """Definitions of tables.

    Attributes:
        name: The one that is wanted; None for all.
        known: The reference of a large scheme that the asker has already: the table is then sent without it.
        outlines: Whether large schemes are sent without their ranges, which the asker gets by :class:`GetRanges`.
    """

    name: str | None = None
    known: str | None = None
    outlines: bool = False


class RangePages(msgspec.Struct, frozen=True):
    """Ranges of one table. There may be more for the keys that were asked for: then they are asked for again."""

    pages: list[RangePage]


class GetRanges(Message[RangePages], frozen=True):
    """The ranges of some keys of a large table, from the controller, or from a member if that is out of reach.

    Attributes:
        reference: The reference of the scheme.
        wanted: The keys.
    """

    reference: str
    wanted: list[KeyInterval]


class TableVersions(Versions, frozen=True, kw_only=True):
    """The versions of tables in the order asked; None for a table that is not there."""

    tables: list[int | None]


class GetTableVersions(Message[TableVersions], frozen=True):
    """The versions of tables, by id."""

    tables: list[int]


class RefreshedStatistics(Versions, frozen=True, kw_only=True):
    """The statistics of a table."""

    statistics: TableStatistics


class RefreshStatistics(Message[RefreshedStatistics], frozen=True):
    """Collect the statistics of a table now."""

    table: str


class StoredStatistics(msgspec.Struct, frozen=True):
    """The statistics that a member has collected of its rows of a table."""

    summary: TableSummary


class LookAtStatistics(Message[StoredStatistics], frozen=True):
    """Collect the statistics of these partitions now."""

    table_id: int
    partitions: list[int]


class MakeRanges(Message[Versions], frozen=True):
    """Make the ranges of a table that makes them on demand.

    Attributes:
        table: Its name.
        table_id: Its id, which distinguishes it from a later table of the same name.
        cells: The numbers of the ranges.
    """

    table: str
    table_id: int
    cells: list[int]


class UnusedTableDropped(Versions, frozen=True, kw_only=True):
    """Whether the table is not there any more."""

    is_gone: bool


class DropUnusedTable(Message[UnusedTableDropped], frozen=True):
    """Drop a table that was created for rows which then did not come, unless somebody has begun to use it.

    It is in use if it has ever got a row, if a load has rows for it at a member, or if it has an index or a view.

    Attributes:
        table: Its name.
        table_id: Its id, which distinguishes it from a later table of the same name.
    """

    table: str
    table_id: int


class CreateStoredTable(Message[Acknowledged], frozen=True):
    """Have a table, and copies of these partitions.

    Attributes:
        table: The table, encoded as in :class:`PrepareAlter`.
        partitions: Those of which the member keeps copies.
    """

    table: bytes
    partitions: list[int]


class DropStoredTable(Message[Acknowledged], frozen=True):
    """Forget a table."""

    table_id: int


class AdoptViews(Message[Acknowledged], frozen=True):
    """The views that there are in a version of the catalog, by id."""

    catalog_version: int
    views: list[int]


class PrepareAlter(Message[Acknowledged], frozen=True):
    """First phase of ALTER TABLE: check whether a table can have other ranges, or other columns.

    Attributes:
        load_id: Names the change.
        table: The table as it is to be: an encoded
            :class:`~secateur.partitioning.tables.table.TableDefinition`. It can have so many ranges that event loops
            leave encoding and decoding it to threads.
        partitions: Those of which the member keeps copies.
    """

    load_id: str
    table: bytes
    partitions: list[int]


class CommitAlter(Message[Acknowledged], frozen=True):
    """Second phase: the table is as it was prepared."""

    load_id: str


class AbortAlter(Message[Acknowledged], frozen=True):
    """Forget the first phase."""

    load_id: str


class CaughtUp(msgspec.Struct, frozen=True):
    """The table is known; of a replicated one, whether its rows are here: if not, no member has any more."""

    has_rows: bool


class CatchUp(Message[CaughtUp], frozen=True):
    """Have a table that other members have already.

    Attributes:
        table: The table, encoded as in :class:`PrepareAlter`.
        sources: The members to copy it from: the first that has it.
        is_current: Whether the rows of a replicated table that are here are those of now. If not, they give way to
            those of others, or to nothing.
        newest: The number of its last publication, from which a member goes on where no other one has the table. It is
            kept for the next controller: a member that comes back has the rows only if it has made that one. 0 if it is
            not known.
    """

    table: bytes
    sources: tuple[str, ...]
    is_current: bool = False
    newest: int = 0


class CopiedTable(msgspec.Struct, frozen=True):
    """The number of the last publication of a table here; the payload has its rows, if it is replicated."""

    published: int


class CopyTable(Message[CopiedTable], frozen=True):
    """A table for a member that joins."""

    table_id: int


class RegisterExternalTable(Message[Versions], frozen=True):
    """Make an external table.

    Attributes:
        name: Its name.
        connector: Its encoded connector.
        or_replace: Whether it may replace an external table of that name.
    """

    name: str
    connector: bytes
    or_replace: bool = False


class ConnectorDescription(msgspec.Struct, frozen=True):
    """The table that a connector offers, in its own words.

    Attributes:
        columns: The columns of its table.
        title: Itself in words.
        settled: The encoded connector that the table is to keep; None for the one that was asked.
    """

    columns: tuple[Column, ...]
    title: str
    settled: bytes | None = None


class DescribeConnector(Message[ConnectorDescription], frozen=True):
    """Ask a connector for the columns of the table of that name."""

    table: str
    connector: bytes


class ExternalTableAnswer(msgspec.Struct, frozen=True):
    """An external table."""

    table: ExternalTable


class GetExternalTable(Message[ExternalTableAnswer], frozen=True):
    """An external table by its id, for a member that is about to read it."""

    table_id: int


class ListedPartitions(msgspec.Struct, frozen=True):
    """The partitions of an external table at one moment.

    Attributes:
        total: How many it has.
        kept: How many can hold a row that is needed; None where that depends on parameters that are not known.
        keys: The keys of the first of these, as text.
        columns: The columns whose values its partitions declare.
    """

    total: int
    kept: int | None
    keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


class ListExternalPartitions(Message[ListedPartitions], frozen=True):
    """List the partitions of an external table, for EXPLAIN.

    Attributes:
        table: The table.
        predicate: The rows that the statement needs.
        params: The values of its parameters; None where they are not known.
    """

    table: ExternalTable
    predicate: OpenPredicate
    params: list[Any] | None
