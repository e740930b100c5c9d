"""The cases of Apache Ignite's IEP-24, "SQL Partition Pruning", by the names of its sections."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.engine.sql import ExchangeKind
from secateur.partitioning.pruning import (
    All,
    AnyOf,
    Box,
    Choice,
    Comparison,
    Constraint,
    Everywhere,
    Keys,
    Node,
    Nothing,
    Parameter,
    ParameterComparison,
    Partitions,
    PartitionTree,
    intersect,
    unite,
)
from secateur.protocol import decode, encode
from worlds import World, check

DEPT = "CREATE TABLE dept (id BIGINT PRIMARY KEY, name VARCHAR, state VARCHAR) PARTITION BY HASH (id) PARTITIONS 31"
EMP = (
    "CREATE TABLE emp (dept_id BIGINT, id BIGINT, name VARCHAR, salary BIGINT, PRIMARY KEY (dept_id, id)) PARTITION BY"
    " HASH (dept_id) PARTITIONS 31"
)


def p(*ids: int) -> Node:
    return Partitions(ids)


def arg(index: int) -> Node:
    """The partition of an argument: ``:1`` is ``arg(1)``."""
    return Keys(Box.of({"k": Constraint((Choice(tests=(ParameterComparison(Comparison.IN, (Parameter(index),)),)),))}))


ALL, NONE, ANY = All(), Nothing(), Everywhere()


@pytest.fixture(scope="module")
def company() -> World:
    world = World()
    world.fill(DEPT, "SELECT i, 'dept ' || i, CASE i % 3 WHEN 0 THEN 'CA' ELSE 'NY' END FROM range(20) x(i)")
    world.fill(EMP, "SELECT i % 25, i, 'emp ' || i, 500 + i * 7 FROM range(200) x(i)")
    return world


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(p(1), p(2), NONE, id="(P1) AND (P2) => ()"),
        pytest.param(p(1), ALL, p(1), id="(P1) AND (ALL) => (P1)"),
        pytest.param(p(1), NONE, NONE, id="(P1) AND () => ()"),
        pytest.param(p(1, 2), p(2, 3), p(2), id="(P1, P2) AND (P2, P3) => (P2)"),
    ],
)
def test_and_algebra(left: Node, right: Node, expected: Node) -> None:
    assert intersect([left, right]) == expected
    assert intersect([right, left]) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(p(1), p(2), p(1, 2), id="(P1) OR (P2) => (P1, P2)"),
        pytest.param(p(1), ALL, ALL, id="(P1) OR (ALL) => (ALL)"),
        pytest.param(p(1), NONE, p(1), id="(P1) OR () => (P1)"),
        pytest.param(p(1, 2), p(2, 3), p(1, 2, 3), id="(P1, P2) OR (P2, P3) => (P1, P2, P3)"),
        pytest.param(arg(1), arg(2), AnyOf((arg(1), arg(2))), id="(:1) OR (:2) => (:1, :2)"),
        pytest.param(
            AnyOf((p(1), arg(1))),
            AnyOf((p(2), arg(2))),
            AnyOf((p(1, 2), arg(1), arg(2))),
            id="(P1, :1) OR (P2, :2) => (P1, P2, :1, :2)",
        ),
    ],
)
def test_or_algebra(left: Node, right: Node, expected: Node) -> None:
    assert unite([left, right]) == expected


@pytest.mark.parametrize("group", [p(1), arg(2), AnyOf((p(1), arg(2)))], ids=["(P1)", "(:2)", "(P1, :2)"])
def test_any_algebra(group: Node) -> None:
    """``(P1, :2) AND (ANY) => (P1, :2)`` as written. ``(P1, :2) OR (ANY) => (P1, :2)`` is unsound, and replaced by
    ALL.
    """
    assert intersect([group, ANY]) == group
    assert unite([group, ANY]) == ALL
    assert intersect([ANY, ANY]) == ANY


def test_the_partition_tree_is_serialisable(company: World) -> None:
    """Thin clients: PartitionNode, PartitionGroup and PartitionExpression, enriched with the affinity function."""
    tree = unite([p(1, 2), intersect([arg(0), arg(1)])])
    assert decode(encode(tree), Node) == tree
    (scan,) = company.prepare("SELECT * FROM dept WHERE id IN (1, $1)", (7,)).plan.scans
    there = decode(encode(scan.tree), PartitionTree)
    assert there == scan.tree
    assert list(there.bind((9,)).ids) == sorted(
        {company.table("dept").scheme.partition_of({"id": key}) for key in (1, 9)}
    )


def test_a_tree_is_built_for_a_topology_version_and_invalidated_with_it() -> None:
    """Thin clients, steps 1 to 5: the client keeps the tree, applies its arguments, goes to one node; a newer topology
    version makes it ask again.
    """
    with (
        secateur.start(members=2, runtime="embedded") as cluster,
        cluster.connect() as conn,
        cluster.connect() as other,
    ):
        conn.execute(
            "CREATE TABLE log (day BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (day) (PARTITION 0 <= VALUES < 20)"
        )
        conn.table("log").load(pa.table({"day": range(20), "v": range(20)}))
        sql = "SELECT count(*) FROM log WHERE day >= ?"
        first, second = conn.execute(sql, [10]), conn.execute(sql, [18])
        assert (first.fetchall(), second.fetchall()) == ([(10,)], [(2,)])
        assert [(_stats(cur).members_touched, _stats(cur).plan_cached) for cur in (first, second)] == [
            (1, False),
            (1, True),
        ]
        other.execute("ALTER TABLE log ADD PARTITION 20 <= VALUES < 40")
        other.execute("INSERT INTO log VALUES (25, 25)")
        again = conn.execute(sql, [18])
        assert again.fetchall() == [(3,)]
        assert _stats(again).topology_version > _stats(second).topology_version
        assert _stats(again).partitions_total == 2


REWRITES = {
    "Example 1: JOIN conversion for derived table": (
        (
            "SELECT emp.name, (SELECT dept.name FROM dept WHERE emp.dept_id = dept.id) AS dept_name FROM emp WHERE"
            " emp.salary > 1000"
        ),
        "SELECT emp.name, dept.name FROM emp LEFT JOIN dept ON emp.dept_id = dept.id WHERE emp.salary > 1000",
    ),
    "Example 2: JOIN conversion for FROM clause": (
        (
            "SELECT emp.name, s.name FROM emp, (SELECT * FROM dept WHERE state = 'CA') s WHERE emp.salary > 1000 AND"
            " emp.dept_id = s.id"
        ),
        (
            "SELECT emp.name, dept.name FROM emp, dept WHERE emp.salary > 1000 AND emp.dept_id = dept.id AND dept.state"
            " = 'CA'"
        ),
    ),
    "Example 3: Table pullout optimization": (
        "SELECT emp.name FROM emp WHERE emp.salary > 1000 AND emp.dept_id IN (SELECT id FROM dept WHERE state = 'CA')",
        "SELECT emp.name FROM emp, dept WHERE emp.salary > 1000 AND emp.dept_id = dept.id AND dept.state = 'CA'",
    ),
    "Example 4: Replacing IN with JOIN": (
        (
            "SELECT dept.name FROM dept WHERE dept.id IN (SELECT emp.dept_id FROM emp GROUP BY emp.dept_id HAVING"
            " count(*) > 7)"
        ),
        (
            "SELECT dept.name FROM dept JOIN (SELECT dept_id FROM emp GROUP BY dept_id HAVING count(*) > 7) s ON"
            " dept.id = s.dept_id"
        ),
    ),
    "Correlation": (
        "SELECT emp.name FROM emp WHERE emp.dept_id IN (SELECT id FROM dept WHERE state = 'CA')",
        "SELECT emp.name FROM emp WHERE EXISTS (SELECT id FROM dept WHERE dept.id = emp.dept_id AND state = 'CA')",
    ),
}


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize(
    "condition",
    ["", " AND emp.dept_id = 3", " AND emp.dept_id IN (3, 22)"],
    ids=["all", "one key", "two keys, one without a department"],
)
def test_before_and_after_a_rewrite_give_the_same_answer(
    company: World, before: str, after: str, condition: str
) -> None:
    condition = condition.replace("emp.dept_id", "dept.id") if before.startswith("SELECT dept") else condition
    statements = [
        sql if not condition else (sql if " WHERE " in sql.split(") s")[-1] else sql + " WHERE TRUE") + condition
        for sql in (before, after)
    ]
    answers = []
    for sql in statements:
        assert check(company, sql, (), random.Random(1))
        answers.append(sorted(map(repr, company.oracle(sql, ()))))
    assert answers[0] == answers[1]


@pytest.fixture(scope="module")
def small(cluster: Cluster) -> str:
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE iep24 (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 31")
        conn.table("iep24").load(pa.table({"k": range(200), "v": range(200)}))
    return "iep24"


def test_optimization_1_an_empty_set_is_answered_without_execution(conn: secateur.Connection, small: str) -> None:
    cur = conn.execute(f"SELECT k FROM {small} WHERE k = 1 AND k = 2")
    assert cur.fetchall() == []
    assert (_stats(cur).execution, _stats(cur).members_touched, _stats(cur).partitions_read) == ("none", 0, 0)


def test_optimization_2_one_partition_makes_the_statement_local(conn: secateur.Connection, small: str) -> None:
    cur = conn.execute(f"SELECT max(v), count(*) FROM {small} WHERE k = 5")
    assert cur.fetchall() == [(5, 1)]
    assert (_stats(cur).execution, _stats(cur).members_touched, _stats(cur).partitions_read) == ("local", 1, 1)


def test_optimization_3_several_partitions_of_one_node_are_local_as_well(conn: secateur.Connection, small: str) -> None:
    table = conn.table(small)
    owner = {key: table.owner_of(table.partition_of({"k": key})) for key in range(200)}
    first = next(
        key
        for key in range(1, 200)
        if owner[key] == owner[0] and table.partition_of({"k": key}) != table.partition_of({"k": 0})
    )
    cur = conn.execute(f"SELECT sum(v) FROM {small} WHERE k IN (?, ?)", [0, first])
    assert cur.fetchall() == [(first,)]
    assert (_stats(cur).execution, _stats(cur).members_touched, _stats(cur).partitions_read) == ("local", 1, 2)


def test_management_and_monitoring(conn: secateur.Connection, small: str) -> None:
    """Whether pruning is applicable, the formatted tree, the topology version, and why it is not applicable."""
    pruned = conn.explain(f"SELECT * FROM {small} WHERE k = ?").to_dict()["pruning"]
    assert (pruned["applicable"], pruned["tree"]) == (True, f"{small}: ($1)")
    assert pruned["topology_version"] > 0
    whole = conn.explain(f"SELECT * FROM {small} WHERE v = 5").to_dict()["pruning"]
    assert whole["applicable"] is False
    assert whole["tree"] == f"{small}: all"
    assert whole["scans"][0]["reason"] == "no predicate on the partition key k: compare it with values"


def test_every_statement_is_listed_with_its_tree_and_why_it_was_not_pruned(
    conn: secateur.Connection, small: str
) -> None:
    """For every query: whether pruning is applicable, the formatted tree, the topology version, and why not."""
    pruned, whole = f"SELECT v FROM {small} WHERE k = ?", f"SELECT count(*) FROM {small} WHERE v > 5"
    for key in range(3):
        conn.execute(pruned, [key]).fetchall()
    conn.execute(whole).fetchall()
    columns = "prunable, pruned, tree, partitions_read, partitions_total, members_total, topology_version > 0, reason"
    times = "0 < p50_ms AND p50_ms <= p99_ms AND p99_ms <= max_ms AND mean_ms <= max_ms"
    listed = f"SELECT DISTINCT {columns}, executions, {times} FROM secateur.statements WHERE statement = ?"
    assert conn.execute(listed, [pruned]).fetchall() == [(True, True, f"{small}: ($1)", 1, 31, 3, True, None, 3, True)]
    reason = "no predicate on the partition key k: compare it with values"
    assert conn.execute(listed, [whole]).fetchall() == [
        (False, False, f"{small}: all", 31, 31, 3, True, reason, 1, True)
    ]


def test_the_user_can_disable_pruning_for_the_whole_cluster() -> None:
    """A bug of pruning must not leave the user without a way out: a property of the configuration, or at run time."""
    with secateur.start(members=2, runtime="embedded", pruning="off") as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 8")
        assert _stats(conn.execute("SELECT k FROM t WHERE k = 1")).partitions_read == 8
        conn.execute("SET GLOBAL pruning = on")
        assert _stats(conn.execute("SELECT k FROM t WHERE k = 1")).partitions_read == 1


def test_statements_that_differ_in_literals_have_one_fingerprint(conn: secateur.Connection, small: str) -> None:
    for sql in (f"SELECT k FROM {small} WHERE k = 7", f"select k  FROM {small} WHERE k = 8 -- again"):
        conn.execute(sql).fetchall()
    found = conn.execute(
        f"SELECT count(DISTINCT fingerprint), count(DISTINCT statement) FROM secateur.statements"
        f" WHERE statement ILIKE 'select k %FROM {small} WHERE k = %'"
    ).fetchall()
    assert found == [(1, 2)]


def test_management_explains_why_values_leave_nothing_out(conn: secateur.Connection, small: str) -> None:
    """If pruning is not applicable, explain why: also where predicates bound the key and all partitions remain."""
    (scan,) = conn.explain(f"SELECT * FROM {small} WHERE k BETWEEN ? AND ?", [0, 199]).to_dict()["pruning"]["scans"]
    assert scan["partitions"] is None
    assert "compare with =, IN or a narrower range" in scan["reason"]


def test_cross_joins_and_joins_of_hashed_keys_by_order_prune_each_scan_by_itself(company: World) -> None:
    """Joins, steps 1 and 2.3: the flow gives up at a non-equality or CROSS JOIN; here such a join keeps what each side
    says of itself, and an order between hashed keys bounds no partition.
    """
    for join in ("JOIN dept ON emp.dept_id < dept.id", "CROSS JOIN dept"):
        sql = f"SELECT count(*) FROM emp {join} WHERE emp.dept_id = 3"
        assert check(company, sql, (), random.Random(1))
        statement = company.prepare(sql, ())
        assert [len(ids) for ids in company.kept(statement.plan, statement.params or ())] == [1, 31]


@pytest.fixture(scope="module")
def ranged() -> World:
    """Two tables of ten ranges of five keys, and one of hashed keys."""
    world = World()
    for name in ("low", "high"):
        world.fill(
            f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (id)"
            " SPLIT AT (5, 10, 15, 20, 25, 30, 35, 40, 45)",
            "SELECT i, CASE WHEN i % 7 > 0 THEN i % 10 END FROM range(50) x(i)",
        )
    world.fill(
        "CREATE TABLE hashed (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 31",
        "SELECT i, CASE WHEN i % 7 > 0 THEN i % 10 END FROM range(40) x(i)",
    )
    return world


def partitions(world: World, sql: str, params: tuple[Any, ...] = ()) -> list[int]:
    """How many partitions of each scan are kept, once the rows have been compared with DuckDB's."""
    assert check(world, sql, params, random.Random(1))
    statement = world.prepare(sql, params)
    return [len(ids) for ids in world.kept(statement.plan, statement.params or params)]


