"""A member process under loads and writes beyond its memory limit stays within the limit and a margin, and lives."""

from __future__ import annotations

import threading

import psutil
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import LimitExceededError

pytestmark = [pytest.mark.ray, pytest.mark.slow]

LIMIT = 256 << 20
MARGIN = LIMIT // 2
"""What docs/operations.md says to leave on top of the limit. The interpreter and its libraries are measured before."""
TEXT = "x" * 1000


def processes(cluster: Cluster) -> list[psutil.Process]:
    ports = {int(member.address.rpartition(":")[2]) for member in cluster.members()}
    return [
        psutil.Process(link.pid)
        for link in psutil.net_connections("tcp")
        if link.status == psutil.CONN_LISTEN and link.laddr.port in ports and link.pid is not None
    ]


class _Peak(threading.Thread):
    """The most bytes that each process has had in memory."""

    def __init__(self, members: list[psutil.Process]) -> None:
        super().__init__(name="measures members")
        self.bytes = {member.pid: member.memory_info().rss for member in members}
        self._members = members
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(0.02):
            for member in self._members:
                self.bytes[member.pid] = max(self.bytes[member.pid], member.memory_info().rss)

    def end(self) -> None:
        self._is_over.set()
        self.join()


def test_a_process_stays_within_its_limit_under_loads_and_writes() -> None:
    with (
        secateur.start(members=2, runtime="ray", memory_limit=LIMIT) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 8 BACKUPS 1")
        conn.table("t").load(pa.table({"k": [-1], "v": ["warm"]}))
        conn.execute("SELECT v, count(*), median(k) FROM t GROUP BY v").fetchall()
        members = processes(cluster)
        assert len(members) == 2
        before = {member.pid: member.memory_info().rss for member in members}
        peak = _Peak(members)
        peak.start()
        loaded, refused = 1, 0
        try:
            for round_ in range(40):
                keys = range(round_ * 20_000, (round_ + 1) * 20_000)
                try:
                    loaded += conn.table("t").load(pa.table({"k": keys, "v": [TEXT] * len(keys)}))
                except LimitExceededError:
                    refused += 1
            for number in range(200):
                try:
                    conn.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [-10 - number, TEXT * 1000])
                    loaded += 1
                except LimitExceededError:
                    refused += 1
        finally:
            peak.end()
        assert conn.execute("SELECT count(*) FROM t").fetchone() == (loaded,)
        assert refused > 20
        assert all(member.is_running() for member in members)
        assert {member.pid for member in processes(cluster)} == set(before), "no member was replaced"
        assert max(most - before[pid] for pid, most in peak.bytes.items()) <= LIMIT + MARGIN
