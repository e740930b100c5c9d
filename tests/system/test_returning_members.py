"""Members that were given up although they live, and are the last that have some rows: they come back with these."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from alive import alive
from eventually import eventually
from healed import healed
from held_requests import Held

import secateur
from secateur.cluster import Cluster
from secateur.cluster.peers import Peers
from secateur.errors import OperationalError, PartitionLostError, TopologyChangedError, UnreachableError
from secateur.protocol import OpenCopies, Operation

SILENCE_S = 2.0
ROWS = 60
DDL = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS {backups}"
READ = "SELECT v FROM t WHERE id = ?"
TOTALS = "SELECT count(*), sum(v) FROM t"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=SILENCE_S, member_stall_s=30.0) as cluster:
        yield cluster


def rows(factor: int = 1) -> pa.Table:
    return pa.table({"id": pa.array(range(ROWS)), "v": pa.array([factor * key for key in range(ROWS)])})


TOTAL = [(ROWS, sum(range(ROWS)))]


def on_loop(cluster: Cluster, work: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return work()

    return cluster._runtime._loop.run(run())  # type: ignore[attr-defined]


def states(cluster: Cluster) -> dict[str, str]:
    return {info.id: info.state for info in cluster.members()}


def keys_of(conn: secateur.Connection, member_id: str) -> list[int]:
    table = conn.table("t")
    return [key for key in range(ROWS) if table.owner_of(table.partition_of({"id": key})) == member_id]


@contextmanager
def without(cluster: Cluster, *member_ids: str) -> Iterator[None]:
    """Have the controller give up members that live, and let nobody return until the block ends."""
    controller: Any = cluster._runtime._controller  # type: ignore[attr-defined]
    may_return = asyncio.Event()
    answer = controller.handlers[Operation.ASK_TO_RETURN]

    async def answer_later(request: Any) -> Any:
        await may_return.wait()
        return await answer(request)

    controller.handlers[Operation.ASK_TO_RETURN] = answer_later
    for member_id in member_ids:
        on_loop(cluster, lambda member_id=member_id: controller._state._watch.condemn(member_id))
        eventually(lambda member_id=member_id: states(cluster)[member_id] == "lost", f"{member_id} was not removed")
    yield
    on_loop(cluster, may_return.set)


def is_back(cluster: Cluster, member_id: str = "m1") -> None:
    eventually(lambda: member_id in alive(cluster), f"{member_id} did not come back")


def test_the_last_copies_are_there_again_when_their_member_comes_back(cluster: Cluster) -> None:
    with cluster.connect() as conn, cluster.connect() as other:
        conn.execute(DDL.format(backups=0))
        conn.table("t").load(rows())
        assert other.execute(TOTALS).fetchall() == TOTAL
        with without(cluster, "m1"), pytest.raises(PartitionLostError):
            conn.execute(TOTALS).fetchall()
        is_back(cluster)
        assert alive(cluster) == ["m1", "m2", "m3"]
        for reader in (conn, other):
            assert reader.execute(TOTALS).fetchall() == TOTAL
        key = keys_of(conn, "m1")[0]
        conn.execute("INSERT OR REPLACE INTO t VALUES (?, 1000)", [key])
        assert other.execute(READ, [key]).fetchall() == [(1000,)]
        assert conn.execute("UPDATE t SET v = v + 1").rowcount == ROWS
        assert other.execute(READ, [key]).fetchall() == [(1001,)]


def test_a_member_that_cannot_return_yet_keeps_the_only_copies(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another member, which was asked meanwhile, had no lease for a moment: the rows were given up for that."""
    joining: Any = cluster._runtime._controller._joining  # type: ignore[attr-defined]
    let_back, refused = joining.let_back, []

    async def refuse_once(address: Any) -> bool:
        if not refused:
            refused.append(address.id)
            raise TopologyChangedError("m2 has received nothing from its cluster for longer than its lease")
        return bool(await let_back(address))

    monkeypatch.setattr(joining, "let_back", refuse_once)
    with cluster.connect() as conn:
        conn.execute(DDL.format(backups=0))
        conn.table("t").load(rows())
        with without(cluster, "m1"):
            pass
        is_back(cluster)
        assert refused == ["m1"]
        assert conn.execute(TOTALS).fetchall() == TOTAL