@pytest.mark.parametrize(
    ("sql", "params", "kept"),
    [
        pytest.param("FROM low a JOIN high b ON a.id > b.id WHERE b.id >= 40", (), [2, 2], id="a bound"),
        pytest.param("FROM low a JOIN high b ON a.id > b.id WHERE b.id >= ?", (40,), [2, 2], id="a parameter"),
        pytest.param("FROM low a JOIN high b ON a.id > b.id WHERE b.id = 44", (), [1, 1], id="a constant, strictly"),
        pytest.param("FROM low a, high b WHERE b.id > a.id AND b.id < 11", (), [3, 3], id="from above"),
        pytest.param(
            "FROM low a, high b, low c WHERE a.id > b.id AND b.id > c.id AND c.id >= 40", (), [2, 2, 2], id="two orders"
        ),
        pytest.param(
            "FROM low a, high b, low c WHERE a.id > b.id AND b.id = c.id AND c.id >= 40",
            (),
            [2, 2, 2],
            id="and equality",
        ),
        pytest.param(
            "FROM low a JOIN high b ON a.id BETWEEN b.id AND b.v WHERE b.id > 40 AND b.v < 44", (), [1, 1], id="BETWEEN"
        ),
        pytest.param("FROM hashed a JOIN hashed b ON a.id > b.id WHERE a.id = 1 AND b.id = 1", (), [0, 0], id="1 > 1"),
        pytest.param("FROM low a LEFT JOIN high b ON a.id > b.id AND a.id < 8", (), [10, 2], id="LEFT, its right side"),
        pytest.param("FROM low a LEFT JOIN high b ON a.id < b.id AND b.id < 8", (), [10, 2], id="LEFT keeps its left"),
        pytest.param("FROM low a RIGHT JOIN high b ON a.id > b.id WHERE b.id > 40", (), [2, 2], id="RIGHT"),
        pytest.param("FROM low a FULL JOIN high b ON a.id > b.id AND b.id > 40", (), [10, 10], id="FULL keeps both"),
        pytest.param(
            "FROM low a ANTI JOIN high b ON a.id > b.id WHERE a.id < 8", (), [2, 2], id="ANTI, its right side"
        ),
        pytest.param("FROM low a ANTI JOIN high b ON a.id > b.id AND b.id > 40", (), [10, 2], id="ANTI keeps its left"),
        pytest.param("FROM low a JOIN high b ON a.id > b.id OR a.v = 1 WHERE b.id > 40", (), [10, 2], id="OR"),
        pytest.param("FROM low a JOIN high b ON a.id > b.id + 1 WHERE b.id > 40", (), [10, 2], id="an expression"),
        pytest.param("FROM low a JOIN high b ON a.id > b.id WHERE b.id > random() * 40", (), [10, 10], id="random"),
    ],
)
def test_an_order_between_columns_carries_bounds_from_one_side_of_a_join_to_the_other(
    ranged: World, sql: str, params: tuple[Any, ...], kept: list[int]
) -> None:
    """Joins, step 2.3, in part: ``1 > 1`` empties a theta join, and ``a > b AND b >= 10`` bounds ``a``."""
    if "random" in sql:
        statement = ranged.prepare(f"SELECT count(*) {sql}", params)
        assert [len(ids) for ids in ranged.kept(statement.plan, params)] == kept
    else:
        assert partitions(ranged, f"SELECT count(*) {sql}", params) == kept


