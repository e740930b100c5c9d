"""A source that reads only the partitions that a job requires, each at the member that owns it.

The partitions are determined when the job starts, at the coordinator, with the parameters bound; each member then gets
its subset. Nothing of it is kept with the DAG.

Source: ``SpecificPartitionsImapReaderPms`` of Hazelcast's job partition pruning design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from secateur.dag.codec import portable
from secateur.dag.placement import Anywhere, OnPartitions, Placement
from secateur.dag.processor import Emitter, Processor
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.exchange.batches import batches_of
from secateur.engine.runtime.services import MemberServices
from secateur.errors import InternalError
from secateur.partitioning.pruning.key_range import KeyPrefix
from secateur.partitioning.types.arrow_layout import comparable, empty_table

_SEARCHES_MAX: Final = 64
"""More keys than this that may be in any partition are compared with its rows at once, not searched one by one."""


class KeyLookup(msgspec.Struct, frozen=True):
    """Restricts a scan to the rows of some keys.

    Attributes:
        columns: The columns of a key.
        is_prefix: Whether ``columns`` are the leading primary-key columns in order: then each key is a binary search,
            otherwise the partition's rows are compared.
        by_partition: The keys, canonical values in the order of ``columns``, by the partition that holds their rows.
        anywhere: Keys whose rows may be in any of the partitions that are read, because they do not name the whole
            partitioning key.
    """

    columns: tuple[str, ...]
    is_prefix: bool
    by_partition: Mapping[int, tuple[tuple[Any, ...], ...]]
    anywhere: tuple[tuple[Any, ...], ...] = ()

    def in_partition(self, partition: int) -> Sequence[tuple[Any, ...]]:
        """The keys whose rows may be in a partition."""
        return (*self.by_partition.get(partition, ()), *self.anywhere)

    def restricted(self, partitions: Sequence[int]) -> KeyLookup:
        """The keys in some of the partitions."""
        found = {partition: self.by_partition[partition] for partition in partitions if partition in self.by_partition}
        return replace(self, by_partition=found)


class ReadRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rows to read, resolved for one run.

    Attributes:
        table_id: The table.
        group: Its affinity group, by which the topology lists owners.
        partitions: Ids of the partitions to read, without duplicates.
        replicated: Whether every member has a full copy, so that any one of them will do.
        columns: The columns to read, in order; None for all.
        keys: The keys whose rows are wanted, or None for all rows.
    """

    table_id: int
    group: str
    partitions: Sequence[int]
    replicated: bool = False
    columns: tuple[str, ...] | None = None
    keys: KeyLookup | None = None

    def restricted(self, partitions: Sequence[int]) -> ReadRequest:
        """The part of the request for some of its partitions."""
        return replace(
            self, partitions=partitions, keys=None if self.keys is None else self.keys.restricted(partitions)
        )


class PartitionsReader(ProcessorMetaSupplier):
    """A meta-supplier of table scans; subclasses define what to read.

    A replicated table is read on any participant.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    _request: ReadRequest | None = None
    _by_member: Mapping[str, tuple[int, ...]] = MappingProxyType({})

    def resolve(self, context: MetaContext) -> ReadRequest:
        """Determine what to read. Called once, in ``init``, when topology and parameters are known."""
        raise NotImplementedError(f"{type(self).__name__} has no resolve()")

    def init(self, context: MetaContext) -> None:
        self._request = self.resolve(context)
        if not self._request.replicated:
            self._by_member = context.owners(self._request.group, self._request.partitions)

    def placement(self) -> Placement:
        request = self._resolved()
        return Anywhere() if request.replicated else OnPartitions(request.group, self._by_member)

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        request = self._resolved()
        if request.replicated:
            return {member: PartitionsReaderSupplier(request) for member in members}
        return {
            member: PartitionsReaderSupplier(request.restricted(self._by_member.get(member, ()))) for member in members
        }

    def _resolved(self) -> ReadRequest:
        if self._request is None:
            raise InternalError("a partitions reader was asked for its placement before its init")
        return self._request


@portable("partitions-reader")
@dataclass(eq=False)
class PartitionsReaderSupplier(ProcessorSupplier):
    """Reads partitions of its member.

    Attributes:
        request: The rows to read here.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    request: ReadRequest

    def init(self, context: SupplierContext) -> None:
        self._store = context.service(MemberServices).store

    def get(self, count: int) -> Sequence[Processor]:
        return [_Read(self, self.request.partitions[index::count]) for index in range(count)]

    def read(self, partitions: Sequence[int]) -> pa.Table:
        """Return the rows of some of the partitions at one moment; without a copy, unless keys have to be compared.

        Raises:
            TopologyChangedError: A partition is not on this member any more.
        """
        request, keys = self.request, self.request.keys
        if keys is None:
            return self._store.relation(request.table_id, partitions, request.columns)
        if keys.is_prefix and len(keys.anywhere) <= _SEARCHES_MAX:
            found = [
                self._store.relation(request.table_id, (p,), request.columns, KeyPrefix(key))
                for p in partitions
                for key in keys.in_partition(p)
            ]
            return pa.concat_tables(found) if found else self._store.relation(request.table_id, (), request.columns)
        wanted = [key for partition in partitions for key in keys.by_partition.get(partition, ())]
        wanted += keys.anywhere if partitions else ()
        columns = request.columns or tuple(self._store.relation(request.table_id, ()).column_names)
        rows = self._store.relation(
            request.table_id, partitions, (*columns, *(name for name in keys.columns if name not in columns))
        )
        return rows_with_keys(rows, keys.columns, wanted).select(list(columns))


class _Read(Processor):
    """Passes the rows on, as they were at one moment."""

    def __init__(self, supplier: PartitionsReaderSupplier, partitions: Sequence[int]) -> None:
        self._supplier = supplier
        self._partitions = partitions
        self._emitter: Emitter | None = None

    def complete(self) -> bool:
        if self._emitter is None:
            self._emitter = Emitter(self.outbox, batches_of(self._supplier.read(self._partitions)))
        return self._emitter.emit()


def rows_with_keys(table: pa.Table, columns: Sequence[str], keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows whose ``columns`` equal one of ``keys``, in their order.

    Args:
        table: The rows.
        columns: The columns of a key.
        keys: Canonical values in the order of ``columns``; None among them matches nothing.

    Returns:
        A copy of those rows. Cost: O(rows) for one column, O(rows * keys) for several.
    """
    keys = [key for key in keys if None not in key]
    if not keys:
        return empty_table(table.schema)
    stored = [comparable(table.column(name)) for name in columns]
    wanted = [
        comparable(pa.array(values, table.schema.field(name).type))
        for name, values in zip(columns, zip(*keys, strict=True), strict=True)
    ]
    if len(columns) == 1:
        return table.filter(pc.is_in(stored[0], value_set=wanted[0]))
    mask = None
    for key in zip(*wanted, strict=True):
        matches = None
        for column, value in zip(stored, key, strict=True):
            equal = pc.equal(column, value)
            matches = equal if matches is None else pc.and_(matches, equal)
        mask = matches if mask is None else pc.or_(mask, matches)
    return table.filter(mask)
