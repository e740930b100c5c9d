"""RANGE (...) EVERY: a row for which there is no range has it made, however it comes."""

from __future__ import annotations

import threading
from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import LimitExceededError, NoRangeError
from secateur.partitioning.schemes.scheme import RANGES_INLINE_MAX

FIRST = date(2024, 1, 1)


def rows(start: int, stop: int, per_day: int = 4) -> pa.Table:
    numbers = range(start * per_day, stop * per_day)
    return pa.table(
        {"day": [FIRST + timedelta(days=number // per_day) for number in numbers], "id": pa.array(numbers, pa.int64())}
    )


@pytest.fixture
def days(conn: secateur.Connection, table_name: str) -> str:
    conn.execute(
        f"CREATE TABLE {table_name} (day DATE, id BIGINT, PRIMARY KEY (day, id)) PARTITION BY HASH (id) PARTITIONS 2,"
        " RANGE (day) EVERY INTERVAL 1 DAY"
    )
    return table_name


def test_an_empty_table_answers(conn: secateur.Connection, days: str) -> None:
    assert conn.execute(f"SELECT count(*), max(day) FROM {days}").fetchall() == [(0, None)]
    assert conn.execute(f"SELECT * FROM {days} WHERE day = ?", [FIRST]).fetchall() == []


def test_insert_and_load_and_upsert_make_ranges(conn: secateur.Connection, days: str) -> None:
    conn.execute(f"INSERT INTO {days} VALUES (DATE '2024-01-01', 1), (DATE '2024-03-01', 2)")
    assert len(conn.table(days).scheme.ranges()) == 2
    conn.table(days).load(rows(10, 40))
    conn.table(days).load(rows(39, 41), mode="upsert")
    conn.execute(f"INSERT INTO {days} SELECT day + 100, id FROM {days} WHERE day = DATE '2024-01-11'")
    assert len(conn.table(days).scheme.ranges()) == 2 + 31 + 1
    found = conn.execute(f"SELECT count(*) FROM {days} WHERE day = ?", [FIRST + timedelta(days=20)])
    assert found.fetchall() == [(4,)]
    assert found.stats is not None
    assert found.stats.partitions_read == 2
    conn.table(days).load(rows(0, 3), mode="overwrite")
    assert conn.execute(f"SELECT count(*), count(DISTINCT day) FROM {days}").fetchall() == [(12, 3)]


@pytest.mark.parametrize("returning", ["", " RETURNING id"])
def test_an_upsert_makes_ranges_beside_the_only_one_that_is_there(
    conn: secateur.Connection, table_name: str, returning: str
) -> None:
    conn.execute(
        f"CREATE TABLE {table_name} (day DATE, id BIGINT, n INTEGER, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)"
        " EVERY INTERVAL 1 DAY"
    )
    conn.execute(f"INSERT INTO {table_name} VALUES (DATE '2024-01-01', 1, 1)")
    upserted = conn.execute(
        f"INSERT INTO {table_name} VALUES (?, 1, 1), (?, 2, 1), (?, 3, 1) ON CONFLICT (day, id)"
        f" DO UPDATE SET n = {table_name}.n + excluded.n{returning}",
        [FIRST, FIRST + timedelta(days=1), FIRST],
    )
    assert sorted(upserted.fetchall()) == [(1,), (2,), (3,)] if returning else upserted.rowcount == 3
    assert conn.execute(f"SELECT id, n FROM {table_name} ORDER BY id").fetchall() == [(1, 2), (2, 1), (3, 1)]
    conn.execute(
        f"MERGE INTO {table_name} AS t USING (VALUES (CAST(? AS DATE), 1), (CAST(? AS DATE), 5)) AS s(day, id)"
        " ON t.day = s.day AND t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (day, id, 9)",
        [FIRST, FIRST + timedelta(days=4)],
    )
    assert conn.execute(f"SELECT id, n FROM {table_name} ORDER BY id").fetchall() == [(2, 1), (3, 1), (5, 9)]


def test_a_table_with_so_many_ranges_that_they_travel_apart_gets_more(conn: secateur.Connection, days: str) -> None:
    conn.table(days).load(rows(0, RANGES_INLINE_MAX + 1))
    conn.table(days).load(rows(RANGES_INLINE_MAX + 1, RANGES_INLINE_MAX + 5))
    conn.execute(f"INSERT INTO {days} VALUES (?, 1)", [FIRST + timedelta(days=1000)])
    assert len(conn.table(days).scheme.ranges()) == RANGES_INLINE_MAX + 6
    assert conn.execute(f"SELECT count(*) FROM {days}").fetchall() == [(4 * (RANGES_INLINE_MAX + 5) + 1,)]


def test_a_stream_of_batches_makes_ranges_as_it_comes(conn: secateur.Connection, days: str) -> None:
    table = rows(0, 30)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=17))
    assert conn.table(days).load(reader) == 120
    assert conn.execute(f"SELECT count(*) FROM {days}").fetchall() == [(120,)]


def test_a_reader_with_an_old_plan_sees_the_new_range(cluster: Cluster, conn: secateur.Connection, days: str) -> None:
    with cluster.connect() as reader:
        for offset in range(3):
            sql, params = f"SELECT count(*) FROM {days} WHERE day = ?", [FIRST + timedelta(days=offset)]
            assert reader.execute(sql, params).fetchall() == [(0,)]
            conn.table(days).load(rows(offset, offset + 1))
            assert reader.execute(sql, params).fetchall() == [(4,)]


@pytest.mark.smoke
def test_writers_at_once_make_each_range_once(cluster: Cluster, conn: secateur.Connection, days: str) -> None:
    failures: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            with cluster.connect() as own:
                for offset in range(8):
                    own.execute(f"INSERT INTO {days} VALUES (?, ?)", [FIRST + timedelta(days=offset), writer])
                own.table(days).load(
                    pa.table(
                        {
                            "day": [FIRST + timedelta(days=d) for d in range(8, 12)],
                            "id": pa.array([writer] * 4, pa.int64()),
                        }
                    )
                )
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(conn.table(days).scheme.ranges()) == 12
    assert conn.execute(f"SELECT day, count(*) FROM {days} GROUP BY day ORDER BY day").fetchall() == [
        (FIRST + timedelta(days=d), 4) for d in range(12)
    ]


def test_a_dropped_day_is_made_again_when_a_late_row_comes(conn: secateur.Connection, days: str) -> None:
    conn.table(days).load(rows(0, 2))
    conn.execute(f"ALTER TABLE {days} DROP PARTITION DATE '2024-01-01' <= VALUES < DATE '2024-01-02'")
    assert conn.execute(f"SELECT count(*) FROM {days}").fetchall() == [(4,)]
    conn.execute(f"INSERT INTO {days} VALUES (DATE '2024-01-01', 99)")
    assert conn.execute(f"SELECT id FROM {days} WHERE day = DATE '2024-01-01'").fetchall() == [(99,)]


def test_values_that_cannot_be_meant_are_refused(conn: secateur.Connection, days: str) -> None:
    numbers = range(10_001)
    with pytest.raises(LimitExceededError, match="the rows need 10,001 new ranges at once"):
        conn.table(days).load(
            pa.table(
                {"day": [FIRST + timedelta(days=number) for number in numbers], "id": pa.array(numbers, pa.int64())}
            )
        )
    assert conn.table(days).scheme.ranges() == ()


def test_before_the_start_the_catch_all_or_nothing(conn: secateur.Connection, table_name: str) -> None:
    ddl = (
        "CREATE TABLE {} (moment TIMESTAMP PRIMARY KEY, v BIGINT) PARTITION BY RANGE (moment) EVERY INTERVAL 1 MONTH"
        " STARTING TIMESTAMP '2024-01-01 00:00:00'{}"
    )
    with_rest, without = f"{table_name}_rest", f"{table_name}_none"
    conn.execute(ddl.format(with_rest, " (DEFAULT PARTITION old)"))
    conn.execute(ddl.format(without, ""))
    early, late = datetime(2023, 12, 31, 23, 59), datetime(2024, 2, 29, 12)
    with pytest.raises(NoRangeError, match="EVERY makes one when a row of 2024-01-01 00:00:00 or later is written"):
        conn.execute(f"INSERT INTO {without} VALUES (?, 1)", [early])
    for moment in (early, late):
        conn.execute(f"INSERT INTO {with_rest} VALUES (?, 1)", [moment])
        one = conn.execute(f"SELECT count(*) FROM {with_rest} WHERE moment = ?", [moment])
        assert one.fetchall() == [(1,)]
        assert one.stats is not None
        assert one.stats.partitions_read == 1
    assert conn.execute(f"SELECT count(*) FROM {with_rest} WHERE moment >= '2024-01-01'").stats.partitions_read == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["infinity"], r"day=infinity \(1 such row\)"),
        (["-infinity"], r"day=-infinity \(1 such row\)"),
        (["10000-01-01"], r"day=10000-01-01 \(1 such row\)"),
        (["infinity", "2024-01-01", "infinity"], r"day=infinity \(2 such rows of 3\)"),
        (["infinity", "infinity", "10000-01-01", "0044-03-15 (BC)"], r"day=infinity \(4 such rows\)"),
    ],
)
def test_a_day_that_no_range_is_made_for_is_named_and_counted(
    conn: secateur.Connection, days: str, values: list[str], said: str
) -> None:
    listed = ", ".join(f"('{value}', {number})" for number, value in enumerate(values))
    with pytest.raises(NoRangeError, match=f"no range partition covers {said}; EVERY makes one .* years 1 to 9999"):
        conn.execute(f"INSERT INTO {days} VALUES {listed}")