@pytest.mark.parametrize(
    ("sql", "params", "kept"),
    [
        pytest.param("id = (SELECT max(id) FROM low WHERE id BETWEEN 13 AND 20)", (), [3, 3], id="max"),
        pytest.param("id = (SELECT max(id) FROM low WHERE id BETWEEN ? AND ?)", (13, 20), [3, 3], id="parameters"),
        pytest.param("(SELECT min(id) FROM low WHERE id < 7) = id", (), [2, 2], id="min, on the left"),
        pytest.param("id = (SELECT any_value(id) FROM low WHERE id < 7 AND v = 3)", (), [2, 2], id="any_value"),
        pytest.param("id = (SELECT id FROM low WHERE id < 7 ORDER BY v, id LIMIT 1)", (), [2, 2], id="LIMIT 1"),
        pytest.param("id >= (SELECT max(id) FROM low WHERE id > 41)", (), [2, 2], id="a lower bound"),
        pytest.param(
            "id BETWEEN (SELECT min(id) FROM low WHERE id > 21) AND (SELECT max(id) FROM low WHERE id < 28)",
            (),
            [2, 6, 6],
            id="BETWEEN",
        ),
        pytest.param("id IN (SELECT max(id) FROM low WHERE id < 9 GROUP BY v)", (), [2, 2], id="IN over groups"),
        pytest.param(
            "id = (SELECT max(a.id) FROM low a JOIN high b ON a.id = b.id WHERE b.id < 7)", (), [2, 2, 2], id="a join"
        ),
        pytest.param("id = (SELECT sum(id) FROM low WHERE id < 7)", (), [10, 2], id="not a sum"),
        pytest.param("id = (SELECT count(*) FROM low WHERE id < 7)", (), [10, 2], id="not a count"),
        pytest.param("id <> (SELECT max(id) FROM low WHERE id < 7)", (), [10, 2], id="not an inequality"),
        pytest.param("NOT id = (SELECT max(id) FROM low WHERE id < 7)", (), [10, 2], id="not NOT"),
        pytest.param(
            "id IS NOT DISTINCT FROM (SELECT max(id) FROM low WHERE id < 7)",
            (),
            [2, 2],
            id="where NULLs would be equal, which a key has not",
        ),
        pytest.param("(id = (SELECT max(id) FROM low WHERE id < 7) OR v = 2)", (), [10, 2], id="not in OR"),
        pytest.param(
            "id = (SELECT max(v) FROM low WHERE id < 7) AND v >= 0", (), [10, 2], id="not a bound of another column"
        ),
        pytest.param("id NOT IN (SELECT max(id) FROM low WHERE id < 9 GROUP BY v)", (), [10, 2], id="not NOT IN"),
    ],
)
def test_the_range_of_a_scalar_subquery_bounds_the_outer_scan_at_planning(
    ranged: World, sql: str, params: tuple[Any, ...], kept: list[int]
) -> None:
    """Materialization: before the value is known, what holds for all the values that it may be."""
    assert partitions(ranged, f"SELECT * FROM high WHERE {sql}", params) == kept


