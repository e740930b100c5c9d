"""ALTER TABLE while others read and write: nothing is lost, nothing is seen twice, and nobody goes on with old
ranges.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import NoRangeError, ParameterError, SchemeError

FIRST = date(2024, 1, 1)


def day(offset: int) -> date:
    return FIRST + timedelta(days=offset)


def daily(offset: int, own_hash: str = "") -> str:
    return f"PARTITION DATE '{day(offset)}' <= VALUES < DATE '{day(offset + 1)}' {own_hash}"


@pytest.fixture
def days(conn: secateur.Connection, table_name: str) -> str:
    """A table with the ranges of two days."""
    conn.execute(
        f"CREATE TABLE {table_name} (day DATE, id BIGINT, v BIGINT, PRIMARY KEY (day, id)) PARTITION BY HASH (id)"
        f" PARTITIONS 4, RANGE (day) ({daily(0)}, {daily(1)})"
    )
    return table_name


def rows(offset: int, count: int) -> pa.Table:
    return pa.table(
        {
            "day": pa.array([day(offset)] * count),
            "id": pa.array(range(count), pa.int64()),
            "v": pa.array([offset] * count, pa.int64()),
        }
    )


def test_a_range_that_is_added_takes_rows_at_once(conn: secateur.Connection, days: str) -> None:
    with pytest.raises(NoRangeError, match="add one with ALTER TABLE"):
        conn.execute(f"INSERT INTO {days} VALUES (?, 1, 1)", [day(2)])
    before = [conn.table(days).owner_of(p) for p in range(8)]
    conn.execute(f"ALTER TABLE {days} ADD {daily(2)}, ADD {daily(3, 'HASH (id) PARTITIONS 16')}")
    conn.execute(f"INSERT INTO {days} VALUES (?, 1, 1), (?, 2, 2)", [day(2), day(3)])
    assert conn.execute(f"SELECT id FROM {days} WHERE day >= ? ORDER BY id", [day(2)]).fetchall() == [(1,), (2,)]
    table = conn.table(days)
    assert [table.owner_of(p) for p in range(8)] == before
    assert table.partition_of({"day": day(2), "id": 1}) in range(8, 12)
    assert table.partition_of({"day": day(3), "id": 1}) in range(12, 28)
    busy = conn.execute(f"SELECT v FROM {days} WHERE day = ? AND id = 2", [day(3)])
    assert busy.fetchall() == [(2,)]
    assert busy.stats is not None
    assert (busy.stats.partitions_read, busy.stats.partitions_total, busy.stats.members_touched) == (1, 28, 1)


def test_a_dropped_range_is_gone_with_its_rows_everywhere(
    cluster: Cluster, conn: secateur.Connection, days: str
) -> None:
    conn.execute(f"ALTER TABLE {days} ADD PARTITION two DATE '{day(2)}' <= VALUES < DATE '{day(3)}'")
    for offset in range(3):
        conn.table(days).load(rows(offset, 50))
    held = sum(member.rows for member in cluster.members())
    copies = sum(member.partitions_primary + member.partitions_backup for member in cluster.members())
    conn.execute(f"ALTER TABLE {days} DROP {daily(0)}, DROP PARTITION two")
    assert conn.execute(f"SELECT day, count(*) FROM {days} GROUP BY day").fetchall() == [(day(1), 50)]
    assert held - sum(member.rows for member in cluster.members()) == 100
    assert copies - sum(member.partitions_primary + member.partitions_backup for member in cluster.members()) == 16
    with pytest.raises(ParameterError, match=r"partition 0 of table .* was dropped with its range"):
        conn.table(days).owner_of(0)
    conn.execute(f"ALTER TABLE {days} ADD {daily(0)}")  # it comes back under other ids, and empty
    assert conn.execute(f"SELECT count(*) FROM {days} WHERE day = ?", [day(0)]).fetchall() == [(0,)]
    assert conn.table(days).partition_of({"day": day(0), "id": 1}) in range(12, 16)


def test_several_changes_are_made_all_or_none(conn: secateur.Connection, days: str) -> None:
    conn.table(days).load(rows(0, 10))
    with pytest.raises(SchemeError, match="overlap"):
        conn.execute(f"ALTER TABLE {days} DROP {daily(0)}, ADD {daily(2)}, ADD {daily(1)}")
    with pytest.raises(SchemeError, match="no range with exactly the bounds"):
        conn.execute(f"ALTER TABLE {days} DROP PARTITION DATE '{day(0)}' <= VALUES < DATE '{day(2)}'")
    assert conn.execute(f"SELECT count(*) FROM {days}").fetchall() == [(10,)]
    assert len(conn.table(days).scheme.ranges()) == 2


STALE: list[Any] = [
    pytest.param("SELECT count(*) FROM {t} WHERE day = ?", [day(2)], [(5,)], id="a gap: no member was asked before"),
    pytest.param("SELECT count(*) FROM {t} WHERE day >= ?", [day(1)], [(10,)], id="several members"),
    pytest.param(
        "SELECT v FROM {t} WHERE day IN (?, ?) AND id = 1 ORDER BY v",
        [day(1), day(2)],
        [(1,), (2,)],
        id="one of two ranges",
    ),
    pytest.param("SELECT count(*) FROM {t}", [], [(15,)], id="all of it"),
    pytest.param(
        "SELECT count(*) FROM {t} a JOIN {t} b USING (day, id) WHERE a.day = ?", [day(2)], [(5,)], id="join in a gap"
    ),
]


@pytest.mark.parametrize(("sql", "params", "expected"), STALE)
def test_a_reader_with_an_old_plan_misses_no_new_range(
    cluster: Cluster, conn: secateur.Connection, days: str, sql: str, params: list[Any], expected: list[Any]
) -> None:
    """A stale client entry for an added range lived for minutes (Kudu's meta cache)."""
    conn.table(days).load(rows(0, 5))
    conn.table(days).load(rows(1, 5))
    with cluster.connect() as reader:
        assert reader.execute(sql.format(t=days), params).fetchall() != expected
        conn.execute(f"ALTER TABLE {days} ADD {daily(2)}")
        conn.table(days).load(rows(2, 5))
        assert reader.execute(sql.format(t=days), params).fetchall() == expected


@pytest.mark.parametrize("change", ["DELETE FROM {t} WHERE day = ?", "UPDATE {t} SET v = 7 WHERE day = ?"])
@pytest.mark.smoke
def test_a_change_with_an_old_plan_misses_no_new_range(
    cluster: Cluster, conn: secateur.Connection, days: str, change: str
) -> None:
    with cluster.connect() as writer:
        assert writer.execute(change.format(t=days), [day(2)]).rowcount == 0
        conn.execute(f"ALTER TABLE {days} ADD {daily(2)}")
        conn.table(days).load(rows(2, 5))
        assert writer.execute(change.format(t=days), [day(2)]).rowcount == 5
    assert conn.execute(f"SELECT count(*) FROM {days} WHERE v = 2").fetchall() == [(0,)]


@pytest.mark.parametrize("pruning", ["on", "off", "verify"])
def test_a_reader_with_an_old_plan_sees_nothing_of_a_dropped_range(
    cluster: Cluster, conn: secateur.Connection, days: str, pruning: str
) -> None:
    conn.table(days).load(rows(0, 5))
    with cluster.connect() as reader:
        reader.execute(f"SET pruning = {pruning}")
        sql = f"SELECT count(*) FROM {days} WHERE day = ?"
        assert reader.execute(sql, [day(0)]).fetchall() == [(5,)]
        conn.execute(f"ALTER TABLE {days} DROP {daily(0)}")
        assert reader.execute(sql, [day(0)]).fetchall() == [(0,)]
        conn.execute(f"ALTER TABLE {days} ADD {daily(0)}")
        conn.table(days).load(rows(0, 3))
        assert reader.execute(sql, [day(0)]).fetchall() == [(3,)]


def test_a_writer_with_an_old_definition_finds_the_new_range(
    cluster: Cluster, conn: secateur.Connection, days: str
) -> None:
    with cluster.connect() as writer:
        table = writer.table(days)
        conn.execute(f"ALTER TABLE {days} ADD {daily(2)}, DROP {daily(0)}")
        assert table.load(rows(2, 30)) == 30
        with pytest.raises(NoRangeError):
            table.load(rows(0, 30))
        fresh = writer.table(days)
        conn.execute(f"ALTER TABLE {days} ADD {daily(3)}")
        partition = fresh.partition_of({"day": day(3), "id": 7})
        assert fresh.owner_of(partition) == conn.table(days).owner_of(partition)
    assert conn.execute(f"SELECT count(*) FROM {days}").fetchall() == [(30,)]


@pytest.mark.smoke
def test_kudu_3564_a_list_is_pruned_with_the_hash_components_of_each_range(
    conn: secateur.Connection, days: str
) -> None:
    conn.execute(f"ALTER TABLE {days} ADD {daily(2, 'HASH (id) PARTITIONS 7 SEED 3')}, ADD {daily(3, 'NO HASH')}")
    for offset in range(4):
        conn.table(days).load(rows(offset, 40))
    keys = ", ".join(map(str, range(0, 40, 3)))
    found = conn.execute(f"SELECT day, count(*) FROM {days} WHERE id IN ({keys}) GROUP BY day ORDER BY day")
    assert found.fetchall() == [(day(offset), 14) for offset in range(4)]
    (one,) = conn.explain(f"SELECT * FROM {days} WHERE day IN (?, ?) AND id = 5", [day(2), day(3)]).to_dict()[
        "pruning"
    ]["scans"]
    table = conn.table(days)
    assert one["partitions"] == sorted(table.partition_of({"day": day(offset), "id": 5}) for offset in (2, 3))


class TestCatchAll:
    @pytest.fixture
    def rest(self, conn: secateur.Connection, days: str) -> str:
        conn.execute(f"ALTER TABLE {days} ADD DEFAULT PARTITION rest")
        return days

    def test_it_takes_what_no_range_holds(self, conn: secateur.Connection, rest: str) -> None:
        for offset in (-5, 0, 1, 9):
            conn.table(rest).load(rows(offset, 10))
        gap = conn.execute(f"SELECT count(*) FROM {rest} WHERE day BETWEEN ? AND ?", [day(2), day(20)])
        assert gap.fetchall() == [(10,)]
        assert gap.stats is not None
        assert (gap.stats.partitions_read, gap.stats.partitions_total) == (4, 12)

    def test_a_range_is_not_added_over_its_rows(self, conn: secateur.Connection, rest: str) -> None:
        conn.table(rest).load(rows(9, 10))
        with pytest.raises(SchemeError, match=r"the DEFAULT PARTITION has .* rows? of the ranges to be added"):
            conn.execute(f"ALTER TABLE {rest} ADD {daily(8)}, ADD {daily(9)}")
        conn.execute(f"ALTER TABLE {rest} ADD {daily(8)}")
        conn.table(rest).load(rows(9, 20), mode="upsert")  # and writes go on after the refusal
        assert conn.execute(f"SELECT count(*) FROM {rest} WHERE day = ?", [day(9)]).fetchall() == [(20,)]
        conn.execute(f"ALTER TABLE {rest} DROP PARTITION rest, ADD {daily(9)}")
        assert conn.execute(f"SELECT count(*) FROM {rest}").fetchall() == [(0,)]

    @pytest.mark.parametrize("count", [1, 2000], ids=["direct write", "load"])
    def test_a_writer_with_an_old_definition_puts_no_row_into_the_wrong_place(
        self, cluster: Cluster, conn: secateur.Connection, rest: str, count: int
    ) -> None:
        with cluster.connect() as writer:
            table = writer.table(rest)
            conn.execute(f"ALTER TABLE {rest} ADD {daily(5)}")
            mixed = pa.concat_tables([rows(4, count), rows(5, count), rows(6, count)])
            assert table.load(mixed) == 3 * count
        for offset in (4, 5, 6):
            assert conn.execute(f"SELECT count(*) FROM {rest} WHERE day = ?", [day(offset)]).fetchall() == [(count,)]


def test_ranges_come_and_go_while_others_read_and_write(cluster: Cluster, conn: secateur.Connection, days: str) -> None:
    """Two days stay.

    Beside them a day is added, filled and dropped, again and again: readers see it whole or not at all, and the two
    always.
    """
    conn.table(days).load(rows(0, 100))
    finished = threading.Event()
    failures: list[BaseException] = []
    seen: set[int] = set()
    written = [0]

    def read() -> None:
        with cluster.connect() as reader:
            while not finished.is_set():
                ((stays, comes),) = reader.execute(
                    f"SELECT count(*) FILTER (v = 0), count(*) FILTER (v > 1) FROM {days}"
                ).fetchall()
                assert stays == 100
                assert comes in (0, 40), comes
                seen.add(comes)
                ((comes,),) = reader.execute(f"SELECT count(*) FROM {days} WHERE day = ?", [day(2)]).fetchall()
                assert comes in (0, 40), comes

    def write() -> None:
        with cluster.connect() as writer:
            while not finished.is_set():
                writer.execute(f"INSERT INTO {days} VALUES (?, ?, 1)", [day(1), written[0]])
                written[0] += 1

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        return run

    threads = [threading.Thread(target=guarded(work)) for work in (read, read, write)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        conn.execute(f"ALTER TABLE {days} ADD {daily(2)}")
        conn.table(days).load(rows(2, 40))
        assert conn.execute(f"SELECT count(*) FROM {days} WHERE day = ?", [day(2)]).fetchall() == [(40,)]
        conn.execute(f"ALTER TABLE {days} DROP {daily(2)}")
    finished.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert conn.execute(f"SELECT count(*) FROM {days} WHERE day = ?", [day(1)]).fetchall() == [(written[0],)]
    assert written[0] > 0


class TestCoLocation:
    """On a cluster of its own: which groups tables share depends on the owners that other tables have got."""

    @pytest.fixture
    def conn(self) -> Iterator[secateur.Connection]:
        with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
            yield connection

    @staticmethod
    def create(conn: secateur.Connection, name: str, *offsets: int) -> None:
        conn.execute(
            f"CREATE TABLE {name} (day DATE, id BIGINT, PRIMARY KEY (day, id)) PARTITION BY HASH (id) PARTITIONS 4,"
            f" RANGE (day) ({', '.join(daily(offset) for offset in offsets)})"
        )

    def test_a_table_created_after_a_change_shares_owners_only_when_its_rows_are_in_the_same_place(
        self, conn: secateur.Connection, days: str
    ) -> None:
        conn.execute(f"ALTER TABLE {days} ADD {daily(2)}")
        other = f"{days}_other"
        self.create(conn, other, 0, 1, 2)
        left, right = conn.table(days), conn.table(other)
        assert left.scheme.affinity_group() == right.scheme.affinity_group()
        assert [left.owner_of(p) for p in range(12)] == [right.owner_of(p) for p in range(12)]
        conn.execute(f"ALTER TABLE {days} DROP {daily(0)}")
        assert conn.table(days).scheme.affinity_group() != conn.table(other).scheme.affinity_group()
        conn.execute(f"ALTER TABLE {other} DROP {daily(0)}")
        assert conn.table(days).scheme.affinity_group() == conn.table(other).scheme.affinity_group()

    def test_tables_stay_together_through_equal_changes_when_another_has_their_ranges_elsewhere(
        self, conn: secateur.Connection
    ) -> None:
        self.create(conn, "elsewhere", 0, 1)
        conn.execute(f"ALTER TABLE elsewhere ADD {daily(2)}, DROP {daily(0)}")  # what is added evens out the drop
        groups = [conn.table("elsewhere").scheme.affinity_group()]
        for name in ("first", "second"):
            self.create(conn, name, 0, 1, 2)
        for name in ("first", "second"):
            conn.execute(f"ALTER TABLE {name} DROP {daily(0)}")
            groups.append(conn.table(name).scheme.affinity_group())
        assert groups[0] != groups[1] == groups[2]
