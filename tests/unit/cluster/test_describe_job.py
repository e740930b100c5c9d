"""From the plan that members run to the one that users see."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from secateur.client.jobs import ResolvedPlan
from secateur.cluster.member.jobs import describe_job
from secateur.dag import (
    DAG,
    FactorySupplier,
    JobConfig,
    OnPartitions,
    Placement,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    between,
)
from secateur.engine.execution_plan import ExecutionPlanBuilder
from secateur.errors import UnknownTableError
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import EdgeTarget, PlacedVertex


class Reading(ProcessorMetaSupplier):
    def __init__(self, **by_member: Sequence[int]) -> None:
        self._by_member = {member: tuple(partitions) for member, partitions in by_member.items()}

    def placement(self) -> Placement:
        return OnPartitions("g", self._by_member)

    def get(self, members: Sequence[str]) -> dict[str, ProcessorSupplier]:
        return dict.fromkeys(members, FactorySupplier(Processor))


def no_table(name: str) -> TableDef:
    raise UnknownTableError(name)


def described(dag: DAG) -> ResolvedPlan:
    topology = Topology(5, tuple(MemberAddress(member, "h", 1) for member in ("m1", "m2", "m3")), {})
    plan = ExecutionPlanBuilder(
        dag.freeze(), JobConfig(), job_id="j", coordinator="m1", topology=topology, params=(), table=no_table
    ).build()
    return ResolvedPlan.of(describe_job(plan))


def test_partitions_and_processors() -> None:
    dag = DAG()
    dag.new_vertex("read", Reading(m1=[9, 1, 5], m3=range(100)), 2)
    dag.new_vertex("map", Processor)
    dag.edge(between("read", "map"))
    plan = described(dag)
    assert (plan.coordinator, plan.topology_version, plan.members, plan.participants) == (
        "m1",
        5,
        ("m1", "m2", "m3"),
        ("m1", "m3"),
    )
    assert plan.vertex("read").placed == (
        PlacedVertex("m1", 2, 3, (1, 5, 9)),
        PlacedVertex("m3", 2, 100, tuple(range(64))),
    )
    assert plan.vertex("map").placed == (PlacedVertex("m1", 1), PlacedVertex("m3", 1))


def test_what_no_row_can_reach() -> None:
    dag = DAG()
    dag.new_vertex("read", Reading())
    dag.new_vertex("map", Processor)
    dag.new_vertex("other", Processor)
    dag.edge(between("read", "map").distributed())
    plan = described(dag)
    assert [(vertex.name, bool(vertex.placed)) for vertex in plan.vertices] == [
        ("read", False),
        ("other", True),
        ("map", False),
    ]
    assert [(edge.origins, edge.targets) for edge in plan.edges] == [((), ())]


@pytest.mark.parametrize(
    ("routed", "words", "targets"),
    [
        pytest.param(
            lambda e: e.partitioned("k"), ("partitioned(k)",), (EdgeTarget("m1", 1), EdgeTarget("m2", 1)), id="local"
        ),
        pytest.param(
            lambda e: e.partitioned("k").distributed(),
            ("partitioned(k)", "distributed"),
            (EdgeTarget("m1", 1, 136), EdgeTarget("m2", 1, 135)),
            id="dealt",
        ),
        pytest.param(
            lambda e: e.distribute_to("m2").with_priority(1),
            ("unicast", "distributed to m2", "priority 1"),
            (EdgeTarget("m2", 1),),
            id="to-one",
        ),
    ],
)
def test_edges(routed: object, words: tuple[str, ...], targets: tuple[EdgeTarget, ...]) -> None:
    dag = DAG()
    dag.new_vertex("read", Reading(m1=[1], m2=[2]))
    dag.new_vertex("map", Processor)
    dag.edge(routed(between("read", "map")))  # type: ignore[operator]
    (edge,) = described(dag).edges
    assert (edge.words, edge.origins, edge.targets) == (words, ("m1", "m2"), targets)