@pytest.mark.parametrize(
    ("sql", "kept", "is_local"),
    [
        pytest.param(
            "hashed a, hashed b WHERE (a.id = b.id AND a.v = 1) OR (b.id = a.id AND b.v = 3)",
            [31, 31],
            True,
            id="WHERE",
        ),
        pytest.param(
            "hashed a JOIN hashed b ON (a.id = b.id AND a.v = 1) OR (a.id = b.id AND b.v = 3) WHERE a.id = 7",
            [1, 1],
            True,
            id="ON, with a key",
        ),
        pytest.param(
            "hashed a LEFT JOIN hashed b ON (a.id = b.id AND a.v = 1) OR (a.id = b.id AND b.v = 3)",
            [31, 31],
            True,
            id="ON of LEFT",
        ),
        pytest.param(
            "hashed a JOIN hashed b ON (a.id = b.id AND a.v = 1) OR (a.v = b.v AND b.v = 3) WHERE a.id = 7",
            [1, 31],
            False,
            id="not in every branch",
        ),
        pytest.param(
            "hashed a JOIN hashed b ON NOT ((a.id = b.id AND a.v = 1) OR (a.id = b.id AND b.v = 3)) WHERE a.id = 7",
            [1, 31],
            False,
            id="not under NOT",
        ),
        pytest.param(
            "low a, high b WHERE (a.id > b.id AND a.v = 1 OR b.id < a.id) AND b.id > 41", [2, 2], False, id="order"
        ),
    ],
)
def test_a_condition_in_all_branches_of_an_or_joins(ranged: World, sql: str, kept: list[int], is_local: bool) -> None:
    """The form of TPC-H's query 19: an equality common to all branches carries predicates and co-locates."""
    assert partitions(ranged, f"SELECT count(*) FROM {sql}") == kept
    exchanges = [stage.exchange for stage in ranged.prepare(f"SELECT count(*) FROM {sql}", ()).plan.stages]
    assert (set(exchanges) == {ExchangeKind.GATHER}) == is_local


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        pytest.param("(id, v) IN (SELECT (id, v) FROM low WHERE id = 7)", [1, 1], id="rows of columns"),
        pytest.param("(v, id) IN (SELECT (v, id) FROM low WHERE id = 8)", [1, 1], id="in another order"),
        pytest.param("(id, v) IN (SELECT id, v FROM low WHERE id = 7)", [1, 1], id="rows and columns"),
        pytest.param("row(id, v) IN (SELECT id, v FROM low WHERE id = 7)", [1, 1], id="row() and columns"),
        pytest.param("row(id, v) IN (SELECT (id, v) FROM low WHERE id = 7)", [1, 1], id="row() and rows"),
        pytest.param("(id, v) = ANY (SELECT id, v FROM low WHERE id = 7)", [1, 1], id="= ANY over rows"),
        pytest.param("(id, v) = SOME (SELECT (id, v) FROM low WHERE id = 7)", [1, 1], id="= SOME over rows"),
        pytest.param("id = SOME (SELECT id FROM low WHERE id = 7)", [1, 1], id="= SOME"),
        pytest.param("(id, v) <> ALL (SELECT id, v FROM low WHERE id = 7)", [10, 1], id="<> ALL"),
        pytest.param("(id, v) IN (SELECT DISTINCT (id, v + 0) FROM low WHERE id = 8)", [1, 1], id="a computed field"),
        pytest.param("(id, v) IN (SELECT (v, id) FROM low WHERE v = 7)", [1, 10], id="a field that may be NULL"),
        pytest.param("(id, v) NOT IN (SELECT (id, v) FROM low WHERE id = 7)", [10, 1], id="NOT IN"),
        pytest.param("(2 + abs(id)) IN (SELECT id FROM low WHERE id = 7)", [10, 1], id="a computed key"),
        pytest.param("id IN (SELECT 2 + id FROM low WHERE id = 7)", [10, 1], id="a computed value"),
    ],
)
def test_in_over_row_values_and_computed_keys(ranged: World, sql: str, kept: list[int]) -> None:
    """Rewrites: row values are compared field by field, and nothing is claimed of what is computed."""
    assert partitions(ranged, f"SELECT id, v FROM high WHERE {sql}") == kept


