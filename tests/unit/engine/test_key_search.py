"""What part of a partition a scan looks at, once the parameters are known."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.key_search import KeyOperand, KeySearch
from secateur.partitioning.comparison import Comparison
from secateur.partitioning.condition import Box, Choice, Constant, Constraint, Parameter, Test
from secateur.partitioning.key_bounds import KeyBounds
from secateur.partitioning.key_range import Cut, KeyPrefix, KeyRange, KeyRanges, KeySlice
from secateur.partitioning.types import parse_type
from secateur.wire import pack, unpack

BIGINT = parse_type("BIGINT")
PREFIX = KeySearch((KeyOperand(Constant("C2"), parse_type("VARCHAR")), KeyOperand(Parameter(0), BIGINT)), decides=True)
ABOVE = Box.of({"id": Constraint((Choice(tests=(Test(Comparison.GREATER, (Parameter(0),)),)),))})
BOUNDS = KeySearch(bounds=KeyBounds.of([("id", BIGINT)], [[ABOVE]]))


@pytest.mark.parametrize(
    ("search", "params", "expected"),
    [
        pytest.param(KeySearch(), [], None, id="nothing known"),
        pytest.param(PREFIX, [7], KeyPrefix(("C2", 7)), id="whole"),
        pytest.param(PREFIX, ["7"], KeyPrefix(("C2", 7)), id="converted"),
        pytest.param(PREFIX, [b"7"], KeyPrefix(("C2",)), id="ends where the value does not compare"),
        pytest.param(PREFIX, [1.5], KeyRanges(()), id="equals no key"),
        pytest.param(PREFIX, [None], KeyRanges(()), id="NULL"),
        pytest.param(KeySearch(PREFIX.prefix[1:]), [b"7"], None, id="no value compares"),
        pytest.param(BOUNDS, [7], KeyRanges((KeyRange(Cut((7,), after=True), Cut((), after=True)),)), id="bounds"),
        pytest.param(BOUNDS, [b"7"], None, id="bounds that do not compare"),
    ],
)
def test_binding(search: KeySearch, params: list[Any], expected: KeySlice | None) -> None:
    assert search.bind(params) == expected
    assert KeySearch.from_wire(unpack(pack(search.to_wire()))) == search


@pytest.mark.parametrize("search", [PREFIX, BOUNDS], ids=["prefix", "bounds"])
def test_too_few_parameters(search: KeySearch) -> None:
    assert not search.is_constant
    with pytest.raises(IndexError):
        search.bind([])


def test_the_search_decides_only_for_values_that_are_keys_as_they_stand() -> None:
    assert PREFIX.decides_for([7])
    assert not PREFIX.decides_for(["7"])
    assert not KeySearch(PREFIX.prefix).decides_for([7])
