"""Two texts that are put together again: what is the SELECT passes, and each way of being another one is found, in its
clause.
"""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.processors import RowLimit, SortKey
from secateur.planner.checks import Node, difference, named_columns, spelling_difference
from secateur.planner.fragments import PartialFinal
from secateur.planner.text import read_statements

KEYS = "SELECT a AS k0, sum(b) AS a0, count(b) AS a1 FROM t GROUP BY 1"
LIMITED = "SELECT a AS c0, k AS c1 FROM t ORDER BY c1 DESC LIMIT 3"


def columns(star: Node) -> list[Node]:
    return named_columns(["k", "a", "b"])


def found(whole: str, partial: str, final: str, **claims: Any) -> str | None:
    readings = read_statements([whole, partial, final])
    assert all(reading is not None for reading in readings), "DuckDB does not parse it"
    return difference(*readings, PartialFinal(partial, final, **claims), columns, is_one_table=True)


@pytest.mark.parametrize(
    ("whole", "partial", "final", "claims"),
    [
        pytest.param(
            "SELECT x.a, k + 1 FROM t AS x WHERE x.b > 1",
            "SELECT a AS c0, k + 1 AS c1 FROM t WHERE b > 1",
            "SELECT c0, c1 FROM x0",
            {},
            id="rows",
        ),
        pytest.param(
            "SELECT * FROM t", "SELECT k AS c0, a AS c1, b AS c2 FROM t", "SELECT c0, c1, c2 FROM x0", {}, id="star"
        ),
        pytest.param(
            "SELECT a, k FROM t ORDER BY (2) DESC LIMIT 3",
            LIMITED,
            "SELECT c0, c1 FROM x0 ORDER BY c1 DESC LIMIT 3",
            {},
            id="position",
        ),
        pytest.param(
            "SELECT a, k AS n FROM t ORDER BY n DESC LIMIT 2 OFFSET 1",
            LIMITED,
            "SELECT c0, c1 FROM x0 ORDER BY c1 DESC LIMIT 2 OFFSET 1",
            {},
            id="alias",
        ),
        pytest.param(
            "SELECT a, sum(b), avg(b) FROM t GROUP BY (1) HAVING sum(b) > 1",
            KEYS,
            "SELECT k0 AS c0, CAST(sum(a0) AS HUGEINT) AS c1, CAST(CAST(sum(a0) AS HUGEINT) AS DOUBLE) / sum(a1) AS c2"
            " FROM x0 GROUP BY k0 HAVING CAST(sum(a0) AS HUGEINT) > 1",
            {"combines": True},
            id="aggregates",
        ),
        pytest.param(
            "SELECT count(DISTINCT b) FILTER (WHERE a > 1) FROM t",
            "SELECT CASE WHEN a > 1 THEN b END AS d0 FROM t GROUP BY 1",
            "SELECT CAST(count(DISTINCT d0) AS BIGINT) AS c0 FROM x0",
            {"combines": True, "distinct_keys": frozenset({"d0"})},
            id="distinct values",
        ),
        pytest.param(
            "SELECT a, k, count(*) FROM t GROUP BY GROUPING SETS ((1, 2), (2))",
            "SELECT a AS k0, k AS k1, count(*) AS a0 FROM t GROUP BY 1, 2",
            "SELECT k0 AS c0, k1 AS c1, CAST(coalesce(sum(a0), 0) AS BIGINT) AS c2 FROM x0 GROUP BY GROUPING SETS ((k0,"
            " k1), (k1))",
            {"combines": True},
            id="grouping sets",
        ),
        pytest.param(
            "SELECT median(b) AS m FROM t GROUP BY a ORDER BY m",
            "SELECT b AS v0, a AS v1 FROM t",
            "SELECT median(v0) AS m FROM x0 GROUP BY v1 ORDER BY m",
            {},
            id="columns alone",
        ),
        pytest.param(
            "SELECT a FROM t ORDER BY 1 DESC",
            "SELECT a AS c0 FROM t",
            "SELECT c0 FROM x0 ORDER BY c0 DESC",
            {"order": (SortKey("c0", descending=True),), "passing": "SELECT c0 FROM x0"},
            id="rows that come in order",
        ),
        pytest.param(
            "SELECT a FROM t LIMIT 3 OFFSET 1",
            "SELECT a AS c0 FROM t LIMIT 4",
            "SELECT c0 FROM x0 LIMIT 3 OFFSET 1",
            {"limit": RowLimit(1, 3), "passing": "SELECT c0 FROM x0"},
            id="rows that end when there are enough",
        ),
    ],
)
def test_two_parts_that_are_the_select(whole: str, partial: str, final: str, claims: dict[str, Any]) -> None:
    assert found(whole, partial, final, **claims) is None


