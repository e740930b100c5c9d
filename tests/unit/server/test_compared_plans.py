"""The page part that shows a query with pruning on and off."""

from __future__ import annotations

import pytest

from secateur.server.dashboard import rendered

SIDE = {
    "rows": 3,
    "elapsed_ms": 1.5,
    "kernel_ms": 0.5,
    "partitions_read": 1,
    "partitions_total": 8,
    "members_touched": 1,
    "members_total": 3,
    "exchange_bytes": 0,
}


@pytest.mark.parametrize(
    ("equal", "rows_off", "says", "is_alarm"),
    [
        pytest.param(True, 3, "yes", False, id="equal"),
        pytest.param(False, 3, "no", True, id="as many, and others"),
        pytest.param(None, 3, "not compared: it takes too long", False, id="not compared"),
        pytest.param(None, 4, "not compared: it takes too long", True, id="other numbers of rows"),
    ],
)
def test_other_rows_are_an_alarm(equal: bool | None, rows_off: int, says: str, is_alarm: bool) -> None:
    text = rendered("compare.html", {"on": SIDE, "off": {**SIDE, "rows": rows_off}, "equal": equal, "runs": 5})
    assert "the run of the median time, of 5 after a first one" in text
    assert f'id="rows-equal">{says}<' in text
    assert ('role="alert"' in text) is is_alarm
