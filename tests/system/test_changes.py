"""UPDATE and DELETE on a cluster: who hears of them, what concurrent ones leave, and what is left when something
fails.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from requests_of import requests_of
from together import together

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    DataError,
    DuplicateKeyError,
    NullKeyError,
    ParameterError,
    PruningMismatchError,
    UnknownTableError,
)
from secateur.protocol import ChangeOnePartition, ChangeStatement, Operation

PARTITIONS = 13
KEYS = 200


@pytest.fixture(scope="module", params=["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def shared(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with secateur.start(members=3, runtime=request.param, member_silence_s=10.0) as cluster:
        yield cluster


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster:
        yield cluster


def create(conn: secateur.Connection, name: str, *, backups: int = 1, keys: int = KEYS) -> None:
    conn.execute(
        f"CREATE TABLE {name} (id BIGINT, v BIGINT, note VARCHAR NOT NULL, PRIMARY KEY (id)) PARTITION BY HASH (id)"
        f" PARTITIONS {PARTITIONS} BACKUPS {backups}"
    )
    rows = pa.table(
        {"id": pa.array(range(keys)), "v": pa.array(range(keys)), "note": [f"n{key}" for key in range(keys)]}
    )
    conn.table(name).load(rows)


def frames(cluster: Cluster) -> dict[str, int]:
    return {member.id: member.frames_received for member in cluster.members()}


def heard(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {member for member in after if after[member] > before[member]}


def holders(conn: secateur.Connection, name: str, key: int) -> tuple[str, ...]:
    """The primary of a key's partition, then the backups."""
    table = conn.table(name).definition
    return conn._session.topology.ownership(table.scheme.affinity_group()).holders(
        table.scheme.partition_of({"id": key})
    )


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE {t} SET v = v + 1 WHERE id = ?",
        "DELETE FROM {t} WHERE id = ?",
        "INSERT OR REPLACE INTO {t} VALUES (?, 1, 'x')",
    ],
    ids=["update", "delete", "insert"],
)
def test_one_key_reaches_its_primary_and_its_backups_alone(shared: Cluster, table_name: str, sql: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        statement = sql.format(t=table_name)
        conn.execute(statement, [0])
        for key in (1, 2, 3, 50, 51):
            before = frames(shared)
            cur = conn.execute(statement, [key])
            assert heard(before, frames(shared)) == set(holders(conn, table_name, key))
            assert cur.rowcount == 1
            if cur.stats is not None:
                assert (
                    cur.stats.execution,
                    cur.stats.members_touched,
                    cur.stats.partitions_read,
                    cur.stats.plan_cached,
                ) == ("local", 2, 1, True)


def test_nobody_hears_of_a_contradiction(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        before = frames(shared)
        cur = conn.execute(f"DELETE FROM {table_name} WHERE id = 1 AND id = 2")
        assert heard(before, frames(shared)) == set()
        assert cur.stats is not None
        assert (cur.rowcount, cur.stats.execution, cur.stats.members_touched) == (0, "none", 0)


@pytest.mark.smoke
def test_several_keys_reach_their_owners_and_backups_alone(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        key = 1
        other = next(
            key_ for key_ in range(2, KEYS) if holders(conn, table_name, key_) == holders(conn, table_name, key)
        )
        before = frames(shared)
        assert conn.execute(f"UPDATE {table_name} SET v = -1 WHERE id IN (?, ?)", [key, other]).rowcount == 2
        assert heard(before, frames(shared)) == set(holders(conn, table_name, key))


def test_rowcount_of_many(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        assert (
            conn.executemany(f"UPDATE {table_name} SET v = ? WHERE id = ?", [[0, 1], [0, 2], [0, KEYS]]).rowcount == 2
        )
        assert conn.executemany(f"DELETE FROM {table_name} WHERE id < ?", [[5], [7]]).rowcount == 7
        assert conn.execute(f"UPDATE {table_name} SET v = 3").rowcount == KEYS - 7
        assert conn.execute(f"SELECT count(*), min(v), max(v) FROM {table_name}").fetchall() == [(KEYS - 7, 3, 3)]


@pytest.mark.parametrize(
    "value",
    ["v + 1", "v + length(upper(note)) - length(note) + 1", "CAST(CAST(v AS VARCHAR) AS BIGINT) + 1"],
    ids=["arrow", "text", "duckdb"],
)
def test_no_update_of_a_row_is_lost(shared: Cluster, table_name: str, value: str) -> None:
    threads, rounds = 8, 20
    with shared.connect() as conn:
        create(conn, table_name, keys=2)
        conn.execute(f"UPDATE {table_name} SET v = 0")

        def count() -> None:
            with shared.connect() as own:
                for number in range(rounds):
                    assert own.execute(f"UPDATE {table_name} SET v = {value} WHERE id = ?", [number % 2]).rowcount == 1

        together(*[count] * threads)
        assert conn.execute(f"SELECT id, v FROM {table_name} ORDER BY id").fetchall() == [
            (0, threads * rounds // 2),
            (1, threads * rounds // 2),
        ]


def test_changes_of_all_partitions_and_of_one_are_all_counted(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name, keys=40)
        conn.execute(f"UPDATE {table_name} SET v = 0")

        def everywhere() -> None:
            with shared.connect() as own:
                for _ in range(8):
                    assert own.execute(f"UPDATE {table_name} SET v = v + 1").rowcount == 40

        def one() -> None:
            with shared.connect() as own:
                for number in range(80):
                    own.execute(f"UPDATE {table_name} SET v = v + 1 WHERE id = ?", [number % 40])

        together(everywhere, everywhere, one, one)
        assert conn.execute(f"SELECT min(v), max(v) FROM {table_name}").fetchall() == [(20, 20)]


def test_readers_see_a_change_of_all_partitions_at_once(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        conn.execute(f"UPDATE {table_name} SET v = 0")
        done = threading.Event()

        def change() -> None:
            try:
                with shared.connect() as own:
                    for _ in range(15):
                        own.execute(f"UPDATE {table_name} SET v = v + 1")
            finally:
                done.set()

        def read() -> None:
            with shared.connect() as own:
                while not done.is_set():
                    ((low, high),) = own.execute(f"SELECT min(v), max(v) FROM {table_name}").fetchall()
                    assert low == high

        together(change, read)


@pytest.mark.parametrize(
    ("assigned", "kind"),
    [
        ("v = CAST(CASE WHEN id = 77 THEN 'x' ELSE '1' END AS BIGINT)", DataError),
        ("v = 9223372036854775807 - 70 + id", DataError),
        ("note = CASE WHEN id <> 77 THEN note END", NullKeyError),
    ],
    ids=["a cast", "an overflow", "a null"],
)
@pytest.mark.parametrize("where", ["", " WHERE id = 77"], ids=["all partitions", "one partition"])
@pytest.mark.smoke
def test_an_error_on_one_row_changes_nothing_anywhere(
    shared: Cluster, table_name: str, assigned: str, kind: type[Exception], where: str
) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        before = conn.execute(f"SELECT * FROM {table_name} ORDER BY id").fetchall()
        with pytest.raises(kind):
            conn.execute(f"UPDATE {table_name} SET {assigned}{where}")
        assert conn.execute(f"SELECT * FROM {table_name} ORDER BY id").fetchall() == before
        assert conn.execute(f"UPDATE {table_name} SET v = 1{where}").rowcount == (1 if where else KEYS), (
            "no gate stays closed"
        )


@pytest.mark.smoke
def test_a_replicated_table_changes_on_every_member(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, v BIGINT) REPLICATED")
        conn.execute(f"INSERT INTO {table_name} VALUES (1, 1), (2, 2), (3, 3)")
        assert conn.execute(f"UPDATE {table_name} SET v = v * 10 WHERE id > 1").rowcount == 2
        assert conn.execute(f"DELETE FROM {table_name} WHERE id = 3").rowcount == 1
        for _ in range(6):  # members take turns
            assert conn.execute(f"SELECT * FROM {table_name} ORDER BY id").fetchall() == [(1, 1), (2, 20)]


def test_what_was_acknowledged_survives_a_member(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t")
        conn.execute("UPDATE t SET v = v * 2 WHERE id >= 100")
        for key in range(0, 100, 7):
            conn.execute("UPDATE t SET note = 'seen' WHERE id = ?", [key])
            conn.execute("DELETE FROM t WHERE id = ?", [key + 1])
        conn.execute("DELETE FROM t WHERE v % 5 = 0")
        before = conn.execute("SELECT * FROM t ORDER BY id").fetchall()
        mortal.kill_member("m2")
        assert conn.execute("SELECT * FROM t ORDER BY id").fetchall() == before
        assert conn.execute("UPDATE t SET v = 0").rowcount == len(before)


def test_counting_goes_on_exactly_while_a_member_dies(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", backups=2, keys=30)
        conn.execute("UPDATE t SET v = 0")
        begun = threading.Event()

        def count() -> None:
            with mortal.connect() as own:
                for number in range(90):
                    assert own.execute("UPDATE t SET v = v + 1 WHERE id = ?", [number % 30]).rowcount == 1
                    begun.set()

        def kill() -> None:
            begun.wait(10)
            mortal._runtime.kill_member("m1")  # as a crash does: nobody tells the controller

        together(count, count, kill)
        assert conn.execute("SELECT min(v), max(v) FROM t").fetchall() == [(6, 6)]


def asked(conn: secateur.Connection, sql: str, key: int) -> ChangeOnePartition:
    """The request for one execution of a statement, to be sent by hand."""
    prepared, _ = conn._session.prepare(sql, [key])
    assert isinstance(prepared, ChangeStatement)
    return ChangeOnePartition(prepared.select.plan_id, [key], True, prepared.kind, f"id {key}")


def test_a_change_that_is_asked_for_again_is_not_made_again(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t")
        request = asked(conn, "UPDATE t SET v = v + 1 WHERE id = ?", 5)
        primary, backup = holders(conn, "t", 5)
        assert conn._session.ask_member(primary, request).message.rows == 1
        assert conn._session.ask_member(primary, request).message.rows == 1
        assert conn.execute("SELECT v FROM t WHERE id = 5").fetchall() == [(6,)]
        mortal.kill_member(primary)
        conn._session.refresh_topology()
        assert holders(conn, "t", 5)[0] == backup
        assert conn._session.ask_member(backup, request).message.rows == 1, "the backup has the id with the copy"
        assert conn.execute("SELECT v FROM t WHERE id = 5").fetchall() == [(6,)]


def test_a_deletion_that_is_asked_for_again_leaves_the_row_that_came_back(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t")
        request = asked(conn, "DELETE FROM t WHERE id = ?", 9)
        primary, _ = holders(conn, "t", 9)
        for _ in range(2):
            assert conn._session.ask_member(primary, request).message.rows == 1
        conn.execute("INSERT INTO t VALUES (9, 9, 'back')")
        assert conn._session.ask_member(primary, request).message.rows == 1, "as it was: the row that came back stays"
        assert conn.execute("SELECT note FROM t WHERE id = 9").fetchall() == [("back",)]


def test_verify_compares_before_it_writes(shared: Cluster, table_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        conn.execute("SET pruning = verify")
        assert conn.execute(f"UPDATE {table_name} SET v = -5 WHERE id = ?", [3]).rowcount == 1
        monkeypatch.setattr("secateur.client.execution.select.same_rows", lambda left, right: False)
        with pytest.raises(PruningMismatchError):
            conn.execute(f"DELETE FROM {table_name} WHERE id = ?", [3])
        assert conn.execute("SET pruning = on") is not None
        assert conn.execute(f"SELECT v FROM {table_name} WHERE id = 3").fetchall() == [(-5,)]


def test_pruning_off_changes_the_same_rows_on_all_partitions(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        conn.execute("SET pruning = off")
        cur = conn.execute(f"DELETE FROM {table_name} WHERE id = ?", [3])
        assert cur.stats is not None
        assert (cur.rowcount, cur.stats.partitions_read, cur.stats.members_touched) == (1, PARTITIONS, 3)
        assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(KEYS - 1,)]


def test_the_row_of_an_insert_goes_to_its_partition_without_pruning_as_well(shared: Cluster, table_name: str) -> None:
    upsert = f"INSERT INTO {table_name} (id, v, note) VALUES (?, ?, 'n') ON CONFLICT DO UPDATE SET v = v + excluded.v"
    with shared.connect() as conn:
        create(conn, table_name)
        conn.execute(f"UPDATE {table_name} SET v = 5 WHERE id = 3")
        conn.execute("SET pruning = off")
        for key, expected in ((3, 12), (KEYS + 3, 7)):
            cur = conn.execute(upsert, [key, 7])
            assert cur.stats is not None
            assert (cur.rowcount, cur.stats.partitions_read, cur.stats.execution) == (1, 1, "local")
            assert conn.execute(f"SELECT v FROM {table_name} WHERE id = ?", [key]).fetchall() == [(expected,)]


def test_a_plan_outlived_by_its_table_is_made_again(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn, shared.connect() as other:
        create(conn, table_name)
        conn.execute(f"UPDATE {table_name} SET v = 1 WHERE id = ?", [1])
        other.execute(f"DROP TABLE {table_name}")
        other.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, v VARCHAR)")
        other.execute(f"INSERT INTO {table_name} VALUES (1, 'old')")
        assert conn.execute(f"UPDATE {table_name} SET v = 1 WHERE id = ?", [1]).rowcount == 1
        assert conn.execute(f"SELECT v FROM {table_name}").fetchall() == [("1",)]
        other.execute(f"DROP TABLE {table_name}")
        with pytest.raises(UnknownTableError):
            conn.execute(f"UPDATE {table_name} SET v = 1 WHERE id = ?", [1])


def test_explain_does_not_change_anything(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name)
        assert "DELETE of" in conn.execute(f"EXPLAIN DELETE FROM {table_name}").fetchall()[0][0]
        assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(KEYS,)]


def test_an_insert_of_parameters_asks_the_controller_once(mortal: Cluster, table_name: str) -> None:
    with mortal.connect() as conn:
        create(conn, table_name, keys=1)
        sql = f"INSERT INTO {table_name} VALUES ($id, $v, 'x')"
        with requests_of(mortal, {Operation.PREPARE}) as asked:
            for key in range(1, 6):
                assert conn.execute(sql, {"id": key, "v": key}).rowcount == 1
            assert len(asked) == 1
            conn.execute(sql, {"id": 6, "v": "7"})
            assert len(asked) == 2, "a value that needs a cast"
        with pytest.raises(NullKeyError):
            conn.execute(sql, {"id": None, "v": 1})
        with pytest.raises(DuplicateKeyError):
            conn.execute(sql, {"id": 5, "v": 1})
        with pytest.raises(ParameterError):
            conn.execute(sql, {"id": 5})
        assert conn.execute(f"SELECT id, v, note FROM {table_name} WHERE id > 0 ORDER BY id").fetchall() == [
            *((key, key, "x") for key in range(1, 6)),
            (6, 7, "x"),
        ]


def test_many_inserts_keep_their_order_whoever_makes_the_rows(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn:
        create(conn, table_name, keys=0)
        sets: list[list[object]] = [
            [1, 1, "a"],
            [1, "2", "b"],
            [2, 3, 4],
            [1, 5, "c"],
            [2, None, "d"],
            [3, 2.5, "e"],
            [3, 2**40, "f"],
        ]
        assert conn.executemany(f"INSERT OR REPLACE INTO {table_name} VALUES (?, ?, ?)", sets).rowcount == 3
        assert conn.execute(f"SELECT * FROM {table_name} ORDER BY id").fetchall() == [
            (1, 5, "c"),
            (2, None, "d"),
            (3, 2**40, "f"),
        ]
        with pytest.raises(NullKeyError):
            conn.executemany(f"INSERT INTO {table_name} VALUES (?, ?, ?)", [[8, 1, "x"], [9, 1, None]])
        assert conn.execute(f"SELECT count(*) FROM {table_name}").fetchall() == [(3,)]


def test_an_insert_into_a_table_made_anew_is_read_anew(shared: Cluster, table_name: str) -> None:
    with shared.connect() as conn, shared.connect() as other:
        create(conn, table_name, keys=0)
        sql = f"INSERT INTO {table_name} VALUES (?, ?, ?)"
        conn.execute(sql, [1, 1, "a"])
        other.execute(f"DROP TABLE {table_name}")
        other.execute(f"CREATE TABLE {table_name} (v BIGINT, id BIGINT, note VARCHAR, PRIMARY KEY (v, id))")
        assert conn.execute(sql, [7, 8, "b"]).rowcount == 1
        assert conn.execute(f"SELECT v, id, note FROM {table_name}").fetchall() == [(7, 8, "b")]
        other.execute(f"DROP TABLE {table_name}")
        with pytest.raises(UnknownTableError):
            conn.execute(sql, [7, 8, "b"])


def test_inserts_go_on_while_a_member_dies_unnoticed(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        create(conn, "t", backups=1, keys=0)
        begun = threading.Event()

        def insert() -> None:
            with mortal.connect() as own:
                for key in range(120):
                    own.execute("INSERT INTO t VALUES (?, 1, 'x')", [key])
                    begun.set()

        def kill() -> None:
            begun.wait(10)
            mortal._runtime.kill_member("m3")

        together(insert, kill)
        assert conn.execute("SELECT count(*), count(DISTINCT id) FROM t").fetchall() == [(120, 120)]
