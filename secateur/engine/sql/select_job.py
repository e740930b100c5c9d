"""A SELECT on partitions of several members, as a DAG: a vertex for each stage, and edges for its exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, assert_never

import pyarrow as pa

from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.edge import Edge, EdgeConfig, UnmatchedRows, between, from_
from secateur.dag.placement import OnCoordinator, OnMembers, OnPartitions, Placement, Unrestricted
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier, total_parallelism_one_at_owner
from secateur.engine.execution_plan.plan_builder import ExecutionPlanBuilder
from secateur.engine.processors.merge import MergeMembers
from secateur.engine.runtime.result import ResultSink
from secateur.engine.sql.fragment_call import positional
from secateur.engine.sql.fragment_stage import FragmentStageSupplier, MemberScan
from secateur.engine.sql.select_plan import PinnedScan, ScanPlan, SelectPlan
from secateur.engine.sql.stage import ExchangeKind, QueryStage, stage_relation
from secateur.errors import InternalError, UnknownTableError
from secateur.partitioning.pruning.key_range import KeySlice
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.job_description import JobConfig

RESULT_VERTEX = "result"

_PASSED_ON: Final = EdgeConfig(queue_bytes_max=4 << 20, window_bytes_max=4 << 20)
"""Rows that are only passed on to a client wait for it, perhaps for long: few are held meanwhile."""
_REPLICATED_PARTITIONS: Final = (0,)


def select_dag(
    plan: SelectPlan,
    partitions: Sequence[Sequence[int]],
    *,
    published: Mapping[int, int] | None = None,
    search_keys: bool = True,
    timeout_s: float | None = None,
    mark: str | None = None,
    since: Mapping[int, str] | None = None,
) -> tuple[FrozenDAG, JobConfig]:
    """Return the DAG of a statement and its arguments, which restrict it to the partitions that its scans read.

    Run it at one of the owning members with the statement's parameters in order; the answer is the only table of the
    result, in the schema of ``plan.columns`` even if it has no row. A stage without input, or whose consumers all have
    none, is in the DAG and runs nowhere.

    Args:
        plan: The statement's plan.
        partitions: For each scan of the plan, the ids of the partitions to read: those of its tree with the
            parameters bound, or all of them. Ignored for replicated tables.
        published: By table id, the load that has to be the last one published at each member; tables that are not in it
            are read in any state.
        search_keys: Whether bounds on the primary key replace the scan by a search.
        timeout_s: Deadline in seconds, or None.
        mark: The token under which read versions of partitioned tables are recorded; see
            :mod:`secateur.storage.hosted_tables`.
        since: By index of a scan, the token of an earlier read, since which its rows must not have changed.
    """
    loads, marks = published or {}, since or {}
    scans = [
        _StageScan(
            scan, tuple(ids), loads.get(scan.table_id), search_keys, None if scan.replicated else mark, marks.get(index)
        )
        for index, (scan, ids) in enumerate(zip(plan.scans, partitions, strict=True))
    ]
    runs = _running(plan, partitions)
    homes = _single_partitions(plan, partitions, runs)
    names, merges = vertex_names(plan), merge_names(plan)
    dag = DAG()
    for name, stage, is_running, home in zip(names, plan.stages, runs, homes, strict=True):
        inputs = [(stage_relation(number), plan.stages[number].fragment.schema) for number in stage.inputs]
        vertex: ProcessorMetaSupplier = _StageVertex(
            stage, [scans[number] for number in stage.scans] if is_running else (), inputs, is_running=is_running
        )
        if home is not None:
            vertex = total_parallelism_one_at_owner(vertex, home.group, home.partition)
        dag.new_vertex(name, vertex, local_parallelism=1)
    dag.new_vertex(RESULT_VERTEX, ResultSink(plan.stages[-1].limit))
    out = [0] * len(plan.stages)
    for index, stage in enumerate(plan.stages):
        # Rows must not be made for a stage that runs nowhere; the input of such a stage does not matter.
        heard = [number for number in stage.inputs if runs[index] or not runs[number]]
        for ordinal, number in enumerate(heard):
            source = plan.stages[number]
            start = from_(names[number], out[number])
            if source.order:
                merging = merges[number]
                dag.new_vertex(merging, MergeMembers(source.order))
                dag.edge(start.to(merging).all_to_one(apart=True).distributed().with_config(_PASSED_ON))
                dag.edge(between(merging, names[index]).with_config(_PASSED_ON))
            else:
                edge = _exchanged(start.to(names[index], ordinal), source, stage, plan)
                passes_on = stage.at_coordinator and stage.fragment.is_row_by_row
                dag.edge(edge.with_config(_PASSED_ON) if passes_on else edge)
            out[number] += 1
    dag.edge(between(names[-1], RESULT_VERTEX).with_config(_PASSED_ON))
    return dag.freeze(), JobConfig(required_partitions=_required(plan, partitions, runs), timeout_s=timeout_s)


def vertex_names(plan: SelectPlan) -> tuple[str, ...]:
    """The names of the vertices of a statement's stages, in the order of the stages."""
    names = [RESULT_VERTEX]
    for stage in plan.stages:
        names.append(_unique(stage.name, names))
    return tuple(names[1:])


