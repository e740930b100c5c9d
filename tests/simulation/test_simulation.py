"""A few seeds of the simulation; ``make simulate`` runs many."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_RUN = Path(__file__).with_name("run.py")


def outcomes(seed: int, seeds: int, *options: str) -> list[dict[str, Any]]:
    """What these seeds show, in their order."""
    command = [sys.executable, str(_RUN), "--json", f"--seed={seed}", f"--seeds={seeds}", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1100, check=False)
    assert done.stdout.endswith("failed\n"), done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda outcome: outcome["seed"])


@pytest.fixture(scope="module")
def first_seeds() -> list[dict[str, Any]]:
    """Of two seeds, the second ran in the process of the first."""
    return outcomes(1, 2, "--workers=1")


def test_a_seed_replays_exactly(first_seeds: list[dict[str, Any]]) -> None:
    assert len({outcome["trace"] for outcome in first_seeds}) == 2, "every seed is another run"
    alone = outcomes(2, 1)
    assert alone == first_seeds[1:], "a seed depends on nothing but its number, and not on those before it"


def test_no_promise_is_broken_while_members_links_and_clocks_fail(first_seeds: list[dict[str, Any]]) -> None:
    assert not [outcome for outcome in first_seeds if outcome["wrong"]]
    assert sum(len(outcome["faults"]) for outcome in first_seeds) > 9
    assert sum(outcome["calls"] for outcome in first_seeds) > 100


def test_members_that_are_given_up_bring_the_only_copies_back() -> None:
    found = outcomes(3, 1, "--without-backups")  # in which a member is cut off
    assert not [outcome for outcome in found if outcome["wrong"]]
    assert any("SIGSTOP" in fault or "cut" in fault for outcome in found for fault in outcome["faults"])


def test_statements_that_are_ended_early_leave_nothing_behind() -> None:
    found = outcomes(1000, 2, "--leaning=cancellations")
    assert not [outcome for outcome in found if outcome["wrong"]]
    ended = {error.split(": ")[1] for outcome in found for error in outcome["errors"]}
    assert ended >= {"DeadlineError, not retryable", "JobCancelledError, not retryable"}


@pytest.mark.slow  # as the product is today, these seeds may be about something else
@pytest.mark.parametrize("seed", [867, 1224])
def test_a_statement_whose_load_has_failed_ends_in_time_without_a_controller(seed: int) -> None:
    """It waited for the controller to drop what was staged, three seconds longer than its time-out."""
    (found,) = outcomes(seed, 1)
    assert found["wrong"] == []


@pytest.mark.parametrize("plant", ["skip_fencing", pytest.param("drop_a_delta_at_promotion", marks=pytest.mark.slow)])
def test_a_fault_of_the_product_is_found(plant: str) -> None:
    found = outcomes(0, 200, f"--plant={plant}", "--focus", "--until-failure")
    assert any(outcome["wrong"] and outcome["steps"] for outcome in found), "one that was given up has found nothing"


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("options", [["--focus"], []], ids=["about its trouble", "about everything"])
def test_each_fault_of_the_product_is_found_within_200_seeds(options: list[str]) -> None:
    command = [sys.executable, str(_RUN), "--plant=all", "--seeds=200", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1490, check=False)
    assert done.stdout.endswith("8 found, 0 missed\n"), done.stdout + done.stderr
