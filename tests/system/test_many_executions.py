"""``executemany`` of queries and of changes by key does what one execution after the other does, in fewer frames."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import duckdb
import pytest
from eventually import eventually
from held_requests import Held
from msgspec import structs
from requests_of import requests_of
from stored_copies import copies_of
from together import together

import secateur
from secateur.client.session import Session
from secateur.cluster import Cluster
from secateur.errors import DataError, LimitExceededError, MemberLostError, ParameterError
from secateur.protocol import Operation, WriteCopies

ROWS = 400
READS_OF_ALL = 12
"""So many executions read every partition; by their keys they are many more."""
ASKED = {
    Operation.EXECUTE,
    Operation.EXECUTE_MANY,
    Operation.EXECUTE_FIRST_STAGE,
    Operation.CHANGE_ONE_PARTITION,
    Operation.CHANGE_MANY,
    Operation.CHANGE_SEVERAL_PARTITIONS,
}
COPIED = {Operation.WRITE_COPY, Operation.WRITE_COPIES}
TABLE = "CREATE TABLE t (id BIGINT, line INTEGER, v BIGINT, note VARCHAR, PRIMARY KEY (id, line))"
FILL = f"INSERT INTO t SELECT n // 4, n % 4, n, 'note ' || n FROM range({ROWS}) AS r(n)"
QUERIES: dict[str, tuple[str, list[list[Any]]]] = {
    "rows by key": ("SELECT * FROM t WHERE id = ? AND line = ?", [[n % 120, n % 5] for n in range(130)]),
    "rows of a prefix": ("SELECT v, note FROM t WHERE id = ?", [[n] for n in range(-2, 103)]),
    "aggregate": ("SELECT count(*), sum(v), max(note) FROM t WHERE id = ?", [[n] for n in range(105)]),
    "groups": ("SELECT line % 2 AS odd, sum(v) FROM t WHERE id = ? GROUP BY odd", [[n] for n in range(50)]),
    "computed in Arrow": ("SELECT DISTINCT v * 2 FROM t WHERE id = ?", [[n] for n in range(50)]),
    "types that differ": ("SELECT v FROM t WHERE id = ?", [[1], ["2"], [3.0], [None], [4]]),
    "several members": ("SELECT sum(v) FROM t WHERE id IN (?, ?, ?)", [[n, n + 1, n + 2] for n in range(20)]),
    "expression": ("SELECT v FROM t WHERE id = ? + 1", [[n] for n in range(10)]),
    "all rows": ("SELECT count(*) FROM t WHERE v >= ?", [[n] for n in range(3)]),
    "one set": ("SELECT v FROM t WHERE id = ?", [[5]]),
    "no sets": ("SELECT v FROM t WHERE id = ?", []),
}
CHANGES: dict[str, tuple[str, list[list[Any]]]] = {
    "rows by key": ("UPDATE t SET v = v * 3 + ? WHERE id = ? AND line = ?", [[n, n % 30, n % 5] for n in range(210)]),
    "rows that are there or not": (
        "INSERT INTO t VALUES (?, ?, ?, 'new') ON CONFLICT DO UPDATE SET v = v * 3 + excluded.v",
        [[n % 130, n % 5, n if n % 50 else str(n)] for n in range(160)],
    ),
    "one row, in order": ("UPDATE t SET v = v * 3 - ? WHERE id = 7 AND line = 1", [[n] for n in range(30)]),
    "deletions": ("DELETE FROM t WHERE id = ? AND line = ?", [[n % 60, n % 5] for n in range(130)]),
    "no row by its key": (
        "UPDATE t SET note = note || ? WHERE id = ? AND v % 2 = 0",
        [["x", n % 40] for n in range(80)],
    ),
    "some over several": ("UPDATE t SET v = v + 1 WHERE id IN (?, ?)", [[n % 9, (n * n) % 9] for n in range(30)]),
    "another table": (
        "UPDATE t SET v = (SELECT max(v) FROM t) + ? WHERE id = ? AND line = 0",
        [[n, n % 5] for n in range(10)],
    ),
    "types that differ": ("UPDATE t SET v = v * 2 + ? WHERE id = ? AND line = 0", [[1, 2], [1, "2"], [2, 2], [3, 2.0]]),
}


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as cluster:
        yield cluster


@pytest.fixture
def conn(three: Cluster) -> Iterator[secateur.Connection]:
    """A connection to a table that is as ``FILL`` leaves it, and to members whose handlers are their own."""
    with three.connect() as connection:
        handlers = [(member.handlers, dict(member.handlers)) for member in members(three)]
        fill(connection)
        yield connection
        for changed, own in handlers:
            changed.update(own)


def fill(connection: secateur.Connection) -> None:
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute(TABLE + " PARTITION BY HASH (id) PARTITIONS 7 BACKUPS 1")
    connection.execute(FILL)


def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLE)
    connection.execute(FILL)
    return connection


def results(cursor: secateur.Cursor) -> list[list[str]]:
    """The rows of each result, in an order of their own."""
    found = []
    while cursor.description is not None:
        assert cursor.stats is not None
        rows = cursor.fetchall()
        assert cursor.rowcount == len(rows)
        found.append(sorted(map(repr, rows)))
        if cursor.nextset() is None:
            break
    assert cursor.description is None
    return found


def test_a_query_answers_for_each_set_what_duckdb_answers(three: Cluster, conn: secateur.Connection) -> None:
    with oracle() as duck:
        for name, (sql, sets) in QUERIES.items():
            expected = [sorted(map(repr, duck.execute(sql, params).fetchall())) for params in sets]
            for setting, some in (("on", len(sets)), ("off", READS_OF_ALL), ("verify", READS_OF_ALL)):
                conn.execute(f"SET pruning = {setting}")
                found = results(conn.executemany(sql, sets[:some]))
                assert found == expected[:some], f"{name}, pruning = {setting}"


@pytest.mark.parametrize(
    ("name", "frames"),
    [
        ("rows by key", {Operation.EXECUTE_MANY: 3}),
        ("aggregate", {Operation.EXECUTE_MANY: 3}),
        ("computed in Arrow", {Operation.EXECUTE_MANY: 3}),
        ("one set", {Operation.EXECUTE: 1}),
        ("no sets", {}),
    ],
)
def test_each_member_gets_one_frame(
    three: Cluster, conn: secateur.Connection, name: str, frames: dict[Operation, int]
) -> None:
    sql, sets = QUERIES[name]
    with requests_of(three, ASKED) as asked:
        conn.executemany(sql, sets)
    assert Counter(asked) == frames


def test_every_execution_is_listed_and_counted(three: Cluster, conn: secateur.Connection) -> None:
    for text, sets in (QUERIES["rows by key"], CHANGES["rows by key"]):
        sql = f"{text} AND v > -99"  # which nobody else executes
        before = sum(member._counts.executions for member in members(three))
        conn.executemany(sql, sets)
        assert sum(member._counts.executions for member in members(three)) - before >= len(sets)
        listed = "SELECT count(*) FROM secateur.statements WHERE statement = ? AND state = 'done'"
        assert conn.execute(listed, [sql]).fetchone() == (len(sets),)


def members(cluster: Cluster) -> list[Any]:
    return list(cluster._runtime._members.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CHANGES)
def test_changes_leave_what_duckdb_leaves(conn: secateur.Connection, name: str) -> None:
    sql, sets = CHANGES[name]
    with oracle() as duck:
        expected = sum(duck.execute(sql, params).fetchall()[0][0] for params in sets)
        assert conn.executemany(sql, sets).rowcount == expected
        rows = "SELECT * FROM t ORDER BY ALL"
        assert conn.execute(rows).fetchall() == duck.execute(rows).fetchall()


@pytest.mark.smoke
def test_changes_by_key_go_to_each_primary_in_one_frame(three: Cluster, conn: secateur.Connection) -> None:
    sql, sets = CHANGES["rows by key"]
    conn.executemany(sql, sets)
    with requests_of(three, ASKED) as asked:
        conn.executemany(sql, sets[:200])
    assert Counter(asked) == {Operation.CHANGE_MANY: 3}


def test_changes_of_one_frame_go_to_their_copies_in_few_messages(three: Cluster, conn: secateur.Connection) -> None:
    sql, sets = CHANGES["rows by key"]
    with requests_of(three, COPIED) as asked:
        conn.executemany(sql, sets[:90])
    assert len(asked) <= 3 * 2 * 2, "each of three members has two turns at most, and two others"
    assert all(one == other for one, other in copies_of(three, "t").values())


def test_copies_that_leave_changes_undone_are_sent_each_alone(three: Cluster, conn: secateur.Connection) -> None:
    def half(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def first(request: Any) -> Any:
            changes = request.message.changes
            return handler(structs.replace(request, message=WriteCopies(changes[: len(changes) // 2])))

        return first

    for member in members(three):
        member.handlers[Operation.WRITE_COPIES] = half(member.handlers[Operation.WRITE_COPIES])
    sql, sets = CHANGES["rows that are there or not"]
    with oracle() as duck, requests_of(three, COPIED) as asked:
        for params in sets:
            duck.execute(sql, params)
        assert conn.executemany(sql, sets).rowcount == len(sets)
        assert asked.count(Operation.WRITE_COPY) >= len(sets) // 4
        rows = "SELECT * FROM t ORDER BY ALL"
        assert conn.execute(rows).fetchall() == duck.execute(rows).fetchall()
    assert all(one == other for one, other in copies_of(three, "t").values())


@pytest.mark.smoke
def test_a_connection_reads_at_once_what_it_has_written(conn: secateur.Connection) -> None:
    draw = random.Random(7)
    expected = dict(conn.execute("SELECT id, v FROM t WHERE line = 0").fetchall())
    for turn in range(20):
        keys = [draw.randrange(40) for _ in range(30)]
        conn.executemany("UPDATE t SET v = v + ? WHERE id = ? AND line = 0", [[turn, key] for key in keys])
        for key in keys:
            expected[key] += turn
        found = results(conn.executemany("SELECT v FROM t WHERE id = ? AND line = 0", [[key] for key in range(40)]))
        assert found == [[repr((expected[key],))] for key in range(40)]


def test_an_error_stops_behind_what_was_before_it(conn: secateur.Connection) -> None:
    add = "UPDATE t SET v = v + ? WHERE id = ? AND line = 0"
    sets = [[1, 1], [1, 1], [2**63 - 1, 1], [1, 1]]
    with pytest.raises(DataError, match=r"[Oo]verflow"):
        conn.executemany(add, sets)
    assert conn.execute("SELECT v FROM t WHERE id = 1 AND line = 0").fetchall() == [(6,)]
    with pytest.raises(ParameterError, match="2 parameters, 1 given"):
        conn.executemany(add, [[1, 1], [1, 1], [1], [1, 1]])
    assert conn.execute("SELECT v FROM t WHERE id = 1 AND line = 0").fetchall() == [(8,)]
    with pytest.raises(DataError):
        conn.executemany("SELECT 1 / (v - v), CAST(? AS INTEGER) FROM t WHERE id = ?", [["1", 1], ["x", 2]])


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET v = v + 1 WHERE id = ? AND line = 0",
        "UPDATE t SET v = v + 1 WHERE id = ? OR id = ?",
        "INSERT INTO t SELECT 900 + ?, n, 0, '' FROM range(3) AS r(n)",
    ],
    ids=["in one frame", "of several partitions", "insert of a query"],
)
@pytest.mark.parametrize("made", [0, 2])
def test_an_error_behind_what_was_made_is_not_safe_to_retry(
    conn: secateur.Connection, monkeypatch: pytest.MonkeyPatch, sql: str, made: int
) -> None:
    """That of one statement is; but all sets together would be made twice."""
    prepare, asked = Session.prepare, []

    def refused_later(session: Session, text: str, params: Any) -> Any:
        asked.append(params)
        if len(asked) > made:
            raise LimitExceededError("too many requests", limit="requests_in_flight_max", retry_safe=True)
        return prepare(session, text, params)

    monkeypatch.setattr(Session, "prepare", refused_later)
    with pytest.raises(LimitExceededError) as caught:
        conn.executemany(sql, [[number] * sql.count("?") for number in range(10, 14)])
    assert caught.value.retry_safe is (made == 0)


def test_a_result_that_is_left_is_dropped(conn: secateur.Connection) -> None:
    cursor = conn.executemany("SELECT v FROM t WHERE id = ? ORDER BY v", [[0], [1], [2]])
    assert cursor.fetchone() == (0,)
    assert cursor.nextset() is True
    assert (cursor.fetchall(), cursor.rowcount) == ([(4,), (5,), (6,), (7,)], 4)
    cursor.execute("SELECT 1")
    assert cursor.nextset() is None
    assert conn.cursor().nextset() is None


def test_rows_that_do_not_fit_into_a_frame_come_one_by_one(three: Cluster, conn: secateur.Connection) -> None:
    conn.execute(
        "CREATE TABLE wide (id BIGINT, n BIGINT, s VARCHAR, PRIMARY KEY (id, n)) PARTITION BY HASH (id) PARTITIONS 9"
    )
    conn.execute("INSERT INTO wide SELECT r // 30, r, repeat('x', 200) FROM range(18000) AS a(r)")
    sets = [[key] for key in range(600)]
    with requests_of(three, ASKED) as asked:
        found = results(conn.executemany("SELECT n, s FROM wide WHERE id = ?", sets))
    assert [len(rows) for rows in found] == [30] * 600
    assert Counter(asked)[Operation.EXECUTE_MANY] > 3
    assert Counter(asked)[Operation.EXECUTE] > 0


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET v = v * 3 + $1 WHERE id = $2 AND line = $3",
        "INSERT INTO t VALUES ($2, $3, $1, 'new') ON CONFLICT DO UPDATE SET v = v * 3 + excluded.v",
    ],
    ids=["update", "upsert"],
)
def test_changes_whose_answer_was_lost_are_made_once(three: Cluster, conn: secateur.Connection, sql: str) -> None:
    """Each member makes the changes of its frame, and hangs up in place of the answer."""

    def losing(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def lose(request: Any) -> Any:
            answer = handler(request)
            await answer
            raise MemberLostError("the answer was lost")

        return lose

    for member in members(three):
        member.handlers[Operation.CHANGE_MANY] = losing(member.handlers[Operation.CHANGE_MANY])
    sets = [[n, n % 30, n % 4] for n in range(100)]
    with oracle() as duck:
        for params in sets:
            duck.execute(sql, params)
        with requests_of(three, ASKED) as asked:
            assert conn.executemany(sql, sets).rowcount == len(sets)
        assert Counter(asked) == {Operation.CHANGE_MANY: 3, Operation.CHANGE_ONE_PARTITION: len(sets)}
        rows = "SELECT * FROM t ORDER BY ALL"
        assert conn.execute(rows).fetchall() == duck.execute(rows).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET v = v + 1 WHERE id = ? AND line = 0",
        "INSERT INTO t VALUES (?, 0, 0, 'new') ON CONFLICT DO UPDATE SET v = v + 1",
    ],
    ids=["update", "upsert"],
)
def test_counting_goes_on_exactly_while_a_member_dies(sql: str) -> None:
    turns, keys = 15, 40

    def count() -> None:
        for _ in range(turns):
            with mortal.connect() as own:
                own.executemany(sql, [[key] for key in range(keys)])

    def kill() -> None:
        seen = "SELECT min(v - 4 * id) FROM t WHERE line = 0 AND id < ?"
        eventually(lambda: conn.execute(seen, [keys]).fetchall()[0][0] >= 3, "nobody counts")
        mortal._runtime.kill_member("m1")

    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as mortal, mortal.connect() as conn:
        fill(conn)
        together(count, count, kill)
        counted = "SELECT DISTINCT v - 4 * id FROM t WHERE line = 0 AND id < ?"
        assert conn.execute(counted, [keys]).fetchall() == [(2 * turns,)]


def test_changes_are_answered_when_all_copies_have_them(three: Cluster, conn: secateur.Connection) -> None:
    keys = [[key] for key in range(40)]
    query = "SELECT v FROM t WHERE id = ? AND line = 0"
    change = "UPDATE t SET v = ? WHERE id = ? AND line = 0"
    conn.executemany(change, [[0, key] for [key] in keys])
    with ThreadPoolExecutor(2) as pool, three.connect() as reader, ExitStack() as holding:
        reader.executemany(query, keys)
        copies = [Held(three, member.handlers, Operation.WRITE_COPIES) for member in members(three)]
        holding.callback(lambda: [copy.release() for copy in copies])
        writing = pool.submit(conn.executemany, change, [[-1, key] for [key] in keys])
        eventually(lambda: all(copy.arrived.is_set() for copy in copies), "no copy was written")
        with requests_of(three, {Operation.EXECUTE}) as asked:
            reading = pool.submit(lambda: results(reader.executemany(query, keys)))
            eventually(lambda: Operation.EXECUTE in asked, "no execution waits on its own")
        assert not writing.done()
        assert not reading.done()
        for copy in copies:
            copy.release()
        assert writing.result(20).rowcount == len(keys)
        assert reading.result(20) == [["(-1,)"]] * len(keys)
