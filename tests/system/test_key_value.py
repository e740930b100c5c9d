"""get, put and delete of a table handle: the rows, guarantees and errors of the statements that do the same."""

from __future__ import annotations

import threading
from collections import Counter, UserDict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from executors import EXECUTORS, answered_by
from raw_frames import RawConnection, header_of
from requests_of import requests_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import (
    DataError,
    DeadlineError,
    Error,
    MemberLostError,
    NoRangeError,
    NullKeyError,
    ParameterError,
    ProtocolError,
    TopologyChangedError,
    UnknownColumnError,
    UnknownTableError,
)
from secateur.protocol import Operation

DOCUMENT = Path(__file__).parents[2] / "docs" / "key_value.md"
KEPT = "kept_items"
EVERY_TYPE = """
CREATE TABLE everything (
    id BIGINT, b BOOLEAN, i INTEGER, h HUGEINT, u UBIGINT, d DECIMAL(12, 3), f FLOAT, x DOUBLE, s VARCHAR, o BLOB,
    day DATE, at TIME, ts TIMESTAMP, tz TIMESTAMPTZ, uu UUID, iv INTERVAL, li INTEGER[],
    st STRUCT(a INTEGER, b VARCHAR),
    PRIMARY KEY (id)
)
"""
PLAIN_ROW = {
    "id": 1,
    "b": True,
    "i": -5,
    "h": 10**30,
    "u": 2**64 - 1,
    "d": Decimal("1.250"),
    "f": 0.5,
    "x": 1e300,
    "s": "text",
    "o": b"\x00\xff",
    "day": date(2024, 2, 29),
    "at": time(1, 2, 3, 4),
    "ts": datetime(2024, 1, 1, 12),
    "tz": datetime(2024, 1, 1, 12, tzinfo=UTC),
    "uu": UUID(int=7),
}


@pytest.fixture(scope="module", params=EXECUTORS)
def three(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with (
        answered_by(request.param),
        secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as cluster,
    ):
        yield cluster


@pytest.fixture
def conn(three: Cluster) -> Iterator[secateur.Connection]:
    with three.connect() as connection:
        yield connection
        tables = connection.execute("SELECT table_name FROM secateur.tables WHERE table_name <> ?", [KEPT])
        for (name,) in tables.fetchall():
            connection.execute(f'DROP TABLE "{name}"')


@pytest.fixture
def items(conn: secateur.Connection) -> secateur.client.TableHandle:
    return items_in(conn, "items")


@pytest.fixture(scope="module")
def kept_items(three: Cluster) -> Iterator[secateur.client.TableHandle]:
    """The same rows, for tests that change none."""
    with three.connect() as connection:
        yield items_in(connection, KEPT)


def items_in(conn: secateur.Connection, name: str) -> secateur.client.TableHandle:
    conn.execute(
        f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, name VARCHAR, n INTEGER NOT NULL)"
        " PARTITION BY HASH (id) PARTITIONS 7"
    )
    handle = conn.table(name)
    handle.load(
        {"id": range(3000), "name": [f"name {key}" for key in range(3000)], "n": [key % 7 for key in range(3000)]}
    )
    return handle


def selected(conn: secateur.Connection, sql: str, *params: Any) -> Any:
    return conn.execute(sql, params).fetchone()


def test_get_returns_the_row_of_a_cursor(conn: secateur.Connection, items: secateur.client.TableHandle) -> None:
    assert items.get(5) == (5, "name 5", 5) == selected(conn, "SELECT * FROM items WHERE id = ?", 5)
    assert items.get(-1) is None
    assert items.get((6,)) == (6, "name 6", 6)
    assert items.get(7.0) == items.get("7") == (7, "name 7", 0)


def test_a_row_has_the_form_of_its_key(conn: secateur.Connection, items: secateur.client.TableHandle) -> None:
    row = {"id": 6, "name": "name 6", "n": 6}
    assert items.get({"ID": 6}) == items.get(id=6) == row
    assert items.get({"id": -1}) is items.get(id=-1) is None
    assert items.get_many([{"id": 6}, {"id": -1}]) == [row, None]
    assert items.get_many([5, {"id": 6}, (7,), {"id": -1}]) == [(5, "name 5", 5), row, (7, "name 7", 0), None]
    items.put({**row, "name": "renamed"})
    assert items.get({"id": 6}) == {**row, "name": "renamed"}
    conn.execute(
        "CREATE TABLE days (d DATE, n INTEGER, PRIMARY KEY (d, n)) PARTITION BY"
        " RANGE (d) (PARTITION DATE '2024-01-01' <= VALUES < DATE '2024-02-01')"
    )
    conn.execute("INSERT INTO days VALUES ('2024-01-05', 1)")
    keys = [{"n": 1, "d": day} for day in (date(2024, 1, 5), date(2030, 1, 1))]
    assert conn.table("days").get_many(keys) == [{"d": date(2024, 1, 5), "n": 1}, None]  # one is in no range


