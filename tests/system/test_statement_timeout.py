"""Statements take as long as they take, up to what their connection allows; when they end early, their work ends
everywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from asked_members import ask_members, executions
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import DeadlineError, InterfaceError, JobCancelledError, ProgrammingError
from secateur.protocol import GetMemberStats, GetStatements, MemberStats

ENDLESS = "SELECT count(*) FROM range(1000000000000)"
HEAVY = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.v + b.v + c.v = 7"

STATEMENTS = [
    pytest.param(ENDLESS, id="without a table"),
    pytest.param(HEAVY, id="distributed"),
    pytest.param(
        "SELECT a.id, b.id FROM numbers a, numbers b, numbers c ORDER BY a.v + b.v + c.v LIMIT 3", id="sorted"
    ),
    pytest.param(f"SELECT v FROM numbers WHERE id = ({HEAVY})", id="in steps"),
    pytest.param(f"CREATE TABLE made PRIMARY KEY (n) AS SELECT * FROM ({HEAVY}) AS c(n)", id="create table as"),
    pytest.param(f"INSERT INTO numbers SELECT -1, * FROM ({HEAVY}) AS c(n)", id="insert select"),
    pytest.param(f"INSERT INTO numbers VALUES (-1, ({ENDLESS}))", id="insert values"),
    pytest.param(f"UPDATE numbers SET v = ({ENDLESS}) WHERE id = 1", id="update of one key"),
    pytest.param(f"UPDATE numbers SET v = ({HEAVY})", id="update of all"),
    pytest.param(f"DELETE FROM numbers WHERE v > ({HEAVY})", id="delete"),
    pytest.param(
        f"MERGE INTO numbers USING (SELECT 1::BIGINT AS id, ({HEAVY}) AS n) AS m USING (id) WHEN MATCHED THEN UPDATE"
        " SET v = m.n",
        id="merge",
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as running:
        with running.connect() as conn:
            conn.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 12")
            conn.table("numbers").load(duckdb.sql("SELECT range AS id, range AS v FROM range(20000)").to_arrow_table())
        yield running


def stats(cluster: Cluster) -> dict[str, MemberStats]:
    return ask_members(cluster, GetMemberStats())


def work(cluster: Cluster) -> int:
    """What members are busy with."""
    found = executions(cluster)
    logs = ask_members(cluster, GetStatements()).values()
    return found + sum(statement.state == "running" for log in logs for statement in log.statements)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_past_its_timeout_says_so_and_ends_on_every_member(cluster: Cluster, sql: str) -> None:
    with cluster.connect() as conn:
        conn.execute("SET statement_timeout = '400ms'")
        with pytest.raises(DeadlineError, match=r"longer than statement_timeout = '400ms'"):
            conn.execute(sql).fetchall()
        eventually(lambda: work(cluster) == 0, "a member still works on a statement that was given up")
        conn.execute("SET statement_timeout = 0")
        assert conn.execute("SELECT count(*), sum(v), min(id) FROM numbers").fetchall() == [(20000, 199990000, 0)], (
            "nothing was changed"
        )
        assert conn.execute("UPDATE numbers SET v = v WHERE id = 1").rowcount == 1, "the table takes writes"
        assert conn.execute("UPDATE numbers SET v = v WHERE id < 100").rowcount == 100


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize(
    "end", ["cancel", *(pytest.param(end, marks=pytest.mark.sampled(one_in=3)) for end in ("interrupt", "close"))]
)
def test_a_statement_that_is_cancelled_ends_on_every_member(cluster: Cluster, sql: str, end: str) -> None:
    failed: list[BaseException] = []
    with cluster.connect() as conn:
        cursor = conn.cursor()

        def run() -> None:
            try:
                cursor.execute(sql).fetchall()
            except secateur.Error as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        eventually(lambda: work(cluster) > 0, "the statement never began")
        {"cancel": cursor.cancel, "interrupt": conn.interrupt, "close": conn.close}[end]()
        thread.join(20)
        assert not thread.is_alive()
        assert isinstance(failed[0], InterfaceError if end == "close" else JobCancelledError), failed
        eventually(lambda: work(cluster) == 0, "a member still works on a statement that was cancelled")
        if end != "close":
            assert cursor.execute("SELECT v FROM numbers WHERE id = 3").fetchall() == [(3,)]
    with cluster.connect() as conn:
        assert conn.execute("SELECT count(*), sum(v), min(id) FROM numbers").fetchall() == [(20000, 199990000, 0)], (
            "nothing was changed"
        )
        assert conn.execute("UPDATE numbers SET v = v WHERE id < 100").rowcount == 100, "the table takes writes"


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(
            "SELECT v FROM numbers WHERE id = (SELECT v FROM numbers WHERE id = {here})"
            " OR id = (SELECT count(*) FROM numbers n, range(1000000000000) r WHERE n.id = {there})",
            id="a step",
        ),
        pytest.param(
            "SELECT count(*) FROM numbers n, range(1000000000000) r"
            " WHERE n.id = (SELECT v + {there} - {here} FROM numbers WHERE id = {here})",
            id="the rest",
        ),
    ],
)
def test_a_part_that_another_member_runs_ends_with_its_statement(cluster: Cluster, sql: str) -> None:
    with cluster.connect() as conn:
        numbers = conn.table("numbers")
        owners = [numbers.owner_of(numbers.partition_of({"id": key})) for key in range(100)]
        there = next(key for key in range(1, 100) if owners[key] != owners[0])
        failed: list[BaseException] = []

        def run() -> None:
            try:
                conn.execute(sql.format(here=0, there=there)).fetchall()
            except secateur.Error as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        eventually(lambda: stats(cluster)[owners[there]].open_results > 0, "the part never began")
        conn.interrupt()
        thread.join(20)
        assert isinstance(failed[0], JobCancelledError), failed
        eventually(lambda: work(cluster) == 0, "a member still works on a statement that was cancelled")


@pytest.mark.smoke
def test_a_result_that_is_being_read_is_cancelled(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        cursor = conn.execute("SELECT a.id, b.id AS other FROM numbers a, numbers b")
        cursor.fetchmany(10)
        cursor.cancel()
        with pytest.raises(JobCancelledError, match=r"cursor.cancel\(\) was called"):
            cursor.fetchall()
        eventually(lambda: work(cluster) == 0, "a member still makes rows")
        assert cursor.execute("SELECT 1 + 1").fetchall() == [(2,)]


def test_cancelling_when_nothing_runs_does_nothing(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        cursor = conn.cursor()
        cursor.cancel()
        conn.interrupt()
        assert cursor.execute("SELECT v FROM numbers WHERE id = 3").fetchall() == [(3,)]
        cursor.cancel()
        conn.interrupt()
        assert cursor.execute("SELECT v FROM numbers WHERE id = 4").fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("'5s'", 5000), ("'1.5 min'", 90_000), ("'20ms'", 20), ("'1h'", 3_600_000), ("0", 0), ("'0'", 0), ("'0s'", 0)],
)
def test_times(cluster: Cluster, text: str, expected: int) -> None:
    with cluster.connect() as conn:
        conn.execute(f"SET statement_timeout = {text}")
        assert conn._session.statement_timeout.milliseconds == expected


def test_a_timeout_that_nothing_meets_can_be_lifted(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        for _ in range(20):
            conn.execute("SET statement_timeout = '1ms'")
            with pytest.raises(DeadlineError):
                conn.execute("SELECT count(*) FROM numbers a JOIN numbers b ON a.id % 7 = b.id % 7")
            conn.execute("set statement_timeout = 0")
        assert conn.execute("SELECT v FROM numbers WHERE id = 4").fetchall() == [(4,)]


@pytest.mark.parametrize("text", ["5", "'5'", "'five'", "'-1s'", "'5 days'", "on", "'99999999999999999999h'"])
def test_what_is_no_time(cluster: Cluster, text: str) -> None:
    with (
        cluster.connect() as conn,
        pytest.raises(ProgrammingError, match=r"statement_timeout is a time|end of the statement"),
    ):
        conn.execute(f"SET statement_timeout = {text}")


def test_a_statement_with_a_timeout_has_a_plan_like_any_other(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        sql: str = "SELECT v FROM numbers WHERE id = ?"
        conn.execute(sql, [1])
        conn.execute("SET statement_timeout = '30s'")
        cursor: Any = conn.execute(sql, [2])
        assert cursor.stats.plan_cached