def merge_names(plan: SelectPlan) -> dict[int, str]:
    """Return the names of the vertices that merge ordered rows, by the stage that the rows come from."""
    names = [RESULT_VERTEX, *vertex_names(plan)]
    return {
        number: _unique(f"merge {names[number + 1]}", names) for number, stage in enumerate(plan.stages) if stage.order
    }


def describe_select(
    plan: SelectPlan, partitions: Sequence[Sequence[int]], params: Sequence[Any], topology: Topology, coordinator: str
) -> dict[str, Any]:
    """Return the ``dag`` object of EXPLAIN (FORMAT JSON): what :func:`select_dag` would run, and where."""
    dag, config = select_dag(plan, partitions)
    builder = ExecutionPlanBuilder(
        dag, config, job_id="explain", coordinator=coordinator, topology=topology, params=params, table=_no_table
    )
    try:
        return builder.build().to_dict()
    finally:
        builder.close(None)


def _running(plan: SelectPlan, partitions: Sequence[Sequence[int]]) -> list[bool]:
    """Return which stages run anywhere: those that have input and a consumer that runs."""
    fed: list[bool] = []
    for stage in plan.stages:
        has_partitions = any(partitions[number] for number in stage.scans if not plan.scans[number].replicated)
        fed.append(
            stage.at_coordinator
            or has_partitions
            or any(fed[number] and plan.stages[number].spreads for number in stage.inputs)
        )
    heard = [False] * len(fed)
    heard[-1] = True
    for index in reversed(range(len(fed))):
        if fed[index] and heard[index]:
            for number in plan.stages[index].inputs:
                heard[number] = True
    return [has_rows and is_heard for has_rows, is_heard in zip(fed, heard, strict=True)]


class _OnePartition(NamedTuple):
    """The only partition whose rows a stage works on."""

    group: str
    partition: int


def _single_partitions(
    plan: SelectPlan, partitions: Sequence[Sequence[int]], runs: Sequence[bool]
) -> list[_OnePartition | None]:
    """Return the stages that work on the rows of one partition, as that partition; None for all others.

    A stage that reads tables works where it reads. One that gets all its rows from stages of one partition works there
    too: otherwise these few rows would be dealt to every participant, or sent to the coordinator and from there to the
    next stage. Only the last stage, whose rows are the answer, has to be at the coordinator.
    """
    homes: list[_OnePartition | None] = []
    for stage, is_running in zip(plan.stages, runs, strict=True):
        read = [number for number in stage.scans if not plan.scans[number].replicated]
        found: set[_OnePartition | None]
        if stage is plan.stages[-1] or not is_running or any(len(partitions[number]) > 1 for number in read):
            found = set()
        elif read:
            found = {_OnePartition(plan.scans[number].group, id_) for number in read for id_ in partitions[number]}
        else:
            found = {homes[number] for number in stage.inputs if runs[number]}
        homes.append(found.pop() if len(found) == 1 else None)
    return homes


def _required(plan: SelectPlan, partitions: Sequence[Sequence[int]], runs: Sequence[bool]) -> dict[str, frozenset[int]]:
    """The partitions that the stages which run read, by affinity group: their owners are the job's members."""
    required: dict[str, frozenset[int]] = {}
    for stage, is_running in zip(plan.stages, runs, strict=True):
        for number in stage.scans if is_running else ():
            scan = plan.scans[number]
            if not scan.replicated:
                ids = frozenset(partitions[number])
                required[scan.group] = ids if scan.group not in required else required[scan.group] | ids
    return required


