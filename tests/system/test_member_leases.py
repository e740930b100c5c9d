"""Members that are silent, cut off or given up although they live: nobody reads from them what others have changed, and
nobody waits for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from alive import alive
from eventually import eventually
from executors import EXECUTORS, answered_by

import secateur
from secateur.cluster import Cluster
from secateur.errors import TopologyChangedError, UnreachableError
from secateur.protocol import RenewLease, Role

SILENCE_S = 2.0
DDL = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 1"
READ = "SELECT v FROM t WHERE id = ?"


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=SILENCE_S, member_stall_s=30.0) as cluster:
        yield cluster


def key_of(conn: secateur.Connection, member_id: str) -> int:
    """A key whose primary is a member."""
    table = conn.table("t")
    return next(key for key in range(999) if table.owner_of(table.partition_of({"id": key})) == member_id)


def on_loop(cluster: Cluster, work: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return work()

    return cluster._runtime._loop.run(run())  # type: ignore[attr-defined]


def member(cluster: Cluster, member_id: str) -> Any:
    return cluster._runtime._members[member_id]  # type: ignore[attr-defined]


def silence(cluster: Cluster, member_id: str) -> None:
    """Let a member renew its lease no more, as if its process was stopped; what it is asked it answers, as a stopped
    process does when it goes on.
    """
    keeper = member(cluster, member_id)._lease
    cluster._runtime._loop.run(keeper.stop())  # type: ignore[attr-defined]


def inside(servers: Iterable[Any]) -> list[Any]:
    """The connections to servers that are not those of clients."""
    return [
        link
        for server in servers
        for link in list(server._accepted.open)
        if link._peer is not None and link._peer.role is not Role.CLIENT
    ]


def states(cluster: Cluster) -> dict[str, str]:
    return {info.id: info.state for info in cluster.members()}


def test_connections_that_break_cost_no_member(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        conn.execute(DDL)
        key = key_of(conn, "m1")
        conn.execute("INSERT INTO t VALUES (?, 1)", [key])
        for _ in range(3):
            servers = (runtime._controller._server, member(mortal, "m1")._server)
            eventually(
                lambda servers=servers: {link._peer.client for link in inside(servers[:1])} == {"m1", "m2", "m3"},
                "members do not connect again",
            )
            on_loop(mortal, lambda servers=servers: [link._transport.abort() for link in inside(servers)])
            assert conn.execute(READ, [key]).fetchall() == [(1,)]
        eventually(
            lambda: states(mortal) == dict.fromkeys(("m1", "m2", "m3"), "active"), "a member that lives was given up"
        )
        conn.execute("CREATE TABLE u (id BIGINT PRIMARY KEY)")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_member_that_was_given_up_answers_nobody(executor: str) -> None:
    with (
        answered_by(executor),
        secateur.start(members=3, runtime="embedded", member_silence_s=SILENCE_S, member_stall_s=30.0) as mortal,
        mortal.connect() as a,
        mortal.connect() as b,
    ):
        a.execute(DDL)
        key = key_of(a, "m1")
        a.table("t").load({"id": [key], "v": [1]})
        assert [b.execute(READ, [key]).fetchall() for _ in range(3)] == [[(1,)]] * 3
        silent = member(mortal, "m1")
        silence(mortal, "m1")
        eventually(lambda: states(mortal)["m1"] == "lost", "m1 is silent and was not given up")
        a.execute("INSERT OR REPLACE INTO t VALUES (?, 2)", [key])
        assert b.execute(READ, [key]).fetchall() == [(2,)], "read from the member that was given up"
        partition = a.table("t").partition_of({"id": key})
        with pytest.raises(TopologyChangedError, match="has received nothing from its cluster"):
            on_loop(mortal, lambda: silent._storage.store.relation(1, [partition]))


def test_nobody_waits_for_a_silent_member(mortal: Cluster) -> None:
    """Its connections stay open, and it never answers: losses of others are noticed, tables are created, rows are
    loaded.
    """
    with mortal.connect() as conn:
        conn.execute(DDL.replace("BACKUPS 1", "BACKUPS 2"))
        rows = pa.table({"id": pa.array(range(100)), "v": pa.array(range(100))})
        conn.table("t").load(rows)
        silence(mortal, "m1")
        deaf = member(mortal, "m1")
        on_loop(mortal, lambda: [connection._transport.pause_reading() for connection in deaf._server._accepted.open])
        mortal.kill_member("m2")
        assert states(mortal)["m2"] == "lost"
        conn.execute("CREATE TABLE u (id BIGINT PRIMARY KEY) BACKUPS 0")
        conn.execute("INSERT OR REPLACE INTO t SELECT id, v + 1 FROM t")
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(100, 5050)]
        assert states(mortal)["m1"] == "lost"


def give_up(cluster: Cluster, member_id: str) -> None:
    """Have the controller give up a member that lives, and wait until a new one has come in its place."""
    controller: Any = cluster._runtime._controller  # type: ignore[attr-defined]
    on_loop(cluster, lambda: controller._state._watch.condemn(member_id))
    eventually(
        lambda: states(cluster)[member_id] == "lost" and len(alive(cluster)) == 3,
        f"{member_id} did not come back: {states(cluster)}",
    )


def test_a_member_that_lives_comes_back_as_a_new_one(mortal: Cluster) -> None:
    with mortal.connect() as conn, mortal.connect() as other:
        conn.execute(DDL)
        conn.execute("CREATE TABLE everywhere (id BIGINT, v BIGINT, PRIMARY KEY (id)) REPLICATED")
        conn.table("t").load(pa.table({"id": pa.array(range(50)), "v": pa.array(range(50))}))
        conn.table("everywhere").load(pa.table({"id": pa.array(range(10)), "v": pa.array(range(10))}))
        assert other.execute("SELECT sum(v) FROM t").fetchall() == [(1225,)]
        give_up(mortal, "m1")
        assert alive(mortal) == ["m2", "m3", "m4"]
        assert states(mortal)["m1"] == "lost"
        for reader in (conn, other):
            assert reader.execute("SELECT sum(v) FROM t").fetchall() == [(1225,)]
            for _ in range(6):  # clients take the members in turn
                assert reader.execute("SELECT sum(v) FROM everywhere").fetchall() == [(45,)]
        conn.execute(
            "CREATE TABLE later (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 7 BACKUPS 1"
        )
        conn.table("later").load(pa.table({"id": pa.array(range(50)), "v": pa.array(range(50))}))
        owners = {conn.table("later").owner_of(partition) for partition in range(7)}
        assert owners == {"m2", "m3", "m4"}
        joined = (
            "SELECT count(*), sum(l.v + t.v + e.v) FROM later l JOIN t ON l.id = t.id JOIN everywhere e ON e.id = t.id"
        )
        assert conn.execute(joined).fetchall() == [(10, 135)]
        assert conn.execute("UPDATE everywhere SET v = v + 1").rowcount == 10
        for _ in range(6):
            assert other.execute("SELECT sum(v) FROM everywhere").fetchall() == [(55,)]
        assert conn.execute("UPDATE t SET v = v + 1 WHERE id IN (SELECT id FROM everywhere)").rowcount == 10
        assert other.execute("SELECT sum(v) FROM t").fetchall() == [(1235,)]


def test_members_come_back_again_and_again(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        for number, member_id in enumerate(("m1", "m4", "m2"), 4):
            give_up(mortal, member_id)
            conn.execute(
                f"CREATE TABLE t{number} (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS {number} BACKUPS 2"
            )
            conn.execute(f"INSERT INTO t{number} VALUES (1), (2), (3)")
        mortal.kill_member("m6")
        for number in (4, 5, 6):
            assert conn.execute(f"SELECT count(*) FROM t{number}").fetchall() == [(3,)], number


def test_known_texts_go_on_without_a_controller(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        conn.execute(DDL)
        keys = [key_of(conn, member_id) for member_id in ("m1", "m2", "m3")]
        for key in keys:
            conn.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [key, key])
            assert conn.execute(READ, [key]).fetchall() == [(key,)]
        runtime._loop.run(runtime._controller._server.stop())
        end_s = time.monotonic() + 3 * SILENCE_S
        while time.monotonic() < end_s:
            for key in keys:
                conn.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [key, key])
                assert conn.execute(READ, [key]).fetchall() == [(key,)]
            threading.Event().wait(0.05)


@pytest.mark.parametrize("is_silent", [False, True], ids=["gone", "silent"])
def test_without_a_controller_a_member_gets_the_plan_of_a_text_from_one_that_has_run_it(
    mortal: Cluster, is_silent: bool
) -> None:
    runtime: Any = mortal._runtime
    update = "UPDATE t SET v = v + 1 WHERE id = ?"
    with mortal.connect() as conn:
        conn.execute(DDL)
        keys = [key_of(conn, member_id) for member_id in ("m1", "m2", "m3")]
        for key in keys:
            conn.execute("INSERT INTO t VALUES (?, ?)", [key, key])
        assert conn.execute(READ, keys[:1]).fetchall() == [(keys[0],)]
        assert conn.execute(update, keys[:1]).rowcount == 1
        server = runtime._controller._server
        if is_silent:
            on_loop(mortal, lambda: [connection._transport.pause_reading() for connection in server._accepted.open])
        else:
            runtime._loop.run(server.stop())
        for key in keys[1:]:
            started_s = time.monotonic()
            assert conn.execute(READ, [key]).fetchall() == [(key,)]
            assert conn.execute(update, [key]).rowcount == 1
            assert time.monotonic() - started_s < conn._session.controller_wait_s, "it waited for the controller"


def test_without_a_controller_a_text_that_no_member_has_run_waits_for_it(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        conn.execute(DDL)
        conn._session.prepare(READ, [1])
        conn._session.retry_s = conn._session.controller_wait_s = 0.5
        runtime._loop.run(runtime._controller._server.stop())
        started_s = time.monotonic()
        with pytest.raises(UnreachableError, match="no other member that does has run this statement") as caught:
            conn.execute(READ, [1])
        assert caught.value.retry_safe, "it may come back"
        assert 0.5 <= time.monotonic() - started_s < 10


def test_a_lease_lasts_through_long_work_on_the_event_loop_of_a_member() -> None:
    """Beside a controller with a process of its own, a member that cannot answer for a while is not silent: its lease
    is renewed in a thread.
    """
    with secateur.start(members=1, runtime="embedded", member_silence_s=SILENCE_S) as cluster:
        runtime: Any = cluster._runtime
        keeper, store = member(cluster, "m1")._lease, member(cluster, "m1")._storage.store
        renewed: list[object] = []
        holder = keeper._holder
        changed = holder.topology_changed  # as each renewal begins
        holder.topology_changed = lambda peers: renewed.append(peers) or changed(peers)
        on_loop(cluster, lambda: time.sleep(3 * SILENCE_S))
        assert len(renewed) >= 4
        eventually(lambda: store.lease.is_valid, "the lease was not renewed")
        eventually(lambda: states(cluster) == {"m1": "active"}, "m1 stays suspect")
        assert runtime._members.keys() == {"m1"}


def test_nothing_is_left_when_a_cluster_stops() -> None:
    before = threading.active_count()
    with secateur.start(members=3, runtime="embedded", member_silence_s=SILENCE_S) as cluster:
        give_up(cluster, "m2")
    eventually(lambda: threading.active_count() <= before, "threads are left")


def test_another_process_gets_no_lease_under_the_name_of_a_member(mortal: Cluster) -> None:
    """One that has the data of a member that has ended may have asked before the controller knew of the end."""

    def asked_at(address: str) -> str:
        request = RenewLease(mortal._settings.cluster_id, "m1", 0.0, {}, {}, address)
        runtime: Any = mortal._runtime
        return str(runtime._loop.run(member(mortal, "m1")._connections.controller.request(request)).message.answer)

    at = {info.id: info.address for info in mortal.members()}
    assert asked_at(at["m1"]) == "granted"
    assert asked_at(at["m2"]) == asked_at("127.0.0.1:1") == "refused"
    assert alive(mortal) == ["m1", "m2", "m3"], "m1 has not ended"
