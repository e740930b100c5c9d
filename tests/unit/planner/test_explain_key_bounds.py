"""``primary_key_bounds`` of EXPLAIN, as JSON and as text."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("where", "params", "lower", "upper", "text"),
    [
        ("customer_id = 'C2' AND id = 7", (), ["C2", 7], ["C2", 7], "('C2', 7)"),
        ("customer_id = ? AND id < ?", ["C2", 7], ["C2"], ["C2", 7], "('C2') <= key < ('C2', 7)"),
        ("customer_id >= 'C2'", (), ["C2"], None, "('C2') <= key"),
        ("customer_id < 'C2'", (), None, ["C2"], "key < ('C2')"),
        ("customer_id IN ('C5', 'C2', 'C3')", (), ["C2"], ["C5"], "('C2') <= key <= ('C5'), in 3 ranges"),
        ("customer_id = ? AND id > ?", ["C2", None], None, None, "no key"),
        ("id = 7", (), None, None, None),
        ("customer_id = ?", (), None, None, None),
        ("customer_id = 'C2' AND id = ?", (), None, None, None),
        ("customer_id = 'C2' AND priority = ?", (), ["C2"], ["C2"], "('C2')"),
    ],
    ids=str,
)
def test_bounds(bench: Any, where: str, params: Any, lower: Any, upper: Any, text: str | None) -> None:
    explained = bench.explain(f"SELECT * FROM orders WHERE {where}", params)
    assert explained.json["pruning"]["scans"][0]["primary_key_bounds"] == {"lower": lower, "upper": upper}
    found = [line.removeprefix("  primary key bounds: ") for line in explained.text.splitlines() if "primary key bounds" in line]
    assert found == ([] if text is None else [text])


def test_values_that_match_no_key_of_the_partition_leave_none(bench: Any) -> None:
    explained = bench.explain("SELECT * FROM orders WHERE customer_id = ? AND id > ? AND id < ?", ["C2", 5, 3])
    assert explained.json["pruning"]["scans"][0]["primary_key_bounds"] == {"lower": None, "upper": None}
    assert "  primary key bounds: no key" in explained.text.splitlines()


def test_a_scan_that_cannot_be_pruned_has_bounds_all_the_same(bench: Any) -> None:
    (scan,) = bench.explain("SELECT * FROM metrics WHERE host = 'h1'").json["pruning"]["scans"]
    assert scan["partitions"] is None
    assert scan["primary_key_bounds"] == {"lower": ["h1"], "upper": ["h1"]}


def test_a_replicated_table_is_searched_too(bench: Any) -> None:
    explained = bench.explain("SELECT * FROM airlines WHERE code = 'LH'")
    assert explained.json["pruning"]["scans"][0]["primary_key_bounds"] == {"lower": ["LH"], "upper": ["LH"]}
    assert "  primary key bounds: ('LH')" in explained.text.splitlines()


def test_pruning_switched_off_searches_nothing(bench: Any) -> None:
    explained = bench.explain("SELECT * FROM orders WHERE customer_id = 'C2'", pruning="off")
    assert explained.json["pruning"]["scans"][0]["primary_key_bounds"] == {"lower": None, "upper": None}
