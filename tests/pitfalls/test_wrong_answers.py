"""Wrong answers that real systems shipped, one test for each; the name of a test says what went wrong, its docstring
where.

A statement is planned, pruned, run whole and in parts, and compared with DuckDB over all rows (``check``); what must
prune, and what must not, is counted.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.errors import Error
from secateur.planner import PlannedSelect
from worlds import World, check


def right(world: World, *statements: str) -> None:
    for sql in statements:
        assert check(world, sql, (), random.Random(1)), sql


def kept(world: World, sql: str) -> list[list[int]]:
    statement: PlannedSelect = world.prepare(sql, ())
    return [list(ids) for ids in world.kept(statement.plan, statement.params or ())]


def everything(world: World, table: str = "t") -> list[int]:
    return world.table(table).scheme.live_partitions().tolist()


@pytest.fixture
def empty() -> World:
    return World()


def test_the_sides_of_a_colocated_join_are_paired_by_partition(conn: secateur.Connection, table_name: str) -> None:
    """pinot #19173: the two pruned sides were paired by worker index instead of partition id."""
    for suffix, low in (("x", 0), ("y", 3)):
        conn.execute(
            f"CREATE TABLE {table_name}{suffix} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 31"
        )
        conn.table(f"{table_name}{suffix}").load(pa.table({"k": range(40), "v": range(low, low + 40)}))
    sql = (
        f"SELECT x.k, x.v, y.v FROM {table_name}x x JOIN {table_name}y y ON x.k = y.k WHERE x.k IN (1, 2, 3, 5, 8) AND"
        " y.k IN (2, 3, 8, 13, 21) ORDER BY x.k"
    )
    assert conn.execute(sql).fetchall() == [(2, 2, 5), (3, 3, 6), (8, 8, 11)]


def test_the_upper_bound_of_a_key_prefix_is_inclusive_while_later_columns_are_not_at_their_minimum(
    empty: World,
) -> None:
    """KUDU-2173."""
    empty.fill(
        "CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b) SPLIT AT ((5, 0), (10, 5),"
        " (10, 8))",
        "SELECT a, b FROM range(12) x(a), range(10) y(b)",
    )
    right(
        empty,
        *(
            f"SELECT * FROM t WHERE {where}"
            for where in ("a = 10", "a <= 10", "a < 10", "a >= 10", "a = 5", "a <= 5", "a = 10 AND b >= 8")
        ),
    )
    assert kept(empty, "SELECT * FROM t WHERE a <= 10") == [[0, 1, 2, 3]]
    assert kept(empty, "SELECT * FROM t WHERE a < 10") == [[0, 1]]
    assert kept(empty, "SELECT * FROM t WHERE a = 10 AND b < 5") == [[1]]


def test_an_in_list_is_hashed_with_the_components_of_each_range(empty: World) -> None:
    """KUDU-3564: an IN list pruned with the table's hash components where the range had its own."""
    empty.fill(
        "CREATE TABLE t (k BIGINT, day DATE, PRIMARY KEY (k, day)) PARTITION BY HASH (k) PARTITIONS 2, RANGE (day)"
        " (PARTITION VALUES < DATE '2024-02-01', PARTITION DATE '2024-02-01' <= VALUES < DATE '2024-03-01' HASH (k)"
        " PARTITIONS 8 SEED 5, PARTITION DATE '2024-03-01' <= VALUES NO HASH)",
        "SELECT k, DATE '2024-01-01' + CAST(d AS INTEGER) FROM range(40) x(k), range(0, 90, 10) y(d)",
    )
    right(
        empty,
        "SELECT * FROM t WHERE k IN (1, 7)",
        "SELECT * FROM t WHERE k IN (1, 7, 9) AND day >= DATE '2024-02-01'",
        "SELECT count(*) FROM t WHERE k = 3",
    )
    assert len(kept(empty, "SELECT * FROM t WHERE k = 3")[0]) == 3


