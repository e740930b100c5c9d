"""Everything ends, and is started again on the same data directory: what was acknowledged is there."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from eventually import eventually
from healed import healed
from held_requests import Held

import secateur
from secateur.cluster import Cluster
from secateur.errors import DiskError, OperationalError, PartitionLostError, ProgrammingError, TopologyChangedError
from secateur.protocol import ChangeSeveralPartitions, ChangeStatement, Operation, WriteRows
from secateur.wire import encode_rows

WRITER = Path(__file__).with_name("cold_restart_writer.py")


def start(directory: Path, members: int = 3, **settings: str) -> Cluster:
    return secateur.start(  # type: ignore[call-overload, no-any-return, unused-ignore]
        members=members, runtime="embedded", data_directory=directory, fsync="always", **settings
    )


def rows_of(cluster: Cluster, table: str) -> list[tuple[int, int]]:
    with cluster.connect() as conn:
        return conn.execute(f"SELECT k, v FROM {table} ORDER BY k").fetchall()


def fill(cluster: Cluster, table: str, backups: int, partitions: int = 6) -> None:
    with cluster.connect() as conn:
        conn.execute(
            f"CREATE TABLE {table} (k INTEGER PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS {partitions}"
            f" BACKUPS {backups}"
        )
        for number in range(20):
            conn.execute(f"INSERT INTO {table} VALUES (?, ?)", [number, number])


def test_tables_views_rows_loads_and_changes_are_there_after_a_restart(tmp_path: Path) -> None:
    with start(tmp_path) as cluster, cluster.connect() as conn:
        fill(cluster, "with_backups", 1)
        fill(cluster, "without", 0)
        conn.execute("CREATE TABLE everywhere (k INTEGER PRIMARY KEY, v INTEGER) REPLICATED")
        conn.execute("INSERT INTO everywhere VALUES (1, 2)")
        conn.execute("CREATE TABLE dropped (k INTEGER PRIMARY KEY)")
        conn.execute("CREATE VIEW large AS SELECT k FROM with_backups WHERE v >= 1000")
        conn.execute("UPDATE with_backups SET v = v + 1000 WHERE k < 7")
        conn.execute("DELETE FROM without WHERE k IN (3, 4, 5)")
        loaded = pa.table({"k": pa.array(range(100, 300), pa.int32()), "v": pa.array(range(200), pa.int32())})
        conn.table("without").load(loaded, mode="append")
        conn.execute("DROP TABLE dropped")
        tables = ("with_backups", "without", "everywhere")
        expected = {table: rows_of(cluster, table) for table in tables}
    for turn in range(2):
        with start(tmp_path) as cluster, cluster.connect() as conn:
            assert {table: rows_of(cluster, table) for table in tables} == expected
            assert len(conn.execute("SELECT * FROM large").fetchall()) == 7
            conn.execute("INSERT INTO without VALUES (?, 0)", [1000 + turn])  # it takes writes, loads and definitions
            conn.table("with_backups").load(loaded.slice(turn, 1), mode="append")
            conn.execute(f"CREATE TABLE new{turn} (k INTEGER PRIMARY KEY)")
            expected = {table: rows_of(cluster, table) for table in tables}


def test_a_member_that_is_lost_after_a_restart_is_replaced_by_its_backups(tmp_path: Path) -> None:
    with start(tmp_path) as cluster:
        fill(cluster, "t", 1)
    with start(tmp_path) as cluster:
        with cluster.connect() as conn:
            conn.execute("UPDATE t SET v = v + 100")
        expected = rows_of(cluster, "t")
        cluster.kill_member("m2")
        assert rows_of(cluster, "t") == expected


def test_a_process_that_is_replaced_has_the_rows_without_backups_on_disk(tmp_path: Path) -> None:
    with start(tmp_path) as cluster:
        fill(cluster, "without", 0)
        fill(cluster, "with_backups", 1, partitions=7)
        expected = rows_of(cluster, "without")
        for member_id in ("m1", "m3"):
            cluster.kill_member(member_id)
            eventually(
                lambda member_id=member_id: {info.id: info.is_alive for info in cluster.members()}[member_id],  # type: ignore[misc]
                f"{member_id} did not come back with its data",
            )
            assert rows_of(cluster, "without") == expected
            assert rows_of(cluster, "with_backups") == expected
        with cluster.connect() as conn:
            assert conn.execute("UPDATE without SET v = v + 1").rowcount == len(expected)
    with start(tmp_path) as cluster:
        assert rows_of(cluster, "without") == [(key, value + 1) for key, value in expected]


@pytest.mark.parametrize("by_another_controller", [False, True])
def test_processes_that_are_replaced_have_replicated_rows_on_disk(tmp_path: Path, by_another_controller: bool) -> None:
    """The members are lost one after the other, and the first of them lacks a change.

    Another controller knows the newest publication from a member that joined without the rows, and not who was lost.
    """

    async def leave_it() -> None:
        pass

    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE everywhere (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED")
        conn.table("everywhere").load({"id": list(range(20)), "v": [1] * 20})
        runtime: Any = cluster._runtime
        replace, runtime._replace_later = runtime._replace_later, leave_it
        cluster.kill_member("m1")
        conn.execute("UPDATE everywhere SET v = v + 1")
        cluster.kill_member("m2")
        cluster.kill_member("m3")
        if by_another_controller:
            runtime.start_members(["m4"])
            cluster.kill_controller()
        for _ in range(3 - by_another_controller):
            runtime._loop.run(replace())

        def answers() -> set[Any]:
            try:
                return {conn.execute("SELECT sum(v) FROM everywhere").fetchall()[0] for _ in range(6)}
            except OperationalError:
                return set()

        eventually(lambda: len([member for member in cluster.members() if member.is_alive]) == 3, "members are missing")
        eventually(lambda: answers() == {(40,)}, "rows are missing, or outdated")


def test_copies_that_were_built_are_there_after_a_restart(tmp_path: Path) -> None:
    """Each copy alone answers: the other one is lost after the restart."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        fill(cluster, "t", 1)
        cluster.kill_member("m2")
        healed(conn)
        conn.execute("UPDATE t SET v = v + 100")
        expected = rows_of(cluster, "t")
    for turn in range(2):
        with start(tmp_path) as cluster, cluster.connect() as conn:
            assert rows_of(cluster, "t") == expected
            living = [member.id for member in cluster.members() if member.is_alive]
            cluster.kill_member(living[turn])
            assert rows_of(cluster, "t") == expected
            healed(conn)


