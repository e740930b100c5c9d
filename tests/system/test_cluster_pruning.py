"""The pruning setting of the cluster: who follows it, and who has a setting of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import ProgrammingError

QUERY = "SELECT v FROM switched WHERE k = ?"


@pytest.fixture(scope="module")
def switched() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", pruning="off") as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE switched (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 8")
        conn.table("switched").load(pa.table({"k": range(50), "v": range(50)}))
        yield cluster


@pytest.fixture(autouse=True)
def _off_again(switched: Cluster) -> Iterator[None]:
    yield
    with switched.connect() as conn:
        conn.execute("SET GLOBAL pruning = off")


def partitions_read(conn: secateur.Connection) -> int:
    cursor = conn.execute(QUERY, [7])
    assert cursor.fetchall() == [(7,)]
    assert cursor.stats is not None
    return cursor.stats.partitions_read


def shown(conn: secateur.Connection) -> Any:
    return conn.execute("SHOW pruning").fetchall()


def test_a_cluster_starts_with_its_setting(switched: Cluster) -> None:
    with switched.connect() as conn:
        assert (shown(conn), partitions_read(conn)) == ([("off",)], 8)
        assert [default for name, _, default, _ in conn.execute("SHOW ALL").fetchall() if name == "pruning"] == ["off"]


def test_every_connection_follows_a_change(switched: Cluster) -> None:
    """Also one that only runs known statements: the members tell it that there is something newer."""
    with switched.connect() as conn, switched.connect() as other:
        assert partitions_read(other) == 8
        conn.execute("SET GLOBAL pruning = on")
        assert (shown(conn), partitions_read(conn)) == ([("on",)], 1)
        partitions_read(other)
        assert partitions_read(other) == 1
        assert shown(other) == [("on",)]
        with switched.connect() as later:
            assert partitions_read(later) == 1


def test_a_session_has_a_setting_of_its_own(switched: Cluster) -> None:
    with switched.connect() as conn, switched.connect() as own:
        own.execute("SET SESSION pruning = on")
        assert partitions_read(own) == 1
        conn.execute("SET GLOBAL pruning = verify")
        partitions_read(own)
        assert (partitions_read(own), shown(own), shown(conn)) == (1, [("on",)], [("verify",)])


def test_a_session_can_take_its_setting_back(switched: Cluster) -> None:
    with switched.connect() as conn:
        conn.execute("SET pruning = on")
        assert (shown(conn), partitions_read(conn)) == ([("on",)], 1)
        conn.execute("SET pruning = default")
        assert (shown(conn), partitions_read(conn)) == ([("off",)], 8)
        conn.execute("SET GLOBAL pruning = on")
        assert (shown(conn), partitions_read(conn)) == ([("on",)], 1), "it follows the cluster again"
        with pytest.raises(ProgrammingError, match="pruning is on, off or verify"):
            conn.execute("SET GLOBAL pruning = default")


def test_other_settings_are_those_of_sessions(switched: Cluster) -> None:
    with switched.connect() as conn:
        with pytest.raises(ProgrammingError, match=r"disabled_rules is a setting of each session: SET disabled_rules"):
            conn.execute("SET GLOBAL disabled_rules = 'in_pull_out'")
        with pytest.raises(ProgrammingError, match="pruning is on, off or verify"):
            conn.execute("SET GLOBAL pruning = perhaps")


def test_a_cluster_without_such_a_setting_is_not_started() -> None:
    with pytest.raises(ProgrammingError, match="pruning='perhaps': it is one of 'on', 'off', 'verify'"):
        secateur.start(members=1, runtime="embedded", pruning="perhaps")  # type: ignore[arg-type]