def test_an_unbounded_decimal_range_begins_below_every_value(empty: World) -> None:
    """KUDU-2416: the minimum of an unbounded DECIMAL range column was computed wrong."""
    empty.fill(
        "CREATE TABLE t (n DECIMAL(10,2) PRIMARY KEY) PARTITION BY RANGE (n) (PARTITION VALUES < -1.5, PARTITION -1.5"
        " <= VALUES < 0, PARTITION 0 <= VALUES)",
        "SELECT n::DECIMAL(10,2) FROM (VALUES (-99999999.99), (-1.51), (-1.5), (-0.01), (0), (99999999.99)) x(n)",
    )
    right(
        empty,
        *(
            f"SELECT * FROM t WHERE {w}"
            for w in ("n < -1.5", "n <= -99999999.99", "n = -99999999.99", "n > 99999999.98", "n < -99999999.99")
        ),
    )
    assert kept(empty, "SELECT * FROM t WHERE n < -1.5") == [[0]]
    assert kept(empty, "SELECT * FROM t WHERE n = -99999999.99") == [[0]]


@pytest.mark.parametrize(
    ("type_", "largest"),
    [("TINYINT", 127), ("UTINYINT", 255), ("INTEGER", 2**31 - 1), ("BIGINT", 2**63 - 1), ("UBIGINT", 2**64 - 1)],
)
def test_equality_at_the_greatest_value_of_the_type_does_not_overflow(empty: World, type_: str, largest: int) -> None:
    """KUDU-1766, and the carry into the next component of KUDU-2671's follow-ups."""
    empty.fill(
        f"CREATE TABLE t (a {type_}, b {type_}, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b) SPLIT AT ((10, 20),"
        f" ({largest}, 5))",
        f"SELECT a, b FROM (VALUES (0), (10), ({largest - 1}), ({largest})) x(a), (VALUES (0), (5), (20), ({largest}))"
        " y(b)",
    )
    for where in (
        "a = {m}",
        "a >= {m}",
        "a > {m}",
        "a <= {m}",
        "a = {m} AND b = {m}",
        "a = 10 AND b > {m}",
        "a BETWEEN {m} AND {m}",
        "(a, b) > (10, {m})",
    ):
        right(empty, f"SELECT * FROM t WHERE {where.format(m=largest)}")
    assert kept(empty, f"SELECT * FROM t WHERE a = {largest} AND b = {largest}") == [[2]]
    assert kept(empty, f"SELECT * FROM t WHERE a > {largest}") == [[]]


def test_is_not_null_on_a_key_column(world: World) -> None:
    """KUDU-1652: it crashed the pruner."""
    right(
        world,
        "SELECT * FROM t WHERE a IS NOT NULL",
        "SELECT * FROM t WHERE a IS NOT NULL AND b = 'a'",
        "SELECT * FROM t WHERE NOT (a IS NULL OR a > 1)",
    )


def test_a_range_is_dropped_only_when_both_bounds_match(conn: secateur.Connection, table_name: str) -> None:
    """KUDU-1750: DROP of a range that matched only one bound dropped data."""
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY) PARTITION BY RANGE (k) (PARTITION 0 <= VALUES < 10,"
        " PARTITION 10 <= VALUES < 20)"
    )
    conn.table(table_name).load(pa.table({"k": range(20)}))
    for bounds in ("0 <= VALUES < 5", "0 <= VALUES", "VALUES < 10", "5 <= VALUES < 10", "0 <= VALUES < 20"):
        with pytest.raises(Error):
            conn.execute(f"ALTER TABLE {table_name} DROP PARTITION {bounds}")
    assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(20,)]
    conn.execute(f"ALTER TABLE {table_name} DROP PARTITION 0 <= VALUES < 10")
    assert conn.execute(f"SELECT count(*), min(k) FROM {table_name}").fetchall() == [(10, 10)]


