"""What ends the member that works on it is tried on one more, and never on a third."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.dag import Processor
from secateur.errors import MemberLostError

ENDLESS = "SELECT count(*), max(a.v * b.v + c.v) FROM t a, t b, t c, t d WHERE a.v + b.v = c.v + d.v AND a.id > ?"


class Endless(Processor):
    def complete(self) -> bool:
        return False


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(
        members=4, runtime="embedded", member_silence_s=2.0, rebalancing=False, replace_members=False
    ) as cluster:
        yield cluster


def executions(cluster: Cluster) -> dict[str, int]:
    return {member.id: member.executions for member in cluster.members() if member.is_alive}


def coordinator(conn: secateur.Connection, *, other_than: str | None = None) -> str:
    """Wait until a member coordinates the statement, and return which."""
    sql = "SELECT member FROM secateur.statements WHERE statement = ? AND state = 'running'"
    found: list[str] = []

    def there_is_one() -> bool:
        found[:] = [member for (member,) in conn.execute(sql, [ENDLESS]) if member != other_than]
        return bool(found)

    eventually(there_is_one, "nobody works on the statement")
    return found[0]


@pytest.mark.parametrize(
    "scattered", [pytest.param(False, id="on one member"), pytest.param(True, id="on all members")]
)
def test_a_statement_costs_two_members_at_most(mortal: Cluster, scattered: bool) -> None:
    with mortal.connect() as conn, mortal.connect() as other:
        conn.execute(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) {'BACKUPS 2' if scattered else 'REPLICATED'}")
        conn.table("t").load(pa.table({"id": range(50_000), "v": range(50_000)}))
        failed: list[BaseException] = []

        def run() -> None:
            try:
                conn.execute(ENDLESS, [7]).fetchall()
            except secateur.Error as error:
                failed.append(error)

        before = executions(mortal)
        statement = threading.Thread(target=run)
        statement.start()
        first = coordinator(other)
        if scattered:  # an OOM killer ends any of those that work on it
            eventually(lambda: all(now > before[member] for member, now in executions(mortal).items()))
        mortal.kill_member(first)
        second = coordinator(other, other_than=first)
        mortal.kill_member(second)
        statement.join(30)
        assert not statement.is_alive()
        (error,) = failed
        assert isinstance(error, MemberLostError)
        assert not error.retry_safe
        assert f"members {first} and {second} ended while they ran this statement" in error.message
        assert len(executions(mortal)) == 2
        assert other.execute("SELECT count(*) FROM t").fetchall() == [(50_000,)]


def test_a_job_costs_two_members_at_most(mortal: Cluster) -> None:
    dag = secateur.DAG()
    dag.new_vertex("read", Endless)
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "result").all_to_one().distributed())
    with mortal.connect() as conn:
        job = conn.submit(dag, secateur.JobConfig())
        killed = []
        for attempt in (1, 2):
            eventually(
                lambda attempt=attempt: job.info.attempt == attempt and job.status is secateur.JobStatus.RUNNING,
                "it does not run",
            )  # type: ignore[misc]
            killed.append(str(job.info.coordinator))
            mortal.kill_member(killed[-1])
        with pytest.raises(
            MemberLostError, match=f"members {' and '.join(sorted(killed))} ended while they ran this job"
        ):
            job.result(timeout_s=30)
        assert (job.status, job.info.attempt) == (secateur.JobStatus.FAILED, 2)


def test_a_first_loss_and_broken_connections_cost_a_statement_nothing(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED")
        conn.table("t").load(pa.table({"id": range(100), "v": range(100)}))
        look_up = "SELECT v FROM t WHERE id = ?"
        assert conn.execute(look_up, [7]).fetchall() == [(7,)]
        mortal._runtime.kill_member("m1")  # the controller hears nothing of it
        for key in range(8):  # clients take turns with the members
            assert conn.execute(look_up, [key]).fetchall() == [(key,)]
