"""What a member does for one execution of a statement."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from described_tables import DescribedTables
from secateur.cluster import Cluster
from secateur.cluster.member import in_some_form
from secateur.cluster.member.statements import local_reads
from secateur.errors import DataError, LimitExceededError

SQL = "SELECT k, max(v) OVER (PARTITION BY k) AS m FROM {} WHERE k = ? AND n > ?"


def test_keys_that_are_not_there_are_answered_without_a_kernel(
    lone_cluster: Cluster, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lone_cluster.connect() as conn:
        conn.execute(
            f"CREATE TABLE {table_name} (k VARCHAR, n BIGINT, v BIGINT, PRIMARY KEY (k, n)) PARTITION BY HASH (k)"
            " PARTITIONS 4 BACKUPS 0"
        )
        conn.execute(f"INSERT INTO {table_name} VALUES ('a', 1, 10), ('a', 2, 20)")
        sql = SQL.format(table_name)
        assert conn.execute(sql, ["a", 0]).fetchall() == [("a", 20), ("a", 20)]
        called: list[Any] = []
        real = local_reads.open_answer
        monkeypatch.setattr(
            local_reads, "open_answer", lambda *args, **options: called.append(args) or real(*args, **options)
        )
        gone = conn.execute(sql, ["a", 2])
        assert gone.fetchall() == []
        assert [column[0] for column in gone.description or ()] == ["k", "m"]
        assert gone.stats is not None
        assert gone.stats.execution == "local"
        assert conn.execute(sql, ["b", 0]).fetch_arrow_table().num_rows == 0
        assert called == []
        assert conn.execute(
            f"SELECT count(*), median(v) FROM {table_name} WHERE k = ? AND n > ?", ["a", 9]
        ).fetchall() == [(0, None)]
        assert called == []
        assert conn.execute(sql, ["a", 1]).fetchall() == [("a", 20)]
        assert len(called) == 1


def test_a_join_of_few_rows_needs_no_duckdb_and_one_of_many_runs_in_a_thread(
    lone_cluster: Cluster, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lone_cluster.connect() as conn:
        lookup, orders = f"{table_name}_titles", table_name
        conn.execute(f"CREATE TABLE {lookup} (id INTEGER PRIMARY KEY, title VARCHAR) REPLICATED")
        conn.execute(
            f"CREATE TABLE {orders} (k VARCHAR, n BIGINT, id INTEGER, PRIMARY KEY (k, n)) PARTITION BY HASH (k)"
            " PARTITIONS 4 BACKUPS 0"
        )
        conn.table(lookup).load(pa.table({"id": pa.array(range(30_000), pa.int32()), "title": ["t"] * 30_000}))
        conn.table(orders).load(
            pa.table(
                {
                    "k": ["few"] * 3 + ["many"] * 6_000,
                    "n": range(6_003),
                    "id": pa.array([7, 29_999, 30_000, *range(6_000)], pa.int32()),
                }
            )
        )
        called: list[Any] = []
        real = local_reads.open_answer
        monkeypatch.setattr(
            local_reads, "open_answer", lambda *args, **options: called.append(args) or real(*args, **options)
        )
        sql = f"SELECT count(*), count(title), max(o.id) FROM {orders} o LEFT JOIN {lookup} USING (id) WHERE k = ?"
        assert conn.execute(sql, ["few"]).fetchall() == [(3, 2, 30_000)]
        assert called == []
        assert conn.execute(sql, ["many"]).fetchall() == [(6_000, 6_000, 5_999)]
        assert len(called) == 1


def test_an_error_in_the_data_is_one_of_the_whole_statement() -> None:
    """What the placed form raises is not raised where the gathered form has an answer; anything else is, and so is what
    that form raises.
    """

    async def some_form(outcomes: dict[str, Any], placed: Any) -> Any:
        async def run(plan: Any) -> Any:
            outcome = outcomes["gathered" if not plan.gathered else "placed"]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return await in_some_form(placed, run)

    tables = DescribedTables.of(["CREATE TABLE t (k VARCHAR PRIMARY KEY, v BIGINT) BACKUPS 0"])
    placed = tables.select("SELECT a.v FROM t a JOIN t b ON a.v = b.v").plan
    assert placed.gathered
    bad, other = DataError("bad"), LimitExceededError("much")
    assert asyncio.run(some_form({"placed": bad, "gathered": 3}, placed)) == 3
    assert asyncio.run(some_form({"placed": 2, "gathered": bad}, placed)) == 2
    for outcomes in ({"placed": bad, "gathered": DataError("bad in the whole")}, {"placed": other, "gathered": 3}):
        with pytest.raises((DataError, LimitExceededError), match=r"bad in the whole|much"):
            asyncio.run(some_form(outcomes, placed))
