"""Statements that have no end, or ask for more than anybody has: nobody else waits for them, and they end with the
client that asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from asked_members import executions
from eventually import eventually
from together import together

import secateur
from secateur.cluster import Cluster
from secateur.errors import DataError, LimitExceededError, OperationalError

RECURSION = "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
COUNT = "SELECT count(*) FROM range(1000000000000)"

ENDLESS = [
    pytest.param(RECURSION, id="recursion"),
    pytest.param(COUNT, id="range"),
    pytest.param(f"SELECT v FROM kept WHERE id = ({COUNT})", id="where"),
    pytest.param(f"VALUES (1), (({COUNT}))", id="values"),
    pytest.param(f"SELECT id FROM kept LIMIT ({COUNT})", id="limit"),
    pytest.param(f"CREATE TABLE made PRIMARY KEY (n) AS SELECT * FROM ({COUNT}) AS c(n)", id="create table as"),
    pytest.param(f"INSERT INTO kept VALUES (77, ({COUNT}))", id="insert"),
    pytest.param("INSERT INTO kept VALUES (78, sleep_ms(100000000))", id="insert a sleep"),
    pytest.param(f"SELECT count(*) FROM kept WHERE id = 1 AND id = 2 UNION ALL {COUNT}", id="over no rows"),
    pytest.param("SELECT v FROM kept WHERE id = 1 AND sleep_ms(100000000) IS NULL", id="sleep"),
]


@pytest.fixture(scope="module", params=["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with secateur.start(members=2, runtime=request.param, member_silence_s=10.0) as running:
        with running.connect() as conn:
            conn.execute("CREATE TABLE kept (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 4")
            conn.execute("INSERT INTO kept VALUES (1, 10), (2, 20)")
        yield running


@pytest.mark.parametrize("sql", ENDLESS)
@pytest.mark.sampled(one_in=4)
def test_others_go_on_beside_an_endless_statement(cluster: Cluster, sql: str) -> None:
    failed: list[Exception] = []

    def run(conn: secateur.Connection) -> None:
        try:
            conn.execute(sql).fetchall()
        except secateur.Error as error:
            failed.append(error)

    conn = cluster.connect()
    endless = threading.Thread(target=run, args=(conn,))
    endless.start()
    try:
        with cluster.connect() as other:
            started_s = time.monotonic()
            for number in range(5):
                assert other.execute(f"SELECT v + {number} FROM kept WHERE id = 1").fetchall() == [(10 + number,)]
            other.explain(f"SELECT {time.monotonic_ns()}")
            other.execute("CREATE TABLE beside (id BIGINT PRIMARY KEY)")
            other.execute("DROP TABLE beside")
            assert time.monotonic() - started_s < 40
        assert endless.is_alive() or failed
    finally:
        conn.close()
        endless.join(60)
    assert not endless.is_alive(), "closing the connection ends the call"
    assert failed
    eventually(lambda: executions(cluster) == 0, "the members still work for a client that is gone")


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT length(repeat('x', 3000000000))", id="select"),
        pytest.param("SELECT v FROM kept WHERE id = length(repeat('x', 3000000000))", id="where"),
        pytest.param("VALUES (repeat('x', 3000000000))", id="values"),
        pytest.param("INSERT INTO kept VALUES (5, length(repeat('x', 3000000000)))", id="insert"),
        pytest.param("SELECT v FROM kept LIMIT length(repeat('x', 3000000000))", id="limit"),
        pytest.param(
            "CREATE TABLE made PRIMARY KEY (n) AS SELECT length(repeat('x', 3000000000)) AS n", id="create table as"
        ),
        pytest.param("CREATE VIEW made AS SELECT lpad('x', 2000000000, 'y') AS n", id="view"),
        pytest.param("SELECT len(range(300000000))", id="list"),
        pytest.param("SELECT printf('%1000000000d', 1)", id="printf"),
    ],
)
def test_a_constant_of_gigabytes_is_refused_before_it_is_made(cluster: Cluster, sql: str) -> None:
    with cluster.connect() as conn, pytest.raises(LimitExceededError, match="pass its size as a parameter"):
        conn.execute(sql)


def test_with_a_parameter_for_its_size_the_member_makes_it(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        assert conn.execute("SELECT length(repeat('x', ?))", [100_000_000]).fetchall() == [(100_000_000,)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("SELECT v FROM kept WHERE id = length('ab')", [(20,)], id="bounded"),
        pytest.param("SELECT v FROM kept WHERE id = length(repeat('x', 2))", [(20,)], id="may grow"),
        pytest.param("SELECT v FROM kept WHERE id = list_sum([1, 1])", [(20,)], id="macro"),
    ],
)
def test_a_constant_that_planning_does_not_evaluate_is_evaluated_by_members(
    cluster: Cluster, sql: str, expected: list[Any]
) -> None:
    with cluster.connect() as conn:
        assert conn.execute(sql).fetchall() == expected


def test_the_reason_why_such_a_constant_does_not_prune(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        (scan,) = conn.explain("SELECT v FROM kept WHERE id = list_sum([1, 1])").to_dict()["pruning"]["scans"]
    assert scan["partitions"] is None or len(scan["partitions"]) == 4
    assert "whose value is not known while planning" in scan["reason"]


def test_values_that_members_compute_are_inserted(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE computed (id BIGINT PRIMARY KEY, s VARCHAR)")
        assert (
            conn.execute("INSERT INTO computed VALUES (1, repeat('ab', 3)), (?, format('{}', ?))", [2, 7]).rowcount == 2
        )
        assert conn.execute("SELECT * FROM computed ORDER BY id").fetchall() == [(1, "ababab"), (2, "7")]
        with pytest.raises(DataError):
            conn.execute("INSERT INTO computed VALUES (3, CAST(repeat('x', 3) AS INTEGER))")


def test_a_cluster_stops_within_seconds_whatever_runs() -> None:
    """Three clusters at once: a client that has seen one member end before the other tries again for ten seconds, and
    then for ten more.
    """
    endless = (RECURSION, COUNT, f"INSERT INTO kept VALUES (77, ({COUNT}))")
    together(*(partial(check_that_a_cluster_stops, sql) for sql in endless))


def check_that_a_cluster_stops(sql: str) -> None:
    failed: list[Exception] = []

    def run(conn: secateur.Connection) -> None:
        try:
            conn.execute(sql).fetchall()
        except secateur.Error as error:
            failed.append(error)

    started = secateur.start(members=2, runtime="embedded")
    try:
        conn = started.connect()
        conn.execute("CREATE TABLE kept (id BIGINT PRIMARY KEY, v BIGINT)")
        endless = threading.Thread(target=run, args=(conn,), daemon=True)
        endless.start()
        eventually(lambda: executions(started) > 0, f"{sql} never began")
    finally:
        stopping = threading.Thread(target=started.stop, daemon=True)
        stopping.start()
        stopping.join(20)
    assert not stopping.is_alive(), sql
    endless.join(60)
    assert not endless.is_alive(), sql
    assert isinstance(failed[0], OperationalError), sql


@pytest.mark.parametrize(
    ("condition", "params"),
    [
        pytest.param("levenshtein(repeat(?, 200), repeat(?, 200))", ["a" * 4000, "b" * 4000], id="parameters"),
        pytest.param("levenshtein(repeat('a', 800000), repeat('b', 800000))", [], id="constants"),
        pytest.param("damerau_levenshtein(?, ?)", ["a" * 4000, "b" * 4000], id="memory"),
    ],
)
def test_an_expression_that_takes_hours_is_not_evaluated_to_find_partitions(
    cluster: Cluster, condition: str, params: list[str]
) -> None:
    """DuckDB cannot be interrupted within a row, so neither the client nor the planner evaluates it."""
    with cluster.connect() as conn:
        explained = conn.explain(f"SELECT v FROM kept WHERE id = {condition}", params).to_dict()
        (scan,) = explained["pruning"]["scans"]
        assert scan["partitions"] is None or len(scan["partitions"]) == 4
        assert conn.execute("SELECT v FROM kept WHERE id = length(repeat(?, 2))", ["x"]).fetchall() == [(20,)]
