"""Members as processes that are stopped and killed: everybody else goes on, and who comes back has nothing to say."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import psutil
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import PartitionLostError

DDL = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 16 BACKUPS 2"
READ = "SELECT v FROM t WHERE id = ?"
WRITE = "INSERT OR REPLACE INTO t VALUES (?, ?)"


def process_of(cluster: Cluster, member_id: str) -> int:
    port = int(next(info.address for info in cluster.members() if info.id == member_id).rpartition(":")[2])
    pid = next(
        link.pid
        for link in psutil.net_connections("tcp")
        if link.status == psutil.CONN_LISTEN and link.laddr.port == port
    )
    assert pid is not None
    return pid


def seconds(work: Callable[[], object]) -> float:
    started_s = time.monotonic()
    work()
    return time.monotonic() - started_s


def wait_for_state(cluster: Cluster, member_id: str, state: str) -> None:
    deadline_s = time.monotonic() + 20
    while {info.id: info.state for info in cluster.members()}.get(member_id) != state:
        assert time.monotonic() < deadline_s, f"{member_id} is not {state}"
        threading.Event().wait(0.1)


@pytest.mark.slow
def test_a_stopped_member_holds_nobody_up_and_answers_nothing_when_it_goes_on() -> None:
    with (
        secateur.start(members=3, runtime="ray", member_silence_s=3.0) as cluster,
        cluster.connect() as writer,
        cluster.connect() as reader,
    ):
        writer.execute(DDL)
        table = writer.table("t")
        keys = {
            owner: next(key for key in range(999) if table.owner_of(table.partition_of({"id": key})) == owner)
            for owner in ("m1", "m2", "m3")
        }
        for key in keys.values():
            writer.execute(WRITE, [key, 1])
            assert reader.execute(READ, [key]).fetchall() == [(1,)]
        stopped, killed = process_of(cluster, "m1"), process_of(cluster, "m2")
        os.kill(stopped, signal.SIGSTOP)
        try:
            os.kill(killed, signal.SIGKILL)
            assert seconds(lambda: reader.execute(READ, [keys["m2"]]).fetchall()) < 9, (
                "the loss of m2 was not noticed while m1 was silent"
            )
            for key in keys.values():
                assert seconds(lambda key=key: writer.execute(WRITE, [key, 2])) < 20  # type: ignore[misc]
            assert seconds(lambda: writer.execute("CREATE TABLE u (id BIGINT PRIMARY KEY)")) < 9
            alive = {info.id: info.is_alive for info in cluster.members()}
            assert {name: alive[name] for name in ("m1", "m2", "m3")} == {"m1": False, "m2": False, "m3": True}
        finally:
            os.kill(stopped, signal.SIGCONT)
        for _ in range(20):
            for key in keys.values():
                assert reader.execute(READ, [key]).fetchall() == [(2,)]
        for come in ("m4", "m5"):  # in place of the one that was killed, and of the one that was stopped
            wait_for_state(cluster, come, "active")
        cluster.kill_member("m4")
        assert reader.execute(READ, [keys["m1"]]).fetchall() == [(2,)]


@pytest.mark.slow
@pytest.mark.ray
def test_a_call_to_a_stopped_member_is_answered_soon_after_others_have_its_place() -> None:
    """With the times that a cluster has by default, and over a connection that is there as over one that has to be
    made.
    """
    with secateur.start(members=3, runtime="ray") as cluster, cluster.connect() as known, cluster.connect() as fresh:
        known.execute(DDL)
        table = known.table("t")
        key = next(key for key in range(999) if table.owner_of(table.partition_of({"id": key})) == "m1")
        known.execute(WRITE, [key, 1])
        assert known.execute(READ, [key]).fetchall() == [(1,)]
        stopped = process_of(cluster, "m1")
        took_s: list[float] = []

        def read(conn: secateur.Connection) -> None:
            took_s.append(seconds(lambda: conn.execute(READ, [key]).fetchall()))

        os.kill(stopped, signal.SIGSTOP)
        try:
            readers = [threading.Thread(target=read, args=(conn,)) for conn in (known, fresh)]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join(60)
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert len(took_s) == 2
        assert max(took_s) < 9, "a member that is known to be silent was asked again"


@pytest.mark.slow
@pytest.mark.ray
def test_a_member_without_backups_that_was_stopped_has_its_rows_when_it_goes_on() -> None:
    with secateur.start(members=3, runtime="ray") as cluster, cluster.connect() as conn:
        conn.execute(DDL.replace("BACKUPS 2", "BACKUPS 0"))
        keys = range(100)
        conn.executemany(WRITE, [(key, 1) for key in keys])
        for round_number in range(2):
            stopped = process_of(cluster, "m1")
            os.kill(stopped, signal.SIGSTOP)
            try:
                wait_for_state(cluster, "m1", "lost")
                with pytest.raises(PartitionLostError):
                    conn.execute("SELECT sum(v) FROM t").fetchall()
            finally:
                os.kill(stopped, signal.SIGCONT)
            wait_for_state(cluster, "m1", "active")
            assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(100, 100 + round_number)]
            conn.execute("UPDATE t SET v = v + 1 WHERE id = 7")