def test_the_example_of_the_document(conn: secateur.Connection) -> None:
    """Each line that ends in a comment gives the value of the comment."""
    conn.execute(
        "CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, amount DOUBLE, PRIMARY KEY (customer_id, order_id))"
    )
    text = DOCUMENT.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"conn": conn}
    for line in text.splitlines():
        code, _, comment = line.partition("  # ")
        if code.startswith(("orders.get", "orders.delete")):
            assert eval(code, names) == eval(comment, {}), line
        else:
            exec(code, names)


def test_every_type_comes_as_it_does_from_a_cursor(conn: secateur.Connection) -> None:
    conn.execute(EVERY_TYPE)
    handle = conn.table("everything")
    handle.put(PLAIN_ROW)
    handle.put({**PLAIN_ROW, "id": 2, "iv": timedelta(days=3, hours=1), "li": [1, None], "st": {"a": 1, "b": None}})
    handle.put({"id": 3})
    for key in (1, 2, 3):
        row = selected(conn, "SELECT * FROM everything WHERE id = ?", key)
        assert handle.get(key) == row
        assert [type(value) for value in handle.get(key) or ()] == [type(value) for value in row]
    assert handle.get_many([3, 1]) == [handle.get(3), handle.get(1)]
    named = dict(zip(handle.schema.names, handle.get(1) or (), strict=True))
    assert {name: named[name] for name in PLAIN_ROW} == PLAIN_ROW


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("VARCHAR", ["", "a", "ä" * 9000]),
        ("UUID", [UUID(int=1), UUID(int=2**127)]),
        ("DECIMAL(20, 2)", [Decimal("1.50"), Decimal("-123456789012345678.99")]),
        ("TIMESTAMPTZ", [datetime(2024, 1, 1, tzinfo=UTC), datetime(1960, 5, 1, 3, tzinfo=UTC)]),
        ("DOUBLE", [0.0, -1.5, float("inf")]),
        ("HUGEINT", [0, -(10**37)]),
        ("BLOB", [b"", b"\xff"]),
        ("DATE", [date(1, 1, 1), date(9999, 12, 31)]),
    ],
)
@pytest.mark.smoke
def test_keys_of_every_kind_are_found(conn: secateur.Connection, type_: str, values: list[Any]) -> None:
    conn.execute(
        f"CREATE TABLE keyed (g INTEGER, k {type_}, v INTEGER, PRIMARY KEY (g, k)) PARTITION BY HASH (g) PARTITIONS 3"
    )
    handle, rows = conn.table("keyed"), [(number % 2, value, number) for number, value in enumerate(values)]
    handle.put_many(rows)
    assert [handle.get(row[:2]) for row in rows] == rows == handle.get_many(row[:2] for row in rows)
    assert [handle.delete(row[:2]) for row in rows] == [True] * len(values)
    assert conn.execute("SELECT count(*) FROM keyed").fetchall() == [(0,)]


def test_keys_of_several_columns(conn: secateur.Connection) -> None:
    conn.execute(
        "CREATE TABLE lines (customer VARCHAR, number INTEGER, v INTEGER, PRIMARY KEY (customer, number))"
        " PARTITION BY HASH (number) PARTITIONS 5"
    )
    handle = conn.table("lines")
    handle.put_many([("a", 1, 10), ("a", 2, 20), ("b", 1, 30)])
    assert handle.get(("a", 2)) == ("a", 2, 20)
    named = {"customer": "a", "number": 2, "v": 20}
    assert handle.get(number=2, customer="a") == handle.get({"Customer": "a", "NUMBER": 2}) == named
    assert handle.get(["b", 1]) == ("b", 1, 30)
    assert handle.get_many([("b", 2), ("b", 1), ("a", 1)]) == [None, ("b", 1, 30), ("a", 1, 10)]
    assert handle.delete(("a", 2))
    assert not handle.delete(customer="a", number=2)
    assert handle.delete_many([("a", 1), ("b", 1), ("c", 1)]) == 2


@pytest.mark.parametrize("count", [2, 40, 200, 2500])
@pytest.mark.smoke
def test_get_many_keeps_the_order_of_the_keys(items: secateur.client.TableHandle, count: int) -> None:
    keys = [(key * 7919) % 3500 for key in range(count)]
    expected = [(key, f"name {key}", key % 7) if key < 3000 else None for key in keys]
    assert items.get_many([*keys, *keys[:3]]) == expected + expected[:3]


