"""A write that follows a load reaches a copy before the copy has published the load: both are made in one order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from eventually import eventually
from held_requests import Held
from stored_copies import copies_of

import secateur
from secateur.cluster import Cluster
from secateur.protocol import Operation


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as running:
        yield running


def rows(value: int) -> pa.Table:
    return pa.table({"k": pa.array(range(100)), "v": pa.array([value] * 100)})


@pytest.mark.parametrize("is_primary_lost", [False, True], ids=["its primary lives", "its primary is lost"])
@pytest.mark.smoke
def test_a_write_behind_a_load_is_behind_it_on_every_copy(cluster: Cluster, is_primary_lost: bool) -> None:
    runtime: Any = cluster._runtime
    with cluster.connect() as conn, cluster.connect() as other, ThreadPoolExecutor(2) as pool:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 4 BACKUPS 2")
        conn.table("t").load(rows(0))
        sql = "SELECT primary_member, backup_members FROM secateur.partitions WHERE table_name = 't' AND partition = ?"
        partition = conn.table("t").scheme.partition_of({"k": 7})
        ((primary, (successor, last)),) = conn.execute(sql, [partition]).fetchall()
        late = successor if is_primary_lost else last
        held = Held(cluster, runtime._members[late].handlers, Operation.PUBLISH_PREPARED_LOAD)
        copied = Held(cluster, runtime._members[late].handlers, Operation.WRITE_COPY)
        loading = pool.submit(conn.table("t").load, rows(1), mode="upsert")
        assert held.arrived.wait(30)
        # the primary has published, and takes writes
        writing = pool.submit(other.execute, "INSERT OR REPLACE INTO t VALUES (7, 2)")
        assert copied.arrived.wait(30)
        copied.release()
        if is_primary_lost:
            cluster.kill_member(primary)
            eventually(lambda: primary not in runtime._controller._state.topology.member_ids)
        held.release()
        loading.result(60)
        writing.result(60)
        assert conn.execute("SELECT v FROM t WHERE k = 7").fetchall() == [(2,)]
        for copies in copies_of(cluster, "t").values():
            assert all(copy == copies[0] for copy in copies)
