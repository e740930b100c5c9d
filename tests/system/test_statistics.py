"""What the planner knows of tables, in a running cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import UnknownTableError
from secateur.planner import CostModel
from secateur.protocol import StepResult


@pytest.mark.parametrize("placed", ["PARTITION BY HASH (id) PARTITIONS 13", "REPLICATED"])
def test_every_row_counts_once(cluster: Cluster, table_name: str, placed: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY, kind VARCHAR) {placed}")
        table = conn.table(table_name)
        assert table.statistics().rows == 0
        table.load(
            pa.table({"id": list(range(500)), "kind": [None if n % 5 == 0 else f"k{n % 7}" for n in range(500)]})
        )
        conn.execute(f"INSERT INTO {table_name} VALUES (1000, 'new')")
        conn.execute(f"DELETE FROM {table_name} WHERE id = 3")
        statistics = table.statistics()
        assert statistics.rows == 500
        assert (
            statistics.columns["id"].distinct,
            statistics.columns["id"].minimum,
            statistics.columns["id"].maximum,
        ) == (500, 0, 1000)
        assert (statistics.columns["kind"].distinct, statistics.columns["kind"].nulls) == (8, 100)


def test_an_unknown_table_has_none(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY)")
        table = conn.table(table_name)
        conn.execute(f"DROP TABLE {table_name}")
        with pytest.raises(UnknownTableError):
            table.statistics()


def test_looking_at_rows_is_no_statement(cluster: Cluster, table_name: str) -> None:
    with cluster.connect() as conn:
        conn.execute(f"CREATE TABLE {table_name} (id BIGINT PRIMARY KEY)")
        table = conn.table(table_name)
        before = [member.frames_received for member in cluster.members()]
        table.statistics()
        assert [member.frames_received for member in cluster.members()] == before


SELECTIVE = "SELECT count(*) FROM lookups AS l JOIN facts AS f ON f.lookup_id = l.id WHERE l.region = 'r7'"


@pytest.fixture
def facts() -> Iterator[Cluster]:
    """Two tables without rows; a join of them is worth a search for its keys once they have some."""
    with (
        secateur.start(members=2, runtime="embedded", cost_model=CostModel(step_rows=3_000)) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute("CREATE TABLE lookups (id BIGINT PRIMARY KEY, region VARCHAR) PARTITION BY HASH (id) PARTITIONS 8")
        conn.execute(
            "CREATE TABLE facts (lookup_id BIGINT, n BIGINT, PRIMARY KEY (lookup_id, n))"
            " PARTITION BY HASH (lookup_id) PARTITIONS 64"
        )
        yield cluster


def fill(conn: secateur.Connection) -> None:
    conn.table("lookups").load(pa.table({"id": range(2_000), "region": [f"r{n % 1_000}" for n in range(2_000)]}))
    conn.table("facts").load(pa.table({"lookup_id": [n % 2_000 for n in range(20_000)], "n": range(20_000)}))


def steps_of(conn: secateur.Connection) -> tuple[StepResult, ...]:
    cursor = conn.execute(SELECTIVE)
    assert cursor.fetchall() in ([(0,)], [(20,)])
    assert cursor.stats is not None
    return cursor.stats.steps


def test_a_statement_right_after_a_load_is_planned_with_statistics(facts: Cluster) -> None:
    with facts.connect() as conn:
        fill(conn)
        assert len(steps_of(conn)) == 1


@pytest.mark.smoke
def test_a_known_statement_is_planned_again_when_statistics_come(facts: Cluster) -> None:
    """Its client asks the controller for nothing meanwhile: the members tell it."""
    with facts.connect() as conn, facts.connect() as loader:
        assert steps_of(conn) == ()
        fill(loader)
        eventually(lambda: len(steps_of(conn)) == 1, "the statement was not planned again")


def test_statistics_that_stay_the_same_plan_nothing_again(facts: Cluster) -> None:
    with facts.connect() as conn, facts.connect() as loader:
        fill(loader)
        assert len(steps_of(conn)) == 1
        loader.execute("INSERT INTO lookups VALUES (2001, 'r7')")
        loader.table("lookups").statistics()
        cursors = [conn.execute(SELECTIVE) for _ in range(3)]
        assert [cursor.stats is not None and cursor.stats.plan_cached for cursor in cursors] == [True] * 3


def test_a_statement_is_planned_again_when_its_estimates_turn_out_badly_wrong() -> None:
    """The number of rows stays, and those rewritten are too few by themselves for new statistics."""
    with (
        secateur.start(members=2, runtime="embedded", cost_model=CostModel(step_rows=1_000)) as cluster,
        cluster.connect() as conn,
    ):
        conn.execute("CREATE TABLE lookups (id BIGINT PRIMARY KEY, region VARCHAR) PARTITION BY HASH (id) PARTITIONS 8")
        conn.execute(
            "CREATE TABLE facts (lookup_id BIGINT, n BIGINT, PRIMARY KEY (lookup_id, n))"
            " PARTITION BY HASH (lookup_id) PARTITIONS 64"
        )
        regions = [f"r{n}" if n < 1_800 else "common" for n in range(10_000)]
        conn.table("lookups").load(pa.table({"id": range(10_000), "region": regions}))
        conn.table("facts").load(pa.table({"lookup_id": range(30_000), "n": range(30_000)}))
        conn.table("lookups").statistics()
        conn.table("facts").statistics()
        conn.execute("UPDATE lookups SET region = 'common' WHERE id < 1800")
        known = "SELECT count(*) FROM lookups AS l JOIN facts AS f ON f.lookup_id = l.id WHERE l.region = 'common'"

        def is_planned_anew_without_steps() -> bool:
            cursor = conn.execute(known)
            assert cursor.fetchall() == [(10_000,)]
            assert cursor.stats is not None
            return not cursor.stats.plan_cached and "join keys" not in conn.explain(known).text

        first = conn.execute(known).stats
        assert first is not None
        assert [step.used for step in first.steps] == [False]
        eventually(is_planned_anew_without_steps, "the statement keeps the plan whose estimate was wrong")
        for _ in range(3):
            last = conn.execute(known).stats
            assert last is not None
            assert (last.plan_cached, last.steps) == (True, ())


@pytest.mark.parametrize("reads", ["count(*)", "l.id, f.n"])
def test_a_statement_is_planned_again_when_scans_find_rows_far_from_their_estimates(reads: str) -> None:
    """The same without steps: the rows that a scan sends to the other members are compared."""
    with (
        secateur.start(members=2, runtime="embedded") as cluster,
        cluster.connect() as conn,
    ):
        conn.execute("CREATE TABLE lookups (id BIGINT PRIMARY KEY, region VARCHAR) PARTITION BY HASH (id) PARTITIONS 8")
        conn.execute("CREATE TABLE facts (n BIGINT PRIMARY KEY, lookup_id BIGINT) PARTITION BY HASH (n) PARTITIONS 16")
        regions = [f"r{n}" if n < 1_800 else "common" for n in range(10_000)]
        conn.table("lookups").load(pa.table({"id": range(10_000), "region": regions}))
        conn.table("facts").load(pa.table({"n": range(30_000), "lookup_id": range(30_000)}))
        conn.table("lookups").statistics()
        conn.table("facts").statistics()
        conn.execute("UPDATE lookups SET region = 'common' WHERE id < 1800")
        known = f"SELECT {reads} FROM lookups AS l JOIN facts AS f ON f.lookup_id = l.id WHERE l.region = 'common'"

        def is_planned_anew() -> bool:
            cursor = conn.execute(known)
            rows = cursor.fetchall()
            assert rows == [(10_000,)] if reads == "count(*)" else len(rows) == 10_000
            assert cursor.stats is not None
            return not cursor.stats.plan_cached

        assert is_planned_anew()  # for the first time
        eventually(is_planned_anew, "the statement keeps the plan whose estimate was wrong")