def _log_of(directory: Path) -> Path:
    return max(directory.glob("log-*"), key=lambda file: int(file.name.removeprefix("log-")))


def _damage(directory: Path) -> Path:
    """Garble a record that was on disk before others were written."""
    log = _log_of(directory)
    data = bytearray(log.read_bytes())
    data[len(data) // 3] ^= 0xFF
    log.write_bytes(data)
    return log


def test_a_member_whose_log_is_damaged_is_replaced_if_others_have_its_partitions(tmp_path: Path) -> None:
    with start(tmp_path) as cluster:
        fill(cluster, "t", 1)
        expected = rows_of(cluster, "t")
    _damage(tmp_path / "m2")
    with start(tmp_path) as cluster:
        assert rows_of(cluster, "t") == expected
        assert "m2" not in {member.id for member in cluster.members() if member.is_alive}


@pytest.mark.smoke
def test_damage_to_the_only_copy_is_an_error_that_names_partition_and_file(tmp_path: Path) -> None:
    with start(tmp_path) as cluster:
        fill(cluster, "t", 0)
    log = _damage(tmp_path / "m2")
    with pytest.raises(PartitionLostError) as raised:
        start(tmp_path)
    assert "partition" in str(raised.value)
    assert " of t is on m2 only" in str(raised.value)
    assert log.name in str(raised.value)


@pytest.mark.smoke
def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    with start(tmp_path) as cluster:
        fill(cluster, "t", 0)
        expected = rows_of(cluster, "t")
    log = _log_of(tmp_path / "m1")
    torn = b"\xf1SLG half of a frame"
    log.write_bytes(log.read_bytes() + torn)
    with start(tmp_path) as cluster, cluster.connect() as conn:
        assert rows_of(cluster, "t") == expected
        events = conn.execute("SELECT member, detail FROM secateur.events WHERE kind = 'log_cut'").fetchall()
        assert events == [("m1", f"{len(torn)} bytes at the end were not completely written")]


def test_what_a_torn_tail_had_comes_back_from_another_copy(tmp_path: Path) -> None:
    """As after a loss of power of one host whose disk had not written what it said it had."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        fill(cluster, "t", 1)
        conn.execute("UPDATE t SET v = v + 100")
        expected = rows_of(cluster, "t")
    log = _log_of(tmp_path / "m1")
    log.write_bytes(log.read_bytes()[: -log.stat().st_size // 3])
    with start(tmp_path) as cluster:
        assert rows_of(cluster, "t") == expected
        with cluster.connect() as conn:
            healed(conn)
        cluster.kill_member("m2")
        assert rows_of(cluster, "t") == expected, "the other copies are whole"


@pytest.mark.parametrize("backups", [0, 1])
def test_a_change_of_columns_that_a_disk_has_lost_is_taken_over(tmp_path: Path, backups: int) -> None:
    with start(tmp_path) as cluster, cluster.connect() as conn:
        fill(cluster, "t", backups)
        conn.execute("CREATE TABLE everywhere (k INTEGER PRIMARY KEY, v INTEGER) REPLICATED")
        conn.execute("INSERT INTO everywhere VALUES (1, 2)")
    with start(tmp_path) as cluster, cluster.connect() as conn:
        for table in ("t", "everywhere"):
            conn.execute(f"ALTER TABLE {table} ADD COLUMN w INTEGER DEFAULT 5, DROP COLUMN v")
    _log_of(tmp_path / "m2").write_bytes(b"")
    for _ in range(2):
        with start(tmp_path) as cluster, cluster.connect() as conn:
            assert conn.execute("SELECT * FROM t ORDER BY k").fetchall() == [(k, 5) for k in range(20)]
            assert conn.execute("SELECT * FROM everywhere").fetchall() == [(1, 5)]
            assert conn.execute("UPDATE t SET w = w + 1 WHERE k = 3").rowcount == 1
            conn.execute("UPDATE t SET w = 5 WHERE k = 3")
            healed(conn)


@pytest.mark.parametrize("backups", [0, 1])
def test_a_change_of_ranges_that_a_disk_has_lost_is_taken_over(tmp_path: Path, backups: int) -> None:
    """Seed 1276 of the simulation: the other members have the new ranges, and one that lied has those of before."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE r (k INTEGER PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 6,"
            f" RANGE (k) (PARTITION VALUES < 100) BACKUPS {backups}"
        )
        conn.table("r").load(pa.table({"k": pa.array(range(60), pa.int32()), "v": pa.array(range(60), pa.int32())}))
        expected = rows_of(cluster, "r")
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute("ALTER TABLE r ADD PARTITION 100 <= VALUES < 200")
    _log_of(tmp_path / "m2").write_bytes(b"")
    with start(tmp_path) as cluster, cluster.connect() as conn:
        assert rows_of(cluster, "r") == expected
        events = conn.execute("SELECT detail FROM secateur.events WHERE member = 'm2' AND detail LIKE '%ALTER TABLE r'")
        assert events.fetchall() == [("its disk has lost an ALTER TABLE r",)]
        conn.execute("INSERT INTO r SELECT k + 100, v FROM r")
        assert len(rows_of(cluster, "r")) == 2 * len(expected)


