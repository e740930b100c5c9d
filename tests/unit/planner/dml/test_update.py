from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import ParameterError
from secateur.protocol import ChangeKind, ChangeStatement


def updated(context: Any, sql: str, params: Any = ()) -> ChangeStatement:
    statement = context.prepare(sql, params)
    assert isinstance(statement, ChangeStatement)
    assert statement.kind is ChangeKind.UPDATE
    return statement


def test_its_condition_prunes_as_that_of_a_query(context: Any) -> None:
    statement = updated(context, "UPDATE orders SET amount = amount + ? WHERE customer_id = ? AND id = ?", (1, "C1", 7))
    (scan,) = statement.select.plan.scans
    assert str(scan.tree) == "orders: ($2)"
    assert scan.keys.decides
    assert statement.select.params == (1, "C1", 7)


def test_without_parameters_it_can_be_explained_but_needs_all_of_them_to_run(context: Any) -> None:
    assert updated(context, "UPDATE orders SET amount = ? WHERE customer_id = ?").select.params is None
    with pytest.raises(ParameterError, match="has 2 parameters, 1 given"):
        context.prepare("UPDATE orders SET amount = ? WHERE customer_id = ?", [1])
