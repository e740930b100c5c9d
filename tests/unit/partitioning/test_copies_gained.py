"""Whether a member has more copies in a later topology."""

from __future__ import annotations

import numpy as np
import pytest

from secateur.partitioning.topology import Ownership, Topology, gains_copies


def topology(*owners: list[int]) -> Topology:
    """The members m0 to m2, and the owners by rank of one group."""
    return Topology(1, (), {"g": Ownership.of(("m0", "m1", "m2"), np.array(owners))})


@pytest.mark.parametrize(
    ("before", "after", "gains"),
    [
        ([[0, 1]], [[0, 1]], {}),
        ([[0, 1], [1, 0]], [[1, 1], [0, 0]], {}),  # another rank only
        ([[0, 1]], [[0, 2]], {"m2"}),
        ([[0, 1], [1, 2]], [[0, 1], [2, 0]], {"m0", "m2"}),
        ([[0, 1]], [[0, 1, 1]], {"m1"}),  # a partition that is new
    ],
)
def test_a_copy_of_any_rank_counts(before: list[list[int]], after: list[list[int]], gains: set[str]) -> None:
    found = {m for m in ("m0", "m1", "m2") if gains_copies(topology(*before), topology(*after), m)}
    assert found == set(gains)


def test_all_copies_of_a_new_group_are_gained() -> None:
    nothing = Topology(0, (), {})
    assert [gains_copies(nothing, topology([0, 2]), member) for member in ("m0", "m1", "m2", "m9")] == [
        True,
        False,
        True,
        False,
    ]
