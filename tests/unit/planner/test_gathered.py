"""Statements of many parts over few rows: when they are gathered, and what moves for them."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.sql import Strategy
from secateur.partitioning.tables import ColumnStatistics, StatisticsSnapshot, TableStatistics

PART = "SELECT o.customer_id FROM orders o JOIN customers c USING (customer_id) WHERE o.amount > {}"
MANY_PARTS = " UNION ALL ".join(PART.format(amount) for amount in (1, 2, 3))
TWO_PARTS = PART.format(1)


def stages_of(context: Any, sql: str) -> list[str]:
    return [stage.fragment.sql for stage in context.select(sql).plan.stages[:-1]]


@pytest.mark.parametrize(
    ("sql", "strategy"),
    [
        pytest.param(TWO_PARTS, Strategy.PLACED, id="few parts"),
        pytest.param(MANY_PARTS, Strategy.GATHER, id="many parts"),
    ],
)
def test_statements_of_many_parts_are_gathered(context: Any, sql: str, strategy: Strategy) -> None:
    assert context.select(sql).plan.strategy is strategy


def picture_of(context: Any, **mb: float) -> StatisticsSnapshot:
    """Tables of so many megabytes, in rows of a hundred bytes, with few values in each column but the keys.

    Of these there are as many as the smallest table has rows: each row meets one of it.
    """
    statistics_snapshot = StatisticsSnapshot()
    keys = int(min(mb.values()) * 1e4)
    for name, size in mb.items():
        table = context.table(name)
        rows = int(size * 1e4)
        width = 100 // len(table.columns)
        columns = {
            column.name: ColumnStatistics(rows * width, 0, keys if "id" in column.name else 10)
            for column in table.columns
        }
        statistics_snapshot = statistics_snapshot.with_table(TableStatistics(table.table_id, rows, columns))
    return statistics_snapshot


JOINED = "SELECT {} FROM orders o JOIN customers c ON {} WHERE o.amount > {}"
GROUPED_BY_FEW = " UNION ALL ".join(
    f"{JOINED.format('o.priority, sum(o.amount)', 'o.customer_id = c.customer_id', n)} GROUP BY o.priority"
    for n in (1, 2, 3)
)
MOVES = " UNION ALL ".join(JOINED.format("o.*, c.*", "o.customer_id = c.customer_id", n) for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("sql", "mb", "strategy"),
    [
        pytest.param(GROUPED_BY_FEW, 10, Strategy.GATHER, id="few bytes, which each mention costs more than"),
        pytest.param(GROUPED_BY_FEW, 60, Strategy.PLACED, id="groups of co-located rows are all that moves in stages"),
        pytest.param(MOVES, 60, Strategy.GATHER, id="in stages as much moves as when gathered, or more"),
        pytest.param(MOVES, 400, Strategy.PLACED, id="more than one member is to have"),
    ],
)
def test_what_is_gathered_costs_less_than_what_stages_send(
    context: Any, sql: str, mb: float, strategy: Strategy
) -> None:
    context.statistics_snapshot = picture_of(context, orders=mb, customers=mb / 100)
    assert context.select(sql).plan.strategy is strategy


def test_a_statement_that_was_tried_in_stages_still_reads_the_clock_in_them(context: Any) -> None:
    context.statistics_snapshot = picture_of(context, orders=60, customers=1)
    plan = context.select(f"{GROUPED_BY_FEW} UNION ALL SELECT 'now', extract(year FROM now())").plan
    assert plan.strategy is Strategy.PLACED
    assert plan.reads_clock


def test_a_table_that_is_mentioned_often_moves_once(context: Any) -> None:
    plan = context.select(MANY_PARTS).plan
    assert len(plan.scans) == 6
    assert [stage.name for stage in plan.stages] == ["scan o", "scan c", "final"]
    assert sorted((alias.relation, alias.source) for alias in plan.stages[-1].aliases) == [
        ("s0", "x0"),
        ("s1", "x1"),
        ("s2", "x0"),
        ("s3", "x1"),
        ("s4", "x0"),
        ("s5", "x1"),
    ]


def test_the_text_that_runs_is_that_of_the_statement(context: Any) -> None:
    plan = context.select(MANY_PARTS).plan
    assert plan.stages[-1].fragment.sql == plan.local.sql


def test_what_is_run_after_an_error_filters_each_mention_by_itself(context: Any) -> None:
    plan = context.select(MANY_PARTS).plan
    wheres = [stage.fragment.sql.partition(" WHERE ")[2] for stage in plan.gathered[:-1]]
    assert len([where for where in wheres if where]) == 3


def test_other_partitions_of_a_table_move_by_themselves(context: Any) -> None:
    parts = [
        f"SELECT o.amount FROM orders o JOIN customers c ON c.name = o.priority WHERE o.customer_id = 'C{number}'"
        for number in range(3)
    ]
    assert [sql for sql in stages_of(context, " UNION ALL ".join(parts)) if "s1" not in sql] != []
    assert len(stages_of(context, " UNION ALL ".join(parts))) == 4
