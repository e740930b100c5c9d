"""Statements whose answer hangs on a fine point of the dialect: each was wrong once, here or elsewhere, or is one step
beside one that was.

Every statement is planned, pruned, executed whole and in parts, and compared with DuckDB over all rows.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from worlds import World, check


def kept(world: World, sql: str, params: Any = ()) -> list[int]:
    """How many partitions each scan keeps."""
    statement = world.prepare(sql, params)
    return [len(ids) for ids in world.kept(statement.plan, statement.params or ())]


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("b = 'A' COLLATE NOCASE", id="a literal"),
        pytest.param("b IN ('A' COLLATE NOCASE, 'x')", id="one element of a list"),
        pytest.param("b BETWEEN 'A' COLLATE NOCASE AND 'A'", id="one bound"),
        pytest.param("b = lower('A' COLLATE NOCASE)", id="through a function"),
        pytest.param("b = '' || ('A' COLLATE NOCASE)", id="through concatenation"),
        pytest.param("b = (SELECT 'A' COLLATE NOCASE)", id="through a subquery"),
        pytest.param("b COLLATE NOCASE = 'A'", id="on the column"),
        pytest.param("b COLLATE NOACCENT = 'e'", id="accents"),
    ],
)
def test_a_collation_on_either_side_of_a_comparison_prunes_nothing(world: World, where: str) -> None:
    sql = f"SELECT a, b FROM t WHERE {where}"
    assert check(world, sql, (), random.Random(1))
    assert kept(world, sql) == [35]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "t JOIN u USING (a) WHERE a = '1'", id="the right side is of another type and matches '01' as well"
        ),
        pytest.param("u JOIN t USING (a) WHERE a = '1'", id="the left side is the text"),
        pytest.param("t JOIN t y USING (a, b) WHERE a = 1 AND b = 'a'", id="equal types"),
        pytest.param("t x JOIN t y USING (a) JOIN t z USING (a) WHERE a = 1", id="three of equal types"),
        pytest.param("t z, t x JOIN t y USING (a) WHERE a = 1", id="a bystander in front has the column too"),
        pytest.param("t x JOIN t y USING (a), t z WHERE a = 1", id="a bystander behind has the column too"),
        pytest.param("t x JOIN t y USING (a) CROSS JOIN t z WHERE a = 1", id="a crossed bystander"),
        pytest.param("t x JOIN t y USING (a) JOIN t z ON TRUE WHERE a = 1", id="a joined bystander"),
        pytest.param("t JOIN (u JOIN t y USING (a)) ON t.b = u.b WHERE a = 1", id="USING in parentheses"),
        pytest.param("t JOIN (u NATURAL JOIN t y) ON t.b = u.b WHERE a = 1", id="NATURAL in parentheses"),
        pytest.param("t JOIN (SELECT '01' AS a) s USING (a) WHERE a = 1", id="beside a derived table"),
        pytest.param("t x LEFT JOIN t y USING (a, b) WHERE a = 1 AND b = 'a'", id="an outer join"),
        pytest.param("t x FULL JOIN t y USING (a, b) WHERE a = 1 AND b = 'a'", id="a full join"),
    ],
)
def test_a_column_merged_by_using_is_the_scans_own_only_where_it_certainly_is(world: World, source: str) -> None:
    assert check(world, f"SELECT count(*) FROM {source}", (), random.Random(1))


def test_a_column_merged_by_using_of_equal_types_prunes_both_sides(world: World) -> None:
    assert kept(world, "SELECT count(*) FROM t JOIN t y USING (a, b) WHERE a = 1 AND b = 'a'") == [1, 1]


@pytest.mark.parametrize(
    "sql", ["SELECT count(*) FROM t WHERE a IN ($1,$2)", "SELECT count(*) FROM t WHERE a IN ($2,$1) AND b <> '$1,$2'"]
)
def test_numbered_parameters_without_a_space_between(world: World, sql: str) -> None:
    assert check(world, sql, (1, 2), random.Random(1))
    assert kept(world, sql, (1, 2)) == [10]


@pytest.mark.parametrize(
    ("where", "params"),
    [
        ("a BETWEEN 99999999999999999999 AND 99999999999999999999", ()),
        ("a BETWEEN $1 AND $1", (2**70,)),
        ("a >= $1 AND a <= $1", (2**70,)),
        ("a - 1 BETWEEN $1 AND $1", (2**63,)),
    ],
)
def test_two_bounds_that_meet_beyond_the_type_name_no_key(world: World, where: str, params: tuple[int, ...]) -> None:
    """The value that they meet at has no encoding to hash: it was an error."""
    sql = f"SELECT count(*) FROM t WHERE {where}"
    assert check(world, sql, params, random.Random(1))
    assert kept(world, sql, params) == [0]


@pytest.mark.parametrize("bound", [-(2**63), 2**62])
def test_bounds_that_meet_beyond_a_decimal_name_no_key(world: World, bound: int) -> None:
    sql = "SELECT count(*) FROM mixed WHERE n BETWEEN $1 AND $2"
    assert check(world, sql, (bound, bound), random.Random(1))