def _stats(cur: Any) -> secateur.QueryStats:
    assert isinstance(cur.stats, secateur.QueryStats)
    return cur.stats


@pytest.mark.parametrize(
    ("from_", "groups"),
    [
        pytest.param(
            "dept a LEFT JOIN emp b ON a.id = b.dept_id", [{"a", "b"}], id="a row of the left and its matches"
        ),
        pytest.param(
            "dept a LEFT JOIN emp b ON a.id = b.dept_id LEFT JOIN dept c ON b.dept_id = c.id",
            [{"a", "b", "c"}],
            id="a chain of left joins",
        ),
        pytest.param(
            "dept a CROSS JOIN dept c LEFT JOIN emp b ON a.id = c.id", [], id="ON equates two columns of the left"
        ),
        pytest.param(
            "dept a CROSS JOIN dept c LEFT JOIN emp b ON a.id = b.dept_id AND b.dept_id = c.id",
            [{"a", "b"}],
            id="ON equates two columns of the left through one of the right",
        ),
        pytest.param(
            "dept a CROSS JOIN dept c LEFT JOIN emp b ON a.id = b.dept_id WHERE a.id = c.id",
            [{"a", "b", "c"}],
            id="WHERE equates two columns of the left",
        ),
        pytest.param("dept a FULL JOIN emp b ON a.id = b.dept_id", [{"a", "b"}], id="a full join"),
        pytest.param(
            "emp b RIGHT JOIN (emp d RIGHT JOIN dept a ON d.dept_id = a.id) ON b.dept_id = a.id",
            [{"a", "b", "d"}],
            id="right joins inside of each other",
        ),
    ],
)
def test_the_condition_of_an_outer_join_equates_no_columns_of_its_preserved_side(
    company: World, from_: str, groups: list[set[str]]
) -> None:
    sql = f"SELECT count(*) FROM {from_}"
    assert check(company, sql, (), random.Random(1))
    statement = company.prepare(sql, ())
    names = {scan.relation: scan.alias for scan in statement.plan.scans}
    assert [{names[relation] for relation in group} for group in statement.colocated] == groups


