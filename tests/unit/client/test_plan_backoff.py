"""How often keys are looked for that turn out to be of no use."""

from __future__ import annotations

import pytest

from secateur.client.execution import PlanBackoff


def executions(luck: PlanBackoff, outcomes: str) -> str:
    """What becomes of executions of a statement: ``+`` for keys that are used, ``-`` for keys that are not, ``.`` for
    one that is not tried.
    """
    done = ""
    for outcome in outcomes:
        if luck.is_due("p"):
            luck.note("p", used=outcome == "+")
            done += outcome
        else:
            done += "."
    return done


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        pytest.param("++++", "++++", id="always of use"),
        pytest.param("-+++", "-.++", id="once of none"),
        pytest.param("-" * 20, "-.-..-....-........-", id="never of use"),
        pytest.param("----++-+-", "-.-..+-.-", id="as before once it was of use"),
    ],
)
def test_trying_gets_rare(outcomes: str, expected: str) -> None:
    assert executions(PlanBackoff(), outcomes) == expected


def test_it_is_never_given_up() -> None:
    assert "-" in executions(PlanBackoff(), "-" * 1000)[-65:]


def test_statements_are_apart_and_the_oldest_are_forgotten() -> None:
    luck = PlanBackoff(statements_max=2)
    for name in "abc":
        luck.note(name, used=False)
    assert [luck.is_due(name) for name in "abcd"] == [True, False, False, True]
