"""INSERT ... ON CONFLICT of one row, whose query is planned when an execution needs it, and once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

import secateur
from secateur import Connection
from secateur.cluster import Cluster
from secateur.cluster.controller.statement_replies import StatementReplies
from secateur.errors import DataError, NullKeyError

DDL = "CREATE TABLE t (k BIGINT PRIMARY KEY, d DATE, n BIGINT) PARTITION BY HASH (k) PARTITIONS 5 BACKUPS 1"
UPSERT = "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET d = excluded.d, n = t.n + excluded.n"
DAY = date(2024, 1, 1)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Its controller keeps few plans, so that they are forgotten soon."""
    with secateur.start(members=3, runtime="embedded", plan_cache_max=8) as running:
        yield running


@pytest.fixture
def connection(cluster: Cluster) -> Iterator[Connection]:
    with cluster.connect() as connected:
        connected.execute(DDL)
        yield connected


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the plans in whose place the controller was asked for that of their query."""
    asked: list[str] = []
    whole = StatementReplies.whole

    def counted(self: StatementReplies, plan_id: str) -> Any:
        asked.append(plan_id)
        return whole(self, plan_id)

    monkeypatch.setattr(StatementReplies, "whole", counted)
    return asked


def rows(connection: Connection) -> list[Any]:
    return connection.execute("SELECT * FROM t ORDER BY k").fetchall()


def test_what_a_member_computes_without_duckdb_needs_no_query(connection: Connection, planned: list[str]) -> None:
    for n in (1, 2):
        for k in range(10):
            assert connection.execute(UPSERT, [k, DAY, n]).rowcount == 1
    connection.cursor().executemany(UPSERT, [[k, DAY, 4] for k in range(10)])
    assert rows(connection) == [(k, DAY, 7) for k in range(10)]
    assert planned == []


def test_a_value_that_duckdb_converts_has_the_query_planned_once_for_each_member(
    connection: Connection, planned: list[str]
) -> None:
    for n in ("1", "2"):
        for k in range(10):
            assert connection.execute(UPSERT, [k, "2024-01-01", n]).rowcount == 1
    assert rows(connection) == [(k, DAY, 3) for k in range(10)]
    assert len(set(planned)) == 1
    assert len(planned) <= 3
    connection.cursor().executemany(UPSERT, [[k, "2024-01-02", "4"] for k in range(10)])
    assert rows(connection) == [(k, date(2024, 1, 2), 7) for k in range(10)]
    assert len(planned) <= 3


@pytest.mark.parametrize("pruning", ["on", "off", "verify"])
def test_what_is_no_row_of_one_partition_is_worked_out_for_all(
    connection: Connection, planned: list[str], pruning: str
) -> None:
    connection.execute("CREATE TABLE r (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY RANGE (k) EVERY 10")
    connection.execute(f"SET pruning = {pruning}")
    for _ in range(2):
        with pytest.raises(NullKeyError, match="table t: column k is NOT NULL, but 1 of 1 rows are NULL there"):
            connection.execute(UPSERT, [None, DAY, 1])
        with pytest.raises(DataError, match="out of range for the destination type INT64"):
            connection.execute(UPSERT, [2**63, DAY, 1])
        with pytest.raises(DataError, match="Could not convert string 'x' to INT64"):
            connection.execute(UPSERT, [1, DAY, "x"])
        for k in (5, 105):  # first without a range
            sql = "INSERT INTO r VALUES (?, ?) ON CONFLICT DO UPDATE SET v = r.v + excluded.v"
            assert connection.execute(sql, [k, 1]).rowcount == 1
    assert rows(connection) == []
    assert connection.execute("SELECT * FROM r ORDER BY k").fetchall() == [(5, 2), (105, 2)]
    assert (planned == []) == (pruning == "verify")  # there the whole statement is compared


def test_explain_shows_the_query_before_and_after_it_is_needed(connection: Connection, planned: list[str]) -> None:
    def shown() -> Any:
        """Without the numbers of rows, which are known at some time."""
        said = [line for (line,) in connection.execute(f"EXPLAIN {UPSERT}", [1, DAY, 1]).fetchall()]
        called = str(connection.explain(UPSERT, [1, DAY, 1])).splitlines()
        lines, again = ([line.partition("; about")[0] for line in found] for found in (said, called))
        assert lines == again
        return lines

    before = shown()
    assert "serving: yes" in before
    for day in (DAY, "2024-1-1"):
        connection.execute(UPSERT, [1, day, 1])
        assert shown() == before
    analyzed = connection.execute(f"EXPLAIN ANALYZE {UPSERT}", [1, "2024-1-2", 1]).fetchall()
    assert "1 row" in next(line for (line,) in analyzed if line.startswith("actual: local on 2 of 3 members"))
    assert len(set(planned)) == 1
    assert rows(connection) == [(1, date(2024, 1, 2), 3)]


def test_a_query_is_planned_after_its_controller_ended_or_forgot_it(cluster: Cluster, connection: Connection) -> None:
    assert connection.execute(UPSERT, [1, DAY, 1]).rowcount == 1
    cluster.kill_controller()
    assert connection.execute(UPSERT, [1, DAY, 1]).rowcount == 1
    assert connection.execute(UPSERT, [1, "2024-1-2", "1"]).rowcount == 1  # with no plan of these types anywhere
    other = f"{UPSERT} WHERE t.n < 100"
    assert connection.execute(other, [1, DAY, 1]).rowcount == 1
    cluster.kill_controller()
    assert connection.execute(other, [1, DAY, 2**62]).rowcount == 1
    for number in range(20):
        connection.execute(f"SELECT n + {number} AS n{number} FROM t WHERE k > {number}")
    with pytest.raises(DataError, match=r"[Oo]verflow"):
        connection.execute(UPSERT, [1, DAY, 2**62 + 2**61])
    assert rows(connection) == [(1, DAY, 4 + 2**62)]


def test_long_values_are_not_kept_for_later(connection: Connection, planned: list[str]) -> None:
    connection.execute("CREATE TABLE s (k VARCHAR PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 5")
    sql = "INSERT INTO s VALUES (?, ?) ON CONFLICT DO UPDATE SET v = excluded.v"
    for _ in range(2):
        connection.execute(sql, ["x" * 2000, "7"])
    assert connection.execute("SELECT length(k), v FROM s").fetchall() == [(2000, 7)]
    assert planned == []
