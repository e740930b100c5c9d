"""KILL ends a statement of another connection, wherever it works, and leaves its connection usable."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import duckdb
import pytest
from eventually import eventually
from test_slow_functions import begun, release, slow
from test_statement_timeout import HEAVY, STATEMENTS, work

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.errors import (
    DeadlineError,
    Error,
    JobCancelledError,
    ParameterError,
    ProgrammingError,
    SqlSyntaxError,
    UnknownJobError,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as running:
        with running.connect() as conn:
            conn.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 12")
            conn.table("numbers").load(duckdb.sql("SELECT range AS id, range AS v FROM range(20000)").to_arrow_table())
        yield running


def running_ids(conn: secateur.Connection) -> list[str]:
    rows = conn.execute(
        "SELECT id FROM secateur.statements WHERE state NOT IN ('done', 'failed')"
        " AND statement NOT LIKE '%secateur.statements%'"
    ).fetchall()
    return [row[0] for row in rows]


def killed_one(conn: secateur.Connection) -> str | None:
    """Kill the statement that runs, by its id, which is returned; None for none, or if it went elsewhere meanwhile."""
    for statement_id in running_ids(conn)[:1]:
        with suppress(ProgrammingError):
            conn.execute(f"KILL '{statement_id}'")
            return statement_id
    return None


def in_thread(call: Callable[[], object]) -> Callable[[], None]:
    """Begin a call; what is returned waits for its end and raises its error."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)

    def end() -> None:
        future.result(30)

    return end


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_killed_statement_says_so_and_ends_on_every_member(cluster: Cluster, sql: str) -> None:
    raised: list[Error] = []
    killed: list[str] = []
    with cluster.connect() as conn, cluster.connect() as other:

        def run() -> None:
            try:
                conn.execute(sql).fetchall()
            except Error as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        # A change runs on several members under the same text; where one part is killed, the others end as well.
        eventually(lambda: killed.extend(filter(None, [killed_one(other)])) or killed, "the statement does not run")
        thread.join(30)
        assert not thread.is_alive()
        (error,) = raised
        assert isinstance(error, JobCancelledError)
        assert "KILL '" in error.message
        eventually(lambda: work(cluster) == 0, "a member still works on a statement that was killed")
        assert conn.execute("SELECT count(*), sum(v), min(id) FROM numbers").fetchall() == [(20000, 199990000, 0)], (
            "nothing was changed"
        )
        at_member = not killed[0].startswith("controller:")  # the controller lists none that has ended
        listed = other.execute("SELECT count(*) FROM secateur.statements WHERE error LIKE '%KILL%'").fetchone()
        assert listed != (0,) or not at_member


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
        ("KILL 'controller:999999'", ProgrammingError, "there was none of this number"),
        ("KILL JOB 17", SqlSyntaxError, "the id of a job, as 'text'"),
    ],
)
def test_what_does_not_run_is_not_killed(cluster: Cluster, sql: str, kind: type[Error], said: str) -> None:
    with cluster.connect() as conn:
        for _ in range(6):  # so that each member has had a statement
            conn.execute("SELECT count(*) FROM numbers").fetchall()
        with pytest.raises(kind, match=said):
            conn.execute(sql)


@pytest.mark.slow
def test_a_statement_that_is_being_planned_is_listed_and_killed(cluster: Cluster) -> None:
    """The planner evaluates the rows of an INSERT, which takes seconds for so many expressions."""
    rows = ", ".join(f"({-1 - number}, {number} + 1 * 2)" for number in range(30_000))
    with cluster.connect() as conn, cluster.connect() as other:
        raised = in_thread(lambda: conn.execute(f"INSERT INTO numbers VALUES {rows}"))
        planned = "SELECT id FROM secateur.statements WHERE member = 'controller' AND statement LIKE 'INSERT%'"
        eventually(lambda: other.execute(planned).fetchone() is not None, "the statement is not planned")
        ((statement_id,),) = other.execute(f"{planned} AND state = 'planning'").fetchall()
        other.execute(f"KILL '{statement_id}'")
        with pytest.raises(JobCancelledError, match=f"KILL '{statement_id}' was executed"):
            raised()
        assert other.execute(planned).fetchall() == []
        with pytest.raises(ProgrammingError, match="it has ended"):
            other.execute(f"KILL '{statement_id}'")
        assert conn.execute("SELECT v FROM numbers WHERE id = 3").fetchall() == [(3,)]


def test_a_load_that_waits_for_its_table_is_killed_and_nothing_of_it_is_there(cluster: Cluster) -> None:
    with cluster.connect() as conn, cluster.connect() as loading, cluster.connect() as other:
        rows = duckdb.sql("SELECT -1 - range AS id, range AS v FROM range(5000)").to_arrow_table()
        changed = in_thread(lambda: conn.execute(f"UPDATE numbers SET v = ({HEAVY})"))
        of_change = "SELECT id FROM secateur.statements WHERE state = 'publishing' AND statement LIKE 'UPDATE%'"
        on_members = "SELECT id FROM secateur.statements WHERE state = 'running' AND statement LIKE 'UPDATE%'"
        eventually(lambda: other.execute(on_members).fetchone() is not None, "the change does not hold the table")
        loaded = in_thread(lambda: loading.table("numbers").load(rows))
        of_load = "SELECT id FROM secateur.statements WHERE state = 'publishing' AND statement LIKE 'load%'"
        eventually(lambda: other.execute(of_load).fetchone() is not None, "the load does not wait for its table")
        ((load_id,),) = other.execute(of_load).fetchall()
        other.execute(f"KILL '{load_id}'")
        with pytest.raises(JobCancelledError, match="nothing was changed"):
            loaded()
        ((change_id,),) = other.execute(of_change).fetchall()
        other.execute(f"KILL '{change_id}'")
        with pytest.raises(JobCancelledError, match=f"KILL '{change_id}'"):
            changed()
        eventually(lambda: work(cluster) == 0, "a member still works on what was killed")
        assert conn.execute("SELECT count(*), sum(v), min(id) FROM numbers").fetchall() == [(20000, 199990000, 0)]
        assert loading.table("numbers").load(rows.slice(0, 10)) == 10
        assert conn.execute("DELETE FROM numbers WHERE id < 0").rowcount == 10


def test_a_job_is_killed_by_its_name(cluster: Cluster) -> None:
    with cluster.connect() as conn, cluster.connect() as other:
        begun.clear()
        release.clear()
        pipeline = secateur.Pipeline().read_table("numbers").map(slow).write_to(collect())
        job = pipeline.submit(conn, secateur.JobConfig(name="slow"))
        try:
            assert begun.wait(20)
            other.execute("KILL JOB 'slow'")
        finally:
            release.set()
        with pytest.raises(JobCancelledError):
            job.result(timeout_s=20)
        with pytest.raises(UnknownJobError):
            other.execute("KILL JOB 'nobody'")


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
