"""The mixed load for a shorter time, with every kind of fault but the controller's death."""

from __future__ import annotations

import pytest

from mixed_load import run


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(400)
def test_members_that_die_or_freeze_cost_no_row_and_no_wrong_answer() -> None:
    outcome = run(60.0, seed=11, with_controller=False)
    assert outcome.calls > 0
    assert outcome.wrong == []
    assert outcome.slow == []
    assert outcome.unfinished == 0
