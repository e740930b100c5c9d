"""The sample of cases that `make test` runs: some of those of a test with many, and others for another seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MANY = [f"tests/unit/test_a.py::test_many[{number}]" for number in range(200)]
SOME = [f"tests/unit/test_{number // 10}.py::test_some[{number}]" for number in range(200)]
FEW = [f"tests/unit/test_a.py::test_few[{number}]" for number in range(4)]


@pytest.fixture
def not_sampled(pytestconfig: pytest.Config) -> Callable[[list[str], int], set[str]]:
    """The function of the root conftest, which is loaded by its path."""
    conftest = pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    assert conftest is not None
    found: Callable[[list[str], int], set[str]] = conftest.not_sampled
    return found


def test_a_half_or_a_quarter_stays_of_what_has_many_cases(not_sampled: Callable[[list[str], int], set[str]]) -> None:
    left_out = not_sampled([*MANY, *SOME, *FEW, "tests/unit/test_a.py::test_one"], 1)
    assert left_out <= {*MANY, *SOME}
    assert 70 < len(left_out & set(SOME)) < 130
    assert 120 < len(left_out & set(MANY)) < 180


def test_each_case_is_run_by_some_seed_and_a_seed_chooses_alike(
    not_sampled: Callable[[list[str], int], set[str]],
) -> None:
    halves = [not_sampled(MANY, seed) for seed in range(20)]
    assert not set.intersection(*halves)
    assert halves[3] == not_sampled(list(reversed(MANY)), 3)
