"""What errors of a cluster in trouble say of a retry, and how soon."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import PartitionLostError, UnreachableError

ROWS = pa.table({"k": range(50), "v": range(50)})

WRITES: list[Callable[[secateur.Connection, int], object]] = [
    lambda conn, key: conn.execute("INSERT INTO t VALUES (?, 1)", [key]),
    lambda conn, key: conn.execute("INSERT OR REPLACE INTO t VALUES (?, 1)", [key]),
    lambda conn, key: conn.execute("UPDATE t SET v = 2 WHERE k = ?", [key]),
    lambda conn, key: conn.execute("DELETE FROM t WHERE k = ?", [key]),
    lambda conn, key: conn.table("t").load(ROWS, mode="upsert"),
    lambda conn, key: conn.execute("SELECT v FROM t WHERE k = ?", [key]).fetchall(),
    lambda conn, key: conn.execute("SELECT count(*) FROM t").fetchall(),
]


@pytest.mark.parametrize("stale", [False, True], ids=["told", "with old owners"])
def test_what_needs_a_lost_partition_fails_at_once_and_for_good(stale: bool) -> None:
    cluster: Cluster
    with secateur.start(members=2, runtime="embedded", member_silence_s=2.0) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 0")
        conn.table("t").load(ROWS)
        table = conn.table("t")
        key = next(key for key in range(50) if table.owner_of(table.partition_of({"k": key})) == "m1")
        cluster.kill_member("m1")
        for write in WRITES:
            started_s = time.monotonic()
            with cluster.connect() as fresh:
                asking = conn if stale else fresh
                asking._session.retry_s = 60.0
                with pytest.raises(PartitionLostError) as caught:
                    write(asking, key)
            assert not caught.value.retry_safe
            assert time.monotonic() - started_s < 40, "it was tried again"


def test_a_controller_that_does_not_come_back_is_waited_for_and_then_named() -> None:
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        conn.table("t").load(ROWS)
        assert conn.execute("SELECT v FROM t WHERE k = ?", [3]).fetchall() == [(3,)]
        conn._session.controller_wait_s = 0.2
        runtime = cluster._runtime
        runtime._loop.run(runtime._controller._server.stop())  # type: ignore[attr-defined]
        errors = []
        for _ in range(3):
            with pytest.raises(secateur.OperationalError) as caught:
                conn.execute("SELECT v + 1 FROM t WHERE k = 3")
            errors.append(caught.value)
        assert isinstance(errors[-1], UnreachableError)
        assert "the controller of this cluster is gone" in str(errors[-1])
        assert errors[-1].retry_safe