def test_get_many_sends_one_frame_to_each_owner(three: Cluster, items: secateur.client.TableHandle) -> None:
    before = {member.id: member.frames_received for member in three.members()}
    keys = range(100)
    items.get_many(keys)
    owners = {items.owner_of(items.partition_of({"id": key})) for key in keys}
    after = {member.id: member.frames_received for member in three.members()}
    assert {member: after[member] - before[member] for member in after} == {
        member: int(member in owners) for member in after
    }
    assert items.get_many([]) == []
    items.get(1)
    assert sum(member.frames_received for member in three.members()) == sum(after.values()) + 1


WRITES = {Operation.WRITE_ROWS, Operation.WRITE_MANY}


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        pytest.param(range(100), {Operation.WRITE_MANY: 3}, id="few of each partition"),
        pytest.param(range(2950, 3050), {Operation.WRITE_MANY: 3}, id="some are not there"),
        pytest.param([8], {Operation.WRITE_ROWS: 1}, id="one"),
        pytest.param(range(1000), {Operation.WRITE_ROWS: 7}, id="many of each partition"),
        pytest.param([], {}, id="none"),
    ],
)
def test_deletions_of_few_rows_go_to_each_primary_in_one_frame(
    three: Cluster, items: secateur.client.TableHandle, keys: Sequence[int], asked: dict[Operation, int]
) -> None:
    there = len([key for key in keys if key < 3000])
    with requests_of(three, WRITES) as seen:
        assert items.delete_many(keys) == there
    assert Counter(seen) == asked
    assert items.get_many(keys) == [None] * len(keys)
    assert items.delete_many(keys) == 0
    assert items.get(2000) == (2000, "name 2000", 5)


@pytest.mark.parametrize("is_made", [True, False], ids=["made", "refused"])
def test_deletions_whose_answer_is_lost_are_counted_once(
    three: Cluster, items: secateur.client.TableHandle, is_made: bool
) -> None:
    """One member makes the deletions of its frame, or none of them, and hangs up in place of the answer."""
    runtime: Any = three._runtime
    member = runtime._members[items.owner_of(items.partition_of({"id": 1}))]
    handler = member.handlers[Operation.WRITE_MANY]

    async def lose(request: Any) -> Any:
        if is_made:
            await handler(request)
        raise MemberLostError("the answer was lost")

    member.handlers[Operation.WRITE_MANY] = lose
    try:
        assert items.delete_many(range(50)) == 50
    finally:
        member.handlers[Operation.WRITE_MANY] = handler
    assert items.get_many(range(51)) == [None] * 50 + [(50, "name 50", 1)]


def test_long_texts_are_read_whole(items: secateur.client.TableHandle) -> None:
    long = "ä" * 100_000
    items.put((1, long, 0))
    assert items.get(1) == (1, long, 0)
    assert items.get_many([1, 2, 1]) == [(1, long, 0), (2, "name 2", 2), (1, long, 0)]


def test_rows_are_found_among_recent_changes(conn: secateur.Connection, items: secateur.client.TableHandle) -> None:
    for key in range(0, 3000, 3):
        items.put((key, "new", 1))
    conn.execute("DELETE FROM items WHERE id < 50")
    items.put_many([(10, "back", 2)])
    expected = {row[0]: row for row in conn.execute("SELECT * FROM items").fetchall()}
    assert items.get_many(range(3010)) == [expected.get(key) for key in range(3010)]


