"""Lost copies are built again, and what was built in vain is dropped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from healed import balanced, create, healed, missing
from msgspec import structs
from stored_copies import copies_of

import secateur
from secateur.cluster import Cluster
from secateur.cluster.peers import Peers
from secateur.errors import Error, PartitionLostError, TopologyChangedError
from secateur.protocol import BuildCopies, DrainMembers, ForgetCopies, GetRebalancing, OpenCopies, Operation

KEYS = 60
ROWS = 400


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=3.0) as cluster:
        yield cluster


def test_writes_acknowledged_after_a_loss_survive_the_next_one(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t")
        for round_ in range(3):
            victim = next(member.id for member in mortal.members() if member.is_alive)
            mortal.kill_member(victim)
            for key in range(60):
                conn.execute("INSERT INTO t VALUES (?, ?)", [100 * round_ + key, round_])
            healed(conn)
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(180, 60 + 120)]
        assert all(len(copies) == 2 and copies[0] == copies[1] for copies in copies_of(mortal, "t").values())


def test_a_member_that_comes_takes_its_share(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", partitions=31)
        mortal.kill_member("m1")

        def are_alive() -> dict[str, bool]:
            return {member.id: member.is_alive for member in mortal.members()}

        # Two members have all copies and even shares already, before the new one is there.
        eventually(lambda: are_alive() == {"m1": False, "m2": True, "m3": True, "m4": True}, "nobody came for m1")
        eventually(lambda: balanced(mortal) and missing(conn) == 0, "the new member did not get its share")

        def kinds() -> set[str]:
            return {kind for (kind,) in conn.execute("SELECT kind FROM secateur.events").fetchall()}

        eventually(lambda: "rebalancing_finished" in kinds())
        assert {"member_lost", "member_joined", "copies_built", "rebalancing_started"} <= kinds()


def test_a_table_may_have_more_backups_than_the_tables_that_it_is_co_located_with(mortal: Cluster) -> None:
    """It was refused, also one with as many that was created after a loss (seed 507 of the simulation)."""
    with mortal.connect() as conn:
        create(conn, "one", backups=0)
        conn.cursor().executemany("INSERT INTO one VALUES (?, 1)", [(key,) for key in range(KEYS)])
        create(conn, "two", backups=2)
        conn.cursor().executemany("INSERT INTO two VALUES (?, 2)", [(key,) for key in range(KEYS)])
        healed(conn)
        assert {len(copies) for copies in copies_of(mortal, "two").values()} == {3}
        for member in ("m1", "m2"):
            mortal.kill_member(member)
        assert conn.execute("SELECT count(*), sum(v) FROM two").fetchall() == [(KEYS, 2 * KEYS)]
        create(conn, "three")
        conn.execute(
            "CREATE OR REPLACE TABLE three (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 12 BACKUPS 2"
        )


def test_members_are_asked_for_replicated_rows_only_if_one_may_lack_them(mortal: Cluster) -> None:
    """Loads and changes of tables wait for the answers."""
    runtime: Any = mortal._runtime
    asked: list[str] = []

    def heard(member_id: str, answer: Any) -> Any:
        def answer_and_note(request: Any) -> Any:
            asked.append(member_id)
            return answer(request)

        return answer_and_note

    with mortal.connect() as conn:
        conn.execute("CREATE TABLE everywhere (id BIGINT PRIMARY KEY) REPLICATED")
        conn.execute("INSERT INTO everywhere VALUES (1)")
        create(conn, "t")
        mortal.scale(4)
        eventually(lambda: mortal._ask(GetRebalancing()).moves == 0, "the controller has not looked once")
        for member_id, member in runtime._members.items():
            member.handlers[Operation.CATCH_UP] = heard(member_id, member.handlers[Operation.CATCH_UP])
        mortal.scale(5)
        eventually(lambda: mortal._ask(GetRebalancing()).moves == 0, "copies are moved still")
        assert asked == []
        assert {conn.execute("SELECT count(*) FROM everywhere").fetchall()[0] for _ in range(10)} == {(1,)}


def test_tables_come_and_go_while_copies_are_built(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", partitions=64)
        conn.table("t").load(pa.table({"id": range(ROWS), "v": [0] * ROWS}))
        mortal.kill_member("m2")
        for number in range(6):
            create(conn, f"u{number}", partitions=64)  # co-located with t
            conn.table(f"u{number}").load(pa.table({"id": range(ROWS), "v": [number] * ROWS}))
            conn.execute("UPDATE t SET v = v + 1")
            if number % 2:
                conn.execute(f"DROP TABLE u{number}")
        healed(conn)
        assert conn.execute("SELECT count(*), min(v), max(v) FROM t").fetchall() == [(ROWS, 6, 6)]
        joined = "SELECT count(*), sum(u.v) FROM t JOIN u4 u ON t.id = u.id"
        assert conn.execute(joined).fetchall() == [(ROWS, 4 * ROWS)]
        assert '"co_located"' in str(conn.explain(joined).to_dict()).replace("'", '"')


def test_a_repeated_write_is_known_to_an_owner_that_came_later(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", partitions=1)
        table = conn.table("t")
        for number in range(20):
            conn.execute("INSERT INTO t VALUES (?, 0)", [number])
        runtime: Any = mortal._runtime

        def known(member_id: str) -> int:
            async def count() -> int:
                member = runtime._members[member_id]
                table_id = runtime._controller._state.catalog.table("t").table_id
                return len(member._storage.change_registry.of_partitions(table_id, {0}).get(0, ()))

            return int(runtime._loop.run(count()))

        before = set(mortal_holders(conn))
        mortal.kill_member(table.owner_of(0))
        healed(conn)
        (newcomer,) = set(mortal_holders(conn)) - before
        assert known(newcomer) == 20


def mortal_holders(conn: secateur.Connection) -> list[str]:
    ((holders,),) = conn.execute("SELECT [primary_member] || backup_members FROM secateur.partitions").fetchall()
    return list(holders)


def test_a_change_that_comes_before_the_copy_knows_where_it_begins(
    mortal: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is written between the moment whose rows are copied and the arrival of that message."""
    fixed, written = threading.Event(), threading.Event()
    call = Peers.call

    async def late(self: Peers, member_id: str, message: Any, payload: Any = b"") -> Any:
        answer = await call(self, member_id, message, payload)
        if isinstance(message, OpenCopies):
            fixed.set()
            await asyncio.to_thread(written.wait, 20)
        return answer

    with mortal.connect() as conn:
        create(conn, "t", partitions=1)
        monkeypatch.setattr(Peers, "call", late)
        mortal.kill_member(mortal_holders(conn)[1])
        assert fixed.wait(20)
        conn.execute("INSERT INTO t VALUES (1, 7)")
        written.set()
        healed(conn)
        mortal.kill_member(mortal_holders(conn)[0])
        assert conn.execute("SELECT * FROM t").fetchall() == [(1, 7)]
        conn.execute("INSERT INTO t VALUES (2, 8)")
        healed(conn)
        (copies,) = copies_of(mortal, "t").values()
        assert copies == [{"id": [1, 2], "v": [7, 8]}] * 2


