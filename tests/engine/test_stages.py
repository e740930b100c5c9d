"""Statements of several stages, on one member and on three: the answer of DuckDB on the whole data, whatever the
exchanges and whoever is pruned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels import Fragment
from secateur.engine.runtime import JobResult
from secateur.engine.sql import ExchangeKind, QueryStage, ScanPlan, SelectPlan, Strategy
from secateur.engine.sql.select_job import describe_select, select_dag
from secateur.errors import DagError, DataError, DeadlineError, LimitExceededError
from secateur.partitioning.pruning import All, PartitionTree
from secateur.partitioning.schemes import HashComponent, PartitionScheme, RangeComponent, RangePartition, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation
from secateur.testing import LocalCluster

RunTest = Callable[[Any], Any]

BIGINT, VARCHAR = parse_type("BIGINT"), parse_type("VARCHAR")

CUSTOMERS = TableDef(
    "customers",
    2,
    (Column("name", VARCHAR, False), Column("country", BIGINT)),
    ("name",),
    build_scheme(
        hashes=[HashComponent(("name",), 16)], types={"name": VARCHAR}, primary_key=("name",), table="customers"
    ),
    backups=0,
)
ITEMS = TableDef(
    "items",
    3,
    (Column("id", BIGINT, False), Column("customer", VARCHAR), Column("price", BIGINT)),
    ("id",),
    build_scheme(hashes=[HashComponent(("id",), 8)], types={"id": BIGINT}, primary_key=("id",), table="items"),
    backups=0,
)
COUNTRIES = TableDef(
    "countries",
    4,
    (Column("code", BIGINT, False), Column("label", VARCHAR)),
    ("code",),
    build_scheme(types={}, primary_key=("code",), table="countries"),
    replicated=True,
)
BANDS = TableDef(
    "bands",
    5,
    (Column("low", BIGINT, False), Column("band", VARCHAR)),
    ("low",),
    PartitionScheme(
        (),
        RangeComponent(("low",), (RangePartition(0, (0,), (20,)), RangePartition(1, (30,), (60,)))),
        (("low", BIGINT),),
    ),
    backups=0,
)

TABLES = {
    "customers": (
        CUSTOMERS,
        pa.table(
            {
                "name": [f"C{i}" for i in range(150)],
                "country": pa.array([None if i % 7 == 0 else i % 9 for i in range(150)]),
            }
        ),
    ),
    "items": (
        ITEMS,
        pa.table(
            {
                "id": pa.array(range(400), pa.int64()),
                "customer": [
                    None if i % 11 == 0 else f"C{i * 7 % 180}" for i in range(400)
                ],  # some have no customer, some one that is not there
                "price": pa.array([None if i % 13 == 0 else i % 70 for i in range(400)], pa.int64()),
            }
        ),
    ),
    "countries": (COUNTRIES, pa.table({"code": pa.array(range(8), pa.int64()), "label": list("aabbccdd")})),
    "bands": (BANDS, pa.table({"low": pa.array([0, 5, 10, 19, 30, 31, 59], pa.int64()), "band": list("tuvwxyz")})),
}


def scan(table: str, relation: str) -> ScanPlan:
    tdef, _ = TABLES[table]
    tree = PartitionTree(tdef.name, tdef.scheme, All(), tdef.partition_count, 100)
    return ScanPlan(
        relation,
        tdef.table_id,
        table,
        table,
        tuple(c.name for c in tdef.columns),
        tree,
        tdef.scheme.affinity_group(),
        tdef.replicated,
    )


def stage(name: str, sql: str, output: str, /, **options: Any) -> QueryStage:
    """A stage; its fragment sees ``s<n>`` and ``x<n>`` for its scans and inputs, and ``output`` is written as in CREATE
    TABLE.
    """
    relations = [f"s{number}" for number in options.get("scans", ())] + [
        f"x{number}" for number in options.get("inputs", ())
    ]
    typed = tuple((name, text) for name, text in (column.rsplit(" ", 1) for column in output.split(", ")))
    return QueryStage(name, Fragment(sql, tuple(relations), typed), **options)


def final(sql: str, columns: str, *inputs: int, scans: Sequence[int] = ()) -> QueryStage:
    return stage("final", sql, columns, inputs=inputs, scans=tuple(scans), at_coordinator=True)


@dataclass(frozen=True)
class Case:
    tables: Sequence[str]
    """What the scans s0, s1, ... read."""
    stages: Sequence[QueryStage]
    oracle: str
    """The statement as DuckDB answers it over all tables; ``{s0}`` stands for the kept rows of scan 0."""
    kept: dict[int, Callable[[int], bool]] = field(default_factory=dict)
    """Which partitions a scan keeps; all if it is not in it."""

    @property
    def plan(self) -> SelectPlan:
        last = self.stages[-1].fragment
        scans = tuple(scan(table, f"s{number}") for number, table in enumerate(self.tables))
        made = SelectPlan(
            "plan", scans, last, tuple(self.stages), Strategy.GATHER, None, last.columns, 0, (), None, True, 1
        )
        named = made.named()
        return SelectPlan.decoded(named.plan_id, named.encoded())

    def partitions(self) -> list[list[int]]:
        counts = [TABLES[table][0].partition_count for table in self.tables]
        return [[p for p in range(count) if self.kept.get(number, _all)(p)] for number, count in enumerate(counts)]

    def expected(self) -> Counter[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            relations = {}
            for number, table in enumerate(self.tables):
                tdef, rows = TABLES[table]
                keep = [tdef.replicated or self.kept.get(number, _all)(int(p)) for p in tdef.scheme.partitions_of(rows)]
                connection.register(f"kept{number}", rows.filter(pa.array(keep, pa.bool_())))
                relations[f"s{number}"] = f"kept{number}"
            return Counter(connection.sql(self.oracle.format(**relations)).fetchall())


def _all(partition: int) -> bool:
    return True


async def run_case(case: Case, members: int, coordinator: str = "m1", **options: Any) -> JobResult:
    async with LocalCluster(members, **options) as cluster:
        create_tables(cluster)
        dag, config = select_dag(case.plan, case.partitions())
        return await cluster.run(dag, config, [], coordinator=coordinator)


def create_tables(cluster: LocalCluster) -> None:
    for tdef, rows in TABLES.values():
        cluster.create_table(tdef, rows)


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


JOINED = "name VARCHAR, id BIGINT, price BIGINT"

BROADCAST_JOIN = Case(
    ["customers", "items"],
    [
        stage(
            "few",
            "SELECT name, country FROM s0 WHERE country < 3",
            "name VARCHAR, country BIGINT",
            scans=(0,),
            exchange=ExchangeKind.BROADCAST,
        ),
        stage(
            "join",
            "SELECT x0.name, id, price FROM s1 JOIN x0 ON s1.customer = x0.name",
            JOINED,
            scans=(1,),
            inputs=(0,),
        ),
        final("SELECT * FROM x1", JOINED, 1),
    ],
    "SELECT name, id, price FROM {s0} JOIN {s1} ON customer = name WHERE country < 3",
)

ROUTED_JOIN = Case(
    ["customers", "items"],
    [
        stage(
            "items",
            "SELECT customer, id, price FROM s1",
            "customer VARCHAR, id BIGINT, price BIGINT",
            scans=(1,),
            exchange=ExchangeKind.ROUTE,
            columns=("customer",),
            route=0,
        ),
        stage("join", "SELECT name, id, price FROM s0 JOIN x0 ON customer = name", JOINED, scans=(0,), inputs=(0,)),
        final("SELECT * FROM x1", JOINED, 1),
    ],
    "SELECT name, id, price FROM {s0} JOIN {s1} ON customer = name",
)

ROUTED_OUTER_JOIN = Case(
    ["customers", "items"],
    [
        stage(
            "items",
            "SELECT customer, id, price FROM s1",
            "customer VARCHAR, id BIGINT, price BIGINT",
            scans=(1,),
            exchange=ExchangeKind.ROUTE,
            columns=("customer",),
            route=0,
            keeps_unmatched=True,
        ),
        stage(
            "join", "SELECT name, id, price FROM x0 LEFT JOIN s0 ON customer = name", JOINED, scans=(0,), inputs=(0,)
        ),
        final("SELECT * FROM x1", JOINED, 1),
    ],
    "SELECT name, id, price FROM {s1} LEFT JOIN {s0} ON customer = name",
)

ROUTED_BY_RANGE = Case(
    ["bands", "items"],
    [
        stage(
            "items",
            "SELECT price, id FROM s1",
            "price BIGINT, id BIGINT",
            scans=(1,),
            exchange=ExchangeKind.ROUTE,
            columns=("price",),
            route=0,
        ),
        stage(
            "join", "SELECT band, id FROM s0 JOIN x0 ON price = low", "band VARCHAR, id BIGINT", scans=(0,), inputs=(0,)
        ),
        final("SELECT * FROM x1", "band VARCHAR, id BIGINT", 1),
    ],
    "SELECT band, id FROM {s0} JOIN {s1} ON price = low",
)

ROUTED_BY_RANGE_OUTER = Case(
    ["bands", "items"],
    [
        stage(
            "items",
            "SELECT price, id FROM s1",
            "price BIGINT, id BIGINT",
            scans=(1,),
            exchange=ExchangeKind.ROUTE,
            columns=("price",),
            route=0,
            keeps_unmatched=True,
        ),
        stage(
            "join",
            "SELECT band, id FROM x0 LEFT JOIN s0 ON price = low",
            "band VARCHAR, id BIGINT",
            scans=(0,),
            inputs=(0,),
        ),
        final("SELECT * FROM x1", "band VARCHAR, id BIGINT", 1),
    ],
    "SELECT band, id FROM {s1} LEFT JOIN {s0} ON price = low",
)

SHUFFLED_FULL_JOIN = Case(
    ["customers", "items"],
    [
        stage(
            "customers",
            "SELECT country FROM s0",
            "country BIGINT",
            scans=(0,),
            exchange=ExchangeKind.SHUFFLE,
            columns=("country",),
        ),
        stage(
            "items",
            "SELECT price, id FROM s1",
            "price BIGINT, id BIGINT",
            scans=(1,),
            exchange=ExchangeKind.SHUFFLE,
            columns=("price",),
        ),
        stage(
            "join",
            "SELECT country, id FROM x0 FULL JOIN x1 ON country = price",
            "country BIGINT, id BIGINT",
            inputs=(0, 1),
        ),
        final("SELECT * FROM x2", "country BIGINT, id BIGINT", 2),
    ],
    "SELECT country, id FROM {s0} FULL JOIN {s1} ON country = price",
)

SHUFFLED_DISTINCT_COUNT = Case(
    ["items"],
    [
        stage(
            "items",
            "SELECT DISTINCT customer, price FROM s0",
            "customer VARCHAR, price BIGINT",
            scans=(0,),
            exchange=ExchangeKind.SHUFFLE,
            columns=("customer",),
        ),
        stage(
            "group",
            "SELECT customer, count(DISTINCT price) AS n FROM x0 GROUP BY customer",
            "customer VARCHAR, n BIGINT",
            inputs=(0,),
        ),
        final("SELECT * FROM x1", "customer VARCHAR, n BIGINT", 1),
    ],
    "SELECT customer, count(DISTINCT price) FROM {s0} GROUP BY customer",
)

REPLICATED = Case(
    ["customers", "countries"],
    [
        stage(
            "join",
            "SELECT label, count(*) AS n FROM s0 JOIN s1 ON country = code GROUP BY label",
            "label VARCHAR, n BIGINT",
            scans=(0, 1),
        ),
        final(
            "SELECT label, sum(n)::BIGINT AS n, (SELECT count(*) FROM s1) AS c FROM x0 GROUP BY label",
            "label VARCHAR, n BIGINT, c BIGINT",
            0,
            scans=(1,),
        ),
    ],
    "SELECT label, count(*), (SELECT count(*) FROM {s1}) FROM {s0} JOIN {s1} ON country = code GROUP BY label",
)

THERE_AND_BACK = Case(
    ["items"],
    [
        stage("sums", "SELECT sum(price)::BIGINT AS s, count(price) AS n FROM s0", "s BIGINT, n BIGINT", scans=(0,)),
        stage(
            "mean",
            "SELECT sum(s) / sum(n) AS m FROM x0",
            "m DOUBLE",
            inputs=(0,),
            at_coordinator=True,
            exchange=ExchangeKind.BROADCAST,
        ),
        stage(
            "above",
            "SELECT id, price FROM s0 WHERE price > (SELECT m FROM x1)",
            "id BIGINT, price BIGINT",
            scans=(0,),
            inputs=(1,),
        ),
        final("SELECT id, price FROM x2", "id BIGINT, price BIGINT", 2),
    ],
    "SELECT id, price FROM {s0} WHERE price > (SELECT avg(price) FROM {s0})",
)

TWO_CONSUMERS = Case(
    ["customers", "items"],
    [
        stage(
            "few",
            "SELECT name, country FROM s0 WHERE country < 3",
            "name VARCHAR, country BIGINT",
            scans=(0,),
            exchange=ExchangeKind.BROADCAST,
        ),
        stage(
            "join",
            "SELECT name, id FROM s1 JOIN x0 ON customer = name",
            "name VARCHAR, id BIGINT",
            scans=(1,),
            inputs=(0,),
        ),
        final(
            "SELECT name, id, country FROM x0 LEFT JOIN x1 USING (name)",
            "name VARCHAR, id BIGINT, country BIGINT",
            0,
            1,
        ),
    ],
    "SELECT name, id, country FROM {s0} LEFT JOIN {s1} ON customer = name WHERE country < 3",
)

CO_LOCATED = Case(
    ["customers", "customers"],
    [
        stage(
            "join",
            "SELECT a.name, a.country FROM s0 a JOIN s1 b USING (name)",
            "name VARCHAR, country BIGINT",
            scans=(0, 1),
        ),
        final("SELECT * FROM x0", "name VARCHAR, country BIGINT", 0),
    ],
    "SELECT a.name, a.country FROM {s0} a JOIN {s1} b USING (name)",
)

TWO_GROUPS = Case(
    ["customers", "items"],
    [
        stage("union", "SELECT name FROM s0 UNION ALL SELECT customer FROM s1", "name VARCHAR", scans=(0, 1)),
        final("SELECT name, count(*) AS n FROM x0 GROUP BY name", "name VARCHAR, n BIGINT", 0),
    ],
    "SELECT name, count(*) FROM (SELECT name FROM {s0} UNION ALL SELECT customer FROM {s1}) GROUP BY name",
)

CASES = [
    pytest.param(BROADCAST_JOIN, id="broadcast"),
    pytest.param(ROUTED_JOIN, id="route"),
    pytest.param(ROUTED_OUTER_JOIN, id="route that keeps rows"),
    pytest.param(ROUTED_BY_RANGE, id="route by range"),
    pytest.param(ROUTED_BY_RANGE_OUTER, id="route by range that keeps rows"),
    pytest.param(SHUFFLED_FULL_JOIN, id="shuffle"),
    pytest.param(SHUFFLED_DISTINCT_COUNT, id="shuffled aggregate"),
    pytest.param(REPLICATED, id="replicated"),
    pytest.param(THERE_AND_BACK, id="coordinator in the middle"),
    pytest.param(TWO_CONSUMERS, id="two consumers"),
    pytest.param(CO_LOCATED, id="co-located"),
    pytest.param(TWO_GROUPS, id="two affinity groups"),
]

PRUNED = [
    pytest.param({}, id="all"),
    pytest.param({0: lambda p: p % 3 == 0}, id="first"),
    pytest.param({1: lambda p: p % 3 == 1}, id="second"),
    pytest.param({0: lambda p: p == 1, 1: lambda p: p == 0}, id="one of each"),
    pytest.param({0: lambda p: False}, id="nothing of the first"),
    pytest.param({1: lambda p: False}, id="nothing of the second"),
    pytest.param({0: lambda p: False, 1: lambda p: False}, id="nothing"),
]


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("kept", PRUNED)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(one_in=3)
def test_stages_answer_as_duckdb(
    run: RunTest, case: Case, kept: dict[int, Callable[[int], bool]], members: int
) -> None:
    pruned = Case(case.tables, case.stages, case.oracle, kept)
    result = run(run_case(pruned, members, coordinator=f"m{members}"))
    assert rows_of(result.table()) == pruned.expected()
    assert result.table().schema == case.stages[-1].fragment.schema


def placed(
    case: Case, kept: dict[int, Callable[[int], bool]], run: RunTest
) -> tuple[dict[str, list[str]], list[tuple[str, str, str]]]:
    async def main() -> dict[str, Any]:
        async with LocalCluster(3) as cluster:
            create_tables(cluster)
            pruned = Case(case.tables, case.stages, case.oracle, kept)
            return describe_select(pruned.plan, pruned.partitions(), [], cluster.topology, "m2")

    described = run(main())
    return {v["name"]: v["members"] for v in described["vertices"]}, [
        (e["from"], e["to"], e["kind"]) for e in described["edges"]
    ]


def test_explain_shows_where_stages_run_and_how_rows_travel(run: RunTest) -> None:
    members, edges = placed(TWO_CONSUMERS, {}, run)
    assert members == {"few": ["m1", "m2", "m3"], "join": ["m1", "m2", "m3"], "final": ["m2"], "result": ["m2"]}
    assert edges == [
        ("few", "join", "broadcast"),
        ("few", "final", "all-to-one"),
        ("join", "final", "all-to-one"),
        ("final", "result", "unicast"),
    ]
    assert placed(ROUTED_JOIN, {}, run)[1][0] == ("items", "join", "partitioned")


def test_who_has_nothing_to_read_or_nobody_to_hear_it_does_not_run(run: RunTest) -> None:
    everywhere, nowhere = ["m1", "m2", "m3"], []
    items_gone, customers_gone = {1: lambda p: False}, {0: lambda p: False}
    assert placed(BROADCAST_JOIN, items_gone, run)[0] == {
        "few": nowhere,
        "join": nowhere,
        "final": ["m2"],
        "result": ["m2"],
    }
    assert placed(TWO_CONSUMERS, items_gone, run)[0] == {
        "few": everywhere,
        "join": nowhere,
        "final": ["m2"],
        "result": ["m2"],
    }
    assert placed(ROUTED_JOIN, customers_gone, run)[0] == {
        "items": nowhere,
        "join": nowhere,
        "final": ["m2"],
        "result": ["m2"],
    }
    assert placed(ROUTED_OUTER_JOIN, customers_gone, run)[0] == {
        "items": everywhere,
        "join": everywhere,
        "final": ["m2"],
        "result": ["m2"],
    }
    assert placed(SHUFFLED_FULL_JOIN, items_gone, run)[0] == {
        "customers": everywhere,
        "items": nowhere,
        "join": everywhere,
        "final": ["m2"],
        "result": ["m2"],
    }


def test_a_select_restricts_its_job_to_the_partitions_that_running_stages_read(run: RunTest) -> None:
    customers, items = (TABLES[name][0].scheme.affinity_group() for name in ("customers", "items"))
    case = Case(BROADCAST_JOIN.tables, BROADCAST_JOIN.stages, BROADCAST_JOIN.oracle, {0: lambda p: p in (3, 7)})
    dag, config = select_dag(case.plan, case.partitions())
    assert config.required_partitions == {customers: frozenset({3, 7}), items: frozenset(range(8))}
    nobody = Case(case.tables, case.stages, case.oracle, {1: lambda p: False})
    assert select_dag(nobody.plan, nobody.partitions())[1].required_partitions == {}

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            create_tables(cluster)
            without = replace(config, required_partitions={**config.required_partitions, customers: frozenset({3})})
            with pytest.raises(DagError, match=r"1 of them are not in JobConfig.required_partitions \(7\)"):
                await cluster.run(dag, without, [])

    run(main())


def test_the_owners_of_required_partitions_take_part_and_no_other_member(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3) as cluster:
            create_tables(cluster)
            ownership = cluster.topology.ownership(CUSTOMERS.scheme.affinity_group())
            for kept in ([ownership.partitions_of("m1")[0]], ownership.partitions_of("m2"), [0, 1, 2]):
                case = Case(
                    CO_LOCATED.tables,
                    CO_LOCATED.stages,
                    CO_LOCATED.oracle,
                    dict.fromkeys((0, 1), set(kept).__contains__),
                )
                result = await cluster.run(*select_dag(case.plan, case.partitions()), [], coordinator="m3")
                assert rows_of(result.table()) == case.expected()
                assert set(result.members_touched) == ownership.owners_of(kept) | {"m3"}

    run(main())


@pytest.mark.parametrize("partition", range(4))
def test_a_stage_that_gets_the_rows_of_one_partition_is_one_processor_at_its_owner(
    run: RunTest, partition: int
) -> None:
    scans = {number for stage in SHUFFLED_DISTINCT_COUNT.stages for number in stage.scans}
    assert scans == {0}
    tdef = TABLES[SHUFFLED_DISTINCT_COUNT.tables[0]][0]
    members, _ = placed(SHUFFLED_DISTINCT_COUNT, {0: lambda p: p == partition}, run)
    where = {name: on for name, on in members.items() if name not in ("final", "result")}
    assert len(where) == 2

    async def owner() -> str:
        async with LocalCluster(3) as cluster:
            create_tables(cluster)
            return cluster.topology.ownership(tdef.scheme.affinity_group()).primary(partition)

    assert set(map(tuple, where.values())) == {(run(owner()),)}


def test_rows_that_the_consumer_cannot_match_do_not_travel(run: RunTest) -> None:
    async def main() -> dict[str, int]:
        case = Case(ROUTED_JOIN.tables, ROUTED_JOIN.stages, ROUTED_JOIN.oracle, {0: lambda p: p == 3})
        result = await run_case(case, 3)
        assert rows_of(result.table()) == case.expected()
        return Counter({m.vertex: m.rows_in for m in result.metrics if m.vertex == "join"})

    in_partition = [
        c
        for c in TABLES["items"][1]["customer"].to_pylist()
        if c is not None and CUSTOMERS.scheme.partition_of({"name": c}) == 3
    ]
    assert run(main()) == {"join": len(in_partition)}


def test_two_stages_read_the_same_rows_though_somebody_writes(run: RunTest) -> None:
    """The means of the first stage and the rows of the third are of one moment: a scan is read when the job starts, not
    when its stage has its turn.
    """

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            create_tables(cluster)
            dag, config = select_dag(THERE_AND_BACK.plan, THERE_AND_BACK.partitions())
            job = await cluster.runtimes["m1"].start_job(dag, config, [], cluster.topology)
            for partition in range(ITEMS.partition_count):
                cluster.stores["m1"].apply(
                    ITEMS.table_id, partition, ChangeOperation.OVERWRITE, ITEMS.arrow_schema.empty_table()
                )
            assert rows_of((await job.result()).table()) == THERE_AND_BACK.expected()

    run(main())


def test_an_error_in_a_stage_ends_the_others(run: RunTest) -> None:
    bad = stage(
        "join",
        "SELECT (price + 1000)::TINYINT AS p FROM s1 JOIN x0 ON customer = name",
        "p TINYINT",
        scans=(1,),
        inputs=(0,),
    )
    case = Case(BROADCAST_JOIN.tables, [BROADCAST_JOIN.stages[0], bad, final("SELECT * FROM x1", "p TINYINT", 1)], "")

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            create_tables(cluster)
            dag, config = select_dag(case.plan, case.partitions())
            with pytest.raises(DataError, match=r"\(vertex 'join' on member m[123]\)"):
                await cluster.run(dag, config, [])
            assert [runtime.running_executions for runtime in cluster.runtimes.values()] == [0, 0, 0]

    run(main())


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_a_deadline_stops_any_stage(run: RunTest, slow: int) -> None:
    """Whichever stage computes for ever; the others have ended or wait for it."""
    endless = "(SELECT count(*) FROM range(1000000) a, range(1000000) b) > 0"
    stages = [
        stage(
            "few",
            f"SELECT name FROM s0 WHERE {endless if slow == 0 else 'true'}",
            "name VARCHAR",
            scans=(0,),
            exchange=ExchangeKind.BROADCAST,
        ),
        stage(
            "join",
            f"SELECT id FROM s1 JOIN x0 ON customer = name WHERE {endless if slow == 1 else 'true'}",
            "id BIGINT",
            scans=(1,),
            inputs=(0,),
        ),
        final(f"SELECT id FROM x1 WHERE {endless if slow == 2 else 'true'}", "id BIGINT", 1),
    ]

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            create_tables(cluster)
            case = Case(["customers", "items"], stages, "")
            dag, config = select_dag(case.plan, case.partitions(), timeout_s=0.3)
            with pytest.raises(DeadlineError):
                await cluster.run(dag, config, [])

    run(main())


def test_a_stage_that_gathers_too_much_fails_and_the_member_lives(run: RunTest) -> None:
    async def main() -> None:
        async with LocalCluster(3, gathered_bytes_max=500) as cluster:
            create_tables(cluster)
            dag, config = select_dag(BROADCAST_JOIN.plan, BROADCAST_JOIN.partitions())
            with pytest.raises(
                LimitExceededError,
                match=r"the limit is 500; select fewer columns.*\(vertex '(few|join|final)' on member m[123]\)",
            ):
                await cluster.run(dag, config, [])
            small = Case(
                BROADCAST_JOIN.tables,
                BROADCAST_JOIN.stages,
                BROADCAST_JOIN.oracle,
                {0: lambda p: p < 2, 1: lambda p: p < 1},
            )
            dag, config = select_dag(small.plan, small.partitions())
            assert rows_of((await cluster.run(dag, config, [])).table()) == small.expected()

    run(main())


def test_a_join_that_no_machine_holds_fails_and_the_member_lives(run: RunTest) -> None:
    """Each member makes 10**10 rows for each of its own, and whoever gathers them says when it is too much."""
    product = stage(
        "join",
        "SELECT id, a.i, b.i AS j FROM s1, range(100000) AS a(i), range(100000) AS b(i)",
        "id BIGINT, i BIGINT, j BIGINT",
        scans=(1,),
    )
    case = Case(BROADCAST_JOIN.tables, [product, final("SELECT count(*) AS n FROM x0", "n BIGINT", 0)], "")

    async def main() -> None:
        async with LocalCluster(3, gathered_bytes_max=16 << 20) as cluster:
            create_tables(cluster)
            dag, config = select_dag(case.plan, case.partitions())
            with pytest.raises(
                LimitExceededError, match=r"the limit is 16,777,216.*\(vertex '(join|final)' on member m[123]\)"
            ):
                await cluster.run(dag, config, [])
            dag, config = select_dag(BROADCAST_JOIN.plan, BROADCAST_JOIN.partitions())
            assert rows_of((await cluster.run(dag, config, [])).table()) == BROADCAST_JOIN.expected()

    run(main())


def test_what_each_stage_cost_comes_with_the_result(run: RunTest) -> None:
    result = run(run_case(BROADCAST_JOIN, 3))
    few = sum(
        count for (_, country), count in rows_of(TABLES["customers"][1]).items() if country is not None and country < 3
    )
    by_stage = {(m.vertex, m.member): m for m in result.metrics}
    assert sum(m.rows_out for (vertex, _), m in by_stage.items() if vertex == "few") == few
    assert [by_stage["join", member].rows_in for member in ("m1", "m2", "m3")] == [few] * 3
    assert all(by_stage["join", member].bytes_in > 0 for member in ("m1", "m2", "m3"))
    assert all(m.offload_s > 0 for (vertex, _), m in by_stage.items() if vertex != "result")
    assert by_stage["final", "m1"].rows_out == result.table().num_rows
