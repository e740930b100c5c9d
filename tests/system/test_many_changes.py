"""``executemany`` of an INSERT that meets rows of its keys: as DuckDB does it row by row, and in few statements."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from requests_of import requests_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import NullKeyError
from secateur.protocol import Operation

CHANGES = {
    Operation.CHANGE_ONE_PARTITION,
    Operation.CHANGE_MANY,
    Operation.CHANGE_SEVERAL_PARTITIONS,
    Operation.CHANGE_TABLE,
}
FRAMES = {Operation.CHANGE_MANY: 3}
COLUMNS = "(a INTEGER, b VARCHAR, n INTEGER, v DECIMAL(10,2), PRIMARY KEY (a, b))"
BUMP = "INSERT INTO {t} VALUES (?, ?, 1, NULL) ON CONFLICT DO UPDATE SET n = n + 1"
VERY_MANY = [[n, "x"] for n in range(80)]
"""More than ten for each of the seven partitions."""
CASES = [
    pytest.param(BUMP, [[n, str(n % 3)] for n in range(50)], FRAMES, id="keys of their own"),
    pytest.param(BUMP, [[n % 10, "x"] for n in range(40)], FRAMES, id="keys that come again"),
    pytest.param(BUMP, VERY_MANY, {Operation.CHANGE_TABLE: 1}, id="very many rows"),
    pytest.param(
        BUMP,
        [*VERY_MANY[:20], *VERY_MANY, *VERY_MANY[:20]],
        {Operation.CHANGE_TABLE: 1, Operation.CHANGE_MANY: 6},
        id="very many rows between some of the same keys",
    ),
    pytest.param(
        "INSERT INTO {t} (b, a, v) VALUES ($b, $a, $v) ON CONFLICT (a, b) DO UPDATE SET v = excluded.v WHERE"
        " excluded.v > 2",
        [{"a": n, "b": "x", "v": Decimal(n) / 4 if n % 3 else None} for n in range(20)],
        {Operation.CHANGE_TABLE: 1},
        id="a condition that needs a kernel",
    ),
    pytest.param(
        "INSERT OR REPLACE INTO {t} (a, b, n) VALUES (?, ?, ?)",
        [[n, "x", n] for n in range(20)],
        FRAMES,
        id="replaced columns",
    ),
    pytest.param(
        BUMP,
        [["2", "x"]] * 10,
        {Operation.CHANGE_MANY: 4, Operation.CHANGE_ONE_PARTITION: 10},  # one, two, four and three behind each frame
        id="values that need a cast",
    ),
    pytest.param(
        "INSERT INTO {t} (a, b, n) VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET n = ?",
        [[n, "x", n] for n in range(10)],
        FRAMES,
        id="a parameter elsewhere",
    ),
    pytest.param(BUMP, [[1, "x"]], {Operation.CHANGE_ONE_PARTITION: 1}, id="one row"),
]


@pytest.mark.parametrize(("sql", "rows", "frames"), CASES)
def test_many_rows_leave_what_they_leave_one_by_one(
    cluster: Cluster,
    conn: secateur.Connection,
    table_name: str,
    sql: str,
    rows: list[Any],
    frames: dict[Operation, int],
) -> None:
    with duckdb.connect() as oracle:
        for each, own in ((conn, " PARTITION BY HASH (a) PARTITIONS 7"), (oracle, "")):
            each.execute(f"CREATE TABLE {table_name} {COLUMNS}{own}")
            each.execute(f"INSERT INTO {table_name} VALUES (1, 'x', 7, 1.5), (3, '0', NULL, NULL)")
        with requests_of(cluster, CHANGES) as asked:
            cursor = conn.executemany(sql.format(t=table_name), rows)
        oracle.executemany(sql.format(t=table_name), rows)
        expected = oracle.execute(f"FROM {table_name} ORDER BY ALL").fetchall()
    assert conn.execute(f"FROM {table_name} ORDER BY ALL").fetchall() == expected
    assert Counter(asked) == frames
    if "excluded.v >" not in sql:
        assert cursor.rowcount == len(rows)


def test_an_error_leaves_what_was_before_its_statement_done(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} {COLUMNS} PARTITION BY HASH (a) PARTITIONS 7")
        rows = [*([n, "x"] for n in range(10)), *([n, "x"] for n in range(10)), [None, "x"]]
        with pytest.raises(NullKeyError):
            conn.executemany(BUMP.format(t=table_name), rows)
        assert conn.execute(f"SELECT n, count(*) FROM {table_name} GROUP BY n").fetchall() == [(2, 10)]
        with pytest.raises(NullKeyError):  # one statement, of which no row is made
            conn.executemany(BUMP.format(t=table_name), [*VERY_MANY, *VERY_MANY, [None, "x"]])
        assert conn.execute(f"SELECT n, count(*) FROM {table_name} GROUP BY n ORDER BY n").fetchall() == [
            (1, 70),
            (3, 10),
        ]


def test_a_value_of_other_rows_is_of_the_moment_of_its_own(conn: secateur.Connection, table_name: str) -> None:
    """DuckDB does not take a subquery there."""
    conn.execute(f"CREATE TABLE {table_name} (k INTEGER PRIMARY KEY, n INTEGER) PARTITION BY HASH (k) PARTITIONS 7")
    sql = f"INSERT INTO {table_name} VALUES (?, 0) ON CONFLICT DO UPDATE SET n = (SELECT max(n) FROM {table_name}) + 1"
    conn.executemany(sql, [[n % 10] for n in range(20)])
    assert conn.execute(f"SELECT n FROM {table_name} ORDER BY k").fetchall() == [(n + 1,) for n in range(10)]
