"""The specific-partitions reader: a source that reads only the partitions a job needs, each at the member that owns it.

 Which partitions is evaluated when the job starts, at the coordinator, with the parameters bound; each member then gets its subset. Nothing of it is kept with
the DAG.

Source: ``SpecificPartitionsImapReaderPms`` of Hazelcast's job partition pruning design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.placement import Anywhere, OnPartitions, Placement
from secateur.dag.processor import Emitter, Processor
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.batches import batches_of
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.key_filter import rows_with_keys
from secateur.engine.processors.fragment_call import FragmentCall
from secateur.engine.services import MemberServices
from secateur.errors import DataChangedError, InternalError
from secateur.partitioning.key_range import KeyPrefix, KeyRanges, KeySlice
from secateur.storage.member_store import MemberStore

__all__ = ["KeyLookup", "PartitionsReader", "PartitionsReaderSupplier", "ReadRequest", "ReadStage"]


@dataclass(frozen=True, slots=True)
class ReadStage:
    """A fragment that runs over what was read, at the member that read it.

    Attributes:
        fragment: What to run; its parameters are those of the job.
        relation: The name by which it calls what was read.
    """

    fragment: Fragment
    relation: str


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """Restricts a scan to the rows of some keys.

    Attributes:
        columns: The columns of a key.
        is_prefix: Whether ``columns`` are the leading primary-key columns in order: then each key is a binary search, otherwise the partition's rows are
            compared.
        by_partition: The keys, canonical values in the order of ``columns``, by the partition that holds their rows.
    """

    columns: tuple[str, ...]
    is_prefix: bool
    by_partition: Mapping[int, tuple[tuple[Any, ...], ...]]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to read, resolved for one run.

    Attributes:
        table_id: The table.
        group: Its affinity group; the topology knows owners by it.
        partitions: Ids of the partitions to read, without duplicates.
        replicated: Whether every member has a full copy, so that any one of them will do.
        columns: The columns to read, in order; None for all.
        key_slice: The part of each partition that is wanted, None for all of it; not together with ``keys``.
        keys: The keys whose rows are wanted, or None for all rows.
        stage: What to run over the rows before they leave, or None to pass them on.
        published: The number of the load that has to be the last one published, so that all members read the same state; None takes any.
    """

    table_id: int
    group: str
    partitions: Sequence[int]
    replicated: bool = False
    columns: tuple[str, ...] | None = None
    key_slice: KeySlice | None = None
    keys: KeyLookup | None = None
    stage: ReadStage | None = None
    published: int | None = None


class PartitionsReader(ProcessorMetaSupplier):
    """A meta-supplier of table scans; what to read is up to the subclass.

    Attributes:
        replicated_placement: Where a replicated table is read.
    """

    init_is_cooperative = True
    close_is_cooperative = True
    replicated_placement: Placement = Anywhere()

    def __init__(self) -> None:
        self._request: ReadRequest | None = None
        self._by_member: Mapping[str, tuple[int, ...]] = {}

    def resolve(self, context: MetaContext) -> ReadRequest:
        """Evaluate what to read. Called once, in ``init``: topology and parameters are known then."""
        raise NotImplementedError(f"{type(self).__name__} has no resolve()")

    def init(self, context: MetaContext) -> None:
        self._request = self.resolve(context)
        if not self._request.replicated:
            self._by_member = context.owners(self._request.group, self._request.partitions)

    def placement(self) -> Placement:
        request = self._resolved()
        return self.replicated_placement if request.replicated else OnPartitions(request.group, self._by_member)

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        request = self._resolved()
        return {member: PartitionsReaderSupplier(request, tuple(request.partitions) if request.replicated else self._by_member[member]) for member in members}

    def _resolved(self) -> ReadRequest:
        if self._request is None:
            raise InternalError("a partitions reader was asked for its placement before its init")
        return self._request


