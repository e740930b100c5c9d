"""Where members are processes of their own: functions really travel, and so do tracebacks; a process that ends is
noticed.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from alive import alive

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect, table_sink
from secateur.dag import Param
from secateur.errors import JobFailedError, SerializationError
from secateur.processors import count_rows

pytestmark = pytest.mark.ray

ROWS = pa.table(
    {"user_id": [n % 50 for n in range(2000)], "event_id": range(2000), "value": [n % 7 for n in range(2000)]}
)
P = secateur.Pipeline()


class ConnectionOfThread:
    """A connection that is closed with the thread it belongs to, as those of Py4J and of many a database's driver."""

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()

    def answers(self) -> bool:
        self.here.sendall(b"x")
        return self.there.recv(1) == b"x"

    def __del__(self) -> None:
        self.here.shutdown(socket.SHUT_RDWR)
        self.here.close()
        self.there.close()


class Before:
    """What this process has before a cluster is started: connections that belong to two threads, and variables."""

    def __init__(self, other: ThreadPoolExecutor) -> None:
        self.other = other
        self._owned = threading.local()
        self._connect()
        other.submit(self._connect).result()
        self.variables = variables()

    def _connect(self) -> None:
        self._owned.connection = ConnectionOfThread()

    def answers(self) -> bool:
        """Whether the connection of the calling thread does."""
        connection: ConnectionOfThread = self._owned.connection
        return connection.answers()


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.fixture(scope="module")
def before() -> Iterator[Before]:
    import ray  # noqa: F401  # it sets variables when it is loaded

    with ThreadPoolExecutor(1) as other:
        yield Before(other)


@pytest.fixture(scope="module")
def on_ray(before: Before) -> Iterator[Cluster]:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with secateur.start(members=3, runtime="ray", member_silence_s=5.0) as cluster:
            with cluster.connect() as conn:
                conn.execute(
                    "CREATE TABLE visits (user_id BIGINT, event_id BIGINT, value BIGINT, PRIMARY KEY (user_id,"
                    " event_id)) PARTITION BY HASH (user_id) PARTITIONS 17"
                )
                conn.table("visits").load(ROWS)
            yield cluster
        assert variables() == before.variables, "a cluster that has ended leaves variables behind"
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def conn(on_ray: Cluster) -> Iterator[secateur.Connection]:
    with on_ray.connect() as connection:
        yield connection


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", pc.multiply(batch["value"], 2))


def broken(batch: pa.RecordBatch) -> pa.RecordBatch:
    raise ValueError("no such model")


@pytest.mark.usefixtures("on_ray")
def test_a_start_touches_no_connections_of_threads(before: Before) -> None:
    assert before.answers()
    assert before.other.submit(before.answers).result()


def test_a_pipeline_over_all_members(on_ray: Cluster, conn: secateur.Connection) -> None:
    job = (
        P.read_table("visits")
        .map(doubled)
        .key_by("value")
        .aggregate(n=count_rows())
        .sort("value")
        .write_to(collect())
        .submit(conn)
    )
    assert {row["value"]: row["n"] for row in job.result(timeout_s=60).to_pylist()} == {
        2 * v: n for v, n in Counter(n % 7 for n in range(2000)).items()
    }
    assert job.members_touched == alive(on_ray)


@pytest.mark.parametrize("light", [False, True], ids=["on record", "light"])
@pytest.mark.smoke
def test_pruned_members_hear_nothing(on_ray: Cluster, conn: secateur.Connection, light: bool) -> None:
    dag = (
        P.read_table("visits", keys=[{"user_id": Param(0)}])
        .map(doubled)
        .key_by("value")
        .aggregate(n=count_rows())
        .write_to(collect())
        .to_dag()
    )
    owner = conn.table("visits").owner_of(conn.table("visits").partition_of({"user_id": 7}))
    before = {member.id: member.frames_received for member in on_ray.members()}
    for _ in range(4):
        job = (
            conn.submit(dag, secateur.JobConfig(), [7], light=True)
            if light
            else conn.submit(dag, secateur.JobConfig(), [7])
        )
        assert sum(job.result(timeout_s=60)["n"].to_pylist()) == 40
        assert job.members_touched == [owner]
    assert [member.id for member in on_ray.members() if member.frames_received > before[member.id]] == [owner]


def test_rows_written_by_a_job_are_there(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE per_user (user_id BIGINT, n BIGINT, PRIMARY KEY (user_id)) BACKUPS 1")
    P.read_table("visits").key_by("user_id").aggregate(n=count_rows()).write_to(table_sink("per_user")).submit(
        conn
    ).result(timeout_s=60)
    assert conn.execute("SELECT count(*), min(n), max(n) FROM per_user").fetchall() == [(50, 40, 40)]


def test_a_raising_processor_is_named_with_its_batch_and_its_traceback(conn: secateur.Connection) -> None:
    job = P.read_table("visits").map(broken, name="score").write_to(collect()).submit(conn)
    with pytest.raises(
        JobFailedError,
        match=r"vertex 'score' on member m\d failed in process\(ordinal 0, \d+ rows\): ValueError: no such model",
    ) as caught:
        job.result(timeout_s=60)
    assert "in broken" in caught.value.details["traceback"]
    assert 'raise ValueError("no such model")' in caught.value.details["traceback"]


def test_a_function_that_cannot_travel_is_named_at_submit(conn: secateur.Connection) -> None:
    lock = threading.Lock()
    with pytest.raises(SerializationError, match=r"vertex 'score': its functions cannot be pickled .*lock"):
        P.read_table("visits").map(lambda batch: (lock, batch)[1], name="score").write_to(collect()).submit(conn)


def test_one_key_reaches_its_owner_alone(on_ray: Cluster, conn: secateur.Connection) -> None:
    table = conn.table("visits")
    for user in (1, 2, 3, 17):
        owner = table.owner_of(table.partition_of({"user_id": user}))
        before = {member.id: member.frames_received for member in on_ray.members()}
        cursor = conn.execute("SELECT count(*), min(event_id) FROM visits WHERE user_id = ?", [user])
        assert [member.id for member in on_ray.members() if member.frames_received > before[member.id]] == [owner]
        assert cursor.fetchall() == [(40, user)]
        assert cursor.stats is not None
        assert (cursor.stats.members_touched, cursor.stats.partitions_read) == (1, 1)


def test_members_stand_behind_no_other_process(on_ray: Cluster) -> None:
    ports = {int(member.address.rpartition(":")[2]) for member in on_ray.members() if member.is_alive}
    processes = {link.pid for link in psutil.net_connections("tcp") if link.laddr and link.laddr.port in ports}
    niceness = {psutil.Process(pid).nice() for pid in processes if pid}
    assert niceness == {psutil.Process().nice()}, "members stand behind the processes of their clients"


def test_a_dead_member_is_noticed_and_costs_no_row(on_ray: Cluster, conn: secateur.Connection) -> None:
    dead, *others = alive(on_ray)
    on_ray.kill_member(dead)
    assert conn.execute("SELECT count(*), sum(value) FROM visits").fetchall() == [
        (len(ROWS), sum(ROWS["value"].to_pylist()))
    ]
    # Ray starts the member again, under a new id; it may have joined by now.
    assert dead not in alive(on_ray)
    assert set(others) <= set(alive(on_ray))
