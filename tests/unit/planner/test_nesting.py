"""Statements that are nested as deeply as a thread has frames, and more deeply."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest

import secateur
from secateur.errors import LimitExceededError

NESTED = {
    "parentheses": lambda n: "SELECT " + "(" * n + "x" + ")" * n + " FROM deep",
    "functions": lambda n: "SELECT " + "abs(" * n + "x" + ")" * n + " FROM deep",
    "CASE": lambda n: "SELECT " + "CASE WHEN x > 0 THEN " * n + "x" + " END" * n + " FROM deep",
    "subqueries": lambda n: "SELECT * FROM " + "(SELECT x FROM " * n + "deep" + ")" * n,
    "AND in OR": lambda n: "SELECT x FROM deep WHERE " + "(id = 1 OR (x = 2 AND " * n + "id = 1" + "))" * n,
    "a chain of OR": lambda n: "SELECT x FROM deep WHERE id = 1 OR " + " OR ".join(f"x = {i} + id" for i in range(n)),
    "a chain of +": lambda n: "SELECT " + " + ".join(["0"] * n) + " + x FROM deep",
}


@pytest.mark.parametrize("kind", NESTED)
def test_the_recursion_limit_of_the_users_process_stays_as_it_is(conn: secateur.Connection, kind: str) -> None:
    limit = sys.getrecursionlimit()
    assert conn.execute(NESTED[kind](150)).fetchall() == [(7,)]
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("kind", NESTED)
def test_a_statement_is_answered_or_refused_however_deeply_it_is_nested(conn: secateur.Connection, kind: str) -> None:
    for levels in range(200, 500, 20):
        if levels > 230 and kind != "a chain of OR":
            with suppress(LimitExceededError):
                assert conn.execute(NESTED[kind](levels)).fetchall() == [(7,)]
        else:
            assert conn.execute(NESTED[kind](levels)).fetchall() == [(7,)]


def test_the_recursion_limit_stays_as_it_is_where_a_statement_is_nested_too_deeply(conn: secateur.Connection) -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(LimitExceededError, match="nested too deeply"):
        conn.execute("SELECT " + "(" * 5000 + "1" + ")" * 5000)
    assert sys.getrecursionlimit() == limit


@pytest.fixture(scope="module")
def conn():  # type: ignore[no-untyped-def]
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute(
            "CREATE TABLE deep (id BIGINT, x BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 2"
        )
        connection.execute("INSERT INTO deep VALUES (1, 7)")
        yield connection
