"""The cost model: numbers that are checked, set by a session, and that plans follow."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from described_tables import DescribedTables
from secateur.engine.sql import ExchangeKind
from secateur.errors import ProgrammingError
from secateur.planner import COST_SETTINGS, CostModel, PlannedSelect, Planner
from secateur.protocol import SetOption

BY_OTHER_KEY = "SELECT m.host FROM metrics m JOIN customers c ON m.host = c.name"


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        pytest.param({"shuffle_share": 1.5}, r"CostModel.shuffle_share=1.5: expected a number from 0 to 1 \(share\)"),
        pytest.param({"routed_bytes_min": -1}, r"routed_bytes_min=-1: expected a number of at least 0 \(bytes\)"),
        pytest.param({"routed_bytes_min": nan}, "routed_bytes_min=nan: expected a number"),
        pytest.param({"steps_max": 1.5}, "steps_max=1.5: expected a whole number"),
        pytest.param({"step_rows": -(10**400)}, "expected a whole number of at least -1", id="huge"),
        pytest.param({"steps_max": True}, "steps_max=True: expected a whole number"),
        pytest.param({"gather_ms": "10"}, "gather_ms='10': expected a number"),
    ],
)
def test_a_number_out_of_bounds_is_refused(numbers: dict[str, Any], message: str) -> None:
    with pytest.raises(ProgrammingError, match=message):
        CostModel(**numbers)


def test_a_threshold_may_be_never() -> None:
    assert CostModel(shuffled_bytes_min=inf).shuffled_bytes_min == inf


@pytest.mark.parametrize("name", COST_SETTINGS)
def test_every_number_is_a_setting_of_a_session(context: DescribedTables, name: str) -> None:
    assert context.prepare(f"SET {name} = 1") == SetOption(name, "1")
    assert getattr(CostModel().with_settings({name: "1", "pruning": "on"}), name) == 1


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        pytest.param("SET step_rows = -1", "-1", id="a sign"),
        pytest.param("SET routed_bytes_min TO 1e6", "1e6", id="an exponent"),
        pytest.param("SET routed_bytes_min = 'inf'", "inf", id="without end"),
    ],
)
def test_numbers_are_read_as_they_are_written(context: DescribedTables, sql: str, value: str) -> None:
    option = context.prepare(sql)
    assert isinstance(option, SetOption)
    assert option.value == value


@pytest.mark.parametrize("value", ["lots", "-1", "'inf'", "1e400", "'nan'", "2.5", "1 2"])
def test_what_is_no_such_number_is_refused_where_it_stands(context: DescribedTables, value: str) -> None:
    with pytest.raises(ProgrammingError):
        context.prepare(f"SET steps_max = {value}")


def test_a_message_says_what_the_number_decides(context: DescribedTables) -> None:
    with pytest.raises(
        ProgrammingError, match=r"shuffle_share is a number from 0 to 1 .*what it costs to send each row"
    ):
        context.prepare("SET shuffle_share = 2")


def exchanges(statement: Any) -> set[ExchangeKind]:
    assert isinstance(statement, PlannedSelect)
    return {stage.exchange for stage in statement.plan.stages[:-1]}


def test_plans_follow_the_model_of_the_cluster(context: DescribedTables) -> None:
    assert exchanges(context.prepare(BY_OTHER_KEY)) == {ExchangeKind.BROADCAST, ExchangeKind.GATHER}
    context.planner = Planner(cost_model=CostModel(shuffled_bytes_min=0, shuffle_share=0))
    assert ExchangeKind.SHUFFLE in exchanges(context.prepare(BY_OTHER_KEY))


def test_a_session_sets_single_numbers_of_it(context: DescribedTables) -> None:
    context.planner = Planner(cost_model=CostModel(shuffle_share=0))
    shuffled = context.prepare(BY_OTHER_KEY, settings={"shuffled_bytes_min": "0"})
    assert ExchangeKind.SHUFFLE in exchanges(shuffled)
    assert exchanges(context.prepare(BY_OTHER_KEY)) == {ExchangeKind.BROADCAST, ExchangeKind.GATHER}


def test_settings_that_no_session_can_have_set_are_refused(context: DescribedTables) -> None:
    with pytest.raises(ProgrammingError, match="steps_max='many': expected a whole number"):
        context.prepare("SELECT 1", settings={"steps_max": "many"})
