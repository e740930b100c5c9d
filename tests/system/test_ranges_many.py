"""Tables with thousands of ranges: their schemes travel once, and statements cost what they cost with a few."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.protocol import Prepare, SelectStatement, encode

RANGES = 3_000


@pytest.fixture(scope="module")
def many(cluster: Cluster) -> Iterator[str]:
    splits = ", ".join(str(10 * number) for number in range(1, RANGES))
    with cluster.connect() as connection:
        connection.execute(
            f"CREATE TABLE many_ranges (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (k) SPLIT AT ({splits})"
            " BACKUPS 0"
        )
        keys = pa.array(range(0, 10 * RANGES, 7), pa.int64())
        connection.table("many_ranges").load(pa.table({"k": keys, "v": keys}))
        yield "many_ranges"
        connection.execute("DROP TABLE many_ranges")


def test_answers(conn: secateur.Connection, many: str) -> None:
    one = conn.execute(f"SELECT v FROM {many} WHERE k = ?", [7_000])
    assert one.fetchall() == [(7_000,)]
    assert one.stats is not None
    assert (one.stats.partitions_read, one.stats.partitions_total, one.stats.execution) == (1, RANGES, "local")
    assert conn.execute(f"SELECT count(*), max(v) FROM {many}").fetchall() == [(4286, 29_995)]
    assert conn.execute(f"SELECT sum(v) FROM {many} WHERE k BETWEEN ? AND ?", [70, 90]).fetchall() == [(70 + 77 + 84,)]


def test_a_statement_does_not_carry_the_ranges(cluster: Cluster, many: str) -> None:
    with cluster.connect() as connection:
        asked = Prepare(f"SELECT v FROM {many} WHERE k = ?", [1])
        sent = len(encode(connection._session.ask(asked).message))
        assert sent < 2_000
        asked = Prepare(f"INSERT INTO {many} VALUES (1, 1)", [])
        assert len(encode(connection._session.ask(asked).message)) < 2_000
        schemes = set()
        for text in ("v", "k", "v + k"):
            prepared, _ = connection._session.prepare(f"SELECT {text} FROM {many} WHERE k = ?", [1])
            assert isinstance(prepared, SelectStatement)
            schemes.add(id(prepared.scans[0].tree.scheme))
        assert len(schemes) == 1  # resolved once


def test_old_references_are_followed_to_new_ranges(cluster: Cluster, conn: secateur.Connection, many: str) -> None:
    sql = f"SELECT v FROM {many} WHERE k = ?"
    with cluster.connect() as reader:
        assert reader.execute(sql, [21]).fetchall() == [(21,)]
        conn.execute(
            f"ALTER TABLE {many} DROP PARTITION 20 <= VALUES < 30, ADD PARTITION 20 <= VALUES < 25, ADD PARTITION 25 <="
            " VALUES < 30"
        )
        assert reader.execute(sql, [21]).fetchall() == []
        reader.execute(f"INSERT INTO {many} VALUES (21, -1), (28, -2)")
        assert conn.execute(sql, [21]).fetchall() == [(-1,)]
        assert reader.execute(sql, [28]).fetchall() == [(-2,)]
