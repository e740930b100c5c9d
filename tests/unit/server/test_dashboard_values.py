"""What pages of the dashboard compute from rows: orders, maps, reports, and which texts they execute."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import duckdb
import pytest

from secateur.errors import ProgrammingError
from secateur.server.dashboard import (
    HOT_KEYS,
    JOBS,
    LOADS,
    TENANTS,
    HeatOfTable,
    SortedColumn,
    TableSort,
    Uses,
    check_query,
    draw_partition_map,
    rendered,
    report_pruning,
    spelled_keys,
    tables_of,
)
from secateur.server.metrics import TENANTS as TENANT_METRICS

COLUMNS = (SortedColumn("id", "Member"), SortedColumn("rows", "Rows", True))
ROWS = [{"id": "m2", "rows": 5}, {"id": "m10", "rows": None}, {"id": "m1", "rows": 9}]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({}, ["m1", "m2", "m10"], id="numbers in names count as numbers"),
        pytest.param({"sort": "-id"}, ["m10", "m2", "m1"], id="downwards"),
        pytest.param({"sort": "-rows"}, ["m1", "m2", "m10"], id="no value is last"),
        pytest.param({"sort": "rows"}, ["m2", "m1", "m10"], id="no value is last upwards too"),
        pytest.param({"sort": "-no_such"}, ["m1", "m2", "m10"], id="an unknown column"),
    ],
)
def test_rows_are_in_the_order_that_was_asked_for(query: dict[str, str], expected: list[str]) -> None:
    assert [row["id"] for row in TableSort.of(COLUMNS, query, "id").rows(ROWS)] == expected


def test_a_heading_turns_its_own_order_and_begins_numbers_with_the_largest() -> None:
    sort = TableSort.of(COLUMNS, {"show": "a b", "sort": "id"}, "id", names=("show",))
    assert [sort.link(column) for column in COLUMNS] == ["?show=a+b&sort=-id", "?show=a+b&sort=-rows"]
    assert [sort.state(column) for column in COLUMNS] == ["ascending", "none"]


def partition(number: int, owner: str | None, missing: int = 0, size: int = 100) -> dict[str, Any]:
    return {
        "table_name": "orders",
        "partition": number,
        "range": None,
        "primary_member": owner,
        "backup_members": [],
        "copies_missing": missing,
        "rows": size,
        "bytes": size,
    }


def test_the_map_tells_owners_sizes_and_what_is_missing() -> None:
    rows = [
        partition(0, "m1"),
        partition(1, "m2", size=25),
        partition(2, "m1", missing=1, size=0),
        partition(3, None, 2),
    ]
    drawn = draw_partition_map(rows, ["m1", "m2", "m3"])
    assert [(member, count) for member, _, count in drawn.owners] == [("m1", 2), ("m2", 1), ("m3", 0)]
    colors = {member: color for member, color, _ in drawn.owners}
    assert len(set(colors.values())) == 3
    assert [cell.color for cell in drawn.cells] == [colors["m1"], colors["m2"], colors["m1"], None]
    assert [cell.shade for cell in drawn.cells[:3]] == [1.0, 0.62, 0.25]
    assert [cell.is_incomplete for cell in drawn.cells] == [False, False, True, True]
    assert (drawn.incomplete, drawn.lost) == (2, 1)
    assert [cell.title for cell in drawn.cells[2:]] == [
        "p2: m1, 0 rows, 1 missing",
        "p3: no owner, 100 rows, 2 missing",
    ]
    assert [cell.shade > 0.1 for cell in draw_partition_map(rows, ["m1", "m2", "m3"], "m2").cells[:3]] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "heat",
    [
        pytest.param(None, id="by bytes"),
        pytest.param(HeatOfTable(60.0, {number: Uses(54_321, 4_321 + number) for number in range(1000)}), id="by hits"),
    ],
)
def test_a_map_of_1000_partitions_of_50_members_is_a_page_under_200_kb(heat: HeatOfTable | None) -> None:
    members = [f"m{number}" for number in range(1, 51)]
    rows = [
        partition(number, members[number % 50], size=1_000_000 + number) | {"backup_members": [members[number % 49]]}
        for number in range(1000)
    ]
    drawn = draw_partition_map(rows, members, heat=heat)
    table = {"table_name": "orders", "replicated": False, "partitioning": "HASH (customer) PARTITIONS 1000"}
    page = rendered(
        "partitions.html",
        {
            "pages": [("/", "Members")],
            "path": "/partitions",
            "title": "Partitions",
            "trouble": "",
            "shown": 40,
            "line": None,
            "tables": [table],
            "table": table | {"rows": 10**9, "bytes": 10**9, "backups": 1},
            "rows": rows,
            "map": drawn,
            "heat": heat,
            "hottest": [] if heat is None else heat.hottest(5),
            "shade": "bytes" if heat is None else "hits",
            "only": None,
            "offset": 0,
            "total": 1000,
            "step": 1000,
        },
    )
    assert len({color for _, color, _ in drawn.owners}) == 50
    assert len(page.encode()) < 200_000
    assert page.count("<rect") >= 1000
    assert page.count('<tr><th scope="row">') == 1000


def test_a_map_by_hits_tells_them_by_shade_height_and_words() -> None:
    heat = HeatOfTable(2.0, {1: Uses(60, 40), 2: Uses(0, 25)})
    rows = [partition(0, "m1", size=10**6), partition(1, "m1"), partition(2, "m2", missing=1)]
    drawn = draw_partition_map(rows, ["m1", "m2"], heat=heat)
    assert [cell.shade for cell in drawn.cells] == [0.25, 1.0, 0.62]
    assert [cell.height for cell in drawn.cells] == [2, drawn.size, 10]
    assert len({cell.y + cell.height for cell in drawn.cells}) == 1, "bars stand on one line"
    assert [cell.title for cell in drawn.cells] == [
        "p0: m1, 0 reads, 0 writes",
        "p1: m1, 60 reads, 40 writes",
        "p2: m2, 0 reads, 25 writes, 1 missing",
    ]
    idle = draw_partition_map(rows, ["m1", "m2"], heat=HeatOfTable(2.0, {}))
    assert {cell.height for cell in idle.cells} == {2}


def answered(sql: str, table: str, rows: str, columns: str) -> list[tuple[Any, ...]]:
    """The answer to a query of a system table that has these rows."""
    connection = duckdb.connect()
    connection.execute(f"CREATE SCHEMA secateur; CREATE TABLE secateur.{table} AS {rows}")
    return connection.execute(f"SELECT COLUMNS('{columns}') FROM ({sql})").fetchall()


def test_hot_keys_of_several_members_are_added_up() -> None:
    sampled = "('A', 'm1', 0.25, 10), ('B', 'm2', 0.375, 15), ('A', 'm3', 0.5, 20)) t(key, member, share, sampled)"
    rows = f"SELECT *, 'orders' AS table_name, 3 AS partition, 0.01 AS share_error FROM (VALUES {sampled}"
    assert answered(HOT_KEYS, "hot_keys", rows, "key|share$|sampled|member|partition") == [
        ("A", 0.75, 30, 3, "m3"),
        ("B", 0.375, 15, 3, "m2"),
    ]


def test_hours_of_a_tenant_are_added_up() -> None:
    names = "tenant, hour, processor_ms, rows, p99_ms"
    hours = f"('a', 1, 10, 5, 1.0), ('b', 2, 1000, 2, 2.0), ('a', 2, 30, 7, 3.0)) t({names})"
    left = ("waiting_ms", "statements", "failed", "refused", "p50_ms", "rows_read", "bytes_sent")
    others = ", ".join(f"0 AS {name}" for name in left)
    rows = f"SELECT *, {others} FROM (VALUES {hours}"
    assert answered(TENANTS, "tenants", rows, "tenant|processor_ms|^rows$|p99_ms") == [
        ("b", 1000, 2.0, 2),
        ("a", 40, 3.0, 12),
    ]


def test_tenants_beyond_the_fiftieth_share_a_label() -> None:
    names = ("statements", "failed", "refused", "waiting_ms", "rows_read", "bytes_sent")
    others = ", ".join(f"1 AS {name}" for name in names)
    rows = (
        f"SELECT CASE range WHEN 99 THEN '' WHEN 98 THEN 'others' ELSE 't' || range END AS tenant, 2 AS hour,"
        f" range AS processor_ms, {others} FROM range(100)"
        f" UNION ALL SELECT 'old' AS tenant, 1 AS hour, 9e9 AS processor_ms, {others}"
    )
    found = dict(answered(TENANT_METRICS, "tenants", rows, "tenant|statements"))
    assert len(found) == 51
    assert (found["owner"], found["t97"], found["others"]) == (1, 1, 50)
    assert "old" not in found


@pytest.mark.parametrize(
    ("key", "columns", "expected"),
    [
        pytest.param('{"customer":"C12","id":7}', "customer, id", "'C12', 7", id="a text and a number"),
        pytest.param('{"name":"O\'Hara \\u00e9"}', "name", "'O''Hara é'", id="a text with a quotation mark"),
        pytest.param('{"n":170141183460469231731687303715884105727}', "n", str(2**127 - 1), id="all digits"),
        pytest.param('{"flag":true,"x":-0.5}', "flag, x", "True, -0.5", id="a boolean and a double"),
        pytest.param('{"day":"2024-01-31","price":"12.50"}', "day, price", "'2024-01-31', '12.50'", id="as texts"),
        pytest.param('{"x":null}', "x", "not finite", id="a double without a number in JSON"),
    ],
)
def test_a_hot_key_is_spelled_as_in_sql(key: str, columns: str, expected: str) -> None:
    (found,) = spelled_keys([{"key": key}])
    assert (found["key"], found["columns"]) == (expected, columns)


def group(**values: Any) -> dict[str, Any]:
    known = {"fingerprint": "f", "statement": "s", "tree": "t: all", "reason": None, "pruned": 0, "unpruned": 0}
    return known | {"total_ms": 1.0} | values


def test_the_report_has_what_keeps_the_statements_of_a_table_from_being_pruned() -> None:
    lower = "customer is wrapped in lower(): compare the bare column"
    report = report_pruning(
        [
            group(tree="orders: (p1 | $1)", pruned=90),
            group(tree="orders: all; customers: (p2)", unpruned=6, reason=lower, total_ms=5.0, statement="slow"),
            group(tree="orders: all", unpruned=3, reason=lower, total_ms=2.0),
            group(tree="orders: all", unpruned=1, total_ms=50.0, statement="whole"),
            group(tree="regions: any"),
        ]
    )
    assert [(one.table, one.pruned, one.unpruned, one.share_pruned) for one in report] == [
        ("orders", 90, 10, 0.9),
        ("customers", 0, 6, 0.0),
    ]
    assert [(reason.text, reason.suggestion, reason.statements, reason.example) for reason in report[0].reasons] == [
        ("the whole table is asked for", "", 1, "whole"),
        ("customer is wrapped in lower()", "compare the bare column", 9, "slow"),
    ]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (None, []),
        ("", []),
        ("orders: (p7 | p10)", ["orders"]),
        ("orders: (p1 | $1); customers: all; orders: all", ["orders", "customers"]),
    ],
)
def test_tables_of_a_partition_tree(tree: str | None, expected: list[str]) -> None:
    assert tables_of(tree) == expected


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1", " from t", "/* a */ -- b\n(VALUES (1))", "WITH x AS (SELECT 1) SELECT * FROM x", "values (1)"],
)
def test_queries_are_measured(sql: str) -> None:
    assert check_query(sql) in sql


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "-- SELECT\nDELETE FROM t",
        "/* SELECT */ update t SET a = 1",
        "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
        "INSERT INTO t SELECT 1",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "EXPLAIN ANALYZE DELETE FROM t",
        "KILL 'm1:1'",
        "selected",
        "",
    ],
)
def test_what_may_change_something_is_not(sql: str) -> None:
    with pytest.raises(ProgrammingError, match="only queries"):
        check_query(sql)


def test_tables_and_columns_are_named_as_a_statement_writes_them() -> None:
    columns = [("carts", "id", "BIGINT"), ("carts", "order", "DATE"), ('My "t"', "Größe", "VARCHAR")]
    rows = [dict(zip(("table_name", "column_name", "data_type"), column, strict=True)) for column in columns]
    frame = {"pages": [], "path": "/sql", "title": "SQL", "trouble": "", "line": None}
    page = rendered("sql.html", frame | {"sql": "", "columns": rows, "columns_max": 10})
    names = [unescape(name) for name in re.findall('data-name="(.*?)"', page)]
    assert names == ["carts", "id", '"order"', '"My ""t"""', '"Größe"']
    assert re.findall('<span class="dim">(.*?)</span></li>', page) == ["BIGINT", "DATE", "VARCHAR"]


def test_the_time_of_a_job_ends_with_it() -> None:
    begun = "now() AT TIME ZONE 'UTC' - INTERVAL 1 MINUTE AS submitted"
    rows = f"SELECT 'a' AS id, {begun}, submitted + INTERVAL 2 SECOND AS ended UNION ALL SELECT 'b', {begun}, NULL"
    (of_ended, of_running) = sorted(answered(JOBS, "jobs", rows, "id|elapsed_ms"))
    assert of_ended == ("a", 2000.0)
    assert of_running[1] >= 60_000.0


def test_the_rate_of_a_load_is_that_of_all_its_time() -> None:
    values = "(VALUES (1, 5000, 250.0::DOUBLE), (2, 0, 40.0), (3, 1, 0.0)) t(id, rows, elapsed_ms)"
    rows = f"SELECT 0 AS started, * FROM {values}"
    assert answered(LOADS, "loads", rows, "rows_per_s") == [(20_000.0,), (0.0,), (None,)]
