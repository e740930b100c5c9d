"""From DAG and topology to plans: who takes part, what runs where, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from secateur.dag import (
    DAG,
    Anywhere,
    FactorySupplier,
    JobConfig,
    MetaContext,
    OnCoordinator,
    OnMembers,
    OnPartitions,
    Param,
    Placement,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    Spread,
    Unrestricted,
    between,
    force_total_parallelism_one,
    from_,
    lazy_total_parallelism_one,
)
from secateur.dag.edge import ROUTING_PARTITIONS, AllToOne, Partitioned, UnmatchedRows
from secateur.engine.execution_plan import ExecutionPlan, ExecutionPlanBuilder
from secateur.errors import (
    DagError,
    DataError,
    Error,
    JobFailedError,
    ParameterError,
    PartitionLostError,
    UnknownTableError,
)
from secateur.partitioning.tables import TableDef
from secateur.partitioning.topology import MemberAddress, Topology, assign

MEMBERS = ("m1", "m2", "m3", "m4")
UNRESTRICTED = Unrestricted()


class Vertexlike(ProcessorMetaSupplier):
    """A meta-supplier that is placed as told and writes down what happens to it."""

    def __init__(
        self,
        placement: Placement | Callable[[MetaContext], Placement] = UNRESTRICTED,
        *,
        log: list[str] | None = None,
        without_input: bool = False,
    ) -> None:
        self._placement = placement
        self._context: MetaContext | None = None
        self.log = [] if log is None else log
        self.works_without_input = without_input

    def init(self, context: MetaContext) -> None:
        self.log.append(f"init {context.vertex}")
        self._context = context

    def placement(self) -> Placement:
        assert self._context is not None
        return self._placement(self._context) if callable(self._placement) else self._placement

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        self.log.append(f"get {','.join(members)}")
        return {member: FactorySupplier(Processor) for member in members}

    def close(self, error: BaseException | None) -> None:
        self.log.append(f"close {error}")


@pytest.fixture
def topology(orders: TableDef) -> Topology:
    return Topology(
        5, tuple(MemberAddress(m, "h", 1) for m in MEMBERS), {orders.scheme.affinity_group(): assign(16, MEMBERS, 1)}
    )


@pytest.fixture
def build(topology: Topology, orders: TableDef) -> Callable[..., ExecutionPlan]:
    def table(name: str) -> TableDef:
        if name != "orders":
            raise UnknownTableError(name)
        return orders

    def build(dag: DAG, config: JobConfig | None = None, coordinator: str = "m1", params: Any = ()) -> ExecutionPlan:
        builder = ExecutionPlanBuilder(
            dag.freeze(),
            config or JobConfig(),
            job_id="j",
            coordinator=coordinator,
            topology=topology,
            params=params,
            table=table,
        )
        try:
            return builder.build()
        finally:
            builder.close(None)

    return build


@pytest.fixture
def reads(orders: TableDef) -> Callable[..., Vertexlike]:
    group = orders.scheme.affinity_group()

    def reads(*partitions: int) -> Vertexlike:
        return Vertexlike(lambda context: OnPartitions(group, context.owners(group, partitions)))

    return reads


@pytest.fixture
def mine(topology: Topology, orders: TableDef) -> Callable[[str], list[int]]:
    """The partitions that a member owns."""
    return topology.ownership(orders.scheme.affinity_group()).partitions_of


def chain(*parts: tuple[str, Any], edge: Callable[[Any], Any] = lambda e: e) -> DAG:
    dag = DAG()
    for name, supplier in parts:
        dag.new_vertex(name, supplier)
    for (first, _), (second, _) in pairwise(parts):
        dag.edge(edge(between(first, second)))
    return dag


def placed(plan: ExecutionPlan) -> dict[str, list[str]]:
    return {vertex["name"]: vertex["members"] for vertex in plan.to_dict()["vertices"]}


def test_only_owners_take_part(build: Any, reads: Any, mine: Any) -> None:
    plan = build(chain(("scan", reads(mine("m2")[0], mine("m4")[0])), ("map", Vertexlike())), coordinator="m1")
    assert plan.job.participants == ("m2", "m4")
    assert placed(plan) == {"scan": ["m2", "m4"], "map": ["m2", "m4"]}


@pytest.mark.parametrize("key", ["orders", "group"])
def test_required_partitions_choose_the_participants(
    build: Any, reads: Any, mine: Any, orders: TableDef, key: str
) -> None:
    required = frozenset({mine("m2")[0], mine("m3")[1]})
    config = JobConfig(required_partitions={orders.scheme.affinity_group() if key == "group" else key: required})
    plan = build(chain(("scan", reads(mine("m2")[0])), ("work", Vertexlike()), edge=lambda e: e.distributed()), config)
    assert plan.job.participants == ("m2", "m3")
    assert placed(plan) == {"scan": ["m2"], "work": ["m2", "m3"]}


def test_a_participant_where_nothing_runs_gets_no_plan(build: Any, reads: Any, mine: Any) -> None:
    config = JobConfig(required_partitions={"orders": frozenset({mine("m2")[0], mine("m3")[1]})})
    plan = build(chain(("scan", reads(mine("m2")[0])), ("work", Vertexlike())), config)
    assert plan.job.participants == ("m2",)
    assert list(plan.members) == ["m2"]


def test_a_source_that_does_not_say_runs_everywhere(build: Any) -> None:
    assert build(chain(("source", Vertexlike()), ("sink", Vertexlike()))).job.participants == MEMBERS


def test_without_member_pruning_everybody_takes_part(build: Any, reads: Any, mine: Any) -> None:
    dag = chain(("scan", reads(mine("m2")[0])), ("work", Vertexlike()), edge=lambda e: e.distributed())
    plan = build(dag, JobConfig(member_pruning=False))
    assert plan.job.participants == MEMBERS
    assert placed(plan) == {"scan": ["m2"], "work": list(MEMBERS)}


@pytest.mark.parametrize(
    ("placement", "coordinator", "members"),
    [
        pytest.param(OnCoordinator(), "m3", ["m3"], id="coordinator"),
        pytest.param(OnMembers(("m4", "m2"), 2), "m3", ["m2", "m4"], id="members"),
        pytest.param(Anywhere(), "m2", ["m2"], id="anywhere, the coordinator takes part"),
        pytest.param(Anywhere(), "m3", ["m1"], id="anywhere, the coordinator does not"),
    ],
)
def test_placements(
    build: Any, reads: Any, mine: Any, placement: Placement, coordinator: str, members: list[str]
) -> None:
    dag = DAG()
    dag.new_vertex("scan", reads(mine("m1")[0], mine("m2")[0]))
    dag.new_vertex("other", Vertexlike(placement))
    assert placed(build(dag, coordinator=coordinator)) == {"scan": ["m1", "m2"], "other": members}


@pytest.mark.parametrize(
    ("parts", "coordinator", "members"),
    [
        pytest.param(1, "m3", {"m3": 1}, id="one part, at the coordinator"),
        pytest.param(2, "m3", {"m1": 1, "m3": 1}, id="two parts, the coordinator first"),
        pytest.param(9, "m1", {"m1": 3, "m2": 2, "m3": 2, "m4": 2}, id="many parts over everybody"),
    ],
)
def test_parts_are_spread_where_no_source_says_who_takes_part(
    build: Any, parts: int, coordinator: str, members: dict[str, int]
) -> None:
    dag = DAG()
    dag.new_vertex("files", Vertexlike(Spread(parts)), local_parallelism=5)
    plan = build(dag, coordinator=coordinator)
    assert {member: p.vertices[0].local_parallelism for member, p in plan.members.items()} == members


@pytest.mark.parametrize(
    "config",
    [JobConfig(), JobConfig(required_partitions={"orders": frozenset(range(16))})],
    ids=["declared", "required"],
)
def test_parts_that_are_spread_add_no_member(build: Any, reads: Any, mine: Any, config: JobConfig) -> None:
    dag = DAG()
    dag.new_vertex("scan", reads(mine("m2")[0]))
    dag.new_vertex("files", Vertexlike(Spread(3)))
    plan = build(dag, config, coordinator="m1")
    assert placed(plan)["files"] == (["m2"] if config.required_partitions is None else ["m1", "m2", "m3"])


def test_a_source_of_a_lost_partition_is_refused(reads: Any, mine: Any, topology: Topology) -> None:
    left = replace(topology, members=topology.members[:3])
    dag = chain(("scan", reads(mine("m4")[0]))).freeze()
    builder = ExecutionPlanBuilder(
        dag, JobConfig(), job_id="j", coordinator="m1", topology=left, params=(), table=lambda name: None
    )  # type: ignore[arg-type,return-value]
    with pytest.raises(PartitionLostError, match=r"last copies .* were on m4"):
        builder.build()


def test_distribute_to_makes_a_participant(build: Any, reads: Any, mine: Any) -> None:
    plan = build(chain(("scan", reads(mine("m2")[0])), ("sum", Vertexlike()), edge=lambda e: e.distribute_to("m4")))
    assert placed(plan) == {"scan": ["m2"], "sum": ["m4"]}
    assert [target.member for target in plan.job.edges[0].targets] == ["m4"]


def test_all_to_one_runs_on_the_owner_of_its_routing_partition(build: Any, reads: Any, mine: Any) -> None:
    partitions = [mine(member)[0] for member in ("m1", "m3", "m4")]
    plan = build(
        chain(("scan", reads(*partitions)), ("sum", Vertexlike()), edge=lambda e: e.all_to_one("x").distributed())
    )
    assert placed(plan)["sum"] == [AllToOne("x").one_of(["m1", "m3", "m4"])]


def test_the_coordinator_takes_no_part_unless_something_runs_there(build: Any, reads: Any, mine: Any) -> None:
    plan = build(
        chain(("scan", reads(mine("m2")[0])), ("sum", Vertexlike()), edge=lambda e: e.all_to_one().distributed()),
        coordinator="m4",
    )
    assert plan.job.participants == ("m2",)


def test_a_source_without_partitions_runs_nowhere_and_takes_what_follows_with_it(build: Any, reads: Any) -> None:
    plan = build(chain(("scan", reads()), ("map", Vertexlike()), edge=lambda e: e.distributed()))
    assert (plan.job.participants, plan.members, placed(plan)) == ((), {}, {"scan": [], "map": []})


def test_a_vertex_that_works_without_input_stays(build: Any, reads: Any) -> None:
    dag = chain(
        ("scan", reads()),
        ("count", Vertexlike(without_input=True)),
        ("out", Vertexlike(OnCoordinator())),
        edge=lambda e: e.all_to_one().distributed(),
    )
    plan = build(dag, coordinator="m3")
    assert placed(plan) == {"scan": [], "count": ["m3"], "out": ["m3"]}
    assert plan.job.edges[0].origins == ()


def test_no_more_processors_than_partitions(build: Any, reads: Any, mine: Any) -> None:
    dag = DAG()
    dag.new_vertex("scan", reads(*mine("m1")[:3], mine("m2")[0]), local_parallelism=2)
    plan = build(dag)
    found = {
        member: (p.vertices[0].local_parallelism, p.vertices[0].first_global_index, p.vertices[0].total_parallelism)
        for member, p in plan.members.items()
    }
    assert found == {"m1": (2, 0, 3), "m2": (1, 2, 3)}


def test_all_routing_partitions_are_dealt_over_the_participants(build: Any, reads: Any, mine: Any) -> None:
    partitions = [mine(member)[0] for member in ("m1", "m3", "m4")]
    plan = build(
        chain(("scan", reads(*partitions)), ("sum", Vertexlike()), edge=lambda e: e.partitioned("k").distributed())
    )
    (edge,) = plan.job.edges
    assert len(edge.owners) == ROUTING_PARTITIONS
    assert {index: int((edge.owners == index).sum()) for index in range(3)} == {0: 91, 1: 90, 2: 90}


def test_an_edge_like_a_table_keeps_rows_with_their_owner_and_deals_the_orphans(
    build: Any, reads: Any, mine: Any, orders: TableDef
) -> None:
    dag = chain(
        ("scan", reads(mine("m2")[0], mine("m3")[0])),
        ("sum", Vertexlike()),
        edge=lambda e: e.partitioned("c", scheme=orders.scheme).distributed(),
    )
    (edge,) = build(dag).job.edges
    assert [target.member for target in edge.targets] == ["m2", "m3"]
    assert set(edge.owners[mine("m2")].tolist()) == {0}
    assert set(edge.owners[mine("m3")].tolist()) == {1}
    orphans = edge.owners[sorted(mine("m1") + mine("m4"))].tolist()
    assert (orphans.count(0), orphans.count(1)) == (4, 4)


def test_an_edge_like_a_table_by_name_has_its_scheme_when_the_job_starts(
    build: Any, reads: Any, mine: Any, orders: TableDef
) -> None:
    dag = chain(
        ("scan", reads(mine("m2")[0], mine("m3")[0])),
        ("write", Vertexlike()),
        edge=lambda e: e.partitioned(table="orders").distributed(),
    )
    (edge,) = build(dag).job.edges
    assert edge.routing == Partitioned(("customer",), orders.scheme, "orders")
    assert set(edge.owners[mine("m2")].tolist()) == {0}
    renamed = chain(
        ("scan", reads(0)), ("write", Vertexlike()), edge=lambda e: e.partitioned("who", table="orders").distributed()
    )
    assert build(renamed).job.edges[0].routing == Partitioned(("who",), orders.scheme, "orders")


@pytest.mark.parametrize("unmatched", [UnmatchedRows.KEEP, UnmatchedRows.DROP])
def test_an_edge_like_a_table_drops_what_its_destination_does_not_read(
    build: Any, reads: Any, mine: Any, orders: TableDef, unmatched: UnmatchedRows
) -> None:
    read = {"m2": mine("m2")[:1], "m3": mine("m3")[:2]}
    placement = OnPartitions(
        orders.scheme.affinity_group(), {member: tuple(partitions) for member, partitions in read.items()}
    )
    dag = chain(
        ("scan", reads(*read["m2"], *read["m3"])),
        ("join", Vertexlike(placement)),
        edge=lambda e: e.partitioned("c", scheme=orders.scheme, unmatched=unmatched).distributed(),
    )
    (edge,) = build(dag).job.edges
    assert [edge.owners[read[member]].tolist() for member in ("m2", "m3")] == [[0], [1, 1]]
    rest = [partition for partition in range(len(edge.owners)) if partition not in read["m2"] + read["m3"]]
    assert set(edge.owners[rest].tolist()) == ({2} if unmatched is UnmatchedRows.DROP else {0, 1})


def test_total_parallelism_one(build: Any, reads: Any, mine: Any) -> None:
    dag = chain(
        ("scan", reads(mine("m2")[0])),
        ("one", force_total_parallelism_one(Vertexlike(), "m4")),
        edge=lambda e: e.distributed(),
    )
    plan = build(dag)
    assert placed(plan)["one"] == ["m4"]
    assert plan.members["m4"].vertices[0].total_parallelism == 1


def test_lazy_total_parallelism_one_follows_its_key_at_each_start(
    build: Any, reads: Any, mine: Any, orders: TableDef, topology: Topology
) -> None:
    inner = Vertexlike()
    dag = chain(
        ("scan", reads(mine("m2")[0])),
        ("one", lazy_total_parallelism_one(inner, "orders", {"customer": Param(0)})),
        edge=lambda e: e.distributed(),
    )
    ownership = topology.ownership(orders.scheme.affinity_group())
    expected = {
        c: [ownership.primary(orders.scheme.partition_of({"customer": c}))] for c in ("C1", "C2", "C3", "C4", "C5")
    }
    assert {c: placed(build(dag, params=[c]))["one"] for c in expected} == expected
    assert len({tuple(members) for members in expected.values()}) > 1
    assert not hasattr(inner, "_member")
    assert inner._context is None  # each run worked on a copy


@pytest.mark.parametrize("works", [True, False])
def test_meta_suppliers_live_and_die_in_order(build: Any, works: bool) -> None:
    log: list[str] = []
    dag = chain(("a", Vertexlike(OnCoordinator() if works else OnMembers(("m9",), 1), log=log)))
    if works:
        build(dag)
    else:
        with pytest.raises(DagError, match="names the member 'm9'"):
            build(dag)
    assert log == (["init a", "get m1", "close None"] if works else ["init a", "close None"])


def test_meta_suppliers_whose_init_was_begun_are_closed_and_no_other(build: Any) -> None:
    log: list[str] = []

    def broken(context: MetaContext) -> Placement:
        raise DataError("no")

    with pytest.raises(DataError, match=r"no \(vertex 'b' on member m1\)"):
        build(
            chain(
                ("a", Vertexlike(OnCoordinator(), log=log)),
                ("b", Vertexlike(broken, log=log)),
                ("c", Vertexlike(log=log)),
            )
        )
    assert log == ["init a", "init b", "close None", "close None"]


def test_a_bug_in_a_meta_supplier_names_the_vertex(build: Any) -> None:
    def broken(context: MetaContext) -> Placement:
        raise ZeroDivisionError("oh")

    with pytest.raises(
        JobFailedError, match=r"vertex 'a' on member m1 failed in its meta-supplier's init\(\): ZeroDivisionError: oh"
    ) as caught:
        build(chain(("a", Vertexlike(broken))))
    assert "ZeroDivisionError" in caught.value.details["traceback"]


class NoSuppliers(Vertexlike):
    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {}


def refusals() -> list[Any]:
    restricted = JobConfig(required_partitions={"orders": frozenset({0})})
    return [
        pytest.param(
            lambda reads: chain(("source", Vertexlike())),
            restricted,
            DagError,
            "'source' is a source that does not say which partitions it needs",
            id="unrestricted source",
        ),
        pytest.param(
            lambda reads: chain(("scan", reads(0, 1, 2))),
            restricted,
            DagError,
            r"'scan' reads 3 partitions, but 2 of them are not .* \(1, 2\)",
            id="scan of more",
        ),
        pytest.param(
            lambda reads: chain(("scan", reads(0))),
            JobConfig(required_partitions={"orders": frozenset({99})}),
            DagError,
            "has partition 99, but there are 16",
            id="no such partition",
        ),
        pytest.param(
            lambda reads: chain(("scan", reads(0))),
            JobConfig(required_partitions={"nobody": frozenset()}),
            UnknownTableError,
            "nobody",
            id="no such table",
        ),
        pytest.param(
            lambda reads: chain(("scan", reads(*range(16))), ("out", Vertexlike(OnCoordinator()))),
            JobConfig(),
            DagError,
            "edge 'scan'.* is local, and rows of 'scan' on member m2 have nowhere to go: 'out' runs only on m1; make",
            id="stranded by a local edge",
        ),
        pytest.param(
            lambda reads: chain(
                ("scan", reads(0)), ("out", Vertexlike(OnMembers(("m1",), 1))), edge=lambda e: e.distribute_to("m2")
            ),
            JobConfig(),
            DagError,
            "is distributed to m2, and rows of 'scan' on member .* nowhere to go: 'out' runs only on m1; make",
            id="distributed to the wrong member",
        ),
        pytest.param(
            lambda reads: chain(("scan", reads(0)), ("sum", Vertexlike()), edge=lambda e: e.distribute_to("m9")),
            JobConfig(),
            DagError,
            "names the member 'm9'",
            id="distributed to nobody",
        ),
        pytest.param(
            lambda reads: chain(("scan", reads(0)), ("look", reads()), edge=lambda e: e.distributed()),
            JobConfig(),
            DagError,
            "'look' runs nowhere, as it has no partition",
            id="nowhere to go",
        ),
        pytest.param(
            lambda reads: chain(
                ("scan", reads(0)), ("write", Vertexlike()), edge=lambda e: e.partitioned(table="nobody").distributed()
            ),
            JobConfig(),
            UnknownTableError,
            "nobody",
            id="an edge like a table that is not there",
        ),
        pytest.param(
            lambda reads: chain(
                ("scan", reads(0)),
                ("write", Vertexlike()),
                edge=lambda e: e.partitioned("a", "b", table="orders").distributed(),
            ),
            JobConfig(),
            DagError,
            r"is partitioned by \('a', 'b'\) like orders, whose partitions depend on \('customer',\)",
            id="other columns than the table's",
        ),
        pytest.param(
            lambda reads: chain(("a", NoSuppliers(OnCoordinator()))),
            JobConfig(),
            DagError,
            "returned no ProcessorSupplier for member m1",
            id="no supplier",
        ),
        pytest.param(
            lambda reads: chain(("a", force_total_parallelism_one(Vertexlike(), "m9"))),
            JobConfig(),
            DagError,
            "'a' is to run on member 'm9'",
            id="no such member",
        ),
        pytest.param(
            lambda reads: chain(("a", lazy_total_parallelism_one(Vertexlike(), "orders", {"customer": Param(0)}))),
            JobConfig(),
            ParameterError,
            "needs the parameter 0",
            id="no parameter",
        ),
    ]


@pytest.mark.parametrize(("make", "config", "error", "message"), refusals())
def test_what_cannot_run_is_refused(
    build: Any, reads: Any, make: Any, config: JobConfig, error: type[Error], message: str
) -> None:
    with pytest.raises(error, match=message):
        build(make(reads), config)


@pytest.mark.parametrize(
    "placement", [pytest.param(OnCoordinator(), id="coordinator"), pytest.param(OnMembers(("m1",), 1), id="member")]
)
def test_parallelism_that_the_supplier_does_not_allow_is_refused(build: Any, placement: Placement) -> None:
    dag = DAG()
    dag.new_vertex("a", Vertexlike(placement), local_parallelism=2)
    with pytest.raises(DagError, match="'a' has local_parallelism 2, but its supplier allows 1"):
        build(dag)


def test_two_scans_keep_their_own_partitions(build: Any, reads: Any, mine: Any) -> None:
    dag = DAG()
    dag.new_vertex("left", reads(mine("m1")[0]))
    dag.new_vertex("right", reads(mine("m2")[0]))
    dag.new_vertex("join", Vertexlike())
    dag.edge(from_("left").to("join", 0).partitioned("k").distributed()).edge(
        from_("right").to("join", 1).partitioned("k").distributed()
    )
    plan = build(dag)
    assert placed(plan) == {"left": ["m1"], "right": ["m2"], "join": ["m1", "m2"]}
    assert [edge.origins for edge in plan.job.edges] == [("m1",), ("m2",)]


def test_anywhere_is_one_processor_whatever_is_asked_for(build: Any) -> None:
    dag = DAG()
    dag.new_vertex("a", Vertexlike(Anywhere()), local_parallelism=4)
    assert build(dag).members["m1"].vertices[0].local_parallelism == 1
