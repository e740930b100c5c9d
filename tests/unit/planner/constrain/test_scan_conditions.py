"""Which conditions reach which scan: one rule a case."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from described_tables import DescribedTables
from secateur.engine.kernels.duckdb import default_kernel
from secateur.planner.binding import BoundPlan, bind_to_plan
from secateur.planner.constrain import ScanConditions, constrained
from secateur.planner.prune.shown import shown

COLUMNS = "g BIGINT, d DOUBLE, s VARCHAR, PRIMARY KEY (k)"
TABLES = DescribedTables.of(
    [
        f"CREATE TABLE a (k INTEGER, {COLUMNS}) PARTITION BY HASH (k) PARTITIONS 8",
        f"CREATE TABLE b (k INTEGER, {COLUMNS}) PARTITION BY HASH (k) PARTITIONS 8",
        "CREATE TABLE c (k BIGINT, v INTEGER, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 8",
    ]
).known


def conditions_on(sql: str) -> dict[str, ScanConditions]:
    schemas = {name: {column.name: column.type for column in table.columns} for name, table in TABLES.items()}
    plan = bind_to_plan(default_kernel(), sql, schemas, ())
    assert isinstance(plan, BoundPlan)
    return dict(constrained(plan.root, TABLES).conditions)


def texts(scan: ScanConditions) -> list[str]:
    return [shown(one, [*scan.names, *scan.others]) for one in scan.conjuncts]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param(
            "SELECT * FROM a WHERE k = 5 AND s = 'x'",
            {"a": ["k = 5", "s = 'x'"]},
            id="a filter",
        ),
        pytest.param(
            "SELECT * FROM (SELECT k + 1 AS n FROM a) WHERE n = 5",
            {"a": ["k + 1 = 5"]},
            id="a projection is substituted",
        ),
        pytest.param(
            "SELECT * FROM (SELECT k + random() AS n FROM a) WHERE n = 5",
            {"a": []},
            id="an unstable projection is not",
        ),
        pytest.param(
            "SELECT * FROM a JOIN c ON a.k = c.k WHERE a.k = 5",
            {"a": ["k = 5"], "c": ["k = 5"]},
            id="across a join, to a wider integer",
        ),
        pytest.param(
            "SELECT * FROM a JOIN c ON a.k = c.k WHERE c.k BETWEEN 5 AND 6",
            {"a": ["k >= 5", "k <= 6"], "c": ["k >= 5", "k <= 6"]},
            id="across a join, from a wider integer",
        ),
        pytest.param(
            "SELECT * FROM a WHERE NOT (NOT (k = ANY([5, 6])))",
            {"a": ["k IN [5, 6]"]},
            id="a search of a list that is negated twice",
        ),
        pytest.param(
            "SELECT * FROM a JOIN c ON a.k = c.k WHERE TRY_CAST(c.k AS INTEGER) IS NULL",
            {"a": ["TRY_CAST(k AS INTEGER) IS NULL"], "c": ["TRY_CAST(k AS INTEGER) IS NULL"]},
            id="across a join, TRY_CAST stays one",
        ),
        pytest.param(
            "SELECT * FROM a JOIN b ON a.d = b.d WHERE a.d = 5",
            {"a": ["d = 5"], "b": []},
            id="not across a join of doubles",
        ),
        pytest.param(
            "SELECT * FROM a JOIN b ON a.k < b.k WHERE b.k < 5",
            {"a": ["k < b.k", "k < 5"], "b": ["a.k < k", "k < 5"]},
            id="through an inequality",
        ),
        pytest.param(
            "SELECT * FROM a LEFT JOIN b ON a.k = b.k AND b.s = 'x' AND a.g = 3 WHERE a.k = 5",
            {"a": ["k = 5"], "b": ["s = 'x'", "k = 5"]},
            id="LEFT JOIN: to the right, never back",
        ),
        pytest.param(
            "SELECT * FROM a LEFT JOIN b ON a.g = b.g WHERE b.k = 5 OR b.k IS NULL",
            {"a": [], "b": []},
            id="LEFT JOIN: not where NULL passes",
        ),
        pytest.param(
            "SELECT * FROM a LEFT JOIN b ON a.k = b.k WHERE b.k = 5",
            {"a": ["k = 5"], "b": ["k = 5"]},
            id="LEFT JOIN that is an inner one",
        ),
        pytest.param(
            "SELECT * FROM a FULL JOIN b USING (k) WHERE k = 5",
            {"a": ["k = 5"], "b": ["k = 5"]},
            id="FULL JOIN with USING",
        ),
        pytest.param(
            "SELECT * FROM a FULL JOIN b ON a.k = b.k WHERE a.k = 5 OR b.k = 5",
            {"a": [], "b": []},
            id="FULL JOIN",
        ),
        pytest.param(
            "SELECT * FROM a WHERE k IN (SELECT k FROM b WHERE k < 9) AND k > 5",
            {"a": ["k > 5", "k < 9"], "b": ["k < 9", "k > 5"]},
            id="SEMI, both ways",
        ),
        pytest.param(
            "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.s = 'x') AND k = 5",
            {"a": ["k = 5"], "b": ["s = 'x'", "k = 5"]},
            id="ANTI, to the right",
        ),
        pytest.param(
            "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b) AND k = 5",
            {"a": ["k = 5"], "b": ["k = 5"]},
            id="NOT IN, of columns without NULL",
        ),
        pytest.param(
            "SELECT * FROM a WHERE g NOT IN (SELECT g FROM b) AND g = 5",
            {"a": ["g = 5"], "b": []},
            id="NOT IN, of a column with NULL",
        ),
        pytest.param(
            "SELECT * FROM a WHERE k = 5 AND (s = 'x' OR k IN (SELECT k FROM b))",
            {"a": ["k = 5", "s = 'x' OR ..."], "b": ["k = 5"]},
            id="IN beside another condition",
        ),
        pytest.param(
            "SELECT * FROM a ASOF JOIN b ON a.k = b.k AND a.g >= b.g WHERE a.k = 5 AND b.g = 3",
            {"a": ["g >= b.g", "k = 5", "g >= 3"], "b": ["k = 5"]},
            id="ASOF, about the key",
        ),
        pytest.param(
            "SELECT k, sum(g) AS n FROM a GROUP BY k HAVING k = 5 AND sum(g) > 3",
            {"a": ["k = 5"]},
            id="a group",
        ),
        pytest.param(
            "SELECT d, count(*) FROM a GROUP BY d HAVING d = 5",
            {"a": []},
            id="no group of a DOUBLE",
        ),
        pytest.param(
            "SELECT k % 4 AS m, count(*) FROM a GROUP BY 1 HAVING m = 3",
            {"a": ["k % 4 = 3"]},
            id="a group that is computed",
        ),
        pytest.param(
            "SELECT k, g FROM a GROUP BY GROUPING SETS ((k), (k, g)) HAVING k = 5 AND g = 3",
            {"a": ["k = 5"]},
            id="a group that is not in all sets",
        ),
        pytest.param(
            "SELECT * FROM (SELECT max(k) AS m FROM a) WHERE m = 5",
            {"a": []},
            id="no group",
        ),
        pytest.param(
            "SELECT k FROM a GROUP BY k HAVING min(k) = 5",
            {"a": ["k = 5"]},
            id="the least of a group's key",
        ),
        pytest.param(
            "FROM (SELECT k, g, rank() OVER (PARTITION BY k ORDER BY g) n FROM a) WHERE k = 5 AND g = 3 AND n = 1",
            {"a": ["k = 5"]},
            id="a window",
        ),
        pytest.param(
            "SELECT * FROM (SELECT k, count(*) OVER (PARTITION BY k) AS n, count(*) OVER () AS m FROM a) WHERE k = 5",
            {"a": []},
            id="windows that share nothing",
        ),
        pytest.param(
            "SELECT * FROM (SELECT DISTINCT k, s FROM a) WHERE k = 5",
            {"a": ["k = 5"]},
            id="DISTINCT",
        ),
        pytest.param(
            "SELECT * FROM (SELECT DISTINCT ON (k) k, s FROM a) WHERE k = 5 AND s = 'x'",
            {"a": ["k = 5"]},
            id="DISTINCT ON",
        ),
        pytest.param(
            "SELECT * FROM (SELECT k FROM a UNION SELECT k FROM c) WHERE k = 5",
            {"a": ["k = 5"], "c": ["k = 5"]},
            id="UNION of other types",
        ),
        pytest.param(
            "SELECT k FROM a WHERE k = 5 EXCEPT SELECT k FROM b",
            {"a": ["k = 5"], "b": ["k = 5"]},
            id="EXCEPT, to both sides",
        ),
        pytest.param(
            "SELECT * FROM (SELECT * FROM a LIMIT 3) WHERE k = 5",
            {"a": []},
            id="LIMIT",
        ),
        pytest.param(
            "SELECT * FROM (SELECT * FROM a WHERE k = 5 LIMIT 3) x JOIN b USING (k)",
            {"a": ["k = 5"], "b": ["k = 5"]},
            id="facts pass LIMIT",
        ),
        pytest.param(
            "WITH w AS (FROM a WHERE g = 3) FROM w x, w y WHERE x.k = 5 AND y.k = 6 AND x.s = 'x' AND y.s = 'x'",
            {"a": ["g = 3", "s = 'x'", "k = 5 OR k = 6"]},
            id="a common table expression, read twice",
        ),
        pytest.param(
            "WITH RECURSIVE r AS (SELECT k FROM a WHERE s = 'x' UNION SELECT b.k FROM b, r WHERE b.k = r.k + 1) FROM r",
            {"a": ["s = 'x'"], "b": ["k = ... + 1"]},
            id="recursion",
        ),
        pytest.param(
            "SELECT * FROM a WHERE k = (SELECT max(k) FROM b WHERE k BETWEEN 3 AND 9)",
            {"a": ["k >= 3", "k <= 9"], "b": ["k >= 3", "k <= 9"]},
            id="a scalar subquery",
        ),
        pytest.param(
            "SELECT * FROM a WHERE k > (SELECT min(k) FROM b WHERE k BETWEEN 3 AND 9)",
            {"a": ["k > ...", "k > 3"], "b": ["k >= 3", "k <= 9"]},
            id="more than a scalar subquery",
        ),
        pytest.param(
            "SELECT *, (SELECT max(g) FROM b WHERE b.k = a.k AND b.g > a.g) FROM a WHERE k = 5",
            {"a": ["k = 5"], "b": ["g > a.g", "k = 5"]},
            id="a correlated subquery",
        ),
        pytest.param(
            "SELECT * FROM a, b WHERE (a.k = b.k AND a.s = 'x') OR (b.k = a.k AND b.s = 'y') AND a.k = 5",
            {
                "a": [
                    "k = b.k AND s = 'x' OR b.k = k AND b.s = 'y' AND k = 5",
                    "k = k AND s = 'x' OR k = k AND b.s = 'y' AND k = 5",
                ],
                "b": [
                    "a.k = k AND a.s = 'x' OR k = a.k AND s = 'y' AND a.k = 5",
                    "k = k AND a.s = 'x' OR k = k AND s = 'y' AND k = 5",
                ],
            },
            id="all branches of OR",
        ),
        pytest.param(
            "SELECT * FROM a JOIN (VALUES (5), (6)) v(n) ON a.k = v.n",
            {"a": ["k IS NOT DISTINCT FROM 5 OR k IS NOT DISTINCT FROM 6"]},
            id="VALUES",
        ),
        pytest.param(
            "SELECT * FROM a WHERE k IN (SELECT unnest([5, 6]))",
            {"a": ["k IN [5, 6]"]},
            id="a list",
        ),
        pytest.param(
            "SELECT * FROM a JOIN b ON a.g = b.g WHERE a.k IS NULL",
            {"a": ["false"], "b": ["false"]},
            id="what never holds",
        ),
        pytest.param(
            "SELECT a.s FROM a LEFT JOIN b ON a.k = b.k",
            {"a": [], "b": ["false"]},
            id="a side without use",
        ),
        pytest.param(
            "SELECT * FROM (SELECT k, unnest([1, 2]) AS n FROM a) WHERE k = 5",
            {"a": ["k = 5"]},
            id="unnested rows",
        ),
        pytest.param(
            "SELECT * FROM a POSITIONAL JOIN b WHERE a.k = 5",
            {"a": [], "b": []},
            id="joined by position",
        ),
        pytest.param(
            "SELECT * FROM (SELECT * FROM a USING SAMPLE 3) WHERE k = 5",
            {"a": []},
            id="a sample",
        ),
        pytest.param(
            "SELECT * FROM b JOIN a ON a.k = b.k WHERE a.g = 3 AND len(list_filter([1, 2], lambda x: x > a.g)) = 1",
            {"a": ["g = 3", "len(list_filter([1, 2], lambda, g)) = 1"], "b": []},
            id="a lambda",
        ),
        pytest.param(
            "SELECT * FROM a LEFT JOIN (SELECT k, TRUE AS there FROM b) b ON a.k = b.k WHERE there IS NULL",
            {"a": [], "b": []},
            id="LEFT JOIN: a constant of the right side is NULL without a match",
        ),
        pytest.param(
            "SELECT * FROM a FULL JOIN (SELECT k, TRUE AS there FROM b) b ON a.k = b.k WHERE there AND a.k = 5",
            {"a": ["k = 5"], "b": ["k = 5"]},
            id="FULL JOIN: a constant of the right side rejects its NULL",
        ),
        pytest.param(
            "SELECT * FROM (SELECT k, TRUE AS there FROM a) a FULL JOIN b ON a.k = b.k WHERE there AND b.g = 5",
            {"a": [], "b": ["g = 5"]},
            id="FULL JOIN: a constant of one side is none of the other",
        ),
        pytest.param(
            "SELECT * FROM a LEFT JOIN b ON a.g = b.k AND b.k = 7 WHERE b.k NOT IN (SELECT k FROM c)",
            {"a": [], "b": ["k = 7"], "c": []},
            id="NOT IN, of a column that may be NULL without a match",
        ),
        pytest.param(
            "SELECT * FROM a FULL JOIN b ON a.g = coalesce(b.g, 5) WHERE coalesce(a.g, b.g, 5) = 5",
            {"a": [], "b": []},
            id="FULL JOIN: a merged value that is not NULL without a match",
        ),
        pytest.param(
            "SELECT * FROM a WHERE (k, g) IN (SELECT (k, g) FROM b WHERE k = 5)",
            {
                "a": ["(k, g) = (b.k, b.g)", "(k, g) = (k, g)", "k = 5"],
                "b": ["k = 5", "(a.k, a.g) = (k, g)", "(k, g) = (k, g)"],
            },
            id="rows",
        ),
    ],
)
def test_conditions(sql: str, expected: dict[str, list[str]]) -> None:
    found = conditions_on(sql)
    assert {name: texts(scan) for name, scan in sorted(found.items())} == expected


def test_what_the_user_wrote_about_a_scan_is_local() -> None:
    found = conditions_on(
        "SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k WHERE a.s = 'x' AND b.k = 5 GROUP BY 1 HAVING a.k > 3"
    )
    assert [texts(found["a"])[index] for index in sorted(found["a"].local)] == ["s = 'x'"]
    assert [texts(found["b"])[index] for index in sorted(found["b"].local)] == ["k = 5"]
    assert not found["a"].is_whole


@pytest.mark.parametrize(
    ("sql", "note"),
    [
        (
            "SELECT * FROM (SELECT * FROM a LIMIT 3) WHERE k = 5",
            "the filter k = 5 cannot be pushed below LIMIT: filter inside it if you mean its input",
        ),
        (
            "SELECT * FROM (SELECT g, max(k) AS k FROM a GROUP BY g) WHERE k = 5",
            "",
        ),
        (
            "SELECT * FROM b LEFT JOIN a ON a.g = b.g WHERE a.k = 5 OR b.k = 5",
            (
                "k = 5 OR b.k = 5 can hold for rows that the LEFT JOIN fills with NULLs: use an inner join, or a"
                " condition that NULL does not satisfy"
            ),
        ),
        (
            "SELECT * FROM (SELECT DISTINCT ON (g) * FROM a) WHERE k = 5",
            (
                "the filter k = 5 cannot be pushed below DISTINCT ON, which does not name k: add k to it, or filter"
                " inside the subquery"
            ),
        ),
        ("SELECT * FROM a JOIN b ON a.k = b.k", "k = b.k only joins the key: compare either side with a value"),
    ],
)
def test_notes(sql: str, note: str) -> None:
    assert conditions_on(sql)["a"].notes == ((note,) if note else ())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param([], ["false"], id="no element"),
        pytest.param([None], ["false"], id="NULL"),
        pytest.param(None, ["false"], id="no list"),
        pytest.param([Decimal(1), Decimal("2.5")], None, id="elements of several types"),
    ],
)
def test_a_list_without_values_is_one_of_nothing(value: Any, expected: list[str] | None) -> None:
    schemas = {"a": {column.name: column.type for column in TABLES["a"].columns}}
    plan = bind_to_plan(default_kernel(), "SELECT * FROM a WHERE k = ANY($1)", schemas, [value])
    if expected is None:
        assert not isinstance(plan, BoundPlan)
    else:
        assert isinstance(plan, BoundPlan)
        assert texts(constrained(plan.root, TABLES).conditions["a"]) == expected
