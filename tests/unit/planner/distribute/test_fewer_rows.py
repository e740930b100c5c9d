"""Rows that are left out before they move, are aggregated or are looked for, and what is computed first for that."""

from __future__ import annotations

from typing import Any

import pytest

from described_tables import DescribedTables
from secateur.partitioning.tables import ColumnStatistics, StatisticsSnapshot, TableStatistics

TABLES = [
    "CREATE TABLE part (p BIGINT PRIMARY KEY, name VARCHAR) PARTITION BY HASH (p) PARTITIONS 6",
    "CREATE TABLE offer (p BIGINT, s BIGINT, cost BIGINT, PRIMARY KEY (p, s)) PARTITION BY HASH (p) PARTITIONS 6",
    "CREATE TABLE item (o INT, n INT, p BIGINT, s BIGINT, v INT, PRIMARY KEY(o, n)) PARTITION BY HASH (o) PARTITIONS 5",
    "CREATE TABLE seller (s BIGINT PRIMARY KEY, city VARCHAR) PARTITION BY HASH (s) PARTITIONS 5",
]
ROWS = {"part": 200_000, "offer": 800_000, "item": 6_000_000, "seller": 10_000}
DISTINCT = {"p": 200_000, "s": 10_000, "name": 1_000, "city": 25, "o": 1_500_000, "n": 7, "v": 9_000, "cost": 90}


@pytest.fixture
def context() -> DescribedTables:
    made = DescribedTables.of(TABLES)
    snapshot = StatisticsSnapshot()
    for name, rows in ROWS.items():
        table = made.table(name)
        columns = {
            column.name: ColumnStatistics(8 * rows, 0, min(DISTINCT[column.name], rows)) for column in table.columns
        }
        snapshot = snapshot.with_table(TableStatistics(table.table_id, rows, columns))
    made.statistics_snapshot = snapshot
    return made


def stages(context: Any, sql: str) -> dict[str, str]:
    """The texts of the stages of a statement, by their names."""
    return {stage.name: stage.fragment.sql for stage in context.select(sql).plan.stages}


def test_tables_that_are_equal_to_the_same_column_are_joined_before_they_move(context: DescribedTables) -> None:
    """Each equals a column of the third; they were multiplied with each other, and a member had no room for that."""
    found = stages(
        context,
        "SELECT sum(v - cost) FROM part, offer, item WHERE part.p = item.p AND offer.p = item.p AND"
        " offer.s = item.s AND name = 'green'",
    )
    assert '(t1."p" = t2."p")' in found["join part"], found


def test_what_is_small_once_it_is_joined_moves(context: DescribedTables) -> None:
    """Not the tables decide, of which `item` is by far the largest, but the rows that are left of them."""
    found = stages(context, "SELECT city, v FROM item JOIN seller USING (s) WHERE v = 1 AND o > 0")
    assert "scan item" in found, found


def test_an_aggregation_reads_the_rows_alone_that_it_is_joined_with(context: DescribedTables) -> None:
    found = stages(
        context,
        "SELECT sum(v) FROM item, part WHERE part.p = item.p AND name = 'green' AND"
        " v < (SELECT avg(v) FROM item i WHERE i.p = part.p)",
    )
    assert "SEMI JOIN" in found["join i"], found
    assert "GROUP BY" in found["join i"], found


def test_it_reads_all_where_most_are_needed_or_are_together(context: DescribedTables) -> None:
    most = "SELECT sum(v) FROM item, part WHERE part.p = item.p AND v < (SELECT avg(v) FROM item i WHERE i.p = part.p)"
    together = (
        "SELECT name FROM part, (SELECT p, min(cost) AS least FROM offer GROUP BY p) x WHERE x.p = part.p AND"
        " name = 'green' AND least > 3"
    )
    for sql in (most, together):
        assert not any("SEMI JOIN" in text for text in stages(context, sql).values()), sql


def test_joins_that_leave_few_rows_come_before_what_is_only_looked_for(context: DescribedTables) -> None:
    found = stages(
        context,
        "SELECT city, count(*) FROM seller, item i WHERE seller.s = i.s AND city = 'Rome' AND EXISTS (SELECT * FROM"
        " item j WHERE j.o = i.o AND j.s <> i.s) GROUP BY city",
    )
    assert "AS MATERIALIZED" in found["join i"], found
    kept = stages(
        context,
        "SELECT count(*) FROM item i JOIN seller USING (s) WHERE EXISTS (SELECT * FROM item j WHERE j.o = i.o AND"
        " j.n > i.n)",
    )
    assert "AS MATERIALIZED" not in kept["join i"], kept


def test_what_is_only_looked_for_is_sent_once_each(context: DescribedTables) -> None:
    found = stages(context, "SELECT count(*) FROM seller WHERE NOT EXISTS (SELECT * FROM item WHERE item.s = seller.s)")
    assert "GROUP BY" in found["scan item"], found
    counted = stages(context, "SELECT count(*) FROM seller LEFT JOIN item ON item.s = seller.s")
    assert "GROUP BY" not in counted["scan item"], counted


def test_conditions_above_a_test_by_in_reach_the_tables_below_it(context: DescribedTables) -> None:
    found = stages(
        context,
        "SELECT name, count(*) FROM offer, part WHERE part.p = offer.p AND name <> 'green' AND offer.s NOT IN (SELECT s"
        " FROM seller WHERE city = 'Rome') GROUP BY name",
    )
    assert list(found) == ["scan seller", "join offer", "final"], found
