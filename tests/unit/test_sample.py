"""The sample of cases that `make test` runs: half of those of a test with many, and another half for another seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MANY = [f"tests/unit/test_a.py::test_many[{number}]" for number in range(200)]
FEW = [f"tests/unit/test_a.py::test_few[{number}]" for number in range(7)]


@pytest.fixture
def other_half(pytestconfig: pytest.Config) -> Callable[[list[str], int], set[str]]:
    """The function of the root conftest, which is loaded by its path."""
    conftest = pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    assert conftest is not None
    found: Callable[[list[str], int], set[str]] = conftest.other_half
    return found


def test_a_half_is_left_out_of_what_has_many_cases(other_half: Callable[[list[str], int], set[str]]) -> None:
    left_out = other_half([*MANY, *FEW, "tests/unit/test_a.py::test_one"], 1)
    assert left_out <= set(MANY)
    assert 70 < len(left_out) < 130


def test_each_case_is_run_by_some_seed_and_a_seed_chooses_alike(
    other_half: Callable[[list[str], int], set[str]],
) -> None:
    halves = [other_half(MANY, seed) for seed in range(20)]
    assert not set.intersection(*halves)
    assert halves[3] == other_half(list(reversed(MANY)), 3)
