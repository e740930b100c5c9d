"""What share of a scan some keys leave."""

from __future__ import annotations

import pytest

from secateur.planner import partition_selectivity


@pytest.mark.parametrize(
    ("partitions", "keys", "expected"),
    [
        pytest.param(1, 1, 1.0, id="one partition"),
        pytest.param(271, 0, 0.0, id="no key"),
        pytest.param(271, 1, 1 / 271, id="one key"),
        pytest.param(271, 271, 0.633, id="as many keys as partitions"),
        pytest.param(271, 2000, 0.999, id="many keys"),
    ],
)
def test_keys_fall_into_partitions_at_random(partitions: float, keys: float, expected: float) -> None:
    assert partition_selectivity(partitions, keys) == pytest.approx(expected, abs=0.001)
