from __future__ import annotations

from typing import Any

import pytest

from secateur.partitioning.topology import JobRequirements
from secateur.protocol import pack, unpack

SOME = JobRequirements({"t": frozenset({1, 2}), "g": frozenset()}, frozenset({"m1"}))


def test_needs_add_up() -> None:
    assert SOME | JobRequirements({"t": frozenset({5})}, frozenset({"m2"})) == JobRequirements(
        {"t": frozenset({1, 2, 5}), "g": frozenset()}, frozenset({"m1", "m2"})
    )


def test_needs_travel() -> None:
    assert JobRequirements.from_wire(unpack(pack(SOME.to_wire()))) == SOME


@pytest.mark.parametrize("data", [[], [{"t": [-1]}, []], [{"t": ["1"]}, []], [{"t": 1}, []], [[], []]])
def test_what_is_none_of_ours_is_refused(data: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        JobRequirements.from_wire(data)