@pytest.mark.parametrize(
    ("sql", "partitions"),
    [
        pytest.param("SELECT id FROM dept WHERE id = 7 EXCEPT SELECT dept_id FROM emp", [1, 1], id="EXCEPT"),
        pytest.param(
            "SELECT id FROM dept EXCEPT ALL SELECT dept_id FROM emp WHERE dept_id = 7", [31, 1], id="EXCEPT, right side"
        ),
        pytest.param("SELECT id FROM dept INTERSECT SELECT dept_id FROM emp WHERE dept_id = 7", [1, 1], id="INTERSECT"),
        pytest.param(
            "SELECT id FROM dept WHERE id IN (1, 2, 3) INTERSECT ALL SELECT dept_id FROM emp WHERE dept_id IN (3, 4)",
            [1, 1],
            id="INTERSECT of two sets of keys",
        ),
        pytest.param(
            "SELECT id, name FROM dept WHERE id = 7 EXCEPT SELECT salary, name FROM emp", [1, 31], id="not the key"
        ),
    ],
)
def test_set_operations_read_of_one_side_what_the_other_side_can_equal(
    company: World, sql: str, partitions: list[int]
) -> None:
    assert check(company, sql, (), random.Random(1))
    statement = company.prepare(sql, ())
    assert [len(ids) for ids in company.kept(statement.plan, statement.params or ())] == partitions


@pytest.mark.parametrize(
    ("from_", "moved"),
    [
        pytest.param("dept a LEFT JOIN dept b ON a.id = b.id LEFT JOIN emp c ON b.id = c.dept_id", 0, id="LEFT, LEFT"),
        pytest.param("emp c RIGHT JOIN (dept b RIGHT JOIN dept a ON b.id = a.id) ON c.dept_id = b.id", 0, id="RIGHT"),
        pytest.param(
            "dept a FULL JOIN emp b ON a.id = b.dept_id LEFT JOIN emp c ON b.dept_id = c.dept_id", 0, id="FULL"
        ),
        pytest.param("dept a LEFT JOIN dept b ON a.id = b.id FULL JOIN emp c ON b.id = c.dept_id", 0, id="LEFT, FULL"),
        pytest.param("dept a LEFT JOIN dept b ON a.id = b.id ANTI JOIN emp c ON b.id = c.dept_id", 0, id="ANTI"),
        pytest.param(
            "dept a LEFT JOIN dept b ON a.id = b.id AND b.id < 5 JOIN emp c ON b.id IS NOT DISTINCT FROM c.dept_id",
            0,
            id="a comparison with a key, which is never NULL",
        ),
        pytest.param(
            "dept a LEFT JOIN dept b ON a.id = b.id AND b.id < 5"
            " JOIN (emp d LEFT JOIN emp c ON d.dept_id = c.dept_id AND c.salary > 4)"
            " ON b.id IS NOT DISTINCT FROM c.dept_id",
            1,
            id="a comparison that NULL passes",
        ),
        pytest.param(
            "dept a LEFT JOIN dept b ON a.id = b.id AND b.state = 'CA' LEFT JOIN emp c ON b.name = c.name",
            1,
            id="no key",
        ),
    ],
)
def test_a_key_that_an_outer_join_fills_with_nulls_still_co_locates(company: World, from_: str, moved: int) -> None:
    """Joins: a NULL equals nothing, so only rows that have the key can match, and these are where it says."""
    sql = f"SELECT count(*), count(a.name), sum(a.id) FROM {from_}"
    assert check(company, sql, (), random.Random(1))
    exchanges = [stage.exchange for stage in company.prepare(sql, ()).plan.stages]
    assert len(exchanges) - exchanges.count(ExchangeKind.GATHER) == moved


