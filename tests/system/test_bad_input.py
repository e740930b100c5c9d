"""Bad input: a clear error from the tree, a connection that works afterwards, and nothing lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur import errors
from secateur.cluster import Cluster
from secateur.protocol import Execute, Prepare


@pytest.fixture(scope="module")
def conn(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as connection:
        connection.execute(
            "CREATE TABLE bad (k VARCHAR, n INTEGER, v TINYINT, PRIMARY KEY (k, n)) PARTITION BY HASH (k) PARTITIONS 5"
        )
        connection.execute("INSERT INTO bad VALUES ('a', 1, 1), ('b', 2, 2)")
        yield connection


@pytest.fixture(autouse=True)
def _usable_afterwards(conn: secateur.Connection) -> Iterator[None]:
    yield
    assert conn.execute("SELECT k, n, v FROM bad ORDER BY k").fetchall() == [("a", 1, 1), ("b", 2, 2)]


@pytest.mark.parametrize(
    ("sql", "params", "kind", "message"),
    [
        ("SELECT * FROM nobody", [], errors.UnknownTableError, "nobody"),
        ("SELECT nothing FROM bad", [], errors.UnknownColumnError, "nothing"),
        ("SELECT *\nFROM bad WHERE", [], errors.SqlSyntaxError, "line 2"),
        ("SELEC 1", [], errors.SqlSyntaxError, "line 1"),
        ("", [], errors.ProgrammingError, ""),
        ("SELECT 1; SELECT 2", [], errors.ProgrammingError, "one statement"),
        ("SELECT v FROM bad WHERE k = ?", [], errors.ParameterError, "1"),
        ("SELECT v FROM bad WHERE k = ?", ["a", "b"], errors.ParameterError, "2"),
        ("SELECT v FROM bad WHERE k = ?", [object()], errors.ParameterError, "object"),
        ("SELECT v FROM bad WHERE n = CAST(? AS INTEGER)", ["x"], errors.DataError, "x"),
        ("INSERT INTO bad VALUES ('a', 1, 9)", [], errors.DuplicateKeyError, "'a'"),
        ("INSERT INTO bad VALUES ('c', 1, 1), ('c', 1, 2)", [], errors.DuplicateKeyError, "'c'"),
        ("INSERT INTO bad VALUES (NULL, 1, 1)", [], errors.NullKeyError, "k"),
        ("INSERT INTO bad VALUES ('c', 1, 1000)", [], errors.DataError, "1000"),
        ("INSERT INTO bad VALUES ('c', 1)", [], errors.ProgrammingError, ""),
        ("INSERT INTO bad (k, nope) VALUES ('c', 1)", [], errors.ProgrammingError, "nope"),
        ("CREATE TABLE bad (k VARCHAR, PRIMARY KEY (k))", [], errors.TableExistsError, "bad"),
        (
            "CREATE TABLE x (k VARCHAR, v INT, PRIMARY KEY (k)) PARTITION BY HASH (v) PARTITIONS 3",
            [],
            errors.SchemeError,
            "v",
        ),
        (
            "CREATE TABLE x (k DOUBLE, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 3",
            [],
            errors.SchemeError,
            "DOUBLE",
        ),
        (
            "CREATE TABLE x (k VARCHAR, PRIMARY KEY (k)) PARTITION BY HASH (k) PARTITIONS 0",
            [],
            errors.ProgrammingError,
            "0",
        ),
        ("CREATE TABLE x (k WIBBLE, PRIMARY KEY (k))", [], errors.NotSupportedError, "WIBBLE"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, [], errors.LimitExceededError, "nested too deeply"),
        ("DROP TABLE nobody", [], errors.UnknownTableError, "nobody"),
        ("SET pruning = sometimes", [], errors.ProgrammingError, "sometimes"),
        ("SELECT * FROM read_csv('/etc/passwd')", [], errors.DatabaseError, ""),
        ("SELECT * FROM '/etc/passwd'", [], errors.DatabaseError, ""),
        ("ATTACH '/tmp/x.db'", [], errors.DatabaseError, ""),
        ("SELECT 1 / (v - v)::INTEGER + CAST('x' AS INT) FROM bad", [], errors.DataError, "x"),
    ],
)
def test_a_wrong_statement_is_told_apart(
    conn: secateur.Connection, sql: str, params: list[Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        conn.execute(sql, params).fetchall()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "predicate",
    [
        pytest.param("(" * 300 + "v = 1" + ")" * 300, id="parentheses"),
        pytest.param("NOT " * 400 + "v = 1", id="NOT"),
        pytest.param("v = " + "abs(" * 300 + "1" + ")" * 300, id="calls"),
        pytest.param("(v = 1 OR (v = 2 AND " * 50 + "v = 3" + "))" * 50, id="OR and AND"),
    ],
)
def test_what_is_nested_as_deeply_as_programs_write_is_answered(conn: secateur.Connection, predicate: str) -> None:
    assert conn.execute(f"SELECT 1 FROM (VALUES (1), (7)) AS t(v) WHERE {predicate}").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ({"k": ["c"], "n": [3]}, None, ""),
        ({"k": ["a"], "n": [1], "v": [1]}, errors.DuplicateKeyError, "a"),
        ({"k": [None], "n": [3], "v": [1]}, errors.NullKeyError, "k"),
        ({"k": ["c"], "n": [3], "v": [1000]}, errors.DataError, "1000"),
        ({"k": ["c"], "v": [1]}, errors.DatabaseError, "n"),
        ({"k": ["c"], "n": [3], "v": [1], "z": [1]}, errors.DatabaseError, "z"),
    ],
    ids=["nullable-missing", "duplicate", "null", "range", "key-missing", "unknown-column"],
)
def test_a_wrong_load_loads_nothing(
    conn: secateur.Connection, rows: dict[str, list[Any]], kind: type[Exception] | None, message: str
) -> None:
    table = conn.table("bad")
    if kind is None:
        assert table.load(pa.table(rows), missing="null") == 1
        table.load(pa.table({"k": ["a", "b"], "n": [1, 2], "v": [1, 2]}), mode="overwrite")
        return
    with pytest.raises(kind, match=message):
        table.load(pa.table(rows))


def test_a_load_with_a_text_that_is_no_utf_8_loads_nothing(conn: secateur.Connection) -> None:
    keys = pa.array([b"x%d" % number for number in range(500)] + [b"\xff"], pa.binary()).view(pa.string())
    rows = pa.table({"k": keys, "n": [1] * 501, "v": [None] * 501})
    with pytest.raises(errors.DataError, match=r"column k, row 501: b'\\xff' is no UTF-8"):
        conn.table("bad").load(rows)
    with pytest.raises(errors.DataError, match=r"column k, row 1: b'\\xff' is no UTF-8"):
        conn.table("bad").load(rows.slice(500))


def test_a_load_with_one_bad_row_of_many_loads_nothing(conn: secateur.Connection) -> None:
    rows = pa.table({"k": [f"x{i}" for i in range(500)] + ["a"], "n": [1] * 501, "v": [None] * 501})
    with pytest.raises(errors.DuplicateKeyError, match=r"\(k='a', n=1\) is already there: row 501$") as raised:
        conn.table("bad").load(rows)
    assert raised.value.details["row"] == 501


def test_rows_of_a_load_are_named_as_the_caller_counts_them(conn: secateur.Connection) -> None:
    table = conn.table("bad")
    numbers = list(range(10))
    with pytest.raises(errors.NullKeyError, match="3 of 10 rows are NULL there, the first is row 8"):
        table.load(pa.table({"k": ["c"] * 7 + [None] * 3, "n": numbers, "v": numbers}))
    with pytest.raises(errors.DuplicateKeyError, match=r"more than once among the rows given: rows 3 and 6$"):
        table.load(pa.table({"k": ["c"] * 10, "n": [0, 1, 2, 3, 4, 2, 6, 7, 2, 9], "v": numbers}))
    with conn.cursor() as cursor:
        cursor.execute("CREATE TABLE days (day DATE, at TIMESTAMP, b BLOB, PRIMARY KEY (day, at, b))")
        day = datetime(2024, 2, 29, 1, 2)
        days = {"day": [day.date()] * 3, "at": [day.replace(hour=5), day, day], "b": [b"\x00", b"\xff", b"\xff"]}
        with pytest.raises(errors.DuplicateKeyError, match=r"rows 2 and 3$"):
            conn.table("days").load(pa.table(days))
        cursor.execute("DROP TABLE days")


@pytest.mark.parametrize(
    "key", [{}, {"n": 1}, {"k": None}, {"k": b"\xff"}], ids=["empty", "other-column", "null", "type"]
)
def test_a_wrong_key_has_no_partition(conn: secateur.Connection, key: dict[str, Any]) -> None:
    with pytest.raises(secateur.Error):
        conn.table("bad").partition_of(key)


@pytest.mark.parametrize(
    "address", ["", "localhost", "http://127.0.0.1:1", "secateur://127.0.0.1", "secateur://127.0.0.1:x"]
)
def test_a_malformed_address_is_refused(address: str) -> None:
    with pytest.raises(secateur.Error, match="secateur://"):
        secateur.connect(address)


def test_an_address_that_answers_nothing_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(errors.UnreachableError, match=f"127.0.0.1:{port}"):
        secateur.connect(f"secateur://127.0.0.1:{port}", connect_timeout_s=0)


def test_an_address_that_speaks_something_else_is_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1024)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(errors.ProtocolError):
            secateur.connect(f"secateur://127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_garbage_on_every_socket_harms_nobody(cluster: Cluster) -> None:
    addresses = [cluster.address.removeprefix("secateur://"), *(member.address for member in cluster.members())]
    for address in addresses:
        host, _, port = address.rpartition(":")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 64, b"SC\x01\x01\xff\xff\xff\xff" + b"\xff" * 8, b"SC"):
            with socket.create_connection((host, int(port))) as peer:
                peer.sendall(garbage)


def test_an_unknown_operation_is_an_answer(cluster: Cluster) -> None:
    from secateur.wire import Channel, hello

    host, _, port = cluster.members()[0].address.rpartition(":")
    channel = Channel(host, int(port), hello(cluster.token))
    try:
        with pytest.raises(
            errors.ProtocolError, match=r"this server has no operation 14 .*where a controller is meant"
        ):
            channel.request(Prepare("SELECT 1", []))
        with pytest.raises(secateur.Error):
            channel.request(Execute("no such plan", [], pruning=True))
    finally:
        channel.close()
