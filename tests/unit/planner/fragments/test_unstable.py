"""What of clocks and random numbers is evaluated at the members."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from secateur.engine.sql import SelectPlan, Strategy

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
    assert SelectPlan.from_wire(plan.to_wire()) == plan
    given = plan.stage_params(["a"])
    assert given[0] == "a"
    assert abs((datetime.now(UTC) - given[1]).total_seconds()) < 3600


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        pytest.param(f"SELECT id, random() FROM {FROM}", None, id="in the SELECT list"),
        pytest.param(f"SELECT count(*) FROM {FROM} WHERE random() < 0.5", None, id="in WHERE"),
        pytest.param(f"SELECT id FROM {FROM} ORDER BY random() LIMIT 3", None, id="in ORDER BY"),
        pytest.param(
            f"SELECT o.id, r FROM (SELECT code, random() AS r FROM airlines) a JOIN {FROM} ON true",
            "random",
            id="in a subquery",
        ),
        pytest.param(f"SELECT priority, random() FROM {FROM} GROUP BY 1", "random", id="for groups"),
        pytest.param(f"SELECT id, sum(random()) OVER (ORDER BY id) FROM {FROM}", "random", id="in a window"),
        pytest.param(f"SELECT id FROM {FROM} USING SAMPLE 3", "SAMPLE", id="a sample"),
        pytest.param(f"SELECT id, current_time FROM {FROM}", "current_time", id="a clock without a date"),
    ],
)
def test_random_numbers(context: Any, sql: str, reason: str | None) -> None:
    plan = context.select(sql).plan
    assert not plan.reads_clock
    assert plan.stage_params([1]) == [1]
    assert plan.strategy is (Strategy.PLACED if reason is None else Strategy.GATHER)
    assert reason is None or plan.gather_reason.startswith(
        (f"{reason}() is evaluated elsewhere", f"what {reason} gives")
    )