def _exchanged(edge: Edge, stage: QueryStage, consumer: QueryStage, plan: SelectPlan) -> Edge:
    """The edge with the routing of the stage's exchange."""
    if consumer.at_coordinator:
        return edge.all_to_one().distributed()
    match stage.exchange:
        case ExchangeKind.BROADCAST:
            return edge.broadcast().distributed()
        case ExchangeKind.SHUFFLE:
            return edge.partitioned(*stage.columns).distributed()
        case ExchangeKind.ROUTE if stage.route is not None:
            unmatched = UnmatchedRows.KEEP if stage.keeps_unmatched else UnmatchedRows.DROP
            return edge.partitioned(
                *stage.columns, scheme=plan.scans[stage.route].tree.scheme, unmatched=unmatched
            ).distributed()
        case ExchangeKind.GATHER | ExchangeKind.ROUTE:
            raise InternalError(f"stage {stage.name} does not say how its rows reach {consumer.name}")
        case _:
            assert_never(stage.exchange)


def _unique(name: str, taken: Sequence[str]) -> str:
    """The name, with a number behind it when it is taken: subqueries may use one alias several times."""
    unique, number = name, 2
    while unique in taken:
        unique = f"{name}#{number}"
        number += 1
    return unique


def _no_table(name: str) -> TableDef:
    raise UnknownTableError(f"a SELECT names its tables by id, not {name!r}")


class _StageScan(NamedTuple):
    """A scan of a statement whose partitions are known.

    Attributes:
        scan: Its plan.
        partitions: The partitions to read; ignored for a replicated table.
        published: The load that has to be the last one published at each member that reads, or None.
        search_keys: Whether bounds on the primary key replace the scan by a search.
        mark: The token under which the read version of a partitioned table is recorded, or None; see
            :mod:`secateur.storage.hosted_tables`.
        since: The token of an earlier read, since which the rows must not have changed; None accepts any state.
    """

    scan: ScanPlan
    partitions: tuple[int, ...]
    published: int | None
    search_keys: bool
    mark: str | None = None
    since: str | None = None


class _StageVertex(ProcessorMetaSupplier):
    """The meta-supplier of a stage: at the coordinator, the owners of its scans' partitions, or every participant.

    A stage at the coordinator has an answer even if no row can reach it.
    """

    works_without_input = True
    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(
        self,
        stage: QueryStage,
        scans: Sequence[_StageScan],
        inputs: Sequence[tuple[str, pa.Schema]],
        *,
        is_running: bool,
    ) -> None:
        self._stage = stage
        self._scans = tuple(scans)
        self._inputs = tuple(inputs)
        self._is_running = is_running
        self._owned: list[Mapping[str, tuple[int, ...]]] = []
        self._key_slices: list[KeySlice | None] = []

    def init(self, context: MetaContext) -> None:
        params = positional(context.params)
        self._owned = [
            {} if item.scan.replicated else context.owners(item.scan.group, item.partitions) for item in self._scans
        ]
        self._key_slices = [item.scan.keys.bind(params) if item.search_keys else None for item in self._scans]

    def placement(self) -> Placement:
        if not self._is_running:
            return OnMembers((), 1)
        if self._stage.at_coordinator:
            return OnCoordinator()
        found = [(item.scan.group, owned) for item, owned in zip(self._scans, self._owned, strict=True) if owned]
        if not found:
            return Unrestricted()
        if any(group != found[0][0] for group, _ in found):
            return OnMembers(tuple(dict.fromkeys(member for _, owned in found for member in owned)), 1)
        group, by_member = found[0]
        return OnPartitions(group, by_member if len(found) == 1 else _united([owned for _, owned in found]))

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {
            member: FragmentStageSupplier(
                self._stage.fragment, self._inputs, self._reads_of(member), self._stage.aliases
            )
            for member in members
        }

    def _reads_of(self, member: str) -> tuple[MemberScan, ...]:
        return tuple(
            MemberScan(
                relation=item.scan.relation,
                table_id=item.scan.table_id,
                partitions=_REPLICATED_PARTITIONS if item.scan.replicated else owned.get(member, ()),
                columns=item.scan.columns,
                key_slice=key_slice,
                published=item.published,
                rows=item.scan.fetched.rows if isinstance(item.scan, PinnedScan) else None,
                mark=item.mark,
                since=item.since,
            )
            for item, owned, key_slice in zip(self._scans, self._owned, self._key_slices, strict=True)
        )


def _united(several: Sequence[Mapping[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """The partitions of some scans of one affinity group, each once."""
    members = dict.fromkeys(member for owned in several for member in owned)
    return {
        member: tuple(sorted({partition for owned in several for partition in owned.get(member, ())}))
        for member in members
    }