@portable("partitions-reader")
class PartitionsReaderSupplier(ProcessorSupplier):
    """Reads partitions that live on its member.

    Args:
        request: What to read.
        partitions: The member's subset of the request's partitions.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, request: ReadRequest, partitions: Sequence[int]) -> None:
        self._request = request
        self._partitions = tuple(partitions)
        self._store: MemberStore | None = None
        self._call: FragmentCall | None = None

    def init(self, context: SupplierContext) -> None:
        self._store = context.service(MemberServices).store
        if self._request.stage is not None:
            self._call = FragmentCall.of(self._request.stage.fragment, context)

    def get(self, count: int) -> Sequence[Processor]:
        shares = [self._partitions[index::count] for index in range(count)]
        stage = self._request.stage
        if stage is None or self._call is None:
            return [_Read(self, share) for share in shares]
        return [_ReadAndRun(self, share, stage.relation, self._call) for share in shares]

    def read(self, partitions: Sequence[int]) -> pa.Table:
        """The rows of some of the partitions as they are at one moment; without a copy, unless keys have to be compared.

        Raises:
            TopologyChangedError: A partition is not on this member any more.
            DataChangedError: Another load than the request's is the last one published here.
        """
        assert self._store is not None
        request, keys = self._request, self._request.keys
        published = self._store.data_version(request.table_id).published
        if request.published is not None and published != request.published:
            raise DataChangedError(f"load {request.published} was the last one where the statement began, here it is {published}", table_id=request.table_id)
        if keys is None:
            return self._store.relation(request.table_id, partitions, request.columns, request.key_slice)
        if keys.is_prefix:
            found = [self._store.relation(request.table_id, (p,), request.columns, KeyPrefix(key)) for p in partitions for key in keys.by_partition.get(p, ())]
            return pa.concat_tables(found) if found else self._store.relation(request.table_id, (), request.columns)
        wanted = [key for partition in partitions for key in keys.by_partition.get(partition, ())]
        columns = request.columns or tuple(self._store.relation(request.table_id, ()).column_names)
        rows = self._store.relation(request.table_id, partitions, (*columns, *(name for name in keys.columns if name not in columns)))
        return rows_with_keys(rows, keys.columns, wanted).select(list(columns))

    def to_spec(self) -> Any:
        request, keys, stage = self._request, self._request.keys, self._request.stage
        return [
            request.table_id,
            request.group,
            np.array(self._partitions, dtype="<u4").tobytes(),
            request.replicated,
            None if request.columns is None else list(request.columns),
            _slice_to_wire(request.key_slice),
            None
            if keys is None
            else [list(keys.columns), keys.is_prefix, [[p, [list(key) for key in keys.by_partition.get(p, ())]] for p in self._partitions]],
            None if stage is None else [stage.fragment.to_wire(), stage.relation],
            request.published,
        ]

    @classmethod
    def from_spec(cls, spec: Any) -> PartitionsReaderSupplier:
        table_id, group, packed, replicated, columns, key_slice, keys, stage, published = spec
        partitions = tuple(np.frombuffer(packed, dtype="<u4").tolist())
        request = ReadRequest(
            table_id=table_id,
            group=group,
            partitions=partitions,
            replicated=replicated,
            columns=None if columns is None else tuple(columns),
            key_slice=_slice_from_wire(key_slice),
            keys=None if keys is None else KeyLookup(tuple(keys[0]), keys[1], {p: tuple(tuple(key) for key in found) for p, found in keys[2]}),
            stage=None if stage is None else ReadStage(Fragment.from_wire(stage[0]), stage[1]),
            published=published,
        )
        return cls(request, partitions)


def _slice_to_wire(part: KeySlice | None) -> list[Any] | None:
    match part:
        case None:
            return None
        case KeyPrefix(values):
            return ["prefix", list(values)]
        case KeyRanges():
            return ["ranges", part.to_wire()]
        case _:
            assert_never(part)


def _slice_from_wire(data: list[Any] | None) -> KeySlice | None:
    if data is None:
        return None
    kind, content = data
    return KeyPrefix(tuple(content)) if kind == "prefix" else KeyRanges.from_wire(content)


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


class _ReadAndRun(Processor):
    """Runs a fragment over all its partitions in one kernel call."""

    def __init__(self, supplier: PartitionsReaderSupplier, partitions: Sequence[int], relation: str, call: FragmentCall) -> None:
        self._supplier = supplier
        self._partitions = partitions
        self._relation = relation
        self._call = call
        self._poll: Callable[[], pa.Table | None] | None = None
        self._emitter: Emitter | None = None

    def complete(self) -> bool:
        if self._emitter is None:
            if self._poll is None:
                self._poll = self._call.begin(self.context, {self._relation: self._supplier.read(self._partitions)})
            result = self._poll()
            if result is None:
                return False
            self._emitter = Emitter(self.outbox, batches_of(result))
        return self._emitter.emit()
