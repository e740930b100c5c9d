"""What each form of predicate keeps, and what is said when it keeps everything. Partitions are those that the scheme computes for the keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from secateur.planner.statement import SelectStatement


def kept(bench: Any, sql: str, params: Any = ()) -> list[int] | None:
    """The partitions of the first scan; None for all."""
    statement: SelectStatement = bench.select(sql, params)
    bound = statement.plan.scans[0].tree.bind(statement.params)
    return None if bound.is_all else list(bound.ids)


def keys(bench: Any, *customers: str) -> list[int]:
    return sorted({bench.partition("orders", customer_id=customer) for customer in customers})


@pytest.mark.parametrize(
    ("where", "customers"),
    [
        ("customer_id = 'C2'", ["C2"]),
        ("'C2' = customer_id", ["C2"]),
        ("CUSTOMER_ID == 'C2'", ["C2"]),
        ("\"customer_id\" = 'C2'", ["C2"]),
        ("orders.customer_id = 'C2'", ["C2"]),
        ("((customer_id)) = (('C2'))", ["C2"]),
        ("customer_id = 'C2' AND amount > 5 AND priority LIKE 'a%'", ["C2"]),
        ("customer_id IN ('C1', 'C2', NULL)", ["C1", "C2"]),
        ("customer_id IN ('C1') OR customer_id = 'C2' OR customer_id IN ('C3', 'C1')", ["C1", "C2", "C3"]),
        ("(customer_id = 'C1' AND id = 1) OR (customer_id = 'C2' AND id = 2)", ["C1", "C2"]),
        ("customer_id = 'C1' AND customer_id = 'C2'", []),
        ("customer_id IN ('C1', 'C2') AND customer_id IN ('C2', 'C3')", ["C2"]),
        ("customer_id IN ('C1', 'C2') AND (customer_id = 'C2' OR customer_id = 'C9')", ["C2"]),
        ("NOT (customer_id <> 'C2' OR id = 3)", ["C2"]),
        ("NOT NOT customer_id = 'C2'", ["C2"]),
        ("customer_id = NULL", []),
        ("customer_id = 'C1' AND NULL", []),
        ("FALSE", []),
        ("customer_id = 'C1' OR FALSE", ["C1"]),
        ("customer_id = upper('c') || CAST(1 + 1 AS VARCHAR)", ["C2"]),
        ("customer_id = CAST('C2' AS VARCHAR)", ["C2"]),
        ("customer_id BETWEEN 'C2' AND 'C2'", ["C2"]),
    ],
)
def test_what_names_keys_keeps_their_partitions(bench: Any, where: str, customers: list[str]) -> None:
    assert kept(bench, f"SELECT * FROM orders WHERE {where}") == keys(bench, *customers)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        pytest.param("id = 3", "no predicate on the partition key customer_id", id="another column"),
        pytest.param("lower(customer_id) = 'c2'", "customer_id is wrapped in lower(): compare the bare column", id="a function"),
        pytest.param(
            "CAST(customer_id AS BIGINT) = 2", "customer_id is cast in CAST(customer_id AS BIGINT) = 2: compare the bare column with a VARCHAR", id="a cast"
        ),
        pytest.param(
            "customer_id || 'x' = 'C2x'", "customer_id is part of an expression in customer_id || 'x' = 'C2x': compare the bare column", id="an expression"
        ),
        pytest.param("customer_id = 5", "customer_id = 5 does not compare in the type of customer_id, VARCHAR: write 5 as a VARCHAR", id="a number for a text"),
        pytest.param("customer_id <> 'C2'", "customer_id <> 'C2' excludes values of customer_id instead of naming them", id="not equal"),
        pytest.param("NOT customer_id = 'C2'", "customer_id = 'C2' excludes values of customer_id instead of naming them", id="not"),
        pytest.param("customer_id NOT IN ('C2')", "NOT IN excludes values of customer_id instead of naming them", id="not in"),
        pytest.param(
            "customer_id LIKE 'C2%'", "the predicates on customer_id name a range, and customer_id is hashed: compare with = or IN", id="like is a range"
        ),
        pytest.param(
            "customer_id LIKE '%2'",
            "the pattern of customer_id LIKE '%2' begins with a wildcard: begin it with the first characters of customer_id",
            id="a pattern that begins with a wildcard",
        ),
        pytest.param("customer_id ILIKE 'c2%'", "customer_id is matched without regard to case: match it with LIKE", id="ilike"),
        pytest.param(
            "customer_id IN ('C2', CAST(NULL AS INTEGER))",
            "customer_id IN ('C2', CAST(NULL AS INT)) has a NULL of a type of its own: write NULL",
            id="typed NULL",
        ),
        pytest.param(
            "customer_id > 'C2'", "the predicates on customer_id name a range, and customer_id is hashed: compare with = or IN", id="a range of a hash"
        ),
        pytest.param(
            "customer_id = 'C2' OR id = 3",
            "an OR branch says nothing about the key: id = 3: name values of customer_id in every branch",
            id="an unbounded branch",
        ),
        pytest.param(
            "customer_id = priority", "customer_id is compared with priority, which is neither a constant nor a parameter", id="another column's value"
        ),
        pytest.param("customer_id IN (SELECT 'C2')", "customer_id is compared with a subquery or a list that is not constant", id="a subquery"),
        pytest.param(
            "customer_id = concat('C', random())",
            "customer_id is compared with CONCAT('C', RANDOM()), which is neither a constant nor a parameter",
            id="a volatile function",
        ),
        pytest.param("customer_id IS NOT NULL", "customer_id IS NOT NULL is TRUE of every row: compare customer_id with values", id="is not null"),
        pytest.param(
            "customer_id = 'C2' OR lower(customer_id) = 'c3'", "customer_id is wrapped in lower(): compare the bare column", id="a branch with a reason"
        ),
    ],
)
def test_what_keeps_everything_says_why(bench: Any, where: str, reason: str) -> None:
    sql = f"SELECT * FROM orders WHERE {where}"
    assert kept(bench, sql) is None
    assert bench.reasons(sql) == [reason]


def test_no_where_clause_is_said(bench: Any) -> None:
    assert bench.reasons("SELECT * FROM orders") == ["no predicate on the partition key customer_id: the statement has no WHERE clause for it"]


def test_half_of_a_component_is_said(bench: Any) -> None:
    assert bench.reasons("SELECT * FROM metrics WHERE host = 'h'") == ["partition key is (host, metric, time) but only host is bound"]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        pytest.param("host = 'h' AND metric = 'm'", 2, id="the hash component alone"),
        pytest.param("time < TIMESTAMP '2015-06-01 00:00:00'", 4, id="the range alone"),
        pytest.param("time >= '2016-01-01 00:00:00' AND time < '2016-02-01'", 4, id="a closed range of texts"),
        pytest.param("host IN ('h') AND metric = 'm' AND time = TIMESTAMP '2020-01-01 00:00:00'", 1, id="both"),
        pytest.param("host = 'h' AND metric = 'm' OR time < DATE '2000-01-01'", 5, id="another component in each branch"),
    ],
)
def test_components_prune_each_by_itself(bench: Any, where: str, count: int) -> None:
    found = kept(bench, f"SELECT value FROM metrics WHERE {where}")
    assert found is not None
    assert len(found) == count


def test_a_bound_of_the_range_is_its_first_value(bench: Any) -> None:
    at = datetime(2016, 1, 1)
    assert kept(bench, "SELECT value FROM metrics WHERE time <= ?", [at]) is None
    found = kept(bench, "SELECT value FROM metrics WHERE time < ?", [at])
    assert found == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sql", "params", "tree", "customers"),
    [
        ("SELECT * FROM orders WHERE customer_id = ?", ["C2"], "orders: (?0)", ["C2"]),
        ("SELECT * FROM orders WHERE customer_id = $2 AND id = $1", [5, "C2"], "orders: (?1)", ["C2"]),
        ("SELECT * FROM orders WHERE customer_id = $who", {"who": "C2"}, "orders: (?0)", ["C2"]),
        ("SELECT * FROM orders WHERE customer_id IN (?, 'C9', ?)", ["C1", "C2"], None, ["C1", "C2", "C9"]),
        ("SELECT * FROM orders WHERE customer_id = ? OR customer_id = ?", ["C1", None], "orders: (?0 | ?1)", ["C1"]),
        ("SELECT * FROM orders WHERE customer_id = ? AND customer_id = 'C2'", ["C1"], None, []),
        ("SELECT * FROM orders WHERE customer_id = ?", [None], "orders: (?0)", []),
    ],
)
def test_parameters_are_bound_late(bench: Any, sql: str, params: Any, tree: str | None, customers: list[str]) -> None:
    if tree is not None:
        assert bench.trees(sql, params) == [tree]
    assert kept(bench, sql, params) == keys(bench, *customers)


def test_a_parameter_of_another_type_keeps_everything(bench: Any) -> None:
    assert kept(bench, "SELECT * FROM orders WHERE customer_id = ?", [5]) is None


def test_ten_thousand_values_pass_the_limit_and_it_is_said(bench: Any) -> None:
    values = ", ".join(f"'C{number}'" for number in range(9_400))
    pruning = bench.explain(f"SELECT count(*) FROM orders WHERE customer_id IN ({values})").json["pruning"]
    assert (
        pruning["scans"][0]["reason"] == "9,400 combinations of (customer_id) exceed the limit of 2,168: ask for fewer keys, or SET combinations_per_partition"
    )
    assert not pruning["applicable"]


def test_a_long_chain_of_ors_is_one_list(bench: Any) -> None:
    where = " OR ".join(f"customer_id = 'C{number}'" for number in range(300))
    assert kept(bench, f"SELECT count(*) FROM orders WHERE {where}") == keys(bench, *(f"C{number}" for number in range(300)))


def test_nested_ors_do_not_explode(bench: Any) -> None:
    bench.create("CREATE TABLE cube (a INT, b INT, c INT, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a, b, c) PARTITIONS 50000")
    sides = [" OR ".join(f"{column} = {value}" for value in range(20)) for column in "abc"]
    found = kept(bench, f"SELECT count(*) FROM cube WHERE {' AND '.join(f'({side})' for side in sides)}")
    assert found is not None
    assert 0 < len(found) <= 8000


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("SELECT amount FROM orders WHERE customer_id = 'C2'", ["C2"], id="project"),
        pytest.param("SELECT count(*) FROM orders WHERE customer_id = 'C2'", ["C2"], id="count"),
        pytest.param("SELECT DISTINCT priority FROM orders WHERE customer_id = 'C2' ORDER BY 1 LIMIT 5", ["C2"], id="distinct, sort and limit"),
        pytest.param("SELECT priority, sum(amount) FROM orders WHERE customer_id = 'C2' GROUP BY 1 HAVING sum(amount) > 3", ["C2"], id="aggregate and having"),
        pytest.param("SELECT id, row_number() OVER (ORDER BY id) FROM orders WHERE customer_id = 'C2'", ["C2"], id="window"),
        pytest.param("WITH x AS (SELECT * FROM orders WHERE customer_id = 'C2') SELECT * FROM x", ["C2"], id="common table expression"),
        pytest.param("SELECT * FROM (SELECT * FROM orders WHERE customer_id = 'C2') WHERE id = 5", ["C2"], id="derived table"),
        pytest.param("SELECT customer_id || 'x' AS customer_id FROM orders WHERE customer_id = 'C2'", ["C2"], id="an alias comes second to a column in WHERE"),
    ],
)
def test_what_stands_above_a_scan_does_not_stop_its_pruning(bench: Any, sql: str, expected: list[str]) -> None:
    assert kept(bench, sql) == keys(bench, *expected)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT * FROM (SELECT * FROM orders ORDER BY id LIMIT 5) WHERE customer_id = 'C2'", id="a filter above LIMIT"),
        pytest.param("SELECT * FROM (SELECT *, row_number() OVER (ORDER BY id) FROM orders) WHERE customer_id = 'C2'", id="a filter above a window"),
        pytest.param("SELECT * FROM orders USING SAMPLE 10 ROWS", id="a sample"),
        pytest.param("SELECT * FROM orders TABLESAMPLE 10 ROWS WHERE customer_id = 'C2'", id="a sampled table"),
        pytest.param("SELECT customer_id = 'C2' FROM orders", id="a predicate in the SELECT list"),
        pytest.param("SELECT * FROM orders AS o(id, customer_id) WHERE customer_id = 2", id="a column under another's name"),
        pytest.param("SELECT * FROM orders AS o(id, x, customer_id) WHERE o.customer_id = 'C2'", id="a column under another's name, qualified"),
        pytest.param("SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY id) = 1", id="qualify"),
    ],
)
def test_what_is_applied_too_late_prunes_nothing(bench: Any, sql: str) -> None:
    assert kept(bench, sql) is None


class TestJoins:
    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            pytest.param("orders o JOIN customers c ON o.customer_id = c.customer_id WHERE o.customer_id = 'C2'", ["one", "one"], id="a filter on one side"),
            pytest.param("orders o JOIN customers c USING (customer_id) WHERE customer_id = 'C2'", ["one", "one"], id="USING merges both sides"),
            pytest.param("orders o, customers c WHERE o.customer_id = 'C2' AND c.customer_id = 'C3'", ["one", "one"], id="comma"),
            pytest.param("orders o JOIN customers c ON o.id = 1 AND o.customer_id = 'C2'", ["one", None], id="a filter in ON of an inner join"),
            pytest.param(
                "orders o LEFT JOIN customers c ON o.customer_id = 'C2' AND c.customer_id = 'C2'", [None, "one"], id="a filter in ON of an outer join"
            ),
            pytest.param("orders o LEFT JOIN customers c USING (customer_id) WHERE o.customer_id = 'C2'", ["one", "one"], id="the preserved side"),
            pytest.param(
                "orders o LEFT JOIN customers c ON o.id = c.score WHERE c.customer_id = 'C2'", [None, "one"], id="the NULL-producing side, NULLs refused"
            ),
            pytest.param(
                "orders o LEFT JOIN customers c ON o.id = c.score WHERE c.customer_id IS NULL", [None, None], id="the NULL-producing side, NULLs asked for"
            ),
            pytest.param(
                "orders o LEFT JOIN customers c ON o.id = c.score WHERE c.customer_id = 'C2' OR c.name IS NULL", [None, None], id="NULLs let through by OR"
            ),
            pytest.param(
                "orders o LEFT JOIN customers c USING (customer_id) WHERE customer_id = 'C2'",
                ["one", "one"],
                id="a merged column is that of the preserved side",
            ),
            pytest.param("orders o FULL JOIN customers c ON o.id = c.score WHERE o.customer_id = 'C2'", ["one", None], id="full"),
            pytest.param("orders o SEMI JOIN customers c USING (customer_id) WHERE o.customer_id = 'C2'", ["one", "one"], id="semi"),
            pytest.param("orders o ANTI JOIN customers c ON o.customer_id = c.customer_id WHERE o.customer_id = 'C2'", ["one", "one"], id="anti"),
            pytest.param("orders o ASOF JOIN customers c ON o.id >= c.score WHERE c.customer_id = 'C2'", [None, None], id="asof"),
            pytest.param("orders o POSITIONAL JOIN customers c WHERE o.customer_id = 'C2'", [None, None], id="positional"),
        ],
    )
    def test_each_side_is_pruned_by_what_is_certainly_applied_to_it(self, bench: Any, source: str, expected: list[str | None]) -> None:
        statement = bench.select(f"SELECT count(*) FROM {source}")
        found = [scan.tree.bind(()) for scan in statement.plan.scans]
        assert [None if bound.is_all else "one" if len(bound) == 1 else "some" for bound in found] == expected

    def test_two_scans_of_one_table_keep_separate_sets(self, bench: Any) -> None:
        sql = "SELECT id FROM orders WHERE customer_id = 'C1' UNION ALL SELECT id FROM orders WHERE customer_id = 'C2'"
        assert bench.trees(sql) == [f"orders: (p{bench.partition('orders', customer_id=customer)})" for customer in ("C1", "C2")]

    def test_an_unpruned_scan_keeps_all_while_the_other_is_pruned(self, bench: Any) -> None:
        one, other = bench.trees("SELECT count(*) FROM orders WHERE customer_id = 'C1' AND id IN (SELECT id FROM orders)")
        assert one == f"orders: (p{bench.partition('orders', customer_id='C1')})"
        assert other == "orders: all"

    def test_a_replicated_table_is_anywhere(self, bench: Any) -> None:
        assert bench.trees("SELECT * FROM airlines WHERE code = 'AA' OR name = 'x'") == ["airlines: any"]

    def test_an_outer_name_is_not_the_scans(self, bench: Any) -> None:
        sql = "SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE o.customer_id = 'C2' AND c.name = 'x')"
        assert bench.trees(sql) == [f"orders: (p{bench.partition('orders', customer_id='C2')})", "customers: all"]
