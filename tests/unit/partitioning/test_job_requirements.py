from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import ProtocolError
from secateur.partitioning.topology import JobRequirements
from secateur.protocol import decode, encode, pack

SOME = JobRequirements({"t": frozenset({1, 2}), "g": frozenset()}, frozenset({"m1"}))


def test_needs_add_up() -> None:
    assert SOME | JobRequirements({"t": frozenset({5})}, frozenset({"m2"})) == JobRequirements(
        {"t": frozenset({1, 2, 5}), "g": frozenset()}, frozenset({"m1", "m2"})
    )


def test_needs_travel() -> None:
    assert decode(encode(SOME), JobRequirements) == SOME


@pytest.mark.parametrize("data", [7, [{"t": [-1]}, []], [{"t": ["1"]}, []], [{"t": 1}, []], [[], []]])
def test_what_is_none_of_ours_is_refused(data: list[Any]) -> None:
    with pytest.raises(ProtocolError, match="JobRequirements cannot be read"):
        decode(pack(data), JobRequirements)
