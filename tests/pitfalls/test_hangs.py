"""Hangs and unclear errors of real systems."""

from __future__ import annotations

import pyarrow as pa
import pytest

import secateur
from secateur.connectors import collect
from secateur.dag import DAG, Processor, between, from_
from secateur.errors import DagError, DeadlineError, Error, JobCancelledError, LimitExceededError


def test_a_member_that_left_is_named_and_nothing_hangs() -> None:
    """hazelcast #18538, #17849: a member left and the job hung, or the error did not name the member."""
    with secateur.start(members=2, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 0")
        conn.table("t").load(pa.table({"k": range(40)}))
        lost = next(member.id for member in cluster.members())
        cluster.kill_member(lost)
        with pytest.raises(Error, match=lost):
            conn.execute("SELECT count(*) FROM t").fetchall()


def test_a_client_that_knows_a_statement_sees_ranges_that_come_and_go(
    conn: secateur.Connection, table_name: str
) -> None:
    """Kudu's meta cache: a stale client entry for a dropped or added range lived for minutes."""
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY) PARTITION BY RANGE (k) (PARTITION 0 <= VALUES < 10)"
    )
    conn.table(table_name).load(pa.table({"k": range(10)}))
    statements = [
        f"SELECT count(*) FROM {table_name}",
        f"SELECT count(*) FROM {table_name} WHERE k >= 5",
        f"SELECT count(*) FROM {table_name} WHERE k = ?",
    ]
    counts = lambda: [conn.execute(sql, [15] if "?" in sql else []).fetchall()[0][0] for sql in statements]  # noqa: E731
    assert counts() == [10, 5, 0]
    conn.execute(f"ALTER TABLE {table_name} ADD PARTITION 10 <= VALUES < 20")
    conn.execute(f"INSERT INTO {table_name} VALUES (15), (16)")
    assert counts() == [12, 7, 1]
    conn.execute(f"ALTER TABLE {table_name} DROP PARTITION 0 <= VALUES < 10")
    assert counts() == [2, 2, 1]


def test_a_statement_that_takes_long_to_plan_holds_nobody_up() -> None:
    """Thousands of conditions, as programs generate them."""
    conditions = " OR ".join(f"k = {number} AND v <> {number}" for number in range(20_000))
    with (
        secateur.start(members=1, runtime="embedded", planning_timeout_s=0.5) as cluster,
        cluster.connect() as conn,
        cluster.connect() as other,
    ):
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        with pytest.raises(LimitExceededError, match="planning_timeout_s"):
            conn.execute(f"SELECT * FROM t WHERE {conditions}")
        assert other.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
        assert conn.execute("SELECT max(v) FROM t").fetchall() == [(None,)]


class Endless(Processor):
    def complete(self) -> bool:
        return False


def test_a_timeout_is_no_cancellation(conn: secateur.Connection) -> None:
    """hazelcast #19268: a timeout was reported as a cancellation."""
    dag = secateur.DAG()
    dag.new_vertex("read", Endless)
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "result").all_to_one().distributed())
    with pytest.raises(DeadlineError, match="longer than its deadline"):
        conn.submit(dag, secateur.JobConfig(timeout_s=0.1)).result(timeout_s=30)
    job = conn.submit(dag, secateur.JobConfig())
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result(timeout_s=30)


def test_strict_priorities_of_edges_from_one_source_are_refused() -> None:
    """Jet's documentation: strict edge priorities with a shared upstream deadlock."""
    dag = DAG()
    for name in ("source", "build", "join"):
        dag.new_vertex(name, Processor)
    dag.edge(between("source", "build"))
    dag.edge(from_("build").to("join", 0).with_priority(-1))
    dag.edge(from_("source", 1).to("join", 1))
    with pytest.raises(DagError, match="deadlock"):
        dag.freeze()
