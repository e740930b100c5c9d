"""A SELECT whose partitions are on several members, as a DAG.

A scan with its partial fragment at each owner, all rows to the coordinator, the final fragment there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.edge import between, from_
from secateur.dag.job_config import JobConfig
from secateur.dag.placement import OnCoordinator, Placement
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.partitions_reader import PartitionsReader, ReadRequest, ReadStage
from secateur.engine.plan import ScanPlan, SelectPlan
from secateur.engine.plan_builder import ExecutionPlanBuilder
from secateur.engine.processors.fragment_call import positional
from secateur.engine.processors.fragment_stage import FragmentStageSupplier
from secateur.engine.processors.result_sink import ResultSink
from secateur.errors import UnknownTableError
from secateur.partitioning.table import TableDef
from secateur.partitioning.topology import Topology

__all__ = ["RESULT_VERTEX", "describe_select", "select_dag"]

RESULT_VERTEX = "result"


def select_dag(
    plan: SelectPlan,
    partitions: Sequence[Sequence[int]],
    *,
    published: Mapping[int, int] | None = None,
    search_keys: bool = True,
    timeout_s: float | None = None,
) -> tuple[FrozenDAG, JobConfig]:
    """The DAG of a statement and its arguments.

    Run it at one of the owning members with the statement's parameters in order; the answer is the only table of the result, in the schema of ``plan.columns``
    also when it has no row.

    Args:
        plan: The statement's plan.
        partitions: For each scan of the plan, the ids of the partitions to read: what its tree came to with the parameters bound, or all of them. Ignored for
            replicated tables, which are read at the coordinator.
        published: By table id, the load that has to be the last one published at each member; a table that is not in it is read as it is.
        search_keys: Whether what is said about the primary key replaces the scan by a search.
        timeout_s: Deadline in seconds, or None.
    """
    dag = DAG()
    required: dict[str, frozenset[int]] = {}
    inputs = []
    names: list[str] = []
    for index, (scan, partial, ids) in enumerate(zip(plan.scans, plan.partials, partitions, strict=True)):
        name = _vertex_name(scan, names)
        names.append(name)
        dag.new_vertex(name, _Scan(scan, partial, ids, (published or {}).get(scan.table_id), search_keys=search_keys), local_parallelism=1)
        inputs.append((f"p{index}", partial.schema))
        if not scan.replicated:
            required[scan.group] = required.get(scan.group, frozenset()).union(ids)
    dag.new_vertex("final", _Final(plan.final, inputs))
    dag.new_vertex(RESULT_VERTEX, ResultSink())
    for index, name in enumerate(names):
        dag.edge(from_(name).to("final", index).all_to_one().distributed())
    dag.edge(between("final", RESULT_VERTEX))
    return dag.freeze(), JobConfig(required_partitions=required, timeout_s=timeout_s)


def describe_select(plan: SelectPlan, partitions: Sequence[Sequence[int]], params: Sequence[Any], topology: Topology, coordinator: str) -> dict[str, Any]:
    """The ``dag`` object of EXPLAIN (FORMAT JSON): what :func:`select_dag` would run, and where."""
    dag, config = select_dag(plan, partitions)
    builder = ExecutionPlanBuilder(dag, config, job_id="explain", coordinator=coordinator, topology=topology, params=params, table=_no_table)
    try:
        return builder.build().to_dict()
    finally:
        builder.close(None)


def _vertex_name(scan: ScanPlan, taken: Sequence[str]) -> str:
    """``scan:<alias>``; subqueries may use one alias several times."""
    name = f"scan:{scan.alias}"
    number = 2
    while name in taken:
        name = f"scan:{scan.alias}#{number}"
        number += 1
    return name


class _Scan(PartitionsReader):
    replicated_placement = OnCoordinator()

    def __init__(self, scan: ScanPlan, partial: Fragment, partitions: Sequence[int], published: int | None, *, search_keys: bool) -> None:
        super().__init__()
        self._scan = scan
        self._partial = partial
        self._partitions = partitions
        self._published = published
        self._search_keys = search_keys

    def resolve(self, context: MetaContext) -> ReadRequest:
        scan = self._scan
        return ReadRequest(
            table_id=scan.table_id,
            group=scan.group,
            partitions=(0,) if scan.replicated else self._partitions,
            replicated=scan.replicated,
            columns=scan.columns,
            key_slice=scan.keys.bind(positional(context.params)) if self._search_keys else None,
            stage=ReadStage(self._partial, scan.relation),
            published=self._published,
        )


class _Final(ProcessorMetaSupplier):
    """The last stage, at the coordinator; it has an answer even if no row can reach it."""

    works_without_input = True
    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, fragment: Fragment, inputs: Sequence[tuple[str, Any]]) -> None:
        self._fragment = fragment
        self._inputs = tuple(inputs)

    def placement(self) -> Placement:
        return OnCoordinator()

    def get(self, members: Sequence[str]) -> dict[str, ProcessorSupplier]:
        return {member: FragmentStageSupplier(self._fragment, self._inputs) for member in members}


def _no_table(name: str) -> TableDef:
    raise UnknownTableError(f"a SELECT names its tables by id, not {name!r}")
