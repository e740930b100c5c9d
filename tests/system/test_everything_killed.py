"""Every process of a durable cluster is killed at once: each is started anew by itself, and everything is there."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from alive import alive
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.cluster.controller import Controller
from secateur.cluster.member.host import MemberHost
from secateur.errors import Error, PartitionLostError

DDL = "CREATE TABLE {} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS {} BACKUPS {}"
UPSERT = "INSERT OR REPLACE INTO {} VALUES (?, ?)"
TABLES = ("backed", "single")
BACK_S = 240.0


def create(conn: secateur.Connection) -> None:
    for table, partitions, backups in (("backed", 6, 1), ("single", 7, 0)):
        conn.execute(DDL.format(table, partitions, backups))
        conn.table(table).load(pa.table({"k": range(100), "v": range(100)}))
    conn.execute("CREATE TABLE everywhere (k BIGINT PRIMARY KEY) REPLICATED")
    conn.execute("INSERT INTO everywhere VALUES (7)")
    conn.execute("CREATE VIEW small AS SELECT k FROM backed WHERE v < 10")


def rows_of(conn: secateur.Connection, table: str) -> dict[int, int]:
    return dict(conn.execute(f"SELECT k, v FROM {table}").fetchall())


class Writer(threading.Thread):
    """Writes, and knows what was acknowledged; a call that fails is made again, as its error says it may be."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(name="writes")
        self.acknowledged: dict[str, dict[int, int]] = {table: {} for table in TABLES}
        self.errors: list[Error] = []
        self.is_over = threading.Event()
        self._cluster = cluster

    def run(self) -> None:
        number = 0
        with self._cluster.connect() as conn:
            while not self.is_over.is_set():
                number += 1
                for table in TABLES:
                    self._write(conn, table, number)

    def _write(self, conn: secateur.Connection, table: str, number: int) -> None:
        key = number % 50
        while not self.is_over.is_set():
            try:
                conn.execute(UPSERT.format(table), [key, 1000 + number])
            except Error as error:
                self.errors.append(error)
                self.is_over.wait(0.05)
            else:
                self.acknowledged[table][key] = 1000 + number
                return


def check(writer: Writer, conn: secateur.Connection) -> None:
    for table in TABLES:
        found = rows_of(conn, table)
        assert len(found) == 100
        # A write that was under way may have been made: its value is newer than the acknowledged one.
        lost = {key: (value, found[key]) for key, value in writer.acknowledged[table].items() if found[key] < value}
        assert not lost
    assert conn.execute("SELECT k FROM everywhere").fetchall() == [(7,)]
    assert conn.execute("SELECT count(*) FROM small").fetchall() == [(0,)] or writer.acknowledged["backed"]


def eventually_answers(conn: secateur.Connection, sql: str, *, knows_losses: bool) -> list[Any]:
    """What a statement answers; until then it fails with errors that a retry may follow.

    A controller that lives knows which partitions have no member, and says that they are lost unless those come back.
    """
    until_s = time.monotonic() + BACK_S
    while True:
        try:
            return conn.execute(sql).fetchall()
        except Error as error:
            is_lost = knows_losses and isinstance(error, PartitionLostError)
            if not (error.retry_safe or is_lost) or time.monotonic() >= until_s:
                raise
            threading.Event().wait(0.1)


@pytest.mark.smoke
def test_processes_that_are_all_started_anew_find_each_other(tmp_path: Path) -> None:
    """As Ray does it, in one process: the controller is not told that the members were started anew as well."""
    with (
        secateur.start(
            members=3, runtime="embedded", member_silence_s=2.0, data_directory=tmp_path, fsync="always"
        ) as cluster,
        cluster.connect() as conn,
    ):
        create(conn)
        runtime: Any = cluster._runtime
        port = int(cluster.address.rpartition(":")[2])

        async def killed() -> None:
            await runtime._controller.kill()
            for host in runtime._hosts:
                await host.stop()

        async def started() -> tuple[Controller, list[MemberHost]]:
            controller = Controller(runtime._settings, port=port, is_recovering=True)
            await controller.start()
            return controller, [await MemberHost.replacement(runtime._settings, runtime._address) for _ in range(3)]

        for turn in range(2):
            conn.execute(UPSERT.format("single"), [turn, -turn])
            expected = {table: rows_of(conn, table) for table in TABLES}
            runtime._loop.run(killed())
            runtime._controller, runtime._hosts = runtime._loop.run(started())
            assert {table: rows_of(conn, table) for table in TABLES} == expected
            assert conn.execute("SELECT k FROM everywhere").fetchall() == [(7,)]
            assert conn.execute("SELECT count(*) FROM small").fetchall() == [(10,)]
            assert {member.id for member in cluster.members() if member.is_alive} == {"m1", "m2", "m3"}
        cluster.kill_member("m2")  # no copy of it counts that it does not have
        assert rows_of(conn, "backed") == expected["backed"]


def actors_here(*names: str) -> set[int]:
    """The processes of the actors that this process has started, by the names of their classes."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(process.cmdline()[:1] == [f"ray::{name}"] for name in names):
                found.add(process.pid)
    return found


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("with_controller", [True, False], ids=["everything", "all members"])
def test_on_ray_a_cluster_of_which_everything_was_killed_is_there_again(tmp_path: Path, with_controller: bool) -> None:
    with (
        secateur.start(
            members=3, runtime="ray", start_timeout_s=200, data_directory=tmp_path, fsync="always"
        ) as cluster,
        cluster.connect() as conn,
    ):
        create(conn)
        writer = Writer(cluster)
        writer.start()
        try:
            while not all(len(written) > 20 for written in writer.acknowledged.values()):
                writer.is_over.wait(0.05)
            names = ("MemberActor", "ControllerActor") if with_controller else ("MemberActor",)
            expected = 5 if with_controller else 3
            eventually(lambda: len(actors_here(*names)) == expected, "the second controller does not wait")
            for process in actors_here(*names):
                os.kill(process, signal.SIGKILL)
            joined = "SELECT count(*) FROM backed JOIN single USING (k)"
            assert eventually_answers(conn, joined, knows_losses=not with_controller) == [(100,)]
            before = {table: max(written.values()) for table, written in writer.acknowledged.items()}
            until_s = time.monotonic() + BACK_S
            while not all(max(writer.acknowledged[table].values()) > before[table] for table in TABLES):
                assert time.monotonic() < until_s, "nothing can be written"
                writer.is_over.wait(0.05)
        finally:
            writer.is_over.set()
            writer.join()
        check(writer, conn)
        assert len(alive(cluster)) == 3
