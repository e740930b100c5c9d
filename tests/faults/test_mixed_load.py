"""The mixed load for a shorter time, with every kind of fault."""

from __future__ import annotations

import pytest

from mixed_load import Plan, run


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(400)
def test_members_that_die_or_freeze_cost_no_row_and_no_wrong_answer() -> None:
    outcome = run(60.0, seed=11, plan=Plan(controller_kills=0))
    assert outcome.calls > 0
    assert outcome.wrong == []
    assert outcome.slow == []
    assert outcome.unfinished == 0
