"""Readings of system tables are shared, paced, and fresh again in time."""

from __future__ import annotations

import time

from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import Error
from secateur.server.callers import Connections
from secateur.server.dashboard import PacedReading, Readings

SQL = "SELECT count(*) AS members FROM secateur.members"


def test_a_reading_is_kept_for_a_moment_and_then_made_again(cluster: Cluster) -> None:
    connections = Connections(cluster.address, cluster.token or "", 1)
    try:
        readings = Readings(connections, share_max=1e-6, period_s=1e6)
        first = readings.read(SQL)
        assert first.rows == [{"members": 3}]
        others = [readings.read(SQL), readings.read("SELECT ? AS number FROM secateur.members LIMIT 1", [7])]
        assert others[0] is first
        assert others[1].rows == [{"number": 7}]
        assert 0 < readings.next_ms() <= 1e9
    finally:
        connections.close()


def test_a_reading_is_made_in_each_period_until_it_is_known_to_be_slow(cluster: Cluster) -> None:
    connections = Connections(cluster.address, cluster.token or "", 1)
    try:
        readings = Readings(connections, share_max=1e-6, period_s=0.01)
        seen: set[float] = set()
        eventually(lambda: seen.add(readings.read(SQL).read_s) or len(seen) == 5, "it was not read again")
        kept, until_s = readings.read(SQL), time.monotonic() + 0.1
        while time.monotonic() < until_s:
            assert readings.read(SQL) is kept, "five times have shown that it takes more than its share"
    finally:
        connections.close()


def test_the_first_time_decides_about_metrics(cluster: Cluster) -> None:
    connections = Connections(cluster.address, cluster.token or "", 1)
    try:
        paced = PacedReading(connections, lambda _: time.monotonic(), 1e-6, period_s=0.001, stale_s=1e6, times=1)
        first, until_s = paced.get(), time.monotonic() + 0.1
        assert 0 < paced.took_s < first
        while time.monotonic() < until_s:
            assert paced.get() == first, "it takes more than its share"
    finally:
        connections.close()


def test_a_cluster_that_is_gone_is_an_error_and_no_old_number() -> None:
    with secateur.start(members=1, runtime="embedded") as cluster:
        connections = Connections(cluster.address, cluster.token or "", 1)
        readings = Readings(connections, share_max=0.5)
        assert readings.rows(SQL) == [{"members": 1}]
        with connections.lent() as kept:
            kept._session.controller_wait_s = 0.5

    def is_gone() -> bool:
        try:
            readings.read(SQL)
        except Error:
            return True
        return False

    eventually(is_gone, "old numbers passed for new ones")
    connections.close()
