"""The cases of Hazelcast's "SQL Optimization for Partition Pruning", by the names of its sections.

An IMap's attribute partitioning strategy is a hash component here; a partition-complete filter is one that keeps
exactly the partitions of its keys.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.connectors import Connector, ConnectorContext, ConnectorPartition, ExternalScanRequest, one_of
from secateur.errors import SchemeError
from worlds import World, check

PARTITIONS = 271


@pytest.fixture(scope="module")
def world() -> World:
    world = World()
    world.fill(
        "CREATE TABLE map (a INTEGER, b INTEGER, c INTEGER, some_col INTEGER, PRIMARY KEY (a, b, c)) PARTITION BY HASH"
        f" (a, b) PARTITIONS {PARTITIONS}",
        "SELECT x, y, z, x + y FROM range(30) p(x), range(30) q(y), range(2) r(z)",
    )
    world.fill(
        "CREATE TABLE three (a INTEGER, b INTEGER, c INTEGER, v INTEGER, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a,"
        f" b, c) PARTITIONS {PARTITIONS}",
        "SELECT x, y, z, x FROM range(5) p(x), range(5) q(y), range(5) r(z)",
    )
    world.fill(
        "CREATE TABLE rates (a INTEGER PRIMARY KEY, rate INTEGER) REPLICATED", "SELECT x, x * 2 FROM range(10) p(x)"
    )
    return world


def kept(world: World, sql: str, params: tuple[Any, ...] = ()) -> list[list[int]]:
    assert check(world, sql, params, random.Random(1)), sql
    statement = world.prepare(sql, params)
    return [list(ids) for ids in world.kept(statement.plan, statement.params or ())]


def of(world: World, table: str, *keys: dict[str, Any]) -> list[int]:
    scheme = world.table(table).scheme
    return sorted({scheme.partition_of(key) for key in keys})


def pairs(world: World, *keys: tuple[int, int]) -> list[int]:
    return of(world, "map", *({"a": a, "b": b} for a, b in keys))


ALL = list(range(PARTITIONS))


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        pytest.param("a = 1 AND b = 2", [(1, 2)], id="literals"),
        pytest.param(
            "a = 1 + 0 AND b = abs(-2)", [(1, 2)], id="a complex expression of literals and deterministic functions"
        ),
        pytest.param("a = 1 AND b = 2 AND c > some_col - 9", [(1, 2)], id="residualFilter may reference any columns"),
        pytest.param(
            "a = 1 AND b = 2 AND b > 1 AND TRUE", [(1, 2)], id="residualFilter may reference the partitioning columns"
        ),
        pytest.param(
            "(a = 1 AND b = 2) OR (a = 3 AND b = 4 AND c = 1)", [(1, 2), (3, 4)], id="partKeyExp1 OR partKeyExp2"
        ),
        pytest.param("a IN (1, 2) AND b IN (3, 4)", [(1, 3), (1, 4), (2, 3), (2, 4)], id="SEARCH with Sarg"),
        pytest.param("a BETWEEN 1 AND 2 AND b = 3", [(1, 3), (2, 3)], id="BETWEEN for integer types"),
        pytest.param(
            "a = b AND b = 5", [(5, 5)], id="partCol1 = partCol2 AND partCol2 = constantX, by propagating the constant"
        ),
    ],
)
def test_partition_complete_expressions(world: World, where: str, keys: list[tuple[int, int]]) -> None:
    assert kept(world, f"SELECT * FROM map WHERE {where}") == [pairs(world, *keys)]


def test_a_query_parameter_is_an_argument(world: World) -> None:
    assert kept(world, "SELECT * FROM map WHERE a = $1 AND b = $2", (7, 8)) == [pairs(world, (7, 8))]
    assert kept(world, "SELECT * FROM map WHERE a = $1 + 1 AND b IN ($2, 3)", (7, 8)) == [pairs(world, (8, 8), (8, 3))]


@pytest.mark.parametrize(
    "where",
    ["a = 1", "b = 2", "a = 1 AND c = 3", "a = 1 OR b = 2", "a > 1 AND b = 2", "a = 1 AND b = random()::INTEGER"],
)
def test_expressions_that_are_not_partition_complete(world: World, where: str) -> None:
    statement = world.prepare(f"SELECT * FROM map WHERE {where}", ())
    assert list(world.kept(statement.plan, statement.params or ())[0]) == ALL


DENORMALIZATION = {
    "OR should form a disjunctive, a top level OR is a series of filters": (
        "(a = 1 AND b = 1) OR (a = 2 AND b = 2)",
        [(1, 1), (2, 2)],
    ),
    "a = 1 AND b IN (1,2) yields a1b1 and a1b2": ("a = 1 AND b IN (1, 2)", [(1, 1), (1, 2)]),
    "any nested OR: b IN (1,2,3) is b = 1, b = 2, b = 3": (
        "a = 1 AND (b = 1 OR b = 2 OR b = 3)",
        [(1, 1), (1, 2), (1, 3)],
    ),
    "AND-d conditions without partitioning key columns are excluded": ("a = 1 AND b = 2 AND some_col = 3", [(1, 2)]),
    "a key condition with another column reference is thrown away": ("a = 1 AND b = some_col", None),
    "an OR-d sub-condition invalidates the branch": ("a = 1 AND (b = 1 OR some_col = 2)", None),
    "> and < on one conjunctive level merge: b > 20 AND b < 23 is b = 21 OR b = 22": (
        "a = 1 AND b > 20 AND b < 23",
        [(1, 21), (1, 22)],
    ),
    "b > 20 AND (b < 25 OR b > 21), which merging cannot do": (
        "a = 1 AND b > 20 AND (b < 23 OR b > 99) AND b < 25",
        [(1, 21), (1, 22)],
    ),
    "ranges as the product of extraction: a > 20 AND a < 30": (
        "a > 20 AND a < 24 AND b = 1",
        [(21, 1), (22, 1), (23, 1)],
    ),
    "overlapping expressions: a IN (1,2,3,4,5) AND a > 2 eliminates 1": (
        "a IN (1, 2, 3, 4, 5) AND a > 2 AND b = 0",
        [(3, 0), (4, 0), (5, 0)],
    ),
    "cartesian product: a BETWEEN 1 AND 2 AND b BETWEEN 3 AND 4": (
        "a BETWEEN 1 AND 2 AND b BETWEEN 3 AND 4",
        [(1, 3), (1, 4), (2, 3), (2, 4)],
    ),
}


@pytest.mark.parametrize(("where", "keys"), DENORMALIZATION.values(), ids=DENORMALIZATION)
def test_filter_denormalization_rules(world: World, where: str, keys: list[tuple[int, int]] | None) -> None:
    assert kept(world, f"SELECT * FROM map WHERE {where}") == [ALL if keys is None else pairs(world, *keys)]


def test_sublevel_conditions_join_with_higher_levels(world: World) -> None:
    """``a = 1 AND ((b = 1) AND (c IN (1,2)))`` produces a1b1c1 and a1b1c2."""
    expected = of(world, "three", *({"a": 1, "b": 1, "c": c} for c in (1, 2)))
    assert kept(world, "SELECT * FROM three WHERE a = 1 AND ((b = 1) AND (c IN (1, 2)))") == [expected]


@pytest.mark.parametrize(
    ("type_", "where", "values"),
    [
        pytest.param("BIGINT", "k BETWEEN 10 AND 14", range(10, 15), id="integer number ranges are finite by nature"),
        pytest.param(
            "DATE",
            "k >= DATE '2024-01-01' AND k < DATE '2024-01-04'",
            [date(2024, 1, day) for day in (1, 2, 3)],
            id="DateTime types like integers",
        ),
        pytest.param(
            "TIMESTAMP",
            "k BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-01-01 00:00:00.000002'",
            [datetime(2024, 1, 1, 0, 0, 0, micros) for micros in (0, 1, 2)],
            id="DateTime types, precise to the microsecond",
        ),
        pytest.param("VARCHAR", "k IN ('test0est', 'test1est')", ["test0est", "test1est"], id="finite strings"),
        pytest.param("VARCHAR", "k LIKE 'test'", ["test"], id="a string pattern that is finite"),
        pytest.param("BIGINT", "k > 5", None, id="an integer range without an end"),
        pytest.param("BIGINT", "k BETWEEN 0 AND 1000000", None, id="bigger ranges cover the entire cluster"),
        pytest.param("VARCHAR", "k LIKE 'test%'", None, id="a string pattern that is not finite"),
    ],
)
def test_role_of_data_types(type_: str, where: str, values: Any) -> None:
    world = World()
    world.fill(
        f"CREATE TABLE t (k {type_} PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 271",
        f"SELECT CAST(NULL AS {type_}) WHERE FALSE",
    )
    assert kept(world, f"SELECT * FROM t WHERE {where}") == [
        ALL if values is None else of(world, "t", *({"k": value} for value in values))
    ]


def test_floating_point_keys_are_refused() -> None:
    """Role of data types: analysis of floating point numbers is prone to errors."""
    with pytest.raises(SchemeError, match="DOUBLE"):
        World().fill("CREATE TABLE t (k DOUBLE PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 4", "SELECT 1e0")


OPERATORS = {
    "AND": ("a = 1 AND b = 1", [(1, 1)]),
    "OR": ("a = 1 AND (b = 1 OR b = 2)", [(1, 1), (1, 2)]),
    "IN": ("a = 1 AND b IN (1, 2)", [(1, 1), (1, 2)]),
    "BETWEEN": ("a = 1 AND b BETWEEN 1 AND 2", [(1, 1), (1, 2)]),
    "> (GreaterThan) is unbounded by itself": ("a = 1 AND b > 1", None),
    "> with a matching LesserThan": ("a = 1 AND b > 1 AND b < 3", [(1, 2)]),
    "< (LesserThan) is unbounded by itself": ("a = 1 AND b < 1", None),
    "= (Equals) is a bounding condition for any type": ("a = 1 AND b = 2", [(1, 2)]),
}


@pytest.mark.parametrize(("where", "keys"), OPERATORS.values(), ids=OPERATORS)
def test_role_of_operators(world: World, where: str, keys: list[tuple[int, int]] | None) -> None:
    assert kept(world, f"SELECT * FROM map WHERE {where}") == [ALL if keys is None else pairs(world, *keys)]


RELS = {
    "FullScanPhysicalRel: prunable based on its filter": "SELECT * FROM map WHERE a = 1 AND b = 2",
    "CalcPhysicalRel: a projection": "SELECT some_col + 1 AS x FROM map WHERE a = 1 AND b = 2",
    "CalcPhysicalRel: a filter above a projection": (
        "SELECT * FROM (SELECT a, b AS y, c FROM map) WHERE a = 1 AND y = 2"
    ),
    "AggregatePhysicalRel: count and sum": "SELECT count(*), sum(some_col) FROM map WHERE a = 1 AND b = 2",
    "AggregatePhysicalRel: GROUP BY": "SELECT c, count(*) FROM map WHERE a = 1 AND b = 2 GROUP BY c",
    "Sort, Limit": "SELECT * FROM map WHERE a = 1 AND b = 2 ORDER BY c LIMIT 10",
    "Distinct": "SELECT DISTINCT some_col FROM map WHERE a = 1 AND b = 2",
}


@pytest.mark.parametrize("sql", RELS.values(), ids=RELS)
def test_rels_prunability(world: World, sql: str) -> None:
    assert kept(world, sql) == [pairs(world, (1, 2))]


def test_union_physical_rel_all_inputs(world: World) -> None:
    sql = "SELECT a, b FROM map WHERE a = 1 AND b = 2 UNION ALL SELECT a, b FROM map WHERE a = 3 AND b = 4"
    assert kept(world, sql) == [pairs(world, (1, 2)), pairs(world, (3, 4))]
    assert kept(world, "SELECT a, b FROM map WHERE a = 1 AND b = 2 UNION SELECT a, b FROM map") == [
        pairs(world, (1, 2)),
        ALL,
    ]


def test_join_physical_rel_both_inputs(world: World) -> None:
    on = "x.c = y.c"
    assert kept(
        world, f"SELECT count(*) FROM map x JOIN map y ON {on} WHERE x.a = 1 AND x.b = 2 AND y.a = 3 AND y.b = 4"
    ) == [
        pairs(world, (1, 2)),
        pairs(world, (3, 4)),
    ]
    assert kept(world, f"SELECT count(*) FROM map x JOIN map y ON {on} WHERE x.a = 1 AND x.b = 2") == [
        pairs(world, (1, 2)),
        ALL,
    ]
    assert kept(world, "SELECT count(*) FROM map x JOIN rates r ON x.a = r.a WHERE x.a = 1 AND x.b = 2")[0] == pairs(
        world, (1, 2)
    )


def test_partition_information_in_explain_plan(conn: secateur.Connection) -> None:
    """The desired plan has ``partitioningKey=[$1], partitioningKeyValues=[_UTF-16LE'C2']``."""
    conn.execute(
        "CREATE TABLE hz_orders (customerId VARCHAR, id BIGINT, priority INTEGER, amount BIGINT, PRIMARY KEY"
        " (customerId, id)) PARTITION BY HASH (customerId) PARTITIONS 271"
    )
    explained = conn.explain(
        "select count(*), sum(amount), priority from hz_orders WHERE customerId='C2' group by priority"
    )
    (scan,) = explained.to_dict()["pruning"]["scans"]
    table = conn.table("hz_orders")
    assert scan["partitions"] == [table.partition_of({"customerId": "C2"})]
    assert (scan["partitioning_key"], scan["partitioning_key_values"]) == (["customerId"], [["C2"]])
    assert "partitioning key (customerId): ('C2')" in str(explained)
    assert explained.to_dict()["pruning"]["execution"] == "local"


def test_explain_has_both_sets_of_predicates_of_a_scan(conn: secateur.Connection) -> None:
    """The relational tree keeps the partition-complete predicates and the residual filter of a scan apart; the values
    of a component are shown beside the range of another column.
    """
    conn.execute(
        "CREATE TABLE hz_metrics (host VARCHAR, metric VARCHAR, time BIGINT, value BIGINT, PRIMARY KEY (host, metric,"
        " time)) PARTITION BY HASH (host, metric) PARTITIONS 8, RANGE (time) SPLIT AT (10, 20, 30)"
    )
    explained = conn.explain(
        "SELECT value FROM hz_metrics WHERE host = 'h1' AND metric = 'm1' AND time >= 0 AND value > 1"
    )
    (scan,) = explained.to_dict()["pruning"]["scans"]
    assert (len(scan["partitions"]), scan["partitions_total"]) == (4, 32)
    assert scan["partitioning_key_values"] == [["h1", "m1", None]]
    assert (scan["columns"], scan["filter"]) == (["host", "metric", "time", "value"], "value > 1")
    assert "partitioning key (host, metric, time): ('h1', 'm1', [0, inf))" in str(explained)


def test_successful_case_example() -> None:
    """``SELECT * FROM map WHERE __key.comp1 = 1 AND __key.comp2 = 2`` with a strategy of comp1 and comp2."""
    world = _example()
    assert kept(world, "SELECT * FROM map WHERE comp1 = 1 AND comp2 = 2") == [
        of(world, "map", {"comp1": 1, "comp2": 2})
    ]


def test_not_successful_case_example() -> None:
    """``SELECT * FROM map WHERE __key.comp1 = 1 AND __key.comp3 = 3``: comp3 is no part of the strategy. (From the Jet
    document.)
    """
    world = _example()
    assert kept(world, "SELECT * FROM map WHERE comp1 = 1 AND comp3 = 3") == [ALL]
    (scan,) = world.prepare("SELECT * FROM map WHERE comp1 = 1 AND comp3 = 3", ()).plan.scans
    assert scan.reason == "partition key is (comp1, comp2) but only comp1 is bound: compare comp2 with values as well"


def _example() -> World:
    world = World()
    world.fill(
        "CREATE TABLE map (comp1 BIGINT, comp2 BIGINT, comp3 BIGINT, PRIMARY KEY (comp1, comp2, comp3)) "
        f"PARTITION BY HASH (comp1, comp2) PARTITIONS {PARTITIONS}",
        " UNION ALL ".join(f"SELECT {a}, {b}, {c}" for a, b, c in product(range(3), repeat=3)),
    )
    return world


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        pytest.param("CASE WHEN a = 1 AND b = 2 THEN 1 ELSE 0 END = 1", [(1, 2)], id="CASE, compared"),
        pytest.param("CASE WHEN a = 1 AND b = 2 THEN 1 END = 1", [(1, 2)], id="CASE without ELSE is NULL"),
        pytest.param("CASE WHEN a = 1 AND b = 2 THEN NULL ELSE 0 END IS NULL", [(1, 2)], id="CASE, that is NULL"),
        pytest.param("CASE a WHEN 1 THEN b = 2 WHEN 3 THEN b = 4 END", [(1, 2), (3, 4)], id="CASE of a value"),
        pytest.param(
            "CASE WHEN some_col = 3 THEN a = 1 AND b = 2 ELSE a = 3 AND b = 4 END",
            [(1, 2), (3, 4)],
            id="CASE over a condition on no key",
        ),
        pytest.param("IF(a = 1, b, 9) = 2 AND b < 9 AND a < 3 AND a > 0", [(1, 2)], id="IF of a column"),
        pytest.param("COALESCE(a, 0) = 1 AND IFNULL(b, some_col) = 2", [(1, 2)], id="COALESCE of a key column"),
        pytest.param("COALESCE(a = 1 AND b = 2, FALSE)", [(1, 2)], id="COALESCE of a condition"),
        pytest.param("CAST(a AS VARCHAR) = '1' AND b::TEXT IN ('2', '02')", [(1, 2)], id="the text of an integer"),
        pytest.param("NULLIF(a, 3) = 1 AND b = 2", [(1, 2)], id="NULLIF"),
        pytest.param("a > 1 AND a < 2", [], id="no integer is between two that follow each other"),
        pytest.param("CASE WHEN a = '1'::BIGINT THEN b = 2 END", [(1, 2)], id="a cast constant in a condition"),
        pytest.param("(a = 1 AND b = 2) OR c IS NULL", [(1, 2)], id="a column of the primary key is never NULL"),
        pytest.param("a NOT IN (1, NULL) AND b = 2", [], id="NOT IN with NULL is never TRUE"),
        pytest.param("a IN [1, 3] AND b = 2", [(1, 2), (3, 2)], id="a list"),
        pytest.param("a IN [1, NULL] AND list_contains([2], b)", [(1, 2)], id="lists, one with NULL"),
        pytest.param("a = ANY([1]) AND b IN (SELECT unnest([2, 4]))", [(1, 2), (1, 4)], id="the elements of lists"),
        pytest.param("a IN [] OR (a, b) = (1, 2)", [(1, 2)], id="nothing is in an empty list"),
        pytest.param("1 IN (a) AND 2 IN (b, b)", [(1, 2)], id="a value is in columns"),
        pytest.param("5 BETWEEN a AND a AND 2 BETWEEN b AND b", [(5, 2)], id="a value is between columns"),
        pytest.param("(a = 1) IS NOT DISTINCT FROM TRUE AND TRUE = (b = 2)", [(1, 2)], id="a condition, compared"),
    ],
)
def test_conditional_expressions(world: World, where: str, keys: list[tuple[int, int]]) -> None:
    assert kept(world, f"SELECT * FROM map WHERE {where}") == [pairs(world, *keys)]


def test_parameters_inside_of_conditional_expressions(world: World) -> None:
    sql = "SELECT * FROM map WHERE CASE WHEN a = $1 AND b = $2 THEN 1 ELSE 0 END = 1"
    assert kept(world, sql, (7, 8)) == [pairs(world, (7, 8))]


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(
            "CASE WHEN CAST(chr(c + 65) AS INTEGER) = 1 THEN a = 9 ELSE a = 1 END AND b = 2", id="a condition"
        ),
        pytest.param("CASE WHEN a = 1 AND b = 2 THEN TRUE ELSE error('no') END", id="a value"),
        pytest.param("COALESCE(CAST(chr(c + 65) AS INTEGER) = 1, FALSE) AND a = 1", id="an argument of COALESCE"),
    ],
)
def test_a_branch_that_raises_is_not_pruned_away(world: World, where: str) -> None:
    """A conditional expression says which of its parts are evaluated, so their errors belong to the answer."""
    statement = world.prepare(f"SELECT * FROM map WHERE {where}", ())
    assert list(world.kept(statement.plan, statement.params or ())[0]) == ALL


def test_a_comparison_in_another_type_than_that_of_a_branch(world: World) -> None:
    """The whole is a DECIMAL here, as which the column is compared: 0.5 is never 1."""
    statement = world.prepare("SELECT * FROM map WHERE CASE WHEN b = 2 THEN a ELSE 0.5 END = 1", ())
    assert list(world.kept(statement.plan, statement.params or ())[0]) == [180]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        pytest.param("k LIKE 'test_est'", "k bound a range, but (k, n) is hashed: compare k, n with", id="a pattern"),
        pytest.param(
            "k LIKE 'test_est' AND length(k) < 9",
            "k bound a range, but (k, n) is hashed: compare k, n with",
            id="a bounded pattern, which has a million matches",
        ),
        pytest.param(
            "k LIKE 'test%' AND n = 3", "k bound a range, but (k, n) is hashed: compare k with", id="a prefix"
        ),
        pytest.param("k = 'test'", "only k is bound: compare n with values", id="one column of two"),
    ],
)
def test_the_reason_names_a_pattern_on_a_hashed_column(where: str, reason: str) -> None:
    world = World()
    world.create(
        "CREATE TABLE t (k VARCHAR, n INTEGER, PRIMARY KEY (k, n)) PARTITION BY HASH (k, n) PARTITIONS 7", lambda _: []
    )
    (scan,) = world.prepare(f"SELECT * FROM t WHERE {where}", ()).bounds
    assert reason in (scan.reason or "")


@pytest.mark.parametrize(
    ("where", "params", "texts"),
    [
        pytest.param(
            "length(k) < 9 AND k SIMILAR TO 'test[0-9]est'",
            (),
            [f"test{digit}est" for digit in range(10)],
            id="a class",
        ),
        pytest.param(
            "len(k) < 9 AND k GLOB 'test[0-9]est'", (), [f"test{digit}est" for digit in range(10)], id="a glob"
        ),
        pytest.param(r"k ~ '^tes[tT]{1,1}$'", (), ["test", "tesT"], id="the expression of the document"),
        pytest.param("length(k) <= 6 AND k SIMILAR TO 'test(ab)*'", (), ["test", "testab"], id="without an end"),
        pytest.param("k LIKE 'test%' AND length(k) = 4", (), ["test"], id="LIKE, beside the length of its prefix"),
        pytest.param("k ILIKE 'a1'", (), ["a1", "A1"], id="in any case"),
        pytest.param("regexp_full_match(k, 'a|b')", (), ["a", "b"], id="alternatives"),
        pytest.param("k SIMILAR TO $1", ("test[01]",), ["test0", "test1"], id="a parameter"),
        pytest.param("k LIKE $1", ("test",), ["test"], id="a parameter without wildcards"),
        pytest.param("k ~ $1 AND length(k) < 5", ("^test.*",), ["test"], id="a parameter, beside a length"),
        pytest.param(
            "length(k) < 9 AND (k LIKE 'x%' AND k = 'xa' OR k ~ '^[ab]$')", (), ["xa", "a", "b"], id="in an OR"
        ),
    ],
)
def test_patterns_with_finitely_many_matches(where: str, params: tuple[str, ...], texts: list[str]) -> None:
    """Role of Data Types: "String types: analysis is possible for finite strings and possibly finite String patterns
    ... if they're present with some form of String size limit operator".
    """
    world = World()
    world.fill(f"CREATE TABLE t (k VARCHAR PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS {PARTITIONS}", "SELECT 'test'")
    scheme = world.table("t").scheme
    assert kept(world, f"SELECT * FROM t WHERE {where}", params) == [
        sorted({scheme.partition_of({"k": text}) for text in texts})
    ]


def test_a_list_with_null_holds_no_other_value_than_its_own(world: World) -> None:
    """``NOT IN [1, NULL]`` is TRUE for 2, where ``NOT IN (1, NULL)`` is NULL."""
    assert kept(world, "SELECT * FROM map WHERE a NOT IN [1, NULL] AND b = 2") == [ALL]


def test_no_text_is_less_than_the_empty_one() -> None:
    world = World()
    world.fill(f"CREATE TABLE t (k VARCHAR PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS {PARTITIONS}", "SELECT ''")
    for where in ("k <= ''", "NOT k > ''", "k BETWEEN '' AND ''", "k < 'a' AND k <= ''"):
        assert kept(world, f"SELECT * FROM t WHERE {where}") == [of(world, "t", {"k": ""})], where
    assert kept(world, "SELECT * FROM t WHERE k < ''") == [[]]


@pytest.fixture(scope="module")
def external() -> Iterator[secateur.Connection]:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.register("imap", ByStrategy())
        conn.execute("CREATE TABLE rates (a INTEGER PRIMARY KEY, rate INTEGER)")
        conn.execute("INSERT INTO rates VALUES (1, 10), (2, 20), (9, 90)")
        yield conn


class TestSqlConnector:
    """Section "SQL connectors": ``fullScanReader`` of a connector receives the candidates for partition pruning."""

    @pytest.mark.parametrize(
        ("where", "params", "partitions"),
        [
            ("a = 1 AND b = 2", (), 1),
            ("a = ? AND b = ?", (1, 2), 1),
            ("a = 1", (), 3),
            ("(a = 1 AND b = 2) OR (a = 2 AND b = 0)", (), 2),
            ("a IN (1, 2) AND b BETWEEN 0 AND 1", (), 4),
            ("a = 1 AND b = 2 AND c > 3", (), 1),
            ("a = 1 OR c = 3", (), 9),
            ("a = 1 AND a = 2", (), 0),
            ("c = 3", (), 9),
        ],
    )
    def test_a_connector_reads_only_candidates(
        self, external: secateur.Connection, where: str, params: tuple[int, ...], partitions: int
    ) -> None:
        cursor = external.execute(f"SELECT a, b, c FROM imap WHERE {where} ORDER BY ALL", params)
        text = where.replace("?", "{}").format(*params).replace(" = ", " == ").replace("AND", "and").replace("OR", "or")
        text = text.replace("IN", "in").replace("b BETWEEN 0 and 1", "0 <= b <= 1")
        rows = [row for row in product(range(3), range(3), range(5)) if eval(text, dict(zip("abc", row, strict=True)))]
        assert cursor.fetchall() == rows
        assert cursor.stats is not None
        assert (cursor.stats.partitions_read, cursor.stats.partitions_total) == (partitions, 9)
        assert cursor.stats.members_touched == max(1, min(partitions, 3))

    def test_it_is_joined_with_a_map(self, external: secateur.Connection) -> None:
        cursor = external.execute(
            "SELECT rate, count(*) FROM imap JOIN rates ON imap.a = rates.a AND imap.a = 2 GROUP BY 1"
        )
        assert cursor.fetchall() == [(20, 15)]
        assert "3 of 9 partitions" in str(external.explain("SELECT * FROM imap JOIN rates USING (a) WHERE rates.a = 2"))


class ByStrategy(Connector):
    """A map whose partitions are those of the attributes ``a`` and ``b``."""

    def schema(self, context: ConnectorContext) -> pa.Schema:
        return pa.schema([(name, pa.int32()) for name in "abc"])

    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        return [ConnectorPartition(3 * a + b, {"a": one_of(a), "b": one_of(b)}) for a, b in product(range(3), range(3))]

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        a, b = divmod(int(partition.key), 3)
        yield pa.record_batch({"a": [a] * 5, "b": [b] * 5, "c": list(range(5))})