@pytest.mark.parametrize(
    ("from_", "partitions"),
    [
        pytest.param(
            "(emp a LEFT JOIN dept b ON {on}) JOIN dept c ON c.id = b.id",
            [31, 1, 1],
            id="ON of a join around",
        ),
        pytest.param(
            "dept c JOIN (dept b RIGHT JOIN emp a ON {on}) ON c.id = b.id",
            [1, 1, 31],
            id="RIGHT",
        ),
        pytest.param(
            "(emp a LEFT JOIN dept b ON {on}) LEFT JOIN dept c ON c.id = b.id WHERE c.name > ''",
            [31, 1, 1],
            id="through a join that WHERE reduces",
        ),
        pytest.param(
            "(emp a FULL JOIN dept b ON {on}) JOIN dept c ON c.id = b.id WHERE a.salary > 0",
            [31, 1, 1],
            id="FULL to INNER",
        ),
        pytest.param(
            "emp a LEFT JOIN dept b ON {on} WHERE b.id IN (SELECT id FROM dept)",
            [31, 1, 1],
            id="IN",
        ),
        pytest.param(
            "emp a LEFT JOIN dept b ON {on} WHERE b.id NOT IN (SELECT id FROM dept)",
            [31, 1, 31],
            id="NOT IN may be over nothing",
        ),
        pytest.param(
            "(emp a LEFT JOIN dept b ON {on}) JOIN dept c ON c.id = coalesce(b.id, c.id)",
            [31, 1, 31],
            id="a condition that NULL passes",
        ),
        pytest.param(
            "(emp a LEFT JOIN dept b ON {on}) LEFT JOIN dept c ON c.id = b.id WHERE c.id IS NULL",
            [31, 1, 1],
            id="WHERE asks for the NULLs",
        ),
        pytest.param(
            "(emp a FULL JOIN dept b ON {on}) JOIN dept c ON c.id = b.id",
            [31, 31, 31],
            id="FULL to RIGHT: ON removes no row of b",
        ),
        pytest.param(
            "(SELECT b.id AS i FROM emp a LEFT JOIN dept b ON {on} LIMIT 500) x JOIN dept c ON c.id = x.i",
            [31, 1, 1],
            id="LIMIT counts the NULLs",
        ),
        pytest.param(
            "dept c LEFT JOIN (SELECT b.id AS i FROM emp a LEFT JOIN dept b ON {on}) x ON c.id = x.i",
            [31, 31, 1],
            id="inside of the right side of LEFT",
        ),
    ],
)
def test_an_outer_join_is_an_inner_join_where_its_nulls_are_rejected(
    company: World, from_: str, partitions: list[int]
) -> None:
    """Joins: predicates of ON then reach the tables around the join, in the analysis and in the placement."""
    sql = f"SELECT count(*) FROM {from_}".replace("{on}", "a.name = b.name AND b.id = 7")
    assert check(company, sql, (), random.Random(1))
    statement = company.prepare(sql, ())
    assert [len(ids) for ids in company.kept(statement.plan, statement.params or ())] == partitions


