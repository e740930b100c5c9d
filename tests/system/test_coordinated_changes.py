"""Changes that one member works out for all partitions: what concurrent ones leave, who takes part, and what is left
when something fails.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from together import together

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    DuplicateKeyError,
    LimitExceededError,
    LoadFailedError,
    OperationalError,
    ProgrammingError,
    PruningMismatchError,
)
from secateur.protocol import GetReturnedRows, Operation

KEYS = 60


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster:
        yield cluster


@pytest.fixture
def counters(conn: secateur.Connection, table_name: str) -> str:
    return create(conn, table_name)


def create(conn: secateur.Connection, name: str) -> str:
    conn.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 7")
    conn.table(name).load(pa.table({"id": pa.array(range(KEYS)), "v": pa.array([0] * KEYS)}))
    return name


@pytest.mark.parametrize(
    "sql",
    [
        "MERGE INTO {t} USING (SELECT 5 AS id) AS s USING (id) WHEN MATCHED THEN UPDATE SET v = v + 1",
        "UPDATE {t} SET v = v + s.n FROM (SELECT 5 AS k, 1 AS n) AS s WHERE {t}.id = s.k",
        "INSERT INTO {t} VALUES (5, 1) ON CONFLICT DO UPDATE SET v = v + excluded.v",
        "INSERT INTO {t} SELECT 5, 1 ON CONFLICT DO UPDATE SET v = v + excluded.v",
        "INSERT OR REPLACE INTO {t} SELECT id, v + 1 FROM {t}",
        (
            "INSERT OR REPLACE INTO {t} (v, id) WITH x AS (SELECT max(v) AS v FROM {t} WHERE id = 5) SELECT v + 1, 5"
            " FROM x"
        ),
        "INSERT OR REPLACE INTO {t} BY NAME SELECT v + 1 AS v, id FROM {t}_view WHERE id = 5",
        "INSERT OR REPLACE INTO {t} VALUES (5, (SELECT v + 1 FROM {t} WHERE id = 5)), (6, 0)",
    ],
    ids=[
        *["merge", "update from", "upsert of a row", "upsert of a query"],
        *[
            "replacement by a query",
            "replacement by a query of a CTE",
            "replacement by a query of a view",
            "replacement by a subquery",
        ],
    ],
)
def test_no_increment_is_lost(cluster: Cluster, counters: str, sql: str) -> None:
    """Beside plain updates of one partition, which take another way."""
    rounds = 5
    with cluster.connect() as conn:
        conn.execute(f"CREATE VIEW {counters}_view AS FROM {counters}")

    def work(text: str) -> None:
        with cluster.connect() as own:
            for _ in range(rounds):
                own.execute(text)

    whole, plain = sql.format(t=counters), f"UPDATE {counters} SET v = v + 1 WHERE id = 5"
    together(*(lambda text=text: work(text) for text in (whole, whole, plain, plain)))
    with cluster.connect() as conn:
        assert conn.execute(f"SELECT v FROM {counters} WHERE id = 5").fetchone() == (4 * rounds,)


@pytest.mark.parametrize("words", ["INSERT", "INSERT OR IGNORE"])
def test_rows_that_are_counted_on_from_the_last_one_have_keys_of_their_own(
    cluster: Cluster, counters: str, words: str
) -> None:
    rounds = 8

    def work() -> None:
        with cluster.connect() as own:
            for _ in range(rounds):
                assert own.execute(f"{words} INTO {counters} SELECT max(id) + 1, 0 FROM {counters}").rowcount == 1

    together(work, work, work)
    with cluster.connect() as conn:
        assert conn.execute(f"SELECT count(*), max(id) FROM {counters}").fetchone() == (
            KEYS + 3 * rounds,
            KEYS + 3 * rounds - 1,
        )


def test_a_reader_sees_all_of_a_change_or_nothing(cluster: Cluster, counters: str) -> None:
    done = threading.Event()
    seen: set[int] = set()

    def write() -> None:
        with cluster.connect() as own:
            for number in range(1, 15):
                own.execute(f"UPDATE {counters} SET v = s.n FROM (SELECT {number} AS n) AS s")
        done.set()

    def read() -> None:
        with cluster.connect() as own:
            while not done.is_set():
                low, high = own.execute(f"SELECT min(v), max(v) FROM {counters}").fetchall()[0]
                seen.add(high - low)

    together(write, read)
    assert seen == {0}


@pytest.mark.smoke
def test_rows_move_between_partitions_at_once(cluster: Cluster, conn: secateur.Connection, counters: str) -> None:
    assert conn.execute(f"UPDATE {counters} SET id = id + {KEYS}, v = id").rowcount == KEYS
    assert conn.execute(f"SELECT min(id), max(id), count(*), sum(id - v) FROM {counters}").fetchone() == (
        KEYS,
        2 * KEYS - 1,
        KEYS,
        KEYS * KEYS,
    )


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("UPDATE {t} SET id = 7", DuplicateKeyError),
        ("MERGE INTO {t} USING (VALUES (1), (1)) AS s(k) ON id = s.k WHEN MATCHED THEN DELETE", ProgrammingError),
        ("MERGE INTO {t} USING (SELECT 1 AS k) AS s ON id = s.k WHEN MATCHED THEN ERROR 'no'", secateur.Error),
        ("UPDATE {t} SET v = CAST(s.x AS BIGINT) FROM (SELECT 'x' AS x) AS s", secateur.Error),
    ],
)
def test_after_a_failure_the_table_is_as_it_was_and_open(
    conn: secateur.Connection, counters: str, sql: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        conn.execute(sql.format(t=counters))
    assert conn.execute(f"SELECT count(*), sum(v) FROM {counters}").fetchone() == (KEYS, 0)
    assert conn.execute(f"UPDATE {counters} SET v = 1 WHERE id = 3").rowcount == 1
    assert conn.execute(f"UPDATE {counters} SET v = 1").rowcount == KEYS


def test_an_insertion_of_one_key_reaches_its_primary_and_its_backup_alone(
    cluster: Cluster, conn: secateur.Connection, counters: str
) -> None:
    sql = f"INSERT INTO {counters} VALUES (?, ?) ON CONFLICT DO UPDATE SET v = v + excluded.v"
    conn.execute(sql, [1, 1])
    before = {member.id: member.frames_received for member in cluster.members()}
    cursor = conn.execute(sql, [2, 5])
    after = {member.id: member.frames_received for member in cluster.members()}
    table = conn.table(counters).definition
    holders = conn._session.topology.ownership(table.scheme.affinity_group()).holders(
        table.scheme.partition_of({"id": 2})
    )
    assert {member for member in after if after[member] > before[member]} == set(holders)
    assert cursor.stats is not None
    assert (cursor.rowcount, cursor.stats.execution, cursor.stats.partitions_read, cursor.stats.plan_cached) == (
        1,
        "local",
        1,
        True,
    )
    assert conn.execute(f"SELECT id, v FROM {counters} WHERE id IN (1, 2) ORDER BY id").fetchall() == [(1, 1), (2, 5)]


def test_ranges_are_made_for_rows_of_a_change(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (d DATE, v BIGINT, PRIMARY KEY (d)) PARTITION BY RANGE (d) EVERY INTERVAL 1 MONTH"
    )
    conn.execute(f"INSERT INTO {table_name} VALUES (DATE '2024-01-05', 1)")
    conn.execute(f"UPDATE {table_name} SET d = d + INTERVAL 2 MONTH")
    conn.execute(
        f"MERGE INTO {table_name} USING (SELECT DATE '2025-07-01' AS d) AS s USING (d) WHEN NOT MATCHED THEN INSERT"
        " VALUES (s.d, 2)"
    )
    assert conn.execute(f"SELECT v, month(d) FROM {table_name} ORDER BY v").fetchall() == [(1, 3), (2, 7)]


def test_a_plan_of_a_table_that_has_changed_is_made_again(
    cluster: Cluster, conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (k) (PARTITION VALUES < 10)"
    )
    sql = f"INSERT INTO {table_name} VALUES (?, ?) ON CONFLICT DO UPDATE SET v = excluded.v"
    conn.execute(sql, [1, 1])
    with cluster.connect() as other:
        other.execute(f"ALTER TABLE {table_name} ADD PARTITION 10 <= VALUES < 20")
    assert conn.execute(sql, [15, 2]).rowcount == 1
    assert conn.execute(f"SELECT k, v FROM {table_name} ORDER BY k").fetchall() == [(1, 1), (15, 2)]


def test_executemany_counts_all(conn: secateur.Connection, counters: str) -> None:
    sql = f"INSERT INTO {counters} VALUES (?, ?) ON CONFLICT DO UPDATE SET v = excluded.v"
    assert conn.executemany(sql, [[1, 5], [KEYS, 6], [1, 7]]).rowcount == 3
    assert conn.execute(f"SELECT id, v FROM {counters} WHERE v > 0 ORDER BY id").fetchall() == [(1, 7), (KEYS, 6)]


def test_a_wrong_pruning_is_found_before_anything_is_changed(
    conn: secateur.Connection, counters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conn.execute("SET pruning = verify")
    assert conn.execute(f"UPDATE {counters} SET v = 1 FROM (SELECT 1 AS one) WHERE id = 3").rowcount == 1
    monkeypatch.setattr("secateur.client.execution.select.same_rows", lambda *_: False)
    with pytest.raises(PruningMismatchError):
        conn.execute(f"UPDATE {counters} SET v = 2 FROM (SELECT 1 AS one) WHERE id = 3")
    assert conn.execute("SET pruning = on").execute(f"SELECT v FROM {counters} WHERE id = 3").fetchone() == (1,)


def test_rows_to_return_may_be_lost_but_the_change_is_made(
    cluster: Cluster, conn: secateur.Connection, counters: str
) -> None:
    handlers = [member.handlers for member in cluster._runtime._members.values()]
    original = [each[Operation.GET_RETURNED_ROWS] for each in handlers]
    for each in handlers:
        each[Operation.GET_RETURNED_ROWS] = _dropped
    try:
        lost = r"was changed, but the rows of RETURNING were lost: .* carried out, once. Do not repeat it.* SELECT"
        with pytest.raises(OperationalError, match=lost) as error:
            conn.execute(f"UPDATE {counters} SET v = v + 4 WHERE id IN (3, 4) RETURNING v")
        assert not error.value.retry_safe
    finally:
        for each, handler in zip(handlers, original, strict=True):
            each[Operation.GET_RETURNED_ROWS] = handler
    assert conn.execute(f"SELECT v FROM {counters} WHERE id = 3").fetchone() == (4,)


def test_a_member_that_never_had_rows_to_return_says_so(conn: secateur.Connection) -> None:
    """As one that was started anew since the change."""
    with pytest.raises(LimitExceededError, match=r"m1 does not have them: .* for as long as its process lives"):
        conn._session.ask_member("m1", GetReturnedRows("before it began"))


def _dropped(_: object) -> Any:
    raise LoadFailedError("dropped")


def test_a_lost_member_is_followed_by_its_backup(mortal: Cluster) -> None:
    with mortal.connect() as conn:
        name = create(conn, "counters")
        conn.execute(f"UPDATE {name} SET v = v + s.n FROM (SELECT 1 AS n) AS s")
        mortal.kill_member(mortal.members()[0].id)
        assert conn.execute(f"UPDATE {name} SET v = v + s.n FROM (SELECT 1 AS n) AS s").rowcount == KEYS
        assert conn.execute(f"SELECT min(v), max(v), count(*) FROM {name}").fetchone() == (2, 2, KEYS)
