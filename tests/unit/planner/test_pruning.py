"""Lists and alternatives that are too long to be read in a file of tests/plans."""

from __future__ import annotations

from typing import Any

from secateur.planner import PlannedSelect


def kept(context: Any, sql: str, params: Any = ()) -> list[int] | None:
    """The partitions of the first scan; None for all."""
    statement: PlannedSelect = context.select(sql, params)
    bound = statement.plan.scans[0].tree.bind(statement.params)
    return None if bound.is_all else list(bound.ids)


def keys(context: Any, *customers: str) -> list[int]:
    return sorted({context.partition("orders", customer_id=customer) for customer in customers})


def test_ten_thousand_values_pass_the_limit_and_it_is_said(context: Any) -> None:
    values = ", ".join(f"'C{number}'" for number in range(9_400))
    pruning = context.explain(f"SELECT count(*) FROM orders WHERE customer_id IN ({values})").json["pruning"]
    assert "2,168" in pruning["scans"][0]["reason"]
    assert not pruning["applicable"]


def test_a_long_chain_of_ors_is_one_list(context: Any) -> None:
    where = " OR ".join(f"customer_id = 'C{number}'" for number in range(300))
    assert kept(context, f"SELECT count(*) FROM orders WHERE {where}") == keys(
        context, *(f"C{number}" for number in range(300))
    )


def test_nested_ors_do_not_explode(context: Any) -> None:
    context.create(
        "CREATE TABLE cube (a INT, b INT, c INT, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a, b, c) PARTITIONS 50000"
    )
    sides = [" OR ".join(f"{column} = {value}" for value in range(20)) for column in "abc"]
    found = kept(context, f"SELECT count(*) FROM cube WHERE {' AND '.join(f'({side})' for side in sides)}")
    assert found is not None
    assert 0 < len(found) <= 8000


def test_many_rows_of_parameters_are_taken_apart(context: Any) -> None:
    context.create(
        "CREATE TABLE pairs (a INTEGER, b INTEGER, v INTEGER, PRIMARY KEY (a, b)) PARTITION BY HASH (a, b) PARTITIONS"
        " 1009"
    )
    rows = [(1, value) for value in range(70)]
    where = f"(a, b) IN ({', '.join('(?, ?)' for _ in rows)})"
    expected = sorted({context.partition("pairs", a=a, b=b) for a, b in rows})
    assert (
        kept(context, f"SELECT count(*) FROM pairs WHERE {where}", [value for row in rows for value in row]) == expected
    )


def test_else_is_reached_where_the_condition_is_null(context: Any) -> None:
    where = "CASE WHEN customer_id = $1 THEN FALSE ELSE customer_id = 'C2' END"
    assert kept(context, f"SELECT count(*) FROM orders WHERE {where}", [None]) == keys(context, "C2")
    where = "CASE WHEN amount > 1 THEN FALSE ELSE customer_id = 'C2' END AND amount IS NULL"
    assert kept(context, f"SELECT count(*) FROM orders WHERE {where}") == keys(context, "C2")