def test_not_is_not_its_operand(world: World) -> None:
    """citus #3486: ``NOT (...)`` pruned as if it were its operand."""
    right(
        world,
        "SELECT * FROM t WHERE NOT (a = 1)",
        "SELECT * FROM t WHERE NOT (a = 1 AND b = 'a')",
        "SELECT * FROM t WHERE NOT (a IN (1, 2) OR v = 30)",
    )
    assert kept(world, "SELECT * FROM t WHERE NOT (a = 1)") == [everything(world)]
    assert len(kept(world, "SELECT * FROM t WHERE NOT (NOT (a = 1))")[0]) == 5


def test_a_function_of_the_key_is_not_the_key(world: World) -> None:
    """starrocks #60467: ``f(bucket_column) = constant`` pruned as if it were ``bucket_column = constant``."""
    wheres = (
        "abs(a) = 1",
        "lower(b) = 'a'",
        "CAST(a AS VARCHAR) = '1'",
        "a % 2 = 1",
        "coalesce(a, 1) = 1",
        "b || '' = 'a'",
        "a + v = 11",
        "substr(b, 1, 1) = 'a'",
    )
    right(world, *(f"SELECT * FROM t WHERE {where}" for where in wheres))


def test_a_key_filter_under_a_limit_finds_all_rows(conn: secateur.Connection, table_name: str) -> None:
    """ray #66010: partition filter together with LIMIT gave 6 of 40 right answers."""
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT, n BIGINT, PRIMARY KEY (k, n)) PARTITION BY HASH (k) PARTITIONS 31"
    )
    conn.table(table_name).load(pa.table({"k": [i % 8 for i in range(400)], "n": range(400)}))
    for k in range(8):
        for limit in (1, 7, 50, 100):
            rows = conn.execute(f"SELECT k, n FROM {table_name} WHERE k = ? LIMIT {limit}", [k]).fetchall()
            assert len(set(rows)) == min(limit, 50)
            assert {row[0] for row in rows} == {k}


def test_count_of_all_rows_respects_the_filter(world: World) -> None:
    """Daft #7421: ``count(*)`` ignored the partition filter."""
    right(
        world,
        "SELECT count(*) FROM t WHERE a = 1",
        "SELECT count(*) FROM t WHERE a = 1 AND b IN ('a', 'zz')",
        "SELECT count(*) FROM t WHERE a > 100",
    )


def test_two_mentions_of_a_table_keep_partitions_of_their_own(world: World) -> None:
    """Hazelcast: candidates per table name instead of per scan; UNION ALL over two mentions of one table lost the
    second one's partitions.
    """
    sql = "SELECT a, b FROM t WHERE a = 1 AND b = 'a' UNION ALL SELECT a, b FROM t WHERE a = 2 AND b = 'b'"
    right(world, sql, "SELECT count(*) FROM t x JOIN t y ON x.b = y.b WHERE x.a = 1 AND y.a = 2")
    first, second = kept(world, sql)
    assert (len(first), len(second)) == (1, 1)
    assert first != second


def test_an_or_over_two_columns_of_one_component_is_not_the_sum_of_two_sets(empty: World) -> None:
    """Hazelcast prototype: ``c1 IN (..) OR c2 IN (..)`` taken as the sum of both partition sets when the key is (c1,
    c2).
    """
    empty.fill(
        "CREATE TABLE t (c1 BIGINT, c2 BIGINT, PRIMARY KEY (c1, c2)) PARTITION BY HASH (c1, c2) PARTITIONS 31",
        "SELECT x, y FROM range(20) a(x), range(20) b(y)",
    )
    right(empty, "SELECT * FROM t WHERE c1 IN (1, 2) OR c2 IN (3, 4)")
    assert kept(empty, "SELECT * FROM t WHERE c1 IN (1, 2) OR c2 IN (3, 4)") == [everything(empty)]


