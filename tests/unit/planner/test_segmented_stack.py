"""Statements that are nested more deeply than the frames of one thread, and what a segmented stack hands on."""

from __future__ import annotations

import contextvars
import json
import sys
import threading

import pytest

import secateur
from secateur.errors import LimitExceededError
from secateur.planner import FRAMES_MAX, on_segmented_stack, with_deep_stack
from secateur.planner.text import read_json

NAME = contextvars.ContextVar("NAME", default="")


@on_segmented_stack
def depth(left: int) -> tuple[int, str]:
    if not left:
        return 0, NAME.get()
    below, name = depth(left - 1)
    return below + 1, name


@on_segmented_stack
def fail(left: int) -> int:
    if not left:
        raise ZeroDivisionError("at the bottom")
    return fail(left - 1) + 1


def test_a_function_goes_deeper_than_the_interpreter_lets_one_thread() -> None:
    limit = sys.getrecursionlimit()
    NAME.set("handed on")
    assert with_deep_stack(lambda: depth(limit * 3)) == (limit * 3, "handed on")
    assert sys.getrecursionlimit() == limit


def test_an_error_comes_up_through_all_segments() -> None:
    with pytest.raises(ZeroDivisionError, match="at the bottom"):
        with_deep_stack(lambda: fail(sys.getrecursionlimit() * 3))


def test_too_many_frames_are_refused_and_leave_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(RecursionError, match=str(FRAMES_MAX)):
        with_deep_stack(lambda: depth(FRAMES_MAX))
    assert threading.active_count() == before
    with pytest.raises(RecursionError):
        depth(sys.getrecursionlimit() * 3)  # nobody asked for a deep stack


@pytest.mark.parametrize("levels", [1, 2000])
def test_json_is_read_however_deep(levels: int) -> None:
    inside = '{"x": "é\\"", "a": null}'
    read = with_deep_stack(lambda: read_json('{"b": [1, ' * levels + inside + ', 2.5], "c": true}' * levels))
    for _ in range(levels):
        assert read["c"] is True
        first, read, last = read["b"]
        assert (first, last) == (1, 2.5)
    assert read == json.loads(inside)


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