@pytest.mark.parametrize(
    ("whole", "partial", "final", "claims", "clause"),
    [
        pytest.param("SELECT a FROM t", "SELECT a AS c0 FROM u", "SELECT c0 FROM x0", {}, "FROM", id="another table"),
        pytest.param(
            "SELECT a FROM t WHERE b > 1",
            "SELECT a AS c0 FROM t WHERE b >= 1",
            "SELECT c0 FROM x0",
            {},
            "WHERE",
            id="another condition",
        ),
        pytest.param(
            "SELECT a FROM t WHERE b > 1",
            "SELECT a AS c0 FROM t",
            "SELECT c0 FROM x0",
            {},
            "WHERE",
            id="a condition lost",
        ),
        pytest.param(
            "SELECT a, k FROM t",
            "SELECT k AS c0, a AS c1 FROM t",
            "SELECT c0, c1 FROM x0",
            {},
            "the SELECT list",
            id="columns exchanged",
        ),
        pytest.param(
            "SELECT a FROM t",
            "SELECT a AS c0, k AS c1 FROM t",
            "SELECT c0, c1 FROM x0",
            {},
            "the SELECT list",
            id="a column too many",
        ),
        pytest.param(
            "SELECT t.* REPLACE (a + 1 AS a) FROM t",
            "SELECT k AS c0, a AS c1, b AS c2 FROM t",
            "SELECT c0, c1, c2 FROM x0",
            {},
            "the SELECT list",
            id="a star that replaces columns, taken for one that does not",
        ),
        pytest.param(
            "SELECT t.* EXCLUDE (a) FROM t",
            "SELECT k AS c0, a AS c1, b AS c2 FROM t",
            "SELECT c0, c1, c2 FROM x0",
            {},
            "the SELECT list",
            id="or excludes",
        ),
        pytest.param(
            "SELECT a, k FROM t ORDER BY (2) DESC LIMIT 3",
            "SELECT a AS c0, k AS c1, (2) AS o0 FROM t ORDER BY o0 DESC LIMIT 3",
            "SELECT c0, c1 FROM x0 ORDER BY o0 DESC LIMIT 3",
            {},
            "ORDER BY",
            id="a position in parentheses, taken for a value",
        ),
        pytest.param(
            "SELECT DISTINCT ON ((1)) a, k FROM t",
            "SELECT DISTINCT ON ((1)) a AS c0, k AS c1, 1 AS d0 FROM t",
            "SELECT DISTINCT ON (d0) c0, c1 FROM x0",
            {},
            "DISTINCT",
            id="and in DISTINCT ON",
        ),
        pytest.param(
            "SELECT a, k, count(*) FROM t GROUP BY GROUPING SETS ((1, 2), (2))",
            "SELECT a AS k0, k AS k1, 2 AS k2, count(*) AS a0 FROM t GROUP BY 1, 2, 3",
            "SELECT k0 AS c0, k1 AS c1, CAST(coalesce(sum(a0), 0) AS BIGINT) AS c2 FROM x0 GROUP BY GROUPING SETS ((k0,"
            " k1), (k2))",
            {"combines": True},
            "GROUP BY",
            id="and among grouping sets",
        ),
        pytest.param(
            "SELECT a, sum(b) FROM t GROUP BY 1",
            "SELECT a AS k0, k AS k1, sum(b) AS a0 FROM t GROUP BY 1, 2",
            "SELECT k0 AS c0, CAST(sum(a0) AS HUGEINT) AS c1 FROM x0 GROUP BY k0",
            {"combines": True},
            "GROUP BY",
            id="a key too many",
        ),
        pytest.param(
            "SELECT a, sum(b) FROM t GROUP BY 1",
            KEYS,
            "SELECT k0 AS c0, CAST(sum(a1) AS HUGEINT) AS c1 FROM x0 GROUP BY k0",
            {"combines": True},
            "the SELECT list",
            id="another aggregate",
        ),
        pytest.param(
            "SELECT a, avg(b) FROM t GROUP BY 1",
            "SELECT a AS k0, sum(b) AS a0, count(k) AS a1 FROM t GROUP BY 1",
            "SELECT k0 AS c0, CAST(CAST(sum(a0) AS HUGEINT) AS DOUBLE) / sum(a1) AS c1 FROM x0 GROUP BY k0",
            {"combines": True},
            "the SELECT list",
            id="a quotient of other rows",
        ),
        pytest.param(
            "SELECT a, sum(b) FROM t GROUP BY 1",
            KEYS,
            "SELECT k0 AS c0, a0 AS c1 FROM x0 GROUP BY k0",
            {"combines": True},
            "the SELECT list",
            id="an aggregate that is not combined",
        ),
        pytest.param(
            "SELECT sum(b) FILTER (WHERE a > 1) FROM t",
            "SELECT sum(b) AS a0 FROM t",
            "SELECT CAST(sum(a0) AS HUGEINT) AS c0 FROM x0",
            {"combines": True},
            "the SELECT list",
            id="a filter lost",
        ),
        pytest.param(
            "SELECT a FROM t LIMIT 3",
            "SELECT a AS c0 FROM t LIMIT 2",
            "SELECT c0 FROM x0 LIMIT 3",
            {},
            "LIMIT",
            id="too few rows",
        ),
        pytest.param(
            "SELECT a, k FROM t ORDER BY 2 LIMIT 3",
            "SELECT a AS c0, k AS c1 FROM t LIMIT 3",
            "SELECT c0, c1 FROM x0 ORDER BY c1 LIMIT 3",
            {},
            "LIMIT",
            id="any rows in place of the first",
        ),
        pytest.param(
            "SELECT DISTINCT a FROM t LIMIT 3",
            "SELECT a AS c0 FROM t LIMIT 3",
            "SELECT DISTINCT c0 FROM x0 LIMIT 3",
            {},
            "LIMIT",
            id="rows that are equal in place of others",
        ),
        pytest.param(
            "SELECT DISTINCT a FROM t", "SELECT a AS c0 FROM t", "SELECT c0 FROM x0", {}, "DISTINCT", id="DISTINCT lost"
        ),
        pytest.param(
            "SELECT a FROM t ORDER BY a DESC",
            "SELECT a AS c0 FROM t",
            "SELECT c0 FROM x0 ORDER BY c0",
            {},
            "ORDER BY",
            id="another direction",
        ),
        pytest.param(
            "SELECT a FROM t QUALIFY rank() OVER (ORDER BY k) = 1",
            "SELECT a AS v0, k AS v1 FROM t",
            "SELECT v0 FROM x0",
            {},
            "HAVING or QUALIFY",
            id="QUALIFY lost",
        ),
        pytest.param(
            "SELECT a FROM t ORDER BY 1",
            "SELECT a AS c0 FROM t",
            "SELECT c0 FROM x0 ORDER BY c0",
            {"order": (SortKey("c0", descending=True),), "passing": "SELECT c0 FROM x0"},
            "what is left out of the part at the coordinator",
            id="rows that come in another order",
        ),
    ],
)
def test_two_parts_that_are_another_select(
    whole: str, partial: str, final: str, claims: dict[str, Any], clause: str
) -> None:
    assert found(whole, partial, final, **claims) == clause


@pytest.mark.parametrize(
    ("other", "clause"),
    [
        pytest.param('SELECT "k", "a" + 1, "b" FROM s0 WHERE "b" > 1 ORDER BY 2', None, id="exact names"),
        pytest.param(
            'SELECT "k", "a", "b" FROM s0 WHERE "b" > 1 ORDER BY 2',
            "the SELECT list",
            id="a column that is not replaced",
        ),
        pytest.param('SELECT "k", "a" + 1, "b" FROM s0 ORDER BY 2', "WHERE", id="no condition"),
    ],
)
def test_another_spelling(other: str, clause: str | None) -> None:
    whole, spelled = read_statements(["SELECT x.k, a + 1, b FROM s0 AS x WHERE x.b > 1 ORDER BY (2)", other])
    assert spelling_difference(whole, spelled, columns) == clause