def test_a_new_range_that_every_disk_has_lost_has_its_copies_before_a_member_dies(tmp_path: Path) -> None:
    """Its backup was counted on without being there, and was made the primary of what it did not have."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE r (k INTEGER PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 6,"
            " RANGE (k) (PARTITION VALUES < 100) BACKUPS 1"
        )
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute("ALTER TABLE r ADD PARTITION 100 <= VALUES < 200")
    for member in ("m1", "m2", "m3"):
        _log_of(tmp_path / member).write_bytes(b"")
    with start(tmp_path) as cluster, cluster.connect() as conn:
        healed(conn)
        cluster.kill_member("m2")
        conn.execute("INSERT INTO r SELECT unnest(range(100, 200))")
        assert conn.execute("SELECT count(*) FROM r").fetchall() == [(100,)]


def _altered_twice(directory: Path, backups: int) -> None:
    """A table that is altered twice after a cold start, so that the log of a member has just that."""
    with start(directory) as cluster, cluster.connect() as conn:
        fill(cluster, "t", backups)
    with start(directory) as cluster, cluster.connect() as conn:
        conn.execute("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 5")
        conn.execute("ALTER TABLE t DROP COLUMN v")


@pytest.mark.smoke
def test_a_member_whose_disk_has_lost_several_changes_of_columns_is_replaced(tmp_path: Path) -> None:
    """Seed 6367083 of the simulation: it stayed the owner of rows that it could not make those of now from."""
    _altered_twice(tmp_path, 1)
    _log_of(tmp_path / "m2").write_bytes(b"")
    with start(tmp_path) as cluster, cluster.connect() as conn:
        assert conn.execute("SELECT * FROM t ORDER BY k").fetchall() == [(k, 5) for k in range(20)]
        assert "m2" not in {member.id for member in cluster.members() if member.is_alive}
        healed(conn)
        cluster.kill_member("m1")
        assert conn.execute("SELECT * FROM t ORDER BY k").fetchall() == [(k, 5) for k in range(20)]


@pytest.mark.parametrize(("backups", "liars"), [(0, ["m2"]), (1, ["m1", "m2", "m3"])])
def test_rows_that_only_disks_have_that_lost_several_changes_of_columns_are_lost(
    tmp_path: Path, backups: int, liars: list[str]
) -> None:
    """The table was without them, or without any, and statements were tried again for good."""
    _altered_twice(tmp_path / "cluster", backups)
    shutil.copytree(tmp_path / "cluster", tmp_path / "copy")
    for member in liars:
        _log_of(tmp_path / "cluster" / member).write_bytes(b"")
    with pytest.raises(PartitionLostError, match=r"partition \d of t is on .* restore the directory"):
        start(tmp_path / "cluster")
    with start(tmp_path / "copy") as cluster, cluster.connect() as conn:
        assert conn.execute("SELECT * FROM t ORDER BY k").fetchall() == [(k, 5) for k in range(20)]


def test_a_disk_that_has_lost_a_change_of_columns_follows_one_that_was_under_way_as_well(tmp_path: Path) -> None:
    """It was told of the second one only, from which nobody knows the way back to the rows that it has."""
    directory, copy = tmp_path / "cluster", tmp_path / "copy"
    with start(directory) as cluster, cluster.connect() as conn:
        fill(cluster, "t", 0)
    with start(directory) as cluster, cluster.connect() as conn, ThreadPoolExecutor(1) as thread:
        conn.execute("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 5")
        members: Any = cluster._runtime._members
        held = [
            Held(cluster, members[name].handlers, Operation.COMMIT_ALTER, is_made=name == "m1")
            for name in ("m1", "m2", "m3")
        ]
        altering = thread.submit(conn.execute, "ALTER TABLE t DROP COLUMN v")
        assert all(orders.arrived.wait(20) for orders in held)
        shutil.copytree(directory, copy)  # as a loss of power leaves it
        for orders in held:
            orders.release()
        altering.result(20)
    _log_of(copy / "m2").write_bytes(b"")
    with start(copy) as cluster, cluster.connect() as conn:
        assert conn.execute("SELECT * FROM t ORDER BY k").fetchall() == [(k, 5) for k in range(20)]


@pytest.mark.parametrize("backups", [0, 1])
def test_a_member_that_cannot_follow_a_change_of_columns_is_removed(tmp_path: Path, backups: int) -> None:
    """Its disk has lost the change of a NULL as well; it stayed an owner and had no table."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        fill(cluster, "t", backups)
        conn.execute("UPDATE t SET v = NULL WHERE k = 3")
        owner = conn.table("t").owner_of(conn.table("t").partition_of({"k": 3}))
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute("UPDATE t SET v = 3 WHERE k = 3")
        conn.execute("ALTER TABLE t ALTER v SET NOT NULL")
    _log_of(tmp_path / owner).write_bytes(b"")
    with start(tmp_path) as cluster, cluster.connect() as conn:
        if backups:
            assert rows_of(cluster, "t") == [(k, k) for k in range(20)]
            healed(conn)
        else:
            with pytest.raises(PartitionLostError, match=owner):
                rows_of(cluster, "t")


