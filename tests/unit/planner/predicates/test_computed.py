"""Expressions of parameters in predicates: folded when the parameters are bound."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from secateur.partitioning.tree import PartitionTree
from secateur.wire.values import pack, unpack


@pytest.fixture
def keyed(bench: Any) -> Any:
    bench.create("CREATE TABLE days (day DATE, n INTEGER, PRIMARY KEY (day, n)) PARTITION BY HASH (day) PARTITIONS 97")
    bench.create("CREATE TABLE numbers (n BIGINT PRIMARY KEY) PARTITION BY HASH (n) PARTITIONS 97")
    return bench


def tree_of(bench: Any, sql: str, params: list[Any]) -> PartitionTree:
    """As a thin client has it: from plain data."""
    return PartitionTree.from_wire(unpack(pack(bench.select(sql, params).plan.scans[0].tree.to_wire())))


@pytest.mark.parametrize(
    ("predicate", "value", "key"),
    [
        ("upper(?)", "c2", "C2"),
        ("? || '2'", "C", "C2"),
        ("concat('C', ?)", 2, "C2"),
        ("CAST(? AS VARCHAR)", 7, "7"),
        ("?::VARCHAR", 7, "7"),
        ("trim(lower(?))", " C2 ", "c2"),
        ("substring(? FROM 2 FOR 2)", "xC2y", "C2"),
        ("'C' || lpad(CAST(? AS VARCHAR), 5, '0')", 42, "C00042"),
        ("coalesce(?, 'nobody')", None, "nobody"),
    ],
)
def test_text_keys(bench: Any, predicate: str, value: Any, key: str) -> None:
    tree = tree_of(bench, f"SELECT * FROM orders WHERE customer_id = {predicate}", [value])
    assert list(tree.bind([value]).ids) == [bench.partition("orders", customer_id=key)]


@pytest.mark.parametrize(
    ("predicate", "value", "key"),
    [
        ("CAST(? AS DATE)", "2024-02-29", date(2024, 2, 29)),
        ("?::DATE", datetime(2024, 2, 29, 12), date(2024, 2, 29)),
        ("CAST(? AS DATE) + INTERVAL 1 MONTH", "2024-01-31", date(2024, 2, 29)),
        ("? - INTERVAL '2 days'", date(2024, 3, 2), date(2024, 2, 29)),
        ("DATE '2024-02-28' + ?", 1, date(2024, 2, 29)),
        ("date_trunc('month', ?)", date(2024, 2, 29), date(2024, 2, 1)),
    ],
)
def test_dates(keyed: Any, predicate: str, value: Any, key: date) -> None:
    tree = tree_of(keyed, f"SELECT * FROM days WHERE day = {predicate}", [value])
    assert list(tree.bind([value]).ids) == [keyed.partition("days", day=key)]


@pytest.mark.parametrize(
    ("predicate", "value", "key"),
    [
        ("? + 1", 4, 5),
        ("CAST(? AS BIGINT)", "5", 5),
        ("-(?) * 2", 4, -8),
        ("abs(?)", -5, 5),
        ("? % 10", 25, 5),
        ("length(?)", "abcde", 5),
        ("nullif(?, 0)", 5, 5),
    ],
)
def test_numbers(keyed: Any, predicate: str, value: Any, key: int) -> None:
    tree = tree_of(keyed, f"SELECT * FROM numbers WHERE n = {predicate}", [value])
    assert list(tree.bind([value]).ids) == [keyed.partition("numbers", n=key)]


def test_null_matches_nothing(keyed: Any) -> None:
    assert tree_of(keyed, "SELECT * FROM numbers WHERE n = ? + 1", [4]).bind([None]).is_empty
    assert tree_of(keyed, "SELECT * FROM numbers WHERE n = nullif(?, 0)", [4]).bind([0]).is_empty


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        pytest.param("SELECT * FROM orders WHERE customer_id = upper(?)", "straße", id="not ASCII"),
        pytest.param("SELECT * FROM orders WHERE customer_id = CAST(? AS VARCHAR)", 1.5, id="a DOUBLE as text"),
        pytest.param("SELECT * FROM days WHERE day = CAST(? AS DATE)", "2024-2-9", id="a date in another spelling"),
        pytest.param("SELECT * FROM days WHERE day = ? || '-01'", "2024-01", id="text beside a date"),
        pytest.param("SELECT * FROM numbers WHERE n = ? * 3", 2**31 - 1, id="an overflow"),
        pytest.param("SELECT * FROM numbers WHERE n = CAST(? AS DOUBLE)", 5, id="a DOUBLE"),
        pytest.param("SELECT * FROM numbers WHERE n = ? + (random() * 5)::INTEGER", 5, id="volatile"),
        pytest.param("SELECT * FROM numbers WHERE n = CAST(? AS SMALLINT) * 32767", 2, id="a width of its own, in which the product overflows"),
        pytest.param("SELECT * FROM numbers WHERE n = coalesce(CAST(? AS UINTEGER), 1) - 7", 5, id="a difference below an unsigned type"),
    ],
)
def test_what_is_not_certain_keeps_everything(keyed: Any, sql: str, value: Any) -> None:
    usable = {str: "C2", int: 5, float: 5}[type(value)]
    tree = tree_of(keyed, sql, [usable] if "day" not in sql else ["2024-01"])
    assert tree.bind([value]).is_all


def test_the_text_form(keyed: Any) -> None:
    (tree,) = keyed.trees("SELECT * FROM days WHERE day IN (CAST(? AS DATE) - INTERVAL 1 DAY, make_date(?, 2, 1))", ["2024-01-01", 2024])
    assert tree == "days: (CAST(?0 AS DATE) + INTERVAL -1 DAY | make_date(?1, 2, 1))"
    (tree,) = keyed.trees("SELECT * FROM orders WHERE customer_id = upper(?) || -CAST(? AS INTEGER)", ["c", 1])
    assert tree == "orders: (upper(?0) || -CAST(?1 AS INTEGER))"


def test_explain_says_what_the_value_would_have_to_be(keyed: Any) -> None:
    (scan,) = keyed.explain("SELECT * FROM orders WHERE customer_id = upper(?)", ["straße"]).json["pruning"]["scans"]
    assert scan["partitions"] is None
    assert scan["reason"] == "what customer_id is compared with is known to DuckDB alone for these parameters: pass the value itself"
    (scan,) = keyed.explain("SELECT * FROM orders WHERE customer_id = upper(?)", ["c2"]).json["pruning"]["scans"]
    assert scan["partitioning_key_values"] == [["C2"]]
