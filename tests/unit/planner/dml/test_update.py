from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import ParameterError
from secateur.planner.statement import ChangeKind, ChangeStatement


def updated(bench: Any, sql: str, params: Any = ()) -> ChangeStatement:
    statement = bench.prepare(sql, params)
    assert isinstance(statement, ChangeStatement)
    assert statement.kind is ChangeKind.UPDATE
    return statement


def test_its_condition_prunes_as_that_of_a_query(bench: Any) -> None:
    statement = updated(bench, "UPDATE orders SET amount = amount + ? WHERE customer_id = ? AND id = ?", (1, "C1", 7))
    (scan,) = statement.select.plan.scans
    assert str(scan.tree) == "orders: (?1)"
    assert scan.keys.decides
    assert statement.select.params == (1, "C1", 7)


def test_without_parameters_it_can_be_explained_but_needs_all_of_them_to_run(bench: Any) -> None:
    assert updated(bench, "UPDATE orders SET amount = ? WHERE customer_id = ?").select.params is None
    with pytest.raises(ParameterError, match="has 2 parameters, 1 given"):
        bench.prepare("UPDATE orders SET amount = ? WHERE customer_id = ?", [1])