def test_an_unpruned_scan_of_a_pruned_statement_reads_all_its_partitions(
    conn: secateur.Connection, table_name: str
) -> None:
    """Jet leaves it to the user: the unpruned scan read only the participants' partitions and silently lost rows."""
    for suffix in "xy":
        conn.execute(
            f"CREATE TABLE {table_name}{suffix} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 31"
        )
        conn.table(f"{table_name}{suffix}").load(pa.table({"k": range(100), "v": [i % 10 for i in range(100)]}))
    cur = conn.execute(
        f"SELECT count(*), sum(y.k) FROM {table_name}x x JOIN {table_name}y y ON x.v = y.v WHERE x.k = 7"
    )
    assert cur.fetchall() == [(10, sum(range(7, 100, 10)))]
    assert cur.stats is not None
    assert cur.stats.partitions_read == 1 + 31


def test_conditions_of_an_outer_join_prune_neither_side_wrongly(world: World) -> None:
    """Several: a filter in the ON clause of an outer join, or ``right.key IS NULL`` above one, used to prune."""
    source = "SELECT count(*), sum(x.v), sum(y.v) FROM t x LEFT JOIN t y ON x.a = y.a + 1 AND x.b = y.b"
    right(
        world,
        f"{source} AND x.a = 1",
        f"{source} AND y.a = 1",
        f"{source} WHERE y.a IS NULL",
        f"{source} AND y.a = 1 WHERE y.a IS NULL",
        f"{source} AND y.a = 1 WHERE y.b IS NULL AND x.a = 2",
        f"{source} WHERE y.a = 1",
    )


def test_equal_values_are_in_one_partition_however_they_are_written() -> None:
    """Hazelcast, Spark: hashes of serialised values put 1.5 and 1.50, equal instants in different zones, INT 1 and
    BIGINT 1 in different partitions.
    """
    world = World()
    for type_, values in {
        "BIGINT": ["1", "CAST(1 AS TINYINT)", "1.0", "1e0", "'1'", "TRUE"],
        "DECIMAL(10,2)": ["1.5", "1.50", "1.500", "'1.5'", "CAST(1.5 AS DECIMAL(20,4))"],
        "TIMESTAMPTZ": [
            "TIMESTAMPTZ '2024-01-01 12:00:00+00'",
            "TIMESTAMPTZ '2024-01-01 14:00:00+02'",
            "TIMESTAMP '2024-01-01 12:00:00'",
        ],
        "UUID": ["'aabbccdd-0000-0000-0000-000000000000'", "'AABBCCDD-0000-0000-0000-000000000000'"],
    }.items():
        name = type_.partition("(")[0].lower()
        world.fill(
            f"CREATE TABLE {name} (k {type_} PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 97",
            f"SELECT CAST({values[0]} AS {type_})",
        )
        sets = [kept(world, f"SELECT * FROM {name} WHERE k = {value}")[0] for value in values]
        assert sets == [sets[0]] * len(values), type_
        assert len(sets[0]) == 1, type_
        right(world, *(f"SELECT count(*) FROM {name} WHERE k = {value}" for value in values))
    scheme = world.table("decimal").scheme
    assert scheme.partition_of({"k": Decimal("-0.0")}) == scheme.partition_of({"k": Decimal(0)})


def test_a_replicated_branch_of_an_or_does_not_leave_the_other_branch_alone(world: World) -> None:
    """IEP-24's ``(P) OR (ANY) => (P)`` is unsound as written: a row of the replicated side may satisfy the OR for any
    partition.
    """
    sql = "SELECT count(*) FROM t, small r WHERE t.a = 1 OR r.a = 2"
    right(
        world,
        sql,
        "SELECT count(*) FROM t JOIN small r ON t.b = r.b WHERE t.a = 1 OR r.a = 2",
        "SELECT count(*) FROM t, small r WHERE t.a = 1 OR r.a = 99",
    )
    assert kept(world, sql)[0] == everything(world)


def test_a_scalar_subquery_in_select_keeps_rows_without_a_match(world: World) -> None:
    """IEP-24's first rewrite makes it an inner join, which loses rows without a match: it is a LEFT JOIN."""
    right(world, "SELECT x.a, (SELECT r.b FROM small r WHERE r.a = x.a) FROM t x WHERE x.b = 'a'")


