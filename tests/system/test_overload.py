"""Statements queue at a member, fairly between connections, and are refused when too many wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import duckdb
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import DeadlineError, JobCancelledError, LimitExceededError, ProgrammingError

RUNNING_MAX, WAITING_MAX = 2, 30
ENDLESS = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.v + b.v + c.v = 7"
GROUPED = "SELECT v % 7, count(*) FROM numbers GROUP BY 1 ORDER BY 1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with secateur.start(
        members=1, runtime="embedded", max_running_statements=RUNNING_MAX, max_waiting_statements=WAITING_MAX
    ) as running:
        with running.connect() as conn:
            conn.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8")
            conn.table("numbers").load(duckdb.sql("SELECT range AS id, range AS v FROM range(150000)").to_arrow_table())
        yield running


class _Flood:
    """One connection that runs the same statement in many threads until it is closed."""

    def __init__(self, cluster: Cluster, sql: str, threads: int) -> None:
        self.refused: list[LimitExceededError] = []
        self.ended: list[secateur.Error] = []
        self.rounds = 0
        self._is_over = threading.Event()
        self._sql = sql
        self._conn = cluster.connect()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._conn.execute(self._sql).fetchall()
                self.rounds += 1
            except LimitExceededError as error:
                self.refused.append(error)
                self._is_over.wait(0.01)
            except secateur.Error as error:
                self.ended.append(error)
                return

    def __enter__(self) -> _Flood:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._conn.close()
        for thread in self._threads:
            thread.join(30)


def counts(conn: secateur.Connection) -> tuple[int, int, int]:
    row = conn.execute("SELECT running_statements, waiting_statements, refused_statements FROM secateur.members")
    running, waiting, refused = row.fetchone() or (0, 0, 0)
    return running, waiting, refused


def ids(conn: secateur.Connection, state: str) -> list[str]:
    sql = "SELECT id FROM secateur.statements WHERE state = ? AND statement NOT LIKE '%secateur%'"
    return [row[0] for row in conn.execute(sql, [state]).fetchall()]


def test_twenty_clients_are_served_while_one_floods(cluster: Cluster) -> None:
    """None of the others is refused, and each is answered after about as many statements as there are connections."""
    took: list[float] = []
    failed: list[secateur.Error] = []

    def work() -> None:
        with cluster.connect() as conn:
            for _ in range(3):
                started_s = time.monotonic()
                try:
                    assert len(conn.execute(GROUPED).fetchall()) == 7
                except secateur.Error as error:
                    failed.append(error)
                took.append(time.monotonic() - started_s)

    with _Flood(cluster, GROUPED, 80) as flood:
        eventually(lambda: bool(flood.refused), "the flood never fills the queue")
        clients = [threading.Thread(target=work) for _ in range(19)]
        before = flood.rounds
        for client in clients:
            client.start()
        for client in clients:
            client.join(120)
        assert not any(client.is_alive() for client in clients)
        during = flood.rounds - before
    assert not failed
    assert len(took) == 19 * 3
    # While the 19 wait, each turn of the flood is followed by one of each of them.
    assert during <= 3 * len(took), f"{during} statements of the flood ran beside {len(took)} of the others"
    error = flood.refused[0]
    assert error.retry_safe
    assert error.details["limit"] == "max_waiting_statements"
    assert "max_running_statements" in error.message


def test_the_numbers_are_bounded_and_shown(cluster: Cluster) -> None:
    with cluster.connect() as conn, _Flood(cluster, ENDLESS, 60) as flood:
        eventually(lambda: counts(conn)[:2] == (RUNNING_MAX, WAITING_MAX), "the queue is not full")
        eventually(lambda: counts(conn)[2] > 0, "nothing is refused")
        assert len(ids(conn, "running")) == RUNNING_MAX
        assert len(ids(conn, "waiting")) == WAITING_MAX
        assert not flood.ended
    with cluster.connect() as conn:
        eventually(lambda: counts(conn)[:2] == (0, 0), "statements of a connection that is closed run or wait")


def test_lookups_writes_and_short_statements_do_not_wait_for_long_ones(cluster: Cluster) -> None:
    with cluster.connect() as conn, _Flood(cluster, ENDLESS, 60):
        eventually(lambda: counts(conn)[1] == WAITING_MAX, "the queue is not full")
        for key in range(20):
            assert conn.execute("SELECT v FROM numbers WHERE id = ?", [key]).fetchall() == [(key,)]
            assert conn.execute("UPDATE numbers SET v = v WHERE id = ?", [key]).rowcount == 1
            assert conn.execute("SELECT median(v) FROM numbers WHERE id = ?", [key]).fetchall() == [(key,)]


ADDS_ONE = "UPDATE counters SET v = v + length(substr('a' || v, 1, 1))"
"""DuckDB computes it, in a thread, so that others come meanwhile."""


@pytest.mark.parametrize("partitions", [8, 1], ids=["several partitions", "one partition"])
@pytest.mark.smoke
def test_changes_queue_for_their_table_or_partition_and_are_refused_beyond_the_bound(
    cluster: Cluster, partitions: int
) -> None:
    """A connection has one at a time on its way, so here are more connections than may wait."""
    with cluster.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS counters")
        conn.execute(
            f"CREATE TABLE counters (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS {partitions}"
        )
        conn.table("counters").load(duckdb.sql("SELECT range AS id, 0 AS v FROM range(40)").to_arrow_table())
    is_over = threading.Event()
    made: list[int] = []
    refused: list[LimitExceededError] = []
    failed: list[secateur.Error] = []

    def work() -> None:
        with cluster.connect() as own:
            while not is_over.is_set():
                try:
                    made.append(own.execute(ADDS_ONE).rowcount)
                except LimitExceededError as error:
                    refused.append(error)
                except secateur.Error as error:
                    failed.append(error)

    clients = [threading.Thread(target=work) for _ in range(WAITING_MAX + 10)]
    for client in clients:
        client.start()
    try:
        eventually(lambda: bool(refused and made), "nothing is made, or nothing refused")
    finally:
        is_over.set()
        for client in clients:
            client.join(60)
    assert not any(client.is_alive() for client in clients)
    assert not failed
    assert set(made) == {40}
    error = refused[0]
    assert error.retry_safe
    assert error.details["limit"] == "max_waiting_statements"
    assert error.details["table"] == "counters"
    with cluster.connect() as conn:
        assert conn.execute("SELECT min(v), max(v) FROM counters").fetchall() == [(len(made), len(made))]


def test_a_waiting_statement_is_killed_and_cancelled_and_has_its_timeout(cluster: Cluster) -> None:
    with ExitStack() as stack:
        conn, other = stack.enter_context(cluster.connect()), stack.enter_context(cluster.connect())
        stack.enter_context(_Flood(cluster, ENDLESS, RUNNING_MAX))
        eventually(lambda: counts(other)[0] == RUNNING_MAX, "the endless statements do not run")
        cursor = conn.cursor()
        raised: list[secateur.Error] = []

        def run() -> None:
            try:
                cursor.execute(GROUPED)
            except secateur.Error as error:
                raised.append(error)

        def kill() -> None:
            (waiting,) = ids(other, "waiting")
            other.execute(f"KILL '{waiting}'")

        for end, said in ((kill, "KILL"), (cursor.cancel, r"cursor.cancel\(\)"), (conn.interrupt, "interrupt")):
            thread = threading.Thread(target=run)
            thread.start()
            eventually(lambda: len(ids(other, "waiting")) == 1, "the statement does not wait")
            end()
            thread.join(20)
            assert not thread.is_alive()
            with pytest.raises(JobCancelledError, match=said):
                raise raised.pop()
            eventually(lambda: counts(other)[1] == 0, "a statement that was ended waits")
        with pytest.raises(DeadlineError):
            conn.execute(GROUPED, timeout=0.2)
        eventually(lambda: counts(other)[1] == 0, "a statement that was given up waits")
    with cluster.connect() as conn:
        assert len(conn.execute(GROUPED).fetchall()) == 7


def test_a_result_that_is_read_slowly_holds_no_place(cluster: Cluster) -> None:
    with ExitStack() as stack:
        for _ in range(RUNNING_MAX + 1):
            conn = stack.enter_context(cluster.connect())
            assert len(conn.execute("SELECT range AS n, repeat('x', 100) AS t FROM range(3000000)").fetchmany(5)) == 5
            assert len(conn.cursor().execute("SELECT id, v, v + 1 FROM numbers ORDER BY v").fetchmany(5)) == 5
        assert len(conn.cursor().execute(GROUPED).fetchall()) == 7


@pytest.mark.parametrize(
    "wrong", [{"max_running_statements": 0}, {"max_waiting_statements": -1}], ids=["running", "waiting"]
)
def test_bounds_that_are_none_are_refused(wrong: dict[str, int]) -> None:
    (name,) = wrong
    with pytest.raises(ProgrammingError, match=f"{name}="):
        secateur.start(members=1, runtime="embedded", **wrong)  # type: ignore[arg-type]
