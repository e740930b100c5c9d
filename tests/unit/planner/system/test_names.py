from __future__ import annotations

from typing import Any

import pytest

from secateur.planner.system import INFORMATION_SCHEMA, SYSTEM_TABLES


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_every_system_table_can_be_read(context: Any, name: str) -> None:
    plan = context.select(f"SELECT * FROM Secateur.{name.upper()}").plan
    assert plan.system_tables == (name,)
    assert [(column, text) for column, text in plan.columns] == [
        (column.name, str(column.type)) for column in SYSTEM_TABLES[name].columns
    ]


@pytest.mark.parametrize("name", INFORMATION_SCHEMA)
def test_every_view_of_information_schema_binds(context: Any, name: str) -> None:
    assert context.select(f"SELECT * FROM information_schema.{name}").plan.views == ()


def test_their_plans_are_kept_and_their_answers_are_not(context: Any) -> None:
    plan = context.select("SELECT * FROM secateur.members WHERE false").plan
    assert plan is context.select("SELECT * FROM secateur.members WHERE false").plan
    assert (plan.empty, plan.deterministic) == (None, False)


def test_a_schema_of_one_table_does_not_hinder_pruning(context: Any) -> None:
    partition = context.partition("orders", customer_id="C2")
    for name in ("orders", "main.orders", "secateur.main.orders"):
        assert context.trees(f"SELECT 1 FROM {name} WHERE orders.customer_id = 'C2'") == [f"orders: (p{partition})"]
