"""KILL ends a statement of another connection, wherever it works, and leaves its connection usable."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import duckdb
import pytest
from eventually import eventually
from test_statement_timeout import STATEMENTS, work

import secateur
from secateur.cluster import Cluster
from secateur.errors import DeadlineError, Error, JobCancelledError, ParameterError, ProgrammingError, SqlSyntaxError

PLANNED_ONLY = "insert values"
"""The planner evaluates VALUES, so nothing runs on a member."""
KILLED = [case for case in STATEMENTS if case.id != PLANNED_ONLY]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as running:
        with running.connect() as conn:
            conn.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 12")
            conn.table("numbers").load(duckdb.sql("SELECT range AS id, range AS v FROM range(20000)").to_arrow_table())
        yield running


def running_ids(conn: secateur.Connection) -> list[str]:
    rows = conn.execute(
        "SELECT id FROM secateur.statements WHERE state = 'running' AND statement NOT LIKE '%secateur.statements%'"
    ).fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize("sql", KILLED)
def test_a_killed_statement_says_so_and_ends_on_every_member(cluster: Cluster, sql: str) -> None:
    raised: list[Error] = []
    with cluster.connect() as conn, cluster.connect() as other:

        def run() -> None:
            try:
                conn.execute(sql).fetchall()
            except Error as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        eventually(lambda: bool(running_ids(other)), "the statement does not run")
        # A change runs on several members under the same text; where one part is killed, the others end as well.
        other.execute(f"KILL '{running_ids(other)[0]}'")
        thread.join(30)
        assert not thread.is_alive()
        (error,) = raised
        assert isinstance(error, JobCancelledError)
        assert "KILL '" in error.message
        eventually(lambda: work(cluster) == 0, "a member still works on a statement that was killed")
        assert conn.execute("SELECT count(*), sum(v), min(id) FROM numbers").fetchall() == [(20000, 199990000, 0)], (
            "nothing was changed"
        )
        assert other.execute("SELECT count(*) FROM secateur.statements WHERE error LIKE '%KILL%'").fetchone() != (0,)


def test_a_result_that_is_being_read_ends_with_its_statement(cluster: Cluster) -> None:
    with cluster.connect() as conn, cluster.connect() as other:
        cursor = conn.execute("SELECT range AS n, repeat('x', 100) AS text FROM range(3000000)")
        assert len(cursor.fetchmany(10)) == 10
        (statement_id,) = running_ids(other)
        other.execute(f"KILL '{statement_id}'")
        with pytest.raises(JobCancelledError, match=f"KILL '{statement_id}'"):
            cursor.fetchall()
        eventually(lambda: work(cluster) == 0, "the member keeps the result")
        assert conn.execute("SELECT count(*) FROM numbers").fetchone() == (20000,)


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("KILL 'm1:999999'", ProgrammingError, "no statement 'm1:999999' runs on member m1"),
        ("KILL 'm1:1'", ProgrammingError, "it has ended"),
        ("KILL 'nobody:1'", ProgrammingError, "there is no member 'nobody'.*there are m1, m2, m3"),
        ("KILL 'seventeen'", ProgrammingError, "is not the id of a statement"),
        ("KILL 17", SqlSyntaxError, "the id of a statement, as 'text'"),
        ("KILL 'm1:1' now", SqlSyntaxError, "now"),
    ],
)
def test_what_does_not_run_is_not_killed(cluster: Cluster, sql: str, kind: type[Error], said: str) -> None:
    with cluster.connect() as conn:
        for _ in range(6):  # so that each member has had a statement
            conn.execute("SELECT count(*) FROM numbers").fetchall()
        with pytest.raises(kind, match=said):
            conn.execute(sql)


def test_a_call_has_a_timeout_of_its_own(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute("SET statement_timeout = '1h'")
        with pytest.raises(DeadlineError, match=r"longer than its timeout=0\.3 seconds"):
            conn.execute("SELECT count(*) FROM range(1000000000000)", timeout=0.3)
        eventually(lambda: work(cluster) == 0, "a member still works on a statement that was given up")
        assert conn.execute("SELECT 1", timeout=30).fetchone() == (1,)
        for wrong in (0, -1, float("nan"), float("inf"), True, "5s"):
            with pytest.raises(ParameterError, match="a positive number of seconds"):
                conn.execute("SELECT 1", timeout=wrong)  # type: ignore[arg-type]
