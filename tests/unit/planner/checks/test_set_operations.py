"""The columns to which set operations carry the conditions on other columns."""

from __future__ import annotations

import pytest

from secateur.planner import with_deep_stack
from secateur.planner.checks import Scope, SetOperations, set_operations_with_scopes
from secateur.planner.text import read_statement

SCANS = {"s0": ("k", "j"), "s1": ("k", "j"), "s2": ("k", "j")}


@pytest.mark.parametrize(
    ("sql", "carried"),
    [
        pytest.param("SELECT k FROM s0 INTERSECT SELECT j FROM s1", "s0.k>s1.j s1.j>s0.k", id="INTERSECT"),
        pytest.param("SELECT k FROM s0 INTERSECT ALL SELECT j FROM s1", "s0.k>s1.j s1.j>s0.k", id="INTERSECT ALL"),
        pytest.param("SELECT k FROM s0 EXCEPT SELECT j FROM s1", "s0.k>s1.j", id="EXCEPT, from left to right"),
        pytest.param("SELECT k FROM s0 UNION SELECT j FROM s1", "", id="UNION"),
        pytest.param("SELECT k, j FROM s0 EXCEPT SELECT j, k FROM s1", "s0.k>s1.j s0.j>s1.k", id="column by column"),
        pytest.param("SELECT * FROM s0 EXCEPT SELECT b.* FROM s1 b(x)", "s0.k>s1.k s0.j>s1.j", id="a star"),
        pytest.param("SELECT *, 1 FROM s0 EXCEPT SELECT *, 1 FROM s1", "", id="unknown columns"),
        pytest.param("SELECT k + 1 FROM s0 EXCEPT SELECT k FROM s1", "", id="a computed value"),
        pytest.param(
            "SELECT k FROM s0 EXCEPT SELECT k FROM s1 EXCEPT SELECT k FROM s2",
            "s0.k>s1.k s0.k>s2.k",
            id="EXCEPT of EXCEPT",
        ),
        pytest.param(
            "SELECT k FROM s0 EXCEPT (SELECT k FROM s1 EXCEPT SELECT k FROM s2)",
            "s0.k>s1.k s0.k>s2.k s1.k>s2.k",
            id="EXCEPT on the right of EXCEPT",
        ),
        pytest.param(
            "SELECT k FROM s0 INTERSECT (WITH s1 AS (SELECT j AS k FROM s2) SELECT k FROM s1 INTERSECT SELECT k FROM"
            " s0)",
            "s0.k>s2.j s2.j>s0.k",
            id="INTERSECT with a definition",
        ),
        pytest.param(
            "(SELECT k FROM s0 UNION SELECT k FROM s1) EXCEPT SELECT k FROM s2", "", id="not from one part of a UNION"
        ),
        pytest.param(
            "SELECT k FROM s2 EXCEPT (SELECT k FROM s0 UNION SELECT k FROM s1)",
            "s2.k>s0.k s2.k>s1.k",
            id="to all parts of a UNION",
        ),
        pytest.param(
            "(SELECT k FROM s0 INTERSECT SELECT k FROM s1) EXCEPT SELECT k FROM s2",
            "s0.k>s1.k s1.k>s0.k s0.k>s2.k s1.k>s2.k",
            id="from all parts of an INTERSECT",
        ),
        pytest.param(
            "(SELECT k FROM s0 EXCEPT SELECT k FROM s1) INTERSECT SELECT k FROM s2",
            "s0.k>s1.k s0.k>s2.k s2.k>s0.k s2.k>s1.k",
            id="not from the right of an EXCEPT",
        ),
        pytest.param(
            "SELECT v.k FROM (SELECT k FROM s0) v EXCEPT SELECT w.x FROM (SELECT j FROM s1) w(x)",
            "s0.k>s1.j",
            id="columns of subqueries",
        ),
        pytest.param(
            "WITH v AS (SELECT k FROM s0 UNION SELECT k FROM s1) SELECT k FROM v INTERSECT SELECT k FROM s2",
            "s2.k>s0.k s2.k>s1.k",
            id="a UNION in a definition",
        ),
        pytest.param(
            "SELECT s0.k, s1.k FROM s0 LEFT JOIN s1 ON s0.k = s1.j EXCEPT SELECT k, j FROM s2",
            "s0.k>s2.k",
            id="not from rows that may be missing",
        ),
        pytest.param(
            "SELECT k FROM s2 EXCEPT SELECT s1.k FROM s0 LEFT JOIN s1 ON s0.k = s1.j",
            "s2.k>s1.k",
            id="to rows that may be missing",
        ),
        pytest.param(
            "SELECT 1 FROM s0 WHERE EXISTS (SELECT s0.k INTERSECT SELECT k FROM s1)", "", id="not from a query around"
        ),
    ],
)
def test_conditions_are_carried_column_by_column(sql: str, carried: str) -> None:
    reading = read_statement(sql)
    assert reading is not None
    operations = SetOperations(set_operations_with_scopes(reading.tree, Scope(SCANS)))
    columns = [(relation, name) for relation, names in SCANS.items() for name in names]
    found = {
        f"{'.'.join(one)}>{'.'.join(other)}"
        for one in columns
        for other in columns
        if one != other and operations.carries(one, other)
    }
    assert found == set(carried.split())


@pytest.mark.parametrize("kind", ["INTERSECT", "EXCEPT"])
def test_a_chain_of_a_thousand_branches_is_read(kind: str) -> None:
    sql = f" {kind} ".join(f"SELECT k FROM s{number}" for number in range(1000))
    reading = with_deep_stack(lambda: read_statement(sql))
    assert reading is not None
    scope = Scope({f"s{number}": ("k",) for number in range(1000)})
    operations = SetOperations(set_operations_with_scopes(reading.tree, scope))
    assert operations.carries(("s0", "k"), ("s999", "k"))
    assert operations.carries(("s999", "k"), ("s0", "k")) == (kind == "INTERSECT")