@pytest.mark.parametrize(
    ("query", "partitions"),
    [
        pytest.param(
            "SELECT a.name FROM emp a LEFT JOIN (SELECT DISTINCT id FROM dept) b ON a.dept_id = b.id",
            {"a": 31, "dept": 0},
            id="DISTINCT",
        ),
        pytest.param(
            "SELECT a.name FROM emp a LEFT JOIN (SELECT DISTINCT name, state FROM dept) b ON b.state = a.name AND"
            " b.name = a.name",
            {"a": 31, "dept": 0},
            id="DISTINCT of two columns",
        ),
        pytest.param(
            "SELECT a.name FROM emp a LEFT JOIN (SELECT state FROM dept WHERE id > 3 GROUP BY state) b"
            " ON a.name = b.state",
            {"a": 31, "dept": 0},
            id="GROUP BY",
        ),
        pytest.param(
            "SELECT a.name, count(*) FROM emp a LEFT JOIN dept b ON a.dept_id = b.id WHERE a.salary > 700 GROUP BY 1",
            {"a": 31, "b": 0},
            id="a primary key",
        ),
        pytest.param("SELECT a.dept_id FROM emp a LEFT JOIN emp b USING (dept_id, id)", {"a": 31, "b": 0}, id="USING"),
        pytest.param("SELECT a.* FROM dept b RIGHT JOIN emp a ON a.dept_id = b.id", {"b": 0, "a": 31}, id="RIGHT"),
        pytest.param(
            "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id JOIN dept c ON c.id = a.dept_id"
            " WHERE c.state = 'CA'",
            {"a": 31, "b": 0, "c": 31},
            id="a join around it",
        ),
        pytest.param(
            "SELECT a.id FROM dept c JOIN (emp a LEFT JOIN dept b ON a.dept_id = b.id) ON c.id = a.dept_id",
            {"a": 31, "b": 0, "c": 31},
            id="parentheses",
        ),
        pytest.param(
            "SELECT id FROM dept WHERE id IN (SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id)",
            {"b": 0},
            id="in a subquery",
        ),
        pytest.param(
            "WITH d AS (SELECT DISTINCT id FROM dept) SELECT a.id FROM emp a LEFT JOIN d ON a.dept_id = d.id",
            {"dept": 0},
            id="a common table expression",
        ),
        pytest.param(
            "WITH d AS (SELECT DISTINCT id FROM dept) SELECT a.id FROM emp a LEFT JOIN d ON a.dept_id = d.id"
            " JOIN d e ON e.id = a.id",
            {"dept": 31},
            id="but one that is also read",
        ),
        *(
            pytest.param(query, {"b": 31}, id=why)
            for why, query in {
                "SELECT list": "SELECT b.name FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "a name without its table": "SELECT state FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "star": "SELECT * FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "its star": "SELECT a.id, b.* FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "its row": "SELECT b FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "COLUMNS": "SELECT COLUMNS('name') FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "no SELECT list": "FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "a star with EXCLUDE": "SELECT * EXCLUDE (salary) FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "COLUMNS of a pattern": "SELECT min(COLUMNS('sta.*')) FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "parentheses with a name": "SELECT p.state FROM (emp a LEFT JOIN dept b ON a.dept_id = b.id) p",
                "a field of its row": "SELECT (b).state FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "in a quoted name": """SELECT "B"."State" FROM emp a LEFT JOIN dept b ON a.dept_id = b.id""",
                "an argument": "SELECT count(b.id) FROM emp a LEFT JOIN dept b ON a.dept_id = b.id",
                "WHERE": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id WHERE b.id IS NULL",
                "GROUP BY": "SELECT count(*) FROM emp a LEFT JOIN dept b ON a.dept_id = b.id GROUP BY b.state",
                "HAVING": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id GROUP BY 1 HAVING max(b.id) > 3",
                "ORDER BY": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id ORDER BY b.state, 1 LIMIT 50",
                "QUALIFY": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id"
                " QUALIFY row_number() OVER (PARTITION BY b.state ORDER BY a.id) = 1",
                "a window": "SELECT a.id, count(*) OVER w FROM emp a LEFT JOIN dept b ON a.dept_id = b.id"
                " WINDOW w AS (PARTITION BY b.state)",
                "a subquery": "SELECT (SELECT count(*) FROM dept c WHERE c.id < b.id) FROM emp a"
                " LEFT JOIN dept b ON a.dept_id = b.id",
                "LATERAL": "SELECT a.id, x.i FROM emp a LEFT JOIN dept b ON a.dept_id = b.id,"
                " LATERAL (SELECT b.id + 1 AS i) x",
                "ON of another join": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id"
                " LEFT JOIN dept c ON c.id = b.id",
                "USING of another join": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id"
                " JOIN (SELECT DISTINCT state FROM dept) c USING (state)",
                "NATURAL": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id"
                " NATURAL JOIN (SELECT DISTINCT state FROM dept) c",
                "several rows match": "SELECT a.id FROM dept a LEFT JOIN emp b ON a.id = b.dept_id",
                "no equality": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id <= b.id",
                "one key of two": "SELECT a.id FROM emp a LEFT JOIN emp b ON a.id = b.id",
                "ON computes": "SELECT a.id FROM emp a LEFT JOIN dept b ON a.dept_id = b.id"
                " AND CAST(b.id + 5 AS TINYINT) > 0",
                "an inner join": "SELECT a.id FROM emp a JOIN dept b ON a.dept_id = b.id",
                "a full join": "SELECT a.id FROM emp a FULL JOIN dept b ON a.dept_id = b.id",
                "its preserved side": "SELECT a.id FROM dept b LEFT JOIN emp a ON a.dept_id = b.id",
            }.items()
        ),
        pytest.param(
            "SELECT a.id FROM emp a LEFT JOIN (SELECT DISTINCT id, CAST(name[6:] AS INT) AS n FROM dept) b"
            " ON a.dept_id = b.id",
            {"dept": 31},
            id="the side computes",
        ),
        pytest.param(
            "SELECT a.id FROM emp a LEFT JOIN (SELECT id FROM dept WHERE id + 1 > 3) b ON a.dept_id = b.id",
            {"dept": 31},
            id="a filter of the side computes",
        ),
        pytest.param(
            "SELECT a.id FROM emp a LEFT JOIN (SELECT DISTINCT state, name FROM dept) b ON a.name = b.state",
            {"dept": 31},
            id="DISTINCT of more columns than join",
        ),
    ],
)
def test_an_outer_join_of_which_nothing_is_read_reads_no_partition_of_a_unique_side(
    company: World, query: str, partitions: dict[str, int]
) -> None:
    """Joins: such a join neither adds nor removes a row. ``partitions`` are those of the scans by alias."""
    assert check(company, query, (), random.Random(1))
    statement = company.prepare(query, ())
    kept = company.kept(statement.plan, statement.params or ())
    found = {scan.alias: len(ids) for scan, ids in zip(statement.plan.scans, kept, strict=True)}
    assert {alias: found[alias] for alias in partitions} == partitions


def test_groups_of_a_key_that_an_outer_join_fills_with_nulls_span_members(company: World) -> None:
    sql = (
        "SELECT b.id, count(*) FROM dept a LEFT JOIN dept b ON a.id = b.id AND b.state = 'CA' LEFT JOIN emp c ON b.id ="
        " c.dept_id GROUP BY b.id"
    )
    assert check(company, sql, (), random.Random(1))
