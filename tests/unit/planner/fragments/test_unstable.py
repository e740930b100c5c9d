"""What of clocks and random numbers is evaluated at the members."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.sql import SelectPlan

FROM = "orders o JOIN customers c USING (customer_id)"
CLOCK = "CAST($1 AS TIMESTAMPTZ)"


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        pytest.param("SELECT count(*) FROM orders WHERE day < now()", f'"day" < {CLOCK}', id="one table"),
        pytest.param(f"SELECT id, current_timestamp FROM {FROM}", f"SELECT id, {CLOCK}", id="in the SELECT list"),
        pytest.param(f"SELECT id FROM {FROM} WHERE day = CURRENT_DATE", f"day = CAST({CLOCK} AS DATE)", id="a date"),
        pytest.param(f"SELECT max(localtimestamp) FROM {FROM}", f"max(CAST({CLOCK} AS TIMESTAMP))", id="aggregated"),
        pytest.param(
            "SELECT id FROM orders WHERE id IN (SELECT id FROM orders p WHERE p.day > today())",
            f"p.day > CAST({CLOCK} AS DATE)",
            id="in a subquery",
        ),
    ],
)
def test_a_clock_is_a_parameter(context: Any, sql: str, part: str) -> None:
    plan = context.select(sql).plan
    assert plan.reads_clock
    assert any(part in stage.fragment.sql for stage in plan.stages), [stage.fragment.sql for stage in plan.stages]
    assert SelectPlan.decoded(plan.plan_id, plan.encoded()) == plan
    assert plan.parameter_count == 1
    assert plan.local.sql.count(CLOCK) == 1, "the statement as a whole reads the same time as its stages"


def test_what_is_random_takes_no_clock(context: Any) -> None:
    plan = context.select(f"SELECT id, random() FROM {FROM}").plan
    assert not plan.reads_clock
    assert plan.parameter_count == 0
