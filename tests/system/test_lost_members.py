"""A member dies and nobody has noticed yet, or all have: DDL, writes and jobs go on or say why not, and leave nothing
half done.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from between_steps import once_after_a_step
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.connectors import collect
from secateur.dag import Processor
from secateur.errors import DagError, PartitionLostError
from secateur.protocol import StepResult

DDL = (
    "CREATE TABLE {name} (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS {partitions} BACKUPS"
    " {backups}"
)
ROWS = pa.table({"id": pa.array(range(100)), "v": pa.array(range(100))})


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(
        members=3, runtime="embedded", member_silence_s=2.0, rebalancing=False, replace_members=False
    ) as cluster:
        yield cluster


def create(conn: secateur.Connection, name: str, *, partitions: int = 13, backups: int = 1) -> None:
    conn.execute(DDL.format(name=name, partitions=partitions, backups=backups))


def end_unnoticed(cluster: Cluster, member_id: str) -> None:
    """End a member without a word to the controller, as a crash does."""
    cluster._runtime.kill_member(member_id)


def test_a_table_created_over_an_unnoticed_loss_has_owners_that_live(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        end_unnoticed(mortal, "m2")
        create(conn, "a", backups=0)
        create(conn, "b", partitions=7)
        for name in ("a", "b"):
            assert conn.table(name).load(ROWS) == 100
            assert conn.execute(f"SELECT count(*), sum(v) FROM {name}").fetchall() == [(100, 4950)]


@pytest.mark.parametrize("lost", ["the coordinator", "the member of the rest"])
def test_a_query_in_steps_goes_on_when_a_member_dies_between_its_steps(
    mortal: Cluster, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    with mortal.connect() as conn:
        create(conn, "t")
        conn.table("t").load(ROWS)
        owners = [conn.table("t").owner_of(conn.table("t").partition_of({"id": key})) for key in range(100)]
        other = next(key for key in range(100) if owners[key] != owners[0])
        sql = "SELECT v FROM t WHERE id = (SELECT v + ? FROM t WHERE id = 0)"
        assert conn.execute(sql, [other]).fetchall() == [(other,)]
        member = owners[0] if lost == "the coordinator" else owners[other]
        once_after_a_step(monkeypatch, lambda: end_unnoticed(mortal, member))
        cursor = conn.execute(sql, [other])
        assert cursor.fetchall() == [(other,)]
        assert cursor.stats is not None
        assert cursor.stats.steps == (StepResult(1, used=True),)


def test_a_write_whose_backup_dies_is_acknowledged_once_the_loss_is_noticed(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t")
        table = conn.table("t")
        conn.execute("INSERT INTO t VALUES (1, 1)")
        end_unnoticed(mortal, "m2")
        keys = [key for key in range(100, 200) if table.owner_of(table.partition_of({"id": key})) != "m2"][:12]
        for key in keys:
            conn.execute("INSERT INTO t VALUES (?, 1)", [key])
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(len(keys) + 1,)]


def test_a_table_without_co_located_ones_gets_new_owners(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", backups=0)
        conn.execute("DROP TABLE t")
        create(conn, "t", backups=1)  # what a dropped table had binds nobody
        conn.execute("DROP TABLE t")
        create(conn, "t", backups=0)
        mortal.kill_member("m3")
        with pytest.raises(PartitionLostError, match="m3"):
            conn.execute("SELECT count(*) FROM t")
        conn.execute("DROP TABLE t")
        create(conn, "t", backups=0)
        assert conn.table("t").load(ROWS) == 100
        assert conn.execute("SELECT count(*) FROM t").fetchall() == [(100,)]


def test_a_cluster_without_members_says_so(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        conn.execute("CREATE TABLE everywhere (id BIGINT, PRIMARY KEY (id)) REPLICATED")
        for member in ("m1", "m2", "m3"):
            mortal.kill_member(member)
        for use in (
            lambda: create(conn, "t"),
            lambda: conn.execute("SELECT * FROM everywhere"),
            lambda: conn.execute("INSERT INTO everywhere VALUES (1)"),
            lambda: conn.submit(endless(), secateur.JobConfig()),
        ):
            with pytest.raises(PartitionLostError, match="no member is left in the cluster"):
                use()


def test_a_job_over_partitions_that_are_not_there_is_refused(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", backups=0)
        with pytest.raises(DagError, match="t has the partitions 0 to 12, not 13, 14"):
            conn.submit(endless(), secateur.JobConfig(required_partitions={"t": frozenset({3, 13, 14})}))
        mortal.kill_member("m3")
        with pytest.raises(PartitionLostError, match="m3"):
            conn.submit(endless(), secateur.JobConfig(required_partitions={"t": frozenset(range(13))}))


def test_a_light_job_ends_when_its_connection_is_closed(mortal: Cluster) -> None:
    conn = mortal.connect()
    conn.submit(endless(), secateur.JobConfig(), light=True)
    until_running(mortal, running=True)
    conn.close()
    until_running(mortal, running=False)


class Endless(Processor):
    """Never completes."""

    def complete(self) -> bool:
        return False


def endless() -> secateur.DAG:
    dag = secateur.DAG()
    dag.new_vertex("read", Endless)
    dag.new_vertex("result", collect())
    dag.edge(secateur.between("read", "result").all_to_one().distributed())
    return dag


def until_running(cluster: Cluster, *, running: bool) -> None:
    members = cluster._runtime._members.values()  # type: ignore[attr-defined]
    eventually(
        lambda: any(member._engine.runtime.running_executions for member in members) is running,
        f"jobs running: {not running}",
    )


def rows_of(n: int) -> pa.Table:
    return pa.table({"n": pa.array([n] * 50), "id": pa.array(range(50))})


@pytest.mark.parametrize("backups", [0, 1])
def test_ranges_added_over_an_unnoticed_loss_have_owners_that_live(mortal: Cluster, backups: int) -> None:
    with mortal.connect() as conn:
        conn.execute(
            "CREATE TABLE days (n BIGINT, id BIGINT, PRIMARY KEY (n, id)) PARTITION BY HASH (id) PARTITIONS 6, "
            f"RANGE (n) EVERY 10 (PARTITION 0 <= VALUES < 10) BACKUPS {backups}"
        )
        end_unnoticed(mortal, "m2")
        conn.execute("ALTER TABLE days ADD PARTITION 10 <= VALUES < 20")
        assert conn.table("days").load(rows_of(10)) == 50
        assert conn.execute("SELECT count(*) FROM days WHERE n = 10").fetchall() == [(50,)]
        end_unnoticed(mortal, "m3")
        assert conn.table("days").load(rows_of(20)) == 50  # a range that is made now
        assert conn.execute("SELECT count(*) FROM days WHERE n = 20").fetchall() == [(50,)]


def test_what_is_missing_is_shown_and_what_is_lost_can_be_made_again(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t")
        create(conn, "beside_it")
        conn.table("t").load(ROWS)
        copies = (
            "SELECT primary_member, backup_members, copies_missing FROM secateur.partitions WHERE table_name = 't'"
            " ORDER BY partition"
        )
        whole = conn.execute(copies).fetchall()
        assert {missing for _, _, missing in whole} == {0}
        mortal.kill_member("m2")
        for (primary, backups, _), (primary_now, backups_now, missing) in zip(
            whole, conn.execute(copies).fetchall(), strict=True
        ):
            left = [member for member in (primary, *backups) if member != "m2"]
            assert (primary_now, backups_now, missing) == (left[0], left[1:], 2 - len(left))
        mortal.kill_member("m3")
        lost = [{primary, *backups} == {"m2", "m3"} for primary, backups, _ in whole]
        assert [(primary, missing) for primary, _, missing in conn.execute(copies).fetchall()] == [
            (None, 2) if gone else ("m1", 1) for gone in lost
        ]
        for use in (
            lambda: conn.execute("SELECT count(*) FROM t"),
            lambda: conn.table("t").load(ROWS, mode="overwrite"),
        ):
            with pytest.raises(
                PartitionLostError,
                match=r"last copies .* were on m3, which left the cluster .* DROP the table, CREATE it again and"
                r" load it",
            ):
                use()
        for name in ("t", "beside_it"):
            conn.execute(f"DROP TABLE {name}")
            create(conn, name)
            assert conn.table(name).load(ROWS) == 100
        assert conn.execute("SELECT count(*), sum(t.v) FROM t JOIN beside_it USING (id)").fetchall() == [(100, 4950)]


def test_rows_of_a_replicated_table_that_no_member_has_are_said_to_be_lost(mortal: Cluster) -> None:
    """Seed 5235 of the simulation: an index error, and then partitions that were said to be elsewhere."""
    with mortal.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED")
        conn.table("t").load(ROWS)
        handle = conn.table("t")
        uses = (
            lambda: conn.execute("SELECT v FROM t WHERE id = 1"),
            lambda: conn.execute("SELECT count(*) FROM t"),
            lambda: conn.execute("UPDATE t SET v = 2 WHERE id = 1"),
            lambda: conn.execute("INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING"),
            lambda: conn.execute("MERGE INTO t USING (SELECT 1 AS id) s USING (id) WHEN MATCHED THEN DELETE"),
            lambda: handle.get(1),
            lambda: handle.put((1, 1)),
            lambda: handle.delete(1),
            lambda: handle.owner_of(0),
            lambda: handle.load(ROWS, mode="upsert"),
        )
        for member in ("m1", "m2", "m3"):
            end_unnoticed(mortal, member)
        for use in uses:
            with pytest.raises(PartitionLostError, match="no member is left"):
                use()
        mortal.scale(2)
        for use in uses:
            if use is not uses[8]:
                with pytest.raises(PartitionLostError, match=r"the rows of replicated table t .* are lost. DROP the"):
                    use()
        conn.execute("DROP TABLE t")
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED")
        assert conn.table("t").load(ROWS) == 100
        assert conn.execute("SELECT count(*), sum(v) FROM t").fetchall() == [(100, 4950)]