def copy_to_build(conn: secateur.Connection, target: Any) -> BuildCopies:
    """Have a table t with rows, and a partition of it that a member does not own."""
    create(conn, "t")
    conn.table("t").load({"id": list(range(KEYS)), "v": [0] * KEYS})
    (table,) = target._storage.store.tables()
    owners = target._membership.topology.ownership(table.scheme.affinity_group())
    owned = target._storage.store.hosted(table.table_id)
    assert owned == owners.held_by(target.member_id)
    strange = next(partition for partition in range(12) if partition not in owned)
    return BuildCopies([table.table_id], [strange], owners.primary(strange), 1)


def test_what_was_built_for_a_controller_that_has_died_is_dropped(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        member = runtime._members["m3"]
        built = copy_to_build(conn, member)
        ((table_id,), (strange,)) = built.tables, built.partitions
        owned = member._storage.store.hosted(table_id)
        runtime._loop.run(member._replication.built_copies._build(table_id, built))
        assert member._storage.store.hosted(table_id) == sorted([*owned, strange])
        source = runtime._members[built.source]
        assert source._replication.copies.learners.of(table_id, [strange]) == {"m3": [strange]}
        runtime.kill_controller()
        eventually(lambda: member._storage.store.hosted(table_id) == owned, "rows that nobody knows of are kept")
        eventually(
            lambda: not source._replication.copies.learners.of(table_id, [strange]), "changes are sent to nobody's copy"
        )
        assert not source._replication.built_copies._fixed
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(KEYS,)]