@pytest.mark.parametrize("backups", [0, 1])
def test_a_change_of_ranges_before_one_of_columns_is_made_again_with_it(tmp_path: Path, backups: int) -> None:
    """The new range had owners, and none of them had it."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE r (k INTEGER PRIMARY KEY) PARTITION BY HASH (k) PARTITIONS 6,"
            f" RANGE (k) (PARTITION VALUES < 100) BACKUPS {backups}"
        )
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute("ALTER TABLE r ADD PARTITION 100 <= VALUES < 200")
        conn.execute("ALTER TABLE r ADD COLUMN w INTEGER DEFAULT 5")
    for member in ("m1", "m2", "m3"):
        _log_of(tmp_path / member).write_bytes(b"")
    with start(tmp_path) as cluster, cluster.connect() as conn:
        healed(conn)
        conn.execute("INSERT INTO r (k) SELECT unnest(range(100, 200))")
        assert conn.execute("SELECT count(*), sum(w) FROM r").fetchall() == [(100, 500)]


def test_a_change_that_is_asked_for_again_is_known_to_a_copy_that_was_built(tmp_path: Path) -> None:
    """Seed 1941 of the simulation: the client had not heard of its change, and the new owner made it twice."""

    def write(cluster: Cluster, partition: int, key: int) -> int:
        with cluster.connect() as conn:
            owner = conn.table("t").owner_of(partition)
            asked = WriteRows(conn._session.table("t").table_id, partition, "append", f"change of {partition}")
            rows = pa.table({"k": pa.array([key], pa.int32()), "v": pa.array([key], pa.int32())})
            written: list[int] = []

            def is_written() -> bool:
                try:
                    written.append(conn._session.ask_member(owner, asked, encode_rows(rows)).message.rows)
                except TopologyChangedError:  # a busy machine let the lease of the owner end; nothing was done
                    return False
                return True

            eventually(is_written, "the owner got no lease")
            return written[0]

    with start(tmp_path, members=1) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 0")
        table = conn.table("t")
        keys = {table.partition_of({"k": key}): key for key in range(200)}
        for partition, key in keys.items():
            assert write(cluster, partition, key) == 1
        cluster.scale(2)
        owners = "SELECT DISTINCT primary_member FROM secateur.partitions ORDER BY 1"
        eventually(lambda: conn.execute(owners).fetchall() == [("m1",), ("m2",)], "no partition has moved")
    with start(tmp_path, members=2) as cluster:
        for partition, key in keys.items():
            assert write(cluster, partition, key) == 1
        assert rows_of(cluster, "t") == sorted((key, key) for key in keys.values())


def test_a_conditional_change_that_is_asked_for_again_says_whether_it_was_made(tmp_path: Path) -> None:
    """Seed 2859404 of the simulation: it was made, and nobody knew of how many rows, so its client thought of none."""
    with start(tmp_path) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE everywhere (k INTEGER PRIMARY KEY, v INTEGER) REPLICATED")
        conn.execute("INSERT INTO everywhere VALUES (1, 49)")
        prepared, _ = conn._session.prepare("UPDATE everywhere SET v = ? WHERE k = ? AND v = ?", [68, 1, 49])
        assert isinstance(prepared, ChangeStatement)
        change = ChangeSeveralPartitions("the change", prepared.select.plan_id, [68, 1, 49], True, prepared.kind)
        assert conn._session.ask(change).message.rows == 1
    for _ in range(2):  # once from the log, once from a checkpoint
        with start(tmp_path) as cluster, cluster.connect() as conn:
            assert conn._session.ask(msgspec.structs.replace(change, is_repeat=True)).message.rows == 1
            assert rows_of(cluster, "everywhere") == [(1, 68)]


def test_a_directory_in_use_or_of_others_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with start(directory, members=2), pytest.raises(DiskError, match="in use by another process"):
        start(directory, members=2)
    with pytest.raises(ProgrammingError, match="has the data of 2 members, and members=1: start all of them"):
        start(directory, members=1)
    with pytest.raises(ProgrammingError, match=r"belongs to cluster '.*', not to 'other'"):
        start(directory, members=2, cluster_id="other")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "letter.txt").write_text("not ours")
    with pytest.raises(DiskError, match="is not that of a cluster"):
        start(tmp_path / "files")
    newer = {"format": 99, "cluster": "c"}
    (directory / "CLUSTER").write_bytes(msgspec.json.encode(newer))
    with pytest.raises(DiskError, match="written by a newer secateur"):
        start(directory, members=2)


def test_members_of_another_cluster_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with start(tmp_path / name, members=1):
            pass
    (tmp_path / "b" / "m1").rename(tmp_path / "b" / "old")
    (tmp_path / "a" / "m1").rename(tmp_path / "b" / "m1")
    with pytest.raises(DiskError, match="files were moved between data directories"):
        start(tmp_path / "b", members=1)


def test_a_cluster_can_be_started_with_more_members_than_it_had(tmp_path: Path) -> None:
    with start(tmp_path, members=2) as cluster:
        fill(cluster, "t", 1)
        expected = rows_of(cluster, "t")
    with start(tmp_path, members=3) as cluster:
        assert rows_of(cluster, "t") == expected
        assert len([member for member in cluster.members() if member.is_alive]) == 3


def _killed_under_writes(directory: Path, rng: random.Random, first: int) -> tuple[dict[int, int], int]:
    """Run a cluster in a process that writes, and kill it at a random moment; the writes that it has acknowledged."""
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(directory), str(first)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    acknowledged, last, stop_after = {}, first, rng.randint(5, 120)
    for line in process.stdout:
        key, value = map(int, line.split())
        acknowledged[key] = value
        last = max(last, value)
        if len(acknowledged) >= stop_after:
            process.send_signal(signal.SIGKILL)
            break
    for line in process.stdout:  # what it had said before it was killed
        if line.endswith("\n"):
            key, value = map(int, line.split())
            acknowledged[key] = value
            last = max(last, value)
    process.wait()
    process.stdout.close()
    assert acknowledged
    return acknowledged, last


def _rounds(directory: Path, count: int, seed: int) -> None:
    rng, expected, last = random.Random(seed), {}, 0
    for _ in range(count):
        acknowledged, last = _killed_under_writes(directory, rng, last + 1)
        expected.update(acknowledged)
        with start(directory) as cluster:
            found = dict(rows_of(cluster, "t"))
        # A write that was under way may have been made: its value is newer than the acknowledged one.
        lost = {key: (value, found.get(key)) for key, value in expected.items() if found.get(key, -1) < value}
        assert not lost
        batches = {value for key, value in found.items() if key >= 1_000_000}
        for batch in batches:  # a load is there as a whole or not at all
            assert sum(value == batch for key, value in found.items() if key >= 1_000_000) == 30
        expected.update(found)


def test_acknowledged_writes_survive_sigkill_of_everything(tmp_path: Path) -> None:
    _rounds(tmp_path, 2, seed=random.SystemRandom().randrange(1 << 30))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_acknowledged_writes_survive_fifty_rounds_of_sigkill(tmp_path: Path) -> None:
    _rounds(tmp_path, 50, seed=random.SystemRandom().randrange(1 << 30))
