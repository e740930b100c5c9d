"""Statements of many parts over few rows: when they are gathered, and what moves for them."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.plan import Strategy
from secateur.planner import gathered

PART = "SELECT o.customer_id FROM orders o JOIN customers c USING (customer_id) WHERE o.amount > {}"
MANY_PARTS = " UNION ALL ".join(PART.format(amount) for amount in (1, 2, 3))
TWO_PARTS = PART.format(1)


def stages_of(bench: Any, sql: str) -> list[str]:
    return [stage.fragment.sql for stage in bench.select(sql).plan.stages[:-1]]


@pytest.mark.parametrize(
    ("sql", "strategy"),
    [
        pytest.param(TWO_PARTS, Strategy.PLACED, id="few parts"),
        pytest.param(MANY_PARTS, Strategy.GATHER, id="many parts"),
    ],
)
def test_statements_of_many_parts_are_gathered(bench: Any, sql: str, strategy: Strategy) -> None:
    assert bench.select(sql).plan.strategy is strategy


def test_many_rows_are_not_gathered(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "GATHERED_BYTES_MAX", 1e6)
    assert bench.select(MANY_PARTS).plan.strategy is Strategy.PLACED


def test_a_table_that_is_mentioned_often_moves_once(bench: Any) -> None:
    plan = bench.select(MANY_PARTS).plan
    assert len(plan.scans) == 6
    assert [stage.name for stage in plan.stages] == ["scan:o", "scan:c", "final"]
    assert sorted((alias.relation, alias.source) for alias in plan.stages[-1].aliases) == [
        ("s0", "x0"),
        ("s1", "x1"),
        ("s2", "x0"),
        ("s3", "x1"),
        ("s4", "x0"),
        ("s5", "x1"),
    ]


def test_the_text_that_runs_is_that_of_the_statement(bench: Any) -> None:
    plan = bench.select(MANY_PARTS).plan
    assert plan.stages[-1].fragment.sql == plan.local.sql


def test_what_is_run_after_an_error_filters_each_mention_by_itself(bench: Any) -> None:
    plan = bench.select(MANY_PARTS).plan
    wheres = [stage.fragment.sql.partition(" WHERE ")[2] for stage in plan.gathered[:-1]]
    assert len([where for where in wheres if where]) == 3


def test_other_partitions_of_a_table_move_by_themselves(bench: Any) -> None:
    parts = [f"SELECT o.amount FROM orders o JOIN customers c ON c.name = o.priority WHERE o.customer_id = 'C{number}'" for number in range(3)]
    assert [sql for sql in stages_of(bench, " UNION ALL ".join(parts)) if "s1" not in sql] != []
    assert len(stages_of(bench, " UNION ALL ".join(parts))) == 4