@pytest.mark.parametrize(
    "join",
    [
        "CROSS JOIN t y",
        "JOIN t y ON x.a < y.a",
        "LEFT JOIN t y ON x.a = y.a + 1 AND x.b = y.b",
        "JOIN t y ON x.b = y.b",
    ],
)
def test_what_is_said_of_one_scan_is_not_applied_to_the_others(world: World, join: str) -> None:
    """Ignite: one partition set for the whole query, applied to every table of it, lost rows of cross, theta and outer
    joins.
    """
    sql = f"SELECT count(*), sum(y.v) FROM t x {join} WHERE x.a = 1 AND x.b = 'a'"
    right(world, sql)
    assert len(kept(world, sql)[0]) == 1


def test_no_partition_still_gives_the_one_row_of_an_aggregation(
    world: World, conn: secateur.Connection, table_name: str
) -> None:
    """Ignite: an empty set was answered with no row where ``count(*)`` or ``max()`` without GROUP BY must give one."""
    right(
        world,
        "SELECT count(*), max(a) FROM t WHERE a = NULL",
        "SELECT count(*), max(a) FROM t WHERE a = 1 AND a = 2 GROUP BY b",
        "SELECT 1 FROM t WHERE FALSE",
    )
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY)")
    cur = conn.execute(f"SELECT count(*), max(k), count(*) = 0 FROM {table_name} WHERE k = 1 AND k = 2")
    assert cur.fetchall() == [(0, None, True)]
    assert cur.stats is not None
    assert (cur.stats.execution, cur.stats.members_touched) == ("none", 0)


@pytest.mark.parametrize(
    "condition",
    [
        "y.a IS NULL",
        "y.a IS DISTINCT FROM 5",
        "(y.a = 5) IS NOT TRUE",
        "coalesce(y.a, 5) = 5",
        "NOT (y.a IS NOT NULL)",
        "(y.a, y.b) IS DISTINCT FROM (1, 'a')",
    ],
)
def test_a_condition_that_null_rows_pass_does_not_prune_the_side_that_makes_them(world: World, condition: str) -> None:
    """Ignite and others: a WHERE on the null-producing side of LEFT JOIN pruned although it is not null-rejecting; ON
    pruned the preserved side.
    """
    for kind in ("LEFT JOIN", "FULL JOIN", "RIGHT JOIN"):
        source = "(SELECT * FROM t WHERE c <> DATE '2024-01-03') x"
        right(
            world,
            f"SELECT count(*), sum(x.v), sum(y.v) FROM {source} {kind} t y ON x.a = y.a + 2 AND x.b = y.b WHERE"
            f" {condition}",
        )


def test_a_key_filter_does_not_pass_a_limit_a_foreign_window_or_having(world: World) -> None:
    """Several: a key filter pushed below LIMIT, or below a window that is not partitioned by the key; HAVING on
    something else than the group key.
    """
    right(
        world,
        "SELECT * FROM (SELECT a, b FROM t ORDER BY a, b, c LIMIT 20) WHERE a = -2",
        "SELECT * FROM (SELECT a, b, row_number() OVER (ORDER BY a, b, c) AS place FROM t) WHERE a = 1",
        "SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b, c) AS place FROM t) WHERE a = 1",
        "SELECT * FROM (SELECT a, b, sum(v) OVER (PARTITION BY b) AS total FROM t) WHERE a = 1",
        "SELECT b, max(a) AS top FROM t GROUP BY b HAVING max(a) = 7",
        "SELECT a, b, row_number() OVER (ORDER BY a, b, c) AS place FROM t QUALIFY a = 1",
        "SELECT a, count(*) FROM t GROUP BY a HAVING a = 1",
    )