def test_a_member_that_left_while_it_built_copies_keeps_nothing_of_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 658 of the simulation: it waited for these rows for good."""
    call = Peers.call
    opening, go_on = threading.Event(), asyncio.Event()

    async def held(self: Peers, member_id: str, message: Any, payload: Any = b"") -> Any:
        if isinstance(message, OpenCopies) and message.member == "m1" and not go_on.is_set():
            opening.set()
            await go_on.wait()
            raise UnreachableError("it is cut off")
        return await call(self, member_id, message, payload)

    def on_their_way() -> list[Any]:
        member: Any = cluster._runtime._members["m1"]  # type: ignore[attr-defined]
        received = member._replication.copies.received
        return [*received._expected, *received._arriving]

    with cluster.connect() as conn:
        conn.execute(DDL.format(backups=0).replace("TABLE t", "TABLE alone").replace("PARTITIONS 8", "PARTITIONS 7"))
        conn.execute(DDL.format(backups=1))
        conn.table("t").load(rows())
        monkeypatch.setattr(Peers, "call", held)
        with without(cluster, "m2"):
            assert opening.wait(20)
            with without(cluster, "m1"):
                assert on_their_way()
                on_loop(cluster, go_on.set)
        is_back(cluster)
        assert on_loop(cluster, on_their_way) == []
        assert conn.execute(TOTALS).fetchall() == TOTAL


def test_a_member_returns_again_and_again(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute(DDL.format(backups=0))
        conn.table("t").load(rows())
        for _ in range(3):
            with without(cluster, "m2"):
                pass
            is_back(cluster, "m2")
            assert conn.execute(TOTALS).fetchall() == TOTAL


def test_copies_that_others_have_served_since_count_for_nothing(cluster: Cluster) -> None:
    """The member is the last owner of a partition of one table, and one of two owners of those of another."""
    with cluster.connect() as conn, cluster.connect() as other:
        conn.execute(DDL.format(backups=1))
        conn.execute(DDL.format(backups=0).replace("TABLE t", "TABLE alone").replace("PARTITIONS 8", "PARTITIONS 7"))
        conn.table("t").load(rows())
        conn.table("alone").load(rows())
        served = keys_of(conn, "m1")
        with without(cluster, "m1"):
            for key in served:
                conn.execute("INSERT OR REPLACE INTO t VALUES (?, -1)", [key])
        is_back(cluster)
        for reader in (conn, other):
            assert [reader.execute(READ, [key]).fetchall() for key in served] == [[(-1,)]] * len(served)
            assert reader.execute("SELECT count(*), sum(v) FROM alone").fetchall() == TOTAL
        eventually(
            lambda: (
                conn.execute("SELECT max(copies_missing) FROM secateur.partitions WHERE table_name = 't'").fetchall()
                == [(0,)]
            ),
            "the copies were not built again",
        )
        cluster.kill_member("m2")
        assert [other.execute(READ, [key]).fetchall() for key in served] == [[(-1,)]] * len(served)


def test_what_happened_to_tables_meanwhile_is_made_up_for(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute(DDL.format(backups=0))
        conn.execute("CREATE TABLE gone (id BIGINT PRIMARY KEY)")
        conn.execute("CREATE TABLE everywhere (id BIGINT, v BIGINT, PRIMARY KEY (id)) REPLICATED")
        conn.execute(
            "CREATE TABLE d (k BIGINT, v BIGINT, PRIMARY KEY (k))"
            " PARTITION BY RANGE (k) (PARTITION 0 <= VALUES < 10, PARTITION 10 <= VALUES < 20)"
            " BACKUPS 0"
        )
        for name in ("t", "everywhere"):
            conn.table(name).load(rows())
        conn.execute("INSERT INTO d VALUES (1, 1), (11, 11)")
        with without(cluster, "m1"):
            conn.execute("DROP TABLE gone")
            conn.execute("UPDATE everywhere SET v = v + 1")
            conn.execute("CREATE INDEX by_v ON t (v)")
            conn.execute("ALTER TABLE d ADD PARTITION 20 <= VALUES < 30")
            conn.execute("CREATE TABLE late (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 0")
            conn.execute("INSERT INTO late VALUES (1), (2), (3)")
        is_back(cluster)
        assert conn.execute(TOTALS).fetchall() == TOTAL
        assert conn.execute("SELECT count(*) FROM t WHERE v = 7").fetchall() == [(1,)]
        assert conn.execute("SELECT count(*) FROM late").fetchall() == [(3,)]
        conn.execute("INSERT INTO d VALUES (21, 21)")
        assert conn.execute("SELECT sum(v) FROM d").fetchall() == [(33,)]
        for _ in range(6):  # clients take the members in turn
            assert conn.execute("SELECT sum(v) FROM everywhere").fetchall() == [(sum(range(ROWS)) + ROWS,)]
        members: Any = cluster._runtime._members  # type: ignore[attr-defined]
        assert "gone" not in {table.name for table in members["m1"]._storage.store.tables()}
        assert conn.execute("UPDATE t SET v = 0").rowcount == ROWS
        conn.table("t").load(rows(), mode="overwrite")
        assert conn.execute(TOTALS).fetchall() == TOTAL


def test_a_table_that_was_altered_twice_meanwhile_is_there_once(cluster: Cluster) -> None:
    """The rows of before stayed in memory for good: no request names that table any more."""
    with cluster.connect() as conn:
        conn.execute(DDL.format(backups=0))
        conn.execute("CREATE TABLE copied (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 6 BACKUPS 1")
        conn.execute("CREATE TABLE everywhere (id BIGINT PRIMARY KEY) REPLICATED")
        for name in ("copied", "everywhere"):
            conn.execute(f"INSERT INTO {name} SELECT unnest(range(40))")
        with without(cluster, "m1"):
            for name in ("copied", "everywhere"):
                conn.execute(f"ALTER TABLE {name} ADD COLUMN v BIGINT DEFAULT 1")
                conn.execute(f"ALTER TABLE {name} ADD COLUMN w BIGINT DEFAULT 2")
        is_back(cluster)
        healed(conn)
        for name in ("copied", "everywhere"):
            assert conn.execute(f"SELECT sum(v), sum(w) FROM {name}").fetchall() == [(40, 80)]
        members: Any = cluster._runtime._members  # type: ignore[attr-defined]
        assert [table.name for table in members["m1"]._storage.store.tables()] == ["t", "copied", "everywhere"]


def test_all_members_may_be_away_at_once(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute(DDL.format(backups=1))
        conn.execute("CREATE TABLE everywhere (id BIGINT, v BIGINT, PRIMARY KEY (id)) REPLICATED")
        for name in ("t", "everywhere"):
            conn.table(name).load(rows())
        with without(cluster, "m1", "m2", "m3"):
            pass
        eventually(lambda: len(alive(cluster)) == 3, "not all came back")
        assert conn.execute(TOTALS).fetchall() == TOTAL
        for _ in range(6):
            assert conn.execute("SELECT sum(v) FROM everywhere").fetchall() == [(sum(range(ROWS)),)]


def everywhere(cluster: Cluster, conn: secateur.Connection, sql: str) -> set[tuple[Any, ...]]:
    """The row that each member answers to a query of a replicated table; clients take the members in turn."""
    turns = 2 * len(alive(cluster))
    try:
        return {tuple(conn.execute(sql).fetchall()[0]) for _ in range(turns)}
    except PartitionLostError:  # one lacks the rows still
        return set()


def test_replicated_rows_come_back_to_members_that_joined_without_them(cluster: Cluster) -> None:
    """Seed 21507 of the simulation: the member that came back with the rows kept them for itself."""
    total = "SELECT sum(v) FROM everywhere"
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE everywhere (id BIGINT, v BIGINT, PRIMARY KEY (id)) REPLICATED")
        conn.table("everywhere").load(rows())
        with without(cluster, "m3", "m2"):
            conn.execute("UPDATE everywhere SET v = v + 1")  # m1 alone has that
            with without(cluster, "m1"):
                cluster.scale(2)
                with pytest.raises(PartitionLostError, match="rows of replicated table everywhere"):
                    conn.execute(total)
        is_back(cluster, "m1")
        expected = {(sum(range(ROWS)) + ROWS,)}
        eventually(lambda: everywhere(cluster, conn, total) == expected, "a member has other rows, or none")


def test_outdated_replicated_rows_do_not_come_back_to_another_controller(cluster: Cluster) -> None:
    """The members that live have none, so the next controller learned of no load: the first that came was believed."""
    total = "SELECT sum(v) FROM everywhere"
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE everywhere (id BIGINT, v BIGINT, PRIMARY KEY (id)) REPLICATED")
        conn.table("everywhere").load(rows())
        with without(cluster, "m3", "m2"):
            conn.execute("UPDATE everywhere SET v = v + 1")  # m1 alone has that
            with without(cluster, "m1"):
                cluster.scale(2)
                with pytest.raises(PartitionLostError, match="rows of replicated table everywhere"):
                    conn.execute(total)
                cluster.kill_controller()
                eventually(lambda: states(cluster).get("m4") == "active", "the controller did not take over")
        expected = {(sum(range(ROWS)) + ROWS,)}
        eventually(lambda: everywhere(cluster, conn, total) == expected, "a member has other rows, or none")


def test_replicated_rows_come_back_after_a_load_that_was_in_doubt(cluster: Cluster) -> None:
    """The controller that began the load has ended, and the next one did not learn how the members had decided."""
    total = "SELECT sum(v) FROM everywhere"
    runtime: Any = cluster._runtime
    with cluster.connect() as conn, cluster.connect() as dying, ThreadPoolExecutor(1) as thread:
        conn.execute("CREATE TABLE everywhere (id BIGINT, v BIGINT, PRIMARY KEY (id)) REPLICATED")
        conn.table("everywhere").load(rows())
        held = [Held(cluster, member.handlers, Operation.PUBLISH_PREPARED_LOAD) for member in runtime._members.values()]
        change = thread.submit(dying.execute, "UPDATE everywhere SET v = v + 1")
        assert all(orders.arrived.wait(20) for orders in held)
        dying.interrupt()
        cluster.kill_controller()
        for orders in held:
            orders.drop()
        with pytest.raises(secateur.Error):
            change.result()
        eventually(lambda: list(states(cluster).values()).count("active") == 3, "the controller did not take over")
        with without(cluster, "m3", "m2", "m1"):
            pass
        eventually(lambda: everywhere(cluster, conn, total) == {(sum(range(ROWS)),)}, "rows are missing, or outdated")


@pytest.mark.parametrize("others_join", [False, True])
def test_a_change_feed_goes_on_behind_a_load_whose_members_were_away_before_they_told_of_it(
    cluster: Cluster, others_join: bool
) -> None:
    """Versions went back to those before the load, so a reader that had read it missed the changes that followed."""
    runtime: Any = cluster._runtime
    with cluster.connect() as conn, cluster.connect() as other, ThreadPoolExecutor(1) as thread:
        conn.execute(DDL.format(backups=1) + " WITH (change_feed = true)")
        conn.table("t").load(rows(0))
        feed = conn.changes("t")
        members = list(runtime._members.values())
        held = [Held(cluster, member.handlers, Operation.PUBLISH_PREPARED_LOAD, is_made=True) for member in members]
        loading = thread.submit(other.table("t").load, rows(), mode="upsert")
        assert all(answers.arrived.wait(20) for answers in held)
        assert sum(changes.num_rows for changes in feed) == 2 * ROWS, "each row before and after"
        with without(cluster, "m3", "m2", "m1"):
            for answers in held:
                answers.drop()
            with pytest.raises(OperationalError, match="read the table to see whether its rows are visible"):
                loading.result(60)
            if others_join:
                cluster.scale(2)
        for member_id in ("m1", "m2"):  # the other one was the last owner of nothing
            is_back(cluster, member_id)
        assert conn.execute(TOTALS).fetchall() == TOTAL
        for key in range(ROWS):
            conn.execute("UPDATE t SET v = -1 WHERE id = ?", [key])
        assert sum(changes.num_rows for changes in feed) == 2 * ROWS


def test_rows_of_a_lost_partition_do_not_come_back_after_an_overwrite(cluster: Cluster) -> None:
    """A load that replaces the whole table is refused as long as a part of it is out of reach."""
    with cluster.connect() as conn:
        conn.execute(DDL.format(backups=0))
        conn.table("t").load(rows())
        kept = keys_of(conn, "m2")
        with without(cluster, "m1"), pytest.raises(PartitionLostError):
            conn.table("t").load(pa.table({"id": kept, "v": [5] * len(kept)}), mode="overwrite")
        is_back(cluster)
        assert conn.execute(TOTALS).fetchall() == TOTAL


def test_a_member_with_rows_of_a_range_that_was_made_meanwhile_does_not_return(cluster: Cluster) -> None:
    """Nobody looked into its DEFAULT PARTITION when the range was added, so a lookup would miss these rows."""
    with cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE d (k BIGINT, v BIGINT, PRIMARY KEY (k))"
            " PARTITION BY RANGE (k) (PARTITION 0 <= VALUES < 10, DEFAULT PARTITION) BACKUPS 0"
        )
        conn.execute("INSERT INTO d VALUES (25, 25)")
        table = conn.table("d")
        owner = table.owner_of(table.partition_of({"k": 25}))
        with without(cluster, owner):
            conn.execute("ALTER TABLE d ADD PARTITION 20 <= VALUES < 30")
        eventually(lambda: "m4" in alive(cluster), "no member came in its place")
        assert states(cluster)[owner] == "lost"
        assert conn.execute("SELECT v FROM d WHERE k = 25").fetchall() == []