def test_put_adds_and_replaces_whole_rows(items: secateur.client.TableHandle) -> None:
    items.put({"ID": 1, "n": 9}, missing="null")
    items.put((5000, "added", 1))
    items.put([5001, None, 2])
    assert items.get_many([1, 5000, 5001]) == [(1, None, 9), (5000, "added", 1), (5001, None, 2)]
    items.put_many([(1, "first", 1), (1, "last", 2), (6000, "x", 3)])
    assert items.get_many([1, 6000]) == [(1, "last", 2), (6000, "x", 3)]
    items.put_many([])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        pytest.param(lambda t: t.get("seven"), DataError, "column id: 'seven'", id="text for a number"),
        pytest.param(lambda t: t.get(1.5), DataError, "column id: 1.5 .* not a whole number", id="fraction"),
        pytest.param(lambda t: t.get(2**70), DataError, "column id", id="out of range"),
        pytest.param(lambda t: t.get(None), NullKeyError, "column id is part of the primary key", id="null"),
        pytest.param(lambda t: t.get(), NullKeyError, "id", id="nothing"),
        pytest.param(lambda t: t.get((1, 2)), ParameterError, r"primary key of kept_items is \(id\)", id="two values"),
        pytest.param(lambda t: t.get(name="x"), ParameterError, r"the key has \(name\)", id="other column"),
        pytest.param(lambda t: t.get(1, id=1), ParameterError, "not both", id="twice"),
        pytest.param(lambda t: t.get_many([1, "x"]), DataError, "column id", id="one of many"),
        pytest.param(lambda t: t.put((1, "x")), ParameterError, "tuple of its 3 values", id="short row"),
        pytest.param(lambda t: t.put(5), ParameterError, "mapping of column names", id="no row"),
        pytest.param(
            lambda t: t.put({"id": 1, "n": 1, "m": 2}), UnknownColumnError, "no column 'm'", id="unknown column"
        ),
        pytest.param(lambda t: t.put({"id": 1, "ID": 2, "n": 1}), ParameterError, "twice", id="column twice"),
        pytest.param(lambda t: t.put((1, 5, 1)), DataError, "column name: 5", id="number for a text"),
        pytest.param(lambda t: t.put((1, "x", 2**31)), DataError, "column n: 2147483648", id="overflow"),
        pytest.param(lambda t: t.put((1, "x", None)), NullKeyError, "column n is NOT NULL", id="not null"),
        pytest.param(lambda t: t.put({"n": 1}), NullKeyError, "column id is NOT NULL", id="no key"),
        pytest.param(lambda t: t.put_many([(1, "x", 1), (2, "y", None)]), NullKeyError, "column n", id="second row"),
        pytest.param(lambda t: t.delete("x"), DataError, "column id", id="delete of a text"),
        pytest.param(lambda t: t.delete_many([1, None]), NullKeyError, "column id", id="delete of a null"),
    ],
)
def test_bad_keys_and_rows_are_refused_before_anything_is_done(
    kept_items: secateur.client.TableHandle, call: Callable[[Any], Any], error: type[Error], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(kept_items)
    assert kept_items.get_many([1, 2]) == [(1, "name 1", 1), (2, "name 2", 2)]


def test_tables_of_ranges(conn: secateur.Connection) -> None:
    conn.execute(
        "CREATE TABLE days (day DATE, id BIGINT, v INTEGER, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)"
        " (PARTITION '2024-01-01' <= VALUES < '2024-04-01', PARTITION '2024-04-01' <= VALUES < '2024-07-01')"
    )
    handle = conn.table("days")
    inside, outside = (date(2024, 5, 1), 1), (date(2024, 8, 1), 1)
    handle.put((*inside, 5))
    assert handle.get_many([outside, inside]) == [None, (*inside, 5)]
    assert handle.get(outside) is None
    assert not handle.delete(outside)
    with pytest.raises(NoRangeError):
        handle.put((*outside, 6))
    conn.execute("ALTER TABLE days ADD PARTITION '2024-07-01' <= VALUES < '2024-10-01'")
    handle.put((*outside, 6))
    assert handle.get(outside) == (*outside, 6)
    conn.execute("ALTER TABLE days ADD PARTITION '2024-10-01' <= VALUES < '2025-01-01'")
    assert handle.get(inside) == (*inside, 5)
    assert handle.delete_many([inside, outside]) == 2


@pytest.mark.parametrize("call", ["get", "delete", "put", "partition_of"])
def test_a_handle_that_another_thread_renews_meanwhile_finds_new_ranges(
    conn: secateur.Connection, three: Cluster, table_name: str, call: str
) -> None:
    """A call has looked by the old definition, and finds that the newest one is known when it asks for it."""
    conn.execute(
        f"CREATE TABLE {table_name} (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (k) (PARTITION VALUES < 10)"
    )
    handle = conn.table(table_name)
    handle.get(1)
    with three.connect() as other:
        other.execute(f"ALTER TABLE {table_name} ADD PARTITION 10 <= VALUES < 20")
        other.table(table_name).put((15, 1))

    class Key(UserDict[str, int]):
        def __iter__(self) -> Iterator[str]:
            if not renewed:
                renewed.append(True)
                for look in (lambda: handle.get(15), lambda: handle.partition_of({"k": 15})):
                    thread = threading.Thread(target=look)
                    thread.start()
                    thread.join()
            return super().__iter__()

    renewed: list[bool] = []
    match call:
        case "get":
            assert handle.get(Key({"k": 15})) == {"k": 15, "v": 1}
        case "delete":
            assert handle.delete(Key({"k": 15}))
        case "put":
            handle.put(Key({"k": 15, "v": 2}))
            assert handle.get(15) == (15, 2)
        case "partition_of":
            assert handle.partition_of(Key({"k": 15})) == 1
    assert renewed


def test_tables_that_make_their_ranges(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE made (day DATE PRIMARY KEY, v INTEGER) PARTITION BY RANGE (day) EVERY INTERVAL 1 DAY")
    handle = conn.table("made")
    days = [date(2024, 1, 1) + timedelta(days=number) for number in range(5)]
    assert handle.get(days[0]) is None
    handle.put((days[0], 0))
    handle.put_many([(day, number) for number, day in enumerate(days)])
    assert handle.get_many([*days, date(2030, 1, 1)]) == [*[(day, n) for n, day in enumerate(days)], None]
    assert handle.delete_many([date(2031, 1, 1), *days]) == 5


def test_replicated_tables(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE names (id INTEGER PRIMARY KEY, name VARCHAR) REPLICATED")
    handle = conn.table("names")
    handle.put((1, "one"))
    handle.put_many([(2, "two"), (3, "three")])
    assert [handle.get(2) for _ in range(4)] == [(2, "two")] * 4
    assert handle.get_many([3, 4, 1]) == [(3, "three"), None, (1, "one")]
    assert handle.delete(2)
    assert handle.delete_many([1, 2]) == 1
    assert conn.execute("SELECT * FROM names").fetchall() == [(3, "three")]


def test_a_table_that_is_dropped_and_created_anew_under_a_handle(
    conn: secateur.Connection, items: secateur.client.TableHandle
) -> None:
    conn.execute("DROP TABLE items")
    with pytest.raises(UnknownTableError):
        items.get(1)
    conn.execute("CREATE TABLE items (name VARCHAR PRIMARY KEY, v DOUBLE)")
    items.put(("x", 1.5))
    assert items.get("x") == ("x", 1.5)
    assert items.delete("x")


def test_the_statement_timeout_ends_a_get(three: Cluster, items: secateur.client.TableHandle) -> None:
    with three.connect() as hurried:
        hurried.execute("SET statement_timeout = '1ms'")
        handle = hurried.table("items")
        with pytest.raises(DeadlineError):
            handle.get_many(key % 3000 for key in range(100_000))
        hurried.execute("SET statement_timeout = 0")
        assert handle.get(1) == (1, "name 1", 1)


def test_a_member_answers_only_for_what_it_owns(three: Cluster, items: secateur.client.TableHandle) -> None:
    definition = items.definition
    key, other = 1, 1
    while items.owner_of(items.partition_of({"id": other})) == items.owner_of(items.partition_of({"id": key})):
        other += 1
    address = {member.id: member.address for member in three.members()}[items.owner_of(items.partition_of({"id": key}))]
    with RawConnection(three, address) as connection:

        def ask(keys: list[Any], version: int = definition.version) -> bytes:
            asked = {"table_id": definition.table_id, "table_version": version, "keys": keys}
            return connection.ask(Operation.GET_ROWS, header_of(Operation.GET_ROWS, asked))

        with pytest.raises(TopologyChangedError, match="belongs to"):
            ask([[key], [other]])
        with pytest.raises(TopologyChangedError, match="altered"):
            ask([[key]], definition.version + 1)
        with pytest.raises(ProtocolError, match="has 1 values, not 2"):
            ask([[key, key]])
        with pytest.raises(DataError):
            ask([["text"]])
        assert ask([[key]])


def test_gets_and_puts_follow_a_lost_member() -> None:
    with secateur.start(members=3, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 16 BACKUPS 1")
        handle = conn.table("t")
        handle.put_many([(key, 0) for key in range(64)])
        stop, written = threading.Event(), dict.fromkeys(range(64), 0)
        failures: list[BaseException] = []

        def write() -> None:
            try:
                with cluster.connect() as other:
                    table = other.table("t")
                    while not stop.is_set():
                        for key in range(64):
                            table.put((key, written[key] + 1))
                            written[key] += 1
            except BaseException as error:
                failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            cluster.kill_member(handle.owner_of(handle.partition_of({"id": 0})))
            for _ in range(20):
                seen = [written[key] for key in range(64)]
                rows = handle.get_many(range(64))
                assert all(row is not None and row[1] >= least for row, least in zip(rows, seen, strict=True))
        finally:
            stop.set()
            writer.join()
        assert not failures
        assert handle.get_many(range(64)) == [(key, written[key]) for key in range(64)]
