"""Which columns of a secondary index a statement is searched by, and what is looked for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from secateur.partitioning.tables import IndexDef


@pytest.mark.parametrize(
    ("index", "where", "columns"),
    [
        pytest.param(("a", "b"), "a = 1 AND b = 'x'", ("a", "b"), id="equalities"),
        pytest.param(("a", "b"), "a = 1 AND b > 'x'", ("a", "b"), id="a range behind an equality"),
        pytest.param(("a", "b"), "a IN (1, 2) AND b LIKE 'x%'", ("a", "b"), id="a list, and a prefix of text"),
        pytest.param(("a", "b"), "a = 1", ("a",), id="the first column alone"),
        pytest.param(("a", "b"), "a = 1 AND b IS NULL", ("a",), id="rows without a value are wanted"),
        pytest.param(("a", "b"), "a = 1 AND (b = 'x' OR b IS NULL)", ("a",), id="or are among those that are wanted"),
        pytest.param(("a", "b"), "a = 1 AND b IS DISTINCT FROM 'x'", ("a",), id="or are not distinct"),
        pytest.param(("a", "b"), "(a = 1 AND b = 'x') OR a = 2", ("a",), id="one branch says nothing of the second"),
        pytest.param(("a", "b"), "(a = 1 AND b = 'x') OR (a = 2 AND b = 'y')", ("a", "b"), id="both branches do"),
        pytest.param(
            ("a", "n", "b"), "a = 1 AND b = 'x'", ("a", "n", "b"), id="a column between that has a value always"
        ),
        pytest.param(("a", "n"), "a = 1", ("a", "n"), id="a column behind that has a value always"),
        pytest.param(("a", "b"), "b = 'x'", None, id="nothing of the first"),
        pytest.param(("a", "b"), "a IS NULL AND b = 'x'", None, id="no value of the first"),
        pytest.param(("a", "b"), "NOT (a = 1) AND b = 'x'", ("a", "b"), id="a negation finds values alone"),
    ],
)
def test_columns_that_are_searched(
    context: Any, index: tuple[str, ...], where: str, columns: tuple[str, ...] | None
) -> None:
    table = context.create(
        "CREATE TABLE things (id BIGINT PRIMARY KEY, a INTEGER, b VARCHAR, n INTEGER NOT NULL) PARTITION BY HASH (id)"
        " PARTITIONS 4"
    )
    context.known["things"] = structs.replace(table, indexes=(IndexDef("i", index),))
    search = context.select(f"SELECT id FROM things WHERE {where}").plan.scans[0].keys.index
    assert (None if search is None else search.columns) == columns