def test_pruning_can_be_turned_off_and_checked(conn: secateur.Connection, table_name: str) -> None:
    """IGNITE-10783: a pruning bug was shipped with no switch to turn it off."""
    conn.execute(f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 31")
    conn.table(table_name).load(pa.table({"k": range(50), "v": range(50)}))
    read: dict[str, Any] = {}
    try:
        for mode in ("on", "off", "verify"):
            conn.execute(f"SET pruning = {mode}")
            cur = conn.execute(f"SELECT v FROM {table_name} WHERE k = 7")
            assert cur.fetchall() == [(7,)]
            assert cur.stats is not None
            read[mode] = cur.stats.partitions_read
    finally:
        conn.execute("SET pruning = on")
    assert (read["on"], read["off"]) == (1, 31)


@pytest.mark.parametrize(
    "recursive",
    [
        "SELECT k FROM t UNION SELECT 50",
        "(SELECT x.k FROM (FROM t y) AS x WHERE x.k < 3) UNION ALL (SELECT k + 10 FROM t WHERE k < 20)",
        "SELECT k FROM t WHERE k IN (SELECT max(k) FROM t) UNION SELECT k - 1 FROM t WHERE k > 2",
        "SELECT k FROM t WHERE k = 1 UNION ALL SELECT 9 FROM t WHERE k < 4 UNION ALL SELECT k + 1 FROM t WHERE k < 3",
    ],
)
def test_the_first_part_of_a_recursive_query_reads_the_table_of_its_name(empty: World, recursive: str) -> None:
    """WITH RECURSIVE t: the first part of its UNION was refused as a circular reference where it names a table t."""
    empty.fill(
        "CREATE TABLE t (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 7", "SELECT i FROM range(9) r(i)"
    )
    right(empty, f"WITH RECURSIVE t AS ({recursive}) SELECT k FROM t WHERE k <> 5")


def test_group_by_all_groups_by_the_columns_of_having_as_well(empty: World) -> None:
    """duckdb 2.0.1 groups by fewer of them than 2.0.0. A derived table then has several rows of one key."""
    empty.fill(
        "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT, v BIGINT) PARTITION BY HASH (k) PARTITIONS 7",
        "SELECT i, i // 3, i % 4 FROM range(24) r(i)",
    )
    right(
        empty,
        "SELECT CASE WHEN n > 1 THEN 1 ELSE 0 END AS c, count(*) FROM t GROUP BY ALL HAVING c IS NOT NULL",
        "SELECT n * 0 AS c, sum(v) FROM t WHERE k IN (1, 5) GROUP BY ALL HAVING n * 0 = 0",
        "SELECT n, count(*) FROM t GROUP BY ALL HAVING n < 4",
        "SELECT sum(u.v) FROM t u LEFT JOIN (SELECT n FROM t GROUP BY ALL HAVING v <> 9) x ON u.n = x.n",
        "SELECT u.k FROM t u LEFT JOIN (SELECT n FROM t GROUP BY ALL HAVING n < 3) x ON u.n = x.n",
    )


@pytest.mark.parametrize("compared", ["(SELECT max(y) FROM s)", "ANY (SELECT y FROM s)", "ALL (SELECT y FROM s)"])
def test_a_sum_above_a_comparison_with_a_subquery_is_as_large_as_it_is(
    conn: secateur.Connection, table_name: str, compared: str
) -> None:
    """duckdb 2.0.0: its statistics have one row where such a comparison leaves all, and decide HAVING by that."""
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 4")
    conn.execute(f"INSERT INTO {table_name} SELECT k FROM range(1, 14) AS r(k)")
    for rows in (
        f"WITH m AS MATERIALIZED (FROM {table_name}) FROM m",
        f"SELECT k FROM {table_name} JOIN (VALUES (0)) AS z(l) ON k > l",
        "SELECT unnest(range(1, 14)) AS k",
    ):
        other = f"WITH s AS (SELECT max(k) + 40 AS y FROM {table_name})"
        total = f"{other} SELECT sum(1) AS v FROM ({rows}) AS a WHERE k < {compared}"
        for condition, expected in {"> 4": [(13,)], "<= 4": [], "= 13": [(13,)], "< 13": []}.items():
            assert conn.execute(f"{total} HAVING v {condition}").fetchall() == expected, rows
            assert conn.execute(f"SELECT v FROM ({total}) AS q WHERE v {condition}").fetchall() == expected, rows
