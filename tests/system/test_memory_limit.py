"""A member refuses rows that would not fit into its memory, with nothing half-written, and goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import secateur
from secateur.client.execution import close_snapshot, open_snapshot, prepared_query
from secateur.cluster import Cluster
from secateur.errors import LimitExceededError

KERNEL = 1 << 30
"""The kernel of this process is shared with other tests."""
LIMIT = KERNEL + (16 << 20)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", memory_limit=LIMIT, kernel_memory_bytes_max=KERNEL) as running:
        yield running


def rows(start: int, count: int) -> pa.Table:
    return pa.table({"k": range(start, start + count), "v": ["x" * 1000] * count})


def test_loads_without_end_stop_at_the_limit_and_leave_whole_loads(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 1")
        table, loaded = conn.table("t"), 0
        refused: LimitExceededError | None = None
        while refused is None and loaded < 1_000_000:
            try:
                loaded += table.load(rows(loaded, 1000))
            except LimitExceededError as error:
                refused = error
        assert refused is not None
        assert "bytes, and the member holds" in refused.message
        assert refused.details["limit"] == "memory_limit"
        assert loaded > 0
        assert conn.execute("SELECT count(*) FROM t").fetchone() == (loaded,), "nothing is half-loaded"
        for used, limit in conn.execute("SELECT memory_used, memory_limit FROM secateur.members").fetchall():
            assert limit == LIMIT
            assert 0 < used < LIMIT - KERNEL
        conn.execute("DELETE FROM t")  # is never refused
        assert table.load(rows(0, 1000)) == 1000, "there is room again"


@pytest.mark.smoke
def test_single_writes_stop_at_the_limit_and_deletions_do_not(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 2 BACKUPS 1")
        text, written = "x" * 1_000_000, 0
        refused: LimitExceededError | None = None
        while refused is None and written < 1000:
            try:
                conn.execute("INSERT INTO t VALUES (?, ?)", [written, text])
                written += 1
            except LimitExceededError as error:
                refused = error
        assert refused is not None
        assert "the write to t takes 1,0" in refused.message
        assert written > 0
        assert conn.execute("SELECT count(*) FROM t").fetchone() == (written,)
        conn.execute("DELETE FROM t WHERE k < ?", [written // 2])
        conn.execute("INSERT INTO t VALUES (?, ?)", [5000, text])
        assert conn.execute("SELECT count(*) FROM t").fetchone() == (written - written // 2 + 1,)


def test_rows_that_a_snapshot_keeps_count_until_it_ends(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 0")
        table = conn.table("t")
        table.load(rows(0, 9000))
        snapshot = open_snapshot(prepared_query(conn._session, "SELECT * FROM t", []), lease_s=600)
        assert snapshot is not None
        before = used_bytes(conn)
        table.load(rows(0, 9000), mode="overwrite")
        assert sum(used_bytes(conn)) == pytest.approx(2 * sum(before), rel=0.1), "the old rows, and the new ones"
        with pytest.raises(LimitExceededError, match="bytes, and the member holds"):
            table.load(rows(0, 9000), mode="overwrite")
        close_snapshot(conn._session, snapshot)
        assert sum(used_bytes(conn)) == pytest.approx(sum(before), rel=0.1)
        assert table.load(rows(0, 9000), mode="overwrite") == 9000


def used_bytes(conn: secateur.Connection) -> list[int]:
    return [used for (used,) in conn.execute("SELECT memory_used FROM secateur.members").fetchall()]
