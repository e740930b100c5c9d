"""A SELECT over several members: the answer of DuckDB on the whole data, from the members that own the kept partitions,
and no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from secateur.engine.kernels import Fragment
from secateur.engine.sql import DirectSearch, KeyOperand, KeySearch, QueryStage, ScanPlan, SelectPlan, Strategy
from secateur.engine.sql.select_job import describe_select, select_dag
from secateur.engine_limits import EngineLimits
from secateur.errors import DataChangedError, DataError, TopologyChangedError
from secateur.partitioning.pruning import All, Parameter, PartitionTree
from secateur.partitioning.schemes import build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.testing import LocalCluster

RunTest = Callable[[Any], Any]

PATIENT = EngineLimits(slice_s=5.0)
"""No turn of the loop is cut short, so that the number of messages does not depend on the speed of the machine."""

COUNTRIES = TableDef(
    "countries",
    2,
    (Column("code", parse_type("BIGINT"), False), Column("name", parse_type("VARCHAR"))),
    ("code",),
    build_scheme(types={}, primary_key=("code",), table="countries"),
    replicated=True,
)
COUNTRY_ROWS = pa.table({"code": pa.array(range(5), pa.int64()), "name": ["a", "b", "c", "d", "e"]})

NOTHING_KNOWN = KeySearch()


def scan(
    tdef: TableDef, relation: str, columns: Sequence[str], alias: str | None = None, keys: KeySearch = NOTHING_KNOWN
) -> ScanPlan:
    tree = PartitionTree(tdef.name, tdef.scheme, All(), tdef.partition_count, 100)
    return ScanPlan(
        relation,
        tdef.table_id,
        tdef.name,
        alias or tdef.name,
        tuple(columns),
        tree,
        tdef.scheme.affinity_group(),
        tdef.replicated,
        keys,
    )


def select(scans: Sequence[ScanPlan], partials: Sequence[Fragment], final: Fragment) -> SelectPlan:
    stages = [
        QueryStage(f"scan:{s.alias}", partial, scans=(index,), at_coordinator=s.replicated)
        for index, (s, partial) in enumerate(zip(scans, partials, strict=True))
    ]
    stages.append(QueryStage("final", final, inputs=tuple(range(len(scans))), at_coordinator=True))
    return SelectPlan(
        "plan", tuple(scans), final, tuple(stages), Strategy.TWO_STAGE, None, final.columns, 0, (), None, True, 1
    )


def totals(orders: TableDef, keys: KeySearch = NOTHING_KNOWN, where: str = "") -> SelectPlan:
    partial = Fragment(
        f"SELECT number, sum(amount) AS s, count(*) AS c FROM s0 {where} GROUP BY number",
        ("s0",),
        (("number", "BIGINT"), ("s", "DOUBLE"), ("c", "BIGINT")),
    )
    final = Fragment(
        "SELECT number, sum(s) AS total, sum(c)::BIGINT AS orders FROM x0 GROUP BY number ORDER BY number",
        ("x0",),
        (("number", "BIGINT"), ("total", "DOUBLE"), ("orders", "BIGINT")),
    )
    return select([scan(orders, "s0", ["customer", "number", "amount"], keys=keys)], [partial], final)


@pytest.mark.parametrize("members", [1, 2, 3])
def test_two_stage_aggregation_answers_as_duckdb(
    run: RunTest, orders: TableDef, order_rows: pa.Table, members: int
) -> None:
    async def main() -> pa.Table:
        async with LocalCluster(members) as cluster:
            cluster.create_table(orders, order_rows)
            dag, config = select_dag(totals(orders), [range(16)])
            return (await cluster.run(dag, config, [])).table()

    expected = duckdb.sql(
        "SELECT number, sum(amount) AS total, count(*) AS orders FROM order_rows GROUP BY number ORDER BY number"
    ).to_arrow_table()
    assert run(main()).to_pydict() == expected.to_pydict()


def test_only_owners_of_kept_partitions_work(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    async def main() -> None:
        async with LocalCluster(3, limits=PATIENT) as cluster:
            cluster.create_table(orders, order_rows)
            ownership = cluster.topology.ownership(orders.scheme.affinity_group())
            kept = [ownership.partitions_of("m1")[0], *ownership.partitions_of("m3")[:2]]
            dag, config = select_dag(totals(orders), [kept])
            result = await cluster.run(dag, config, [])
            inside = [
                orders.scheme.partition_of({"customer": c}) in kept for c in order_rows.column("customer").to_pylist()
            ]
            assert sum(result.table().column("orders").to_pylist()) == sum(inside)
            assert result.members_touched == ("m1", "m3")
            assert cluster.received() == {"m1": 2, "m2": 0, "m3": 1}

    run(main())


def test_sort_and_limit_at_both_stages(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    columns = (("customer", "VARCHAR"), ("amount", "DOUBLE"))
    partial = Fragment("SELECT customer, amount FROM s0 ORDER BY amount DESC LIMIT 7", ("s0",), columns)
    final = Fragment("SELECT customer, amount FROM x0 ORDER BY amount DESC LIMIT 5 OFFSET 2", ("x0",), columns)

    async def main() -> list[float]:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            dag, config = select_dag(
                select([scan(orders, "s0", ["customer", "amount"])], [partial], final), [range(16)]
            )
            result = await cluster.run(dag, config, [])
            assert all(m.rows_in <= 21 for m in result.metrics if m.vertex == "final")
            return result.table().column("amount").to_pylist()

    assert run(main()) == [997.0, 996.0, 995.0, 994.0, 993.0]


def test_parameters_and_the_key_search_reach_the_members(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    plan = totals(
        orders,
        KeySearch(direct=DirectSearch((KeyOperand(Parameter(0), parse_type("VARCHAR")),))),
        "WHERE customer = $1",
    )

    async def main() -> None:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            for search_keys, rows_read in ((True, 5), (False, None)):
                seen: list[int] = []
                for runtime in cluster.runtimes.values():
                    runtime.services = replace(
                        runtime.services, open_answer=_counting(runtime.services.open_answer, seen)
                    )
                dag, config = select_dag(plan, [range(16)], search_keys=search_keys)
                result = await cluster.run(dag, config, ["C7"])
                assert result.table().to_pydict() == {
                    "number": [0, 1, 2, 3, 4],
                    "total": [35.0, 36.0, 37.0, 38.0, 39.0],
                    "orders": [1] * 5,
                }
                assert sum(seen) == (rows_read or order_rows.num_rows)

    run(main())


def _counting(open_answer: Any, seen: list[int]) -> Any:
    def counting(fragment: Fragment, relations: Any, params: Any = (), *, cancellation: Any = None) -> Any:
        if "s0" in relations:
            seen.append(relations["s0"].num_rows)
        return open_answer(fragment, relations, params, cancellation=cancellation)

    return counting


def test_no_partition_at_all_still_has_an_answer_with_the_right_schema(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    async def main() -> pa.Table:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            dag, config = select_dag(totals(orders), [[]])
            result = await cluster.run(dag, config, [])
            assert result.members_touched == ("m1",)
            return result.table()

    table = run(main())
    assert (table.num_rows, table.schema) == (
        0,
        pa.schema([("number", pa.int64()), ("total", pa.float64()), ("orders", pa.int64())]),
    )


def joined(orders: TableDef) -> SelectPlan:
    return select(
        [
            scan(orders, "s0", ["customer", "number"], "o"),
            scan(orders, "s1", ["customer", "amount"], "o"),
            scan(COUNTRIES, "s2", ["code", "name"], "c"),
        ],
        [
            Fragment("SELECT customer, number FROM s0", ("s0",), (("customer", "VARCHAR"), ("number", "BIGINT"))),
            Fragment(
                "SELECT customer, amount FROM s1 WHERE amount < 30",
                ("s1",),
                (("customer", "VARCHAR"), ("amount", "DOUBLE")),
            ),
            Fragment("SELECT code, name FROM s2", ("s2",), (("code", "BIGINT"), ("name", "VARCHAR"))),
        ],
        Fragment(
            "SELECT name, count(*) AS n, sum(amount) AS a FROM x0 JOIN x1 USING (customer) JOIN x2 ON number = code"
            " GROUP BY name ORDER BY name",
            ("x0", "x1", "x2"),
            (("name", "VARCHAR"), ("n", "BIGINT"), ("a", "DOUBLE")),
        ),
    )


def test_a_gathered_join_of_three_scans_one_of_them_replicated(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    async def main() -> pa.Table:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            cluster.create_table(COUNTRIES, COUNTRY_ROWS)
            dag, config = select_dag(joined(orders), [range(16), range(16), [0]])
            assert [vertex.name for vertex in dag] == ["scan:o", "scan:o#2", "scan:c", "final", "result"]
            return (await cluster.run(dag, config, [], coordinator="m2")).table()

    expected = duckdb.sql(
        "SELECT name, count(*) AS n, sum(r.amount) AS a FROM order_rows l JOIN order_rows r USING (customer) JOIN"
        " COUNTRY_ROWS ON l.number = code WHERE r.amount < 30 GROUP BY name ORDER BY name"
    ).to_arrow_table()
    assert run(main()).to_pydict() == expected.to_pydict()


def test_a_replicated_table_is_read_at_the_coordinator_only(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    async def main() -> dict[str, Any]:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            cluster.create_table(COUNTRIES, COUNTRY_ROWS)
            left = cluster.topology.ownership(orders.scheme.affinity_group()).partitions_of("m3")
            return describe_select(joined(orders), [left, range(16), [0]], [], cluster.topology, "m2")

    described = run(main())
    assert {vertex["name"]: vertex["members"] for vertex in described["vertices"]} == {
        "scan:o": ["m3"],
        "scan:o#2": ["m1", "m2", "m3"],
        "scan:c": ["m2"],
        "final": ["m2"],
        "result": ["m2"],
    }
    assert described["edges"][0] == {"from": "scan:o", "to": "final", "kind": "all-to-one", "distributed": True}
    assert described["edges"][-1] == {"from": "final", "to": "result", "kind": "unicast", "distributed": False}


def test_an_error_of_a_kernel_names_vertex_and_member_and_keeps_its_class(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    partial = Fragment("SELECT (number + 100)::TINYINT AS n FROM s0", ("s0",), (("n", "TINYINT"),))
    bad = Fragment("SELECT (number + 1000)::TINYINT AS n FROM s0", ("s0",), (("n", "TINYINT"),))
    final = Fragment("SELECT n FROM x0", ("x0",), (("n", "TINYINT"),))

    async def main(fragment: Fragment) -> pa.Table:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            ownership = cluster.topology.ownership(orders.scheme.affinity_group())
            dag, config = select_dag(
                select([scan(orders, "s0", ["number"])], [fragment], final), [ownership.partitions_of("m2")]
            )
            try:
                return (await cluster.run(dag, config, [])).table()
            finally:
                assert [runtime.running_executions for runtime in cluster.runtimes.values()] == [0, 0, 0]

    assert set(run(main(partial)).column("n").to_pylist()) == {100, 101, 102, 103, 104}
    with pytest.raises(DataError, match=r"\(vertex 'scan:orders' on member m2\)"):
        run(main(bad))


def test_a_partition_that_is_not_there_any_more_may_be_retried(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            cluster.create_table(orders, order_rows)
            cluster.stores["m2"].drop_table(orders.table_id)
            cluster.stores["m2"].create_table(orders, [])
            dag, config = select_dag(totals(orders), [range(16)])
            await cluster.run(dag, config, [])

    with pytest.raises(TopologyChangedError, match="on member m2") as caught:
        run(main())
    assert caught.value.retry_safe


def test_a_deadline_stops_a_kernel(run: RunTest, orders: TableDef, order_rows: pa.Table) -> None:
    slow = Fragment("SELECT count(*) AS c FROM s0 a, s0 b, range(1000000) r", ("s0",), (("c", "BIGINT"),))
    final = Fragment("SELECT c FROM x0", ("x0",), (("c", "BIGINT"),))

    async def main() -> float:
        async with LocalCluster(2) as cluster:
            cluster.create_table(orders, order_rows)
            dag, config = select_dag(
                select([scan(orders, "s0", ["number"])], [slow], final), [range(16)], timeout_s=0.2
            )
            begun = asyncio.get_running_loop().time()
            with pytest.raises(Exception, match=r"took longer than its deadline of 0.2 s"):
                await cluster.run(dag, config, [])
            return asyncio.get_running_loop().time() - begun

    assert run(main()) < 1.5


@pytest.mark.parametrize("statements", [30])
def test_many_statements_at_once(run: RunTest, orders: TableDef, order_rows: pa.Table, statements: int) -> None:
    async def main() -> list[float]:
        async with LocalCluster(3) as cluster:
            cluster.create_table(orders, order_rows)
            plan = totals(
                orders,
                KeySearch(direct=DirectSearch((KeyOperand(Parameter(0), parse_type("VARCHAR")),))),
                "WHERE customer = $1",
            )

            async def one(number: int) -> float:
                dag, config = select_dag(plan, [range(16)])
                result = await cluster.run(dag, config, [f"C{number}"], coordinator=f"m{1 + number % 3}")
                return sum(result.table().column("total").to_pylist())

            return await asyncio.gather(*(one(number) for number in range(statements)))

    assert run(main()) == [float(sum(range(5 * n, 5 * n + 5))) for n in range(statements)]


def test_members_that_have_published_different_loads_do_not_answer_together(
    run: RunTest, orders: TableDef, order_rows: pa.Table
) -> None:
    async def main() -> None:
        async with LocalCluster(2) as cluster:
            cluster.create_table(orders, order_rows)
            published = cluster.stores["m1"].data_version(orders.table_id).published
            dag, config = select_dag(totals(orders), [range(16)], published={orders.table_id: published})
            assert (await cluster.run(dag, config, [])).table().num_rows == 5
            ahead, config = select_dag(totals(orders), [range(16)], published={orders.table_id: published + 1})
            with pytest.raises(DataChangedError) as caught:
                await cluster.run(ahead, config, [])
            assert caught.value.retry_safe

    run(main())
