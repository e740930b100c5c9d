"""The controller ends and starts anew: nothing that was acknowledged is lost, and clients go on by themselves."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from held_requests import Held

import secateur
from secateur.cluster import Cluster
from secateur.cluster.controller import Controller, is_free, serve_when_free
from secateur.errors import DiskError, UnreachableError
from secateur.protocol import MakeRanges, NameMember, Operation

ROWS = pa.table({"id": pa.array(range(100)), "v": pa.array(range(100))})
DDL = "CREATE TABLE {} (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 13 BACKUPS 1"


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster:
        yield cluster


@pytest.mark.smoke
def test_tables_views_indexes_and_settings_are_there_again(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        conn.execute(DDL.format("t"))
        conn.execute("CREATE INDEX by_v ON t (v)")
        conn.execute("CREATE VIEW w AS SELECT v FROM t WHERE id < 10")
        conn.execute("SET GLOBAL pruning = off")
        conn.table("t").load(ROWS)
    mortal.kill_controller()
    with mortal.connect() as conn:
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(100, 4950)]
        assert conn.execute("SELECT sum(v) FROM w").fetchall() == [(45,)]
        assert conn.execute("SHOW pruning").fetchall() == [("off",)]
        with pytest.raises(secateur.Error, match="exists already"):
            conn.execute("CREATE INDEX by_v ON t (id)")
        with pytest.raises(secateur.Error, match="exists already"):
            conn.execute(DDL.format("T"))


def test_a_member_that_fails_while_new_ranges_are_settled_keeps_nobody_waiting(mortal: Cluster) -> None:
    """One controller had made the change at some members; the next one met an error, and everybody waited for good."""
    runtime: Any = mortal._runtime
    late = runtime._members["m2"]
    prepare, failures = late.handlers[Operation.PREPARE_ALTER], []

    def fail_once(request: Any) -> Any:
        if not failures:
            failures.append(request)
            raise DiskError("its disk is full for a moment")
        return prepare(request)

    with mortal.connect() as conn, ThreadPoolExecutor(1) as thread:
        conn.execute("CREATE TABLE r (k BIGINT PRIMARY KEY) PARTITION BY RANGE (k) (PARTITION VALUES < 100) BACKUPS 1")
        commit = Held(mortal, late.handlers, Operation.COMMIT_ALTER)
        changed = thread.submit(conn.execute, "ALTER TABLE r ADD PARTITION 100 <= VALUES < 200")
        assert commit.arrived.wait(20)
        others = [runtime._members[name]._storage.store for name in ("m1", "m3")]
        eventually(lambda: all(store.tables()[0].version == 2 for store in others), "the others have not committed")
        late.handlers[Operation.PREPARE_ALTER] = fail_once
        mortal.kill_controller()
        commit.drop()
        changed.result(30)
        assert failures
        assert conn.execute("INSERT INTO r VALUES (150)").rowcount == 1
        assert conn.execute("SELECT k FROM r").fetchall() == [(150,)]


def test_an_id_is_given_once_though_the_controller_ends_before_its_member_comes(mortal: Cluster) -> None:
    first = mortal._ask(NameMember(mortal._settings.cluster_id)).member
    mortal.kill_controller()
    assert mortal._ask(NameMember(mortal._settings.cluster_id)).member != first


def test_a_connection_made_before_goes_on(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        conn.execute(DDL.format("t"))
        conn.table("t").load(ROWS)
        for round_number in range(1, 3):
            mortal.kill_controller()
            assert conn.execute("SELECT v FROM t WHERE id = 7").fetchall() == [(6 + round_number,)]
            assert conn.execute(f"SELECT count(*) + {round_number} FROM t").fetchall() == [(100 + round_number,)]
            conn.execute(DDL.format(f"u{round_number}"))
            conn.table(f"u{round_number}").load(ROWS)
            conn.execute("UPDATE t SET v = v + 1")
            assert conn.execute("SELECT sum(v) FROM t").fetchall() == [(4950 + 100 * round_number,)]
            assert conn.execute(f"SELECT count(*) FROM u{round_number}").fetchall() == [(100,)]


def test_a_first_connection_waits_for_a_controller_that_starts_anew(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        conn.execute(DDL.format("t"))
        conn.table("t").load(ROWS)
    runtime._loop.run(runtime._controller._server.stop())
    with pytest.raises(UnreachableError, match="no process answers"):
        secateur.connect(mortal.address, connect_timeout_s=0)
    restart = threading.Timer(0.3, mortal.kill_controller)
    restart.start()
    with secateur.connect(mortal.address) as conn:
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(100,)]
    restart.join()


def test_a_controller_that_no_member_reports_to_says_so() -> None:
    """Requests waited without end, also those of processes that were to replace the members."""
    with secateur.start(members=2, runtime="embedded", member_silence_s=0.8) as cluster:
        with cluster.connect() as conn:
            conn.execute(DDL.format("t"))
        runtime: Any = cluster._runtime
        runtime._loop.run(runtime._controller._server.stop())  # nobody is replaced in time
        for member_id in list(runtime._members):
            runtime.kill_member(member_id)
        runtime.kill_controller()
        with pytest.raises(UnreachableError, match="no member has reported to it for"):
            secateur.connect(cluster.address, connect_timeout_s=3)


def test_members_repeat_their_requests_to_a_controller_that_starts_anew(mortal: Cluster) -> None:
    """A job makes the ranges for its rows, and its source is planned, while the controller is away."""
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        conn.execute("CREATE TABLE days (day BIGINT PRIMARY KEY) PARTITION BY RANGE (day) EVERY 10 BACKUPS 1")
        member = next(iter(runtime._members.values()))
        runtime._loop.run(runtime._controller._server.stop())
        restart = threading.Timer(0.3, mortal.kill_controller)
        restart.start()

        async def make_ranges() -> None:
            table = member._storage.places.named("days")
            await member._connections.patient.request(MakeRanges(table.name, table.table_id, [3]))

        runtime._loop.run(make_ranges())
        restart.join()
        conn.execute("INSERT INTO days VALUES (35)")
        assert conn.execute("SELECT partition FROM secateur.partitions WHERE table_name = 'days'").fetchall() == [(0,)]


def test_ranges_that_were_added_are_there_again_and_others_can_follow(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        conn.execute(
            "CREATE TABLE r (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (id) (PARTITION 0 <= VALUES < 10)"
        )
        conn.execute("ALTER TABLE r ADD PARTITION 10 <= VALUES < 20")
        conn.execute("INSERT INTO r VALUES (1, 1), (15, 2)")
        mortal.kill_controller()
        conn.execute("ALTER TABLE r ADD PARTITION 20 <= VALUES < 30")
        conn.execute("INSERT INTO r VALUES (25, 3)")
        assert conn.execute("SELECT sum(v) FROM r").fetchall() == [(6,)]


def test_a_standby_serves_as_soon_as_the_controller_has_ended_and_not_before(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    host, _, port = mortal.address.removeprefix("secateur://").rpartition(":")
    standbys = [
        runtime._loop.call(lambda: Controller(runtime._settings, port=int(port), is_recovering=True)) for _ in range(2)
    ]
    waiting = {standby: runtime._loop.submit(serve_when_free(standby, host, int(port))) for standby in standbys}
    with mortal.connect() as conn:
        conn.execute(DDL.format("t"))
        conn.table("t").load(ROWS)
        for turn in range(1, 3):
            assert conn.execute(f"SELECT count(*) + {turn} FROM t").fetchall() == [(100 + turn,)]
            assert not any(wait.done() for wait in waiting.values())
            runtime._loop.run(runtime._controller.kill())
            conn.execute(DDL.format(f"u{turn}"))
            assert conn.execute(f"SELECT count(*) + {turn} FROM t JOIN u{turn} USING (id)").fetchall() == [(turn,)]
            (runtime._controller,) = (standby for standby, wait in waiting.items() if wait.done())
            del waiting[runtime._controller]
        restarts = "SELECT count(*) FROM secateur.events WHERE kind = 'controller_restarted'"
        assert conn.execute(restarts).fetchall() == [(1,)], "each knows of its own start alone"


def test_an_address_is_free_when_its_process_has_ended_though_its_connections_linger() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        host, port = listener.getsockname()
        assert not is_free(host, port)
        with socket.create_connection((host, port)):
            accepted, _ = listener.accept()
            accepted.close()  # this side ends first, so the connection lingers here
        assert not is_free(host, port)
    assert is_free(host, port)


@pytest.mark.slow
def test_on_ray_the_controller_is_started_anew_twice_while_clients_write_and_read() -> None:
    """Statements that need no controller go on meanwhile; all others wait, and nothing acknowledged is lost."""
    with secateur.start(members=3, runtime="ray", start_timeout_s=200) as cluster, cluster.connect() as conn:
        conn.execute(DDL.format("t"))
        conn.execute("INSERT INTO t VALUES (?, ?)", [0, 0])
        written, errors, longest_s = [0], [], [0.0]
        is_planned, is_over = threading.Event(), threading.Event()

        def write() -> None:
            with cluster.connect() as own:
                number = 0
                while not is_over.is_set():
                    number += 1
                    started_s = time.monotonic()
                    try:
                        own.execute("INSERT INTO t VALUES (?, ?)", [number, number])
                    except secateur.Error as error:
                        errors.append(error)
                    else:
                        written.append(number)
                    longest_s.append(time.monotonic() - started_s)
                    is_planned.set()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert is_planned.wait(30)
            for round_number in (1, 2):
                cluster.kill_controller()
                conn.execute(DDL.format(f"u{round_number}"))
                assert conn.table(f"u{round_number}").load(ROWS) == 100
                conn.execute(f"UPDATE u{round_number} SET v = v + 1")
                assert conn.execute(f"SELECT sum(v) FROM u{round_number}").fetchall() == [(5050,)]
                with cluster.connect() as fresh:
                    assert fresh.execute("SELECT count(*) FROM u1").fetchall() == [(100,)]
        finally:
            is_over.set()
            writer.join()
        assert not errors
        rows = [number for (number,) in conn.execute("SELECT id FROM t ORDER BY id").fetchall()]
        assert rows == written
        assert max(longest_s[2:]) < 5
