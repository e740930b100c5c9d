"""One processor in the whole job, on a named member or on the owner of a partition found when the job starts.

Source: Hazelcast Jet, ``ProcessorMetaSupplier.forceTotalParallelismOne``; the lazy form is
    ``lazyForceTotalParallelismOne`` of its job partition pruning design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from secateur.dag.parameter import bind_value
from secateur.dag.placement import OnMembers, OnPartitions, Placement
from secateur.dag.processor import Params, Processor
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, SourceQuery, meta_supplier_of
from secateur.errors import DagError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.job_description import JobRequirements, SourceScan

TableFinder = Callable[[str], TableDef]


def force_total_parallelism_one(
    source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor], member: str
) -> ProcessorMetaSupplier:
    """A vertex with one processor in the whole job, on ``member``, which becomes a participant."""
    return _TotalParallelismOne(
        meta_supplier_of(source),
        lambda context: member,
        lambda params, find: JobRequirements(members=frozenset({member})),
    )


def lazy_total_parallelism_one(
    source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor], table: str, key: Mapping[str, Any]
) -> ProcessorMetaSupplier:
    """Run one processor in the whole job, on the member that owns the partition of ``key`` when the job starts.

    The member is determined at each start and never kept, so a DAG may be used again with other parameters and after
    partitions have moved.

    Args:
        source: The source of the processor.
        table: The table whose partition decides.
        key: A value, or a :class:`~secateur.dag.parameter.Param`, for each partitioning column of the table.
    """
    bound_key = dict(key)

    def partition_in(definition: TableDef, params: Params) -> int:
        return definition.scheme.partition_of({name: bind_value(value, params) for name, value in bound_key.items()})

    def owner(context: MetaContext) -> str:
        definition = context.table(table)
        (member,) = context.owners(definition.scheme.affinity_group(), [partition_in(definition, context.params)])
        return member

    def needs(params: Params, find: TableFinder) -> JobRequirements:
        return JobRequirements({table: frozenset({partition_in(find(table), params)})})

    return _TotalParallelismOne(meta_supplier_of(source), owner, needs)


def total_parallelism_one_at_owner(
    source: ProcessorMetaSupplier | ProcessorSupplier | Callable[[], Processor], group: str, partition: int
) -> ProcessorMetaSupplier:
    """Run one processor in the whole job, on the member that owns a partition when the job starts.

    :func:`lazy_total_parallelism_one` for a partition that is known already, as it is to the stages of a SELECT.

    Args:
        source: The source of the processor.
        group: The affinity group of the partition.
        partition: Its id.
    """

    def owner(context: MetaContext) -> str:
        (member,) = context.owners(group, [partition])
        return member

    return _TotalParallelismOne(
        meta_supplier_of(source), owner, lambda params, find: JobRequirements({group: frozenset({partition})})
    )


class _TotalParallelismOne(ProcessorMetaSupplier):
    preferred_local_parallelism = 1

    def __init__(
        self,
        inner: ProcessorMetaSupplier,
        choose: Callable[[MetaContext], str],
        needs: Callable[[Params, TableFinder], JobRequirements],
    ) -> None:
        self._inner = inner
        self._choose = choose
        self._needs = needs
        self._running: ProcessorMetaSupplier | None = None
        self._member = ""
        self.works_without_input = inner.works_without_input
        self.init_is_cooperative = inner.init_is_cooperative
        self.close_is_cooperative = inner.close_is_cooperative

    def needs(self, vertex: str, params: Params, table: TableFinder) -> JobRequirements:
        return self._needs(params, table)

    def query(self, params: Params) -> SourceQuery | None:
        return self._inner.query(params)

    def init(self, context: MetaContext) -> None:
        self._member = self._choose(context)
        if self._member not in {member.id for member in context.topology.members}:
            known = ", ".join(member.id for member in context.topology.members)
            raise DagError(
                f"vertex {context.vertex!r} is to run on member {self._member!r}, which is not in the cluster; it has"
                f" {known}"
            )
        self._running = copy(self._inner)
        self._running.init(context)

    def placement(self) -> Placement:
        inner = (self._running or self._inner).placement()
        if isinstance(inner, OnPartitions) and [len(ids) for ids in inner.by_member.values()] == [1]:
            (reader,) = inner.by_member
            if reader == self._member:
                return inner  # it reads that one partition: the job's requirements are checked, edges follow it
        return OnMembers((self._member,), parallelism_max=1)

    def scan(self) -> SourceScan | None:
        return (self._running or self._inner).scan()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return (self._running or self._inner).get(members)

    def close(self, error: BaseException | None) -> None:
        if self._running is not None:
            self._running.close(error)