def test_a_copy_that_was_given_up_is_not_begun_by_a_message_that_comes_late(mortal: Cluster) -> None:
    """Seed 9649440 of the simulation: it had been sent again after its connection broke."""
    runtime: Any = mortal._runtime

    with mortal.connect() as conn:
        built = copy_to_build(conn, runtime._members["m3"])
        ((table_id,), strange), source = (built.tables, built.partitions), runtime._members[built.source]

        controller, m3 = runtime._controller._state, runtime._members["m3"]._connections.peers
        runtime._loop.run(controller.call(source.member_id, ForgetCopies([table_id], strange, "m3", 1)))
        with pytest.raises(TopologyChangedError, match="attempt 1 to build copies was given up"):
            runtime._loop.run(m3.call(source.member_id, OpenCopies(table_id, strange, "m3", 1)))
        assert not source._replication.copies.learners.of(table_id, strange)
        runtime._loop.run(m3.call(source.member_id, OpenCopies(table_id, strange, "m3", 2)))
        assert source._replication.copies.learners.of(table_id, strange) == {"m3": strange}


def test_nothing_is_kept_of_copies_of_a_table_that_was_dropped(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        target = runtime._members["m3"]
        built = copy_to_build(conn, target)
        source = runtime._members[built.source]
        runtime._loop.run(target._replication.built_copies._build(built.tables[0], built))
        assert source._replication.built_copies._opened
        conn.execute("DROP TABLE t")
        for copies in (target._replication.built_copies, source._replication.built_copies):
            assert (copies._fixed, copies._opened, copies._building) == ({}, {}, {})


def test_nothing_is_kept_of_copies_of_a_range_that_was_dropped(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime

    def kept() -> set[int]:
        return {
            partition
            for member in runtime._members.values()
            for _, partition in (*member._replication.copies._replicas, *member._replication.built_copies._building)
        }

    with mortal.connect() as conn:
        conn.execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (id)"
            " (PARTITION 0 <= VALUES < 10, PARTITION 10 <= VALUES < 20, PARTITION 20 <= VALUES < 30) BACKUPS 1"
        )
        for key in range(30):
            conn.execute("INSERT INTO t VALUES (?, 0)", [key])
        assert kept() == {0, 1, 2}
        conn.execute("ALTER TABLE t DROP PARTITION 10 <= VALUES < 20")
        assert kept() == {0, 2}
        with pytest.raises(Error):
            conn.execute("INSERT INTO t VALUES (11, 0)")
        for _ in range(2):  # each partition has another primary then
            mortal.kill_member(next(member.id for member in mortal.members() if member.is_alive))
            healed(conn)
            conn.execute("UPDATE t SET v = v + 1")
        assert kept() == {0, 2}
        assert conn.execute("SELECT count(*), min(v), max(v) FROM t").fetchall() == [(20, 2, 2)]


def test_a_primary_that_leaves_the_cluster_keeps_no_rows_for_others(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        target = runtime._members["m3"]
        built = copy_to_build(conn, target)
        source = runtime._members[built.source]._replication.built_copies

        async def build_and_leave() -> tuple[int, int]:
            await target._replication.built_copies._build(built.tables[0], built)
            topology = source._replication._replicas.topology
            source.update(topology)
            kept = len(source._fixed)
            others = tuple(member for member in topology.members if member.id != built.source)
            source.update(structs.replace(topology, members=others))
            return kept, len(source._fixed)

        assert runtime._loop.run(build_and_leave()) == (1, 0)


def test_a_copy_that_is_out_of_sync_is_dropped_by_its_member() -> None:
    with (
        secateur.start(members=3, runtime="embedded", rebalancing=False) as cluster,
        cluster.connect() as conn,
    ):
        create(conn, "t")
        conn.table("t").load({"id": list(range(KEYS)), "v": [0] * KEYS})
        runtime: Any = cluster._runtime
        member = runtime._members["m3"]
        (table,) = member._storage.store.tables()
        owned = member._storage.store.hosted(table.table_id)
        backup = next(partition for partition in owned if conn.table("t").owner_of(partition) != "m3")
        runtime._loop.run(member._connections.report_out_of_sync(table.table_id, backup, "m3"))
        left = [partition for partition in owned if partition != backup]
        eventually(lambda: member._storage.store.hosted(table.table_id) == left, "rows that nobody counts on are kept")
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(KEYS,)]


def test_a_copy_that_is_out_of_sync_does_not_count_where_ranges_change_meanwhile() -> None:
    """It was counted out of the affinity group that its table had before, and went on to count in the new one."""
    with (
        secateur.start(members=3, runtime="embedded", rebalancing=False) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute(
            "CREATE TABLE t (day BIGINT, PRIMARY KEY (day)) PARTITION BY RANGE (day)"
            " (PARTITION 0 <= VALUES < 10, PARTITION 10 <= VALUES < 20) BACKUPS 1"
        )
        runtime: Any = cluster._runtime
        state = runtime._controller._state
        (table,) = state.catalog.tables()
        primary, backup = state.topology.ownership(table.scheme.affinity_group()).holders(0)
        loop = runtime._loop
        loop.run(state.changing.acquire())
        with ThreadPoolExecutor(1) as pool:
            altered = pool.submit(conn.execute, "ALTER TABLE t DROP PARTITION 10 <= VALUES < 20")
            eventually(lambda: len(state.changing._waiters or ()) == 1)
            reported = loop.submit(runtime._members[primary]._connections.report_out_of_sync(table.table_id, 0, backup))
            eventually(lambda: len(state.changing._waiters) == 2)
            loop.call(state.changing.release)
            altered.result(10)
            reported.result(10)
        (table,) = state.catalog.tables()
        holders = state.topology.ownership(table.scheme.affinity_group()).holders(0)
        assert [holder for holder in holders if state.topology.has_member(holder)] == [primary]


def test_a_copy_is_not_built_from_a_primary_that_lacks_the_rows(mortal: Cluster) -> None:
    """It was taken for one of a dropped range: the new owner got nothing, and the only copy was dropped."""
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        create(conn, "t", backups=1)
        conn.table("t").load({"id": list(range(KEYS)), "v": [0] * KEYS})
        topology = runtime._loop.run(_topology_of(runtime))
        (table,) = runtime._members["m1"]._storage.store.tables()
        owners = topology.ownership(table.scheme.affinity_group())
        lacked = next(number for number in range(12) if owners.holders(number)[1] == "m3")
        primary = owners.primary(lacked)

        async def lose() -> None:  # as a disk does that has not written what it said it had
            runtime._members[primary]._storage.store.drop_partition(table.table_id, lacked)

        runtime._loop.run(lose())
        mortal._ask(DrainMembers(["m3"]))
        eventually(lambda: mortal._ask(GetRebalancing()).drained == ("m3",), "m3 keeps what it has")
        mortal.scale(2)
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(KEYS,)]
        healed(conn)
        assert all(len(copies) == 2 and copies[0] == copies[1] for copies in copies_of(mortal, "t").values())


def test_a_move_that_cannot_be_made_holds_no_other_up(mortal: Cluster) -> None:
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        create(conn, "t", backups=0)
        handle = conn.table("t")
        first = handle.owner_of(0)
        others = sorted({handle.owner_of(partition) for partition in range(12)} - {first})
        kept = [key for key in range(KEYS) if handle.partition_of({"id": key})]
        handle.load({"id": kept, "v": kept})

        async def lose() -> None:
            store = runtime._members[first]._storage.store
            store.drop_partition(store.tables()[0].table_id, 0)

        runtime._loop.run(lose())
        mortal._ask(DrainMembers([first, others[0]]))
        eventually(lambda: mortal._ask(GetRebalancing()).drained == (others[0],), "it keeps what it has")
        progress = mortal._ask(GetRebalancing())
        assert progress.draining == (first,)
        assert f"{first} does not have the rows of partition 0 of t" in str(progress.error)
        assert all(conn.execute("SELECT v FROM t WHERE id = ?", [key]).fetchall() == [(key,)] for key in kept)


async def _topology_of(runtime: Any) -> Any:
    return runtime._controller._state.topology


def test_a_copy_is_built_where_a_load_is_known_to_be_aborted(mortal: Cluster) -> None:
    """Its client aborted it, and the request reached some members only: the others keep its rows until they expire."""
    runtime: Any = mortal._runtime
    with mortal.connect() as conn:
        target = runtime._members["m3"]
        built = copy_to_build(conn, target)
        ((table_id,), (partition,)) = built.tables, built.partitions
        handle = conn.table("t")
        keys = [key for key in range(KEYS, 20 * KEYS) if handle.partition_of({"id": key}) == partition]
        staged = pa.table({"id": keys, "v": keys})

        async def build() -> None:
            runtime._members[built.source]._storage.store.loads.stage("aborted", table_id, partition, 0, staged)
            target._storage.store.loads.abort("aborted")
            await target._replication.built_copies._build(table_id, built)
            assert target._storage.store.loads.staged(table_id, partition) == []

        runtime._loop.run(build())


def test_losing_every_copy_is_an_error_that_says_so(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", backups=0)
        for key in range(KEYS):
            conn.execute("INSERT INTO t VALUES (?, 0)", [key])
        mortal.kill_member("m1")
        with pytest.raises(PartitionLostError, match="t"):
            conn.execute("SELECT count(*) FROM t").fetchall()
        conn.execute("DROP TABLE t")
        create(conn, "t", backups=0)
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
