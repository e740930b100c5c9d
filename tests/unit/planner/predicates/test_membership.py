"""Lists as parameters: which spellings prune, and by what."""

from __future__ import annotations

from typing import Any

import pytest

FORMS = [
    "customer_id = ANY($1)",
    "customer_id = ANY(($1))",
    "customer_id = ANY (SELECT unnest($1))",
    "customer_id IN $1",
    "customer_id IN (SELECT unnest($1))",
    "list_contains($1, customer_id)",
    "list_has($1, customer_id)",
    "array_contains($1, customer_id)",
    "array_has($1, customer_id)",
    "contains($1, customer_id)",
]


def kept(bench: Any, sql: str, params: list[Any]) -> list[int] | None:
    statement = bench.select(sql, params)
    bound = statement.plan.scans[0].tree.bind(statement.params)
    return None if bound.is_all else list(bound.ids)


@pytest.mark.parametrize("form", FORMS)
def test_each_spelling_prunes_by_the_elements(bench: Any, form: str) -> None:
    sql = f"SELECT * FROM orders WHERE {form}"
    assert kept(bench, sql, [["C1", "C2", None]]) == sorted({bench.partition("orders", customer_id=key) for key in ("C1", "C2")})
    assert kept(bench, sql, [None]) == []
    assert str(bench.select(sql, [["C1"]]).plan.scans[0].tree) == "orders: (?0[])"


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("NOT customer_id = ANY($1)", id="negated"),
        pytest.param("customer_id <> ALL($1)", id="none of"),
        pytest.param("list_contains($1, lower(customer_id))", id="a wrapped column"),
        pytest.param("customer_id IN (SELECT unnest($1) LIMIT 1)", id="some elements"),
        pytest.param("customer_id IN (SELECT unnest($1) || 'x')", id="changed elements"),
        pytest.param("list_position($1, customer_id) > 0", id="another function"),
    ],
)
def test_what_is_no_membership_keeps_everything(bench: Any, form: str) -> None:
    assert kept(bench, f"SELECT * FROM orders WHERE {form}", [["C1"]]) is None


def test_a_text_in_place_of_the_list_keeps_everything_because_it_is_searched_for_substrings(bench: Any) -> None:
    assert kept(bench, "SELECT * FROM orders WHERE customer_id IN $1", ["C1,C2"]) is None


def test_explain_shows_the_elements_and_says_what_is_no_list(bench: Any) -> None:
    sql = "SELECT * FROM orders WHERE customer_id = ANY($1) OR customer_id = 'C9'"
    (scan,) = bench.explain(sql, [["C1"]]).json["pruning"]["scans"]
    assert scan["partitioning_key_values"] == [["C1"], ["C9"]]
    (scan,) = bench.explain("SELECT * FROM orders WHERE customer_id IN $1", ["C1,C2"]).json["pruning"]["scans"]
    assert scan["reason"] == "what customer_id is compared with is not a list of VARCHAR values: pass one"
