"""The checker of histories, on histories whose answer is known."""

from __future__ import annotations

import math
import random
from itertools import combinations, permutations

import pytest

from linearizability import Call, is_linearizable


def write(began_s: float, ended_s: float, value: int | None) -> Call:
    return Call(began_s, ended_s, "write", value)


def read(began_s: float, ended_s: float, value: int | None) -> Call:
    return Call(began_s, ended_s, "read", value)


def test_calls_one_after_the_other() -> None:
    assert is_linearizable([write(0, 1, 5), read(2, 3, 5), write(4, 5, None), read(6, 7, None)], None)
    assert not is_linearizable([write(0, 1, 5), write(2, 3, 6), read(4, 5, 5)], None), "an outdated answer"
    assert not is_linearizable([write(0, 1, 5), read(2, 3, None)], None), "a lost write"


def test_calls_at_the_same_time_are_in_any_order() -> None:
    assert is_linearizable([write(0, 9, 5), write(0, 9, 6), read(1, 2, 6), read(3, 4, 5)], None)
    assert not is_linearizable([write(0, 9, 5), write(0, 9, 6), read(1, 2, 6), read(3, 4, 5), read(5, 6, 6)], None), (
        "a value that comes back"
    )


def test_a_write_without_an_answer_may_take_effect_late_or_never() -> None:
    lost = write(0, math.inf, 5)
    assert is_linearizable([lost, read(1, 2, None)], None)
    assert is_linearizable([lost, read(1, 2, None), read(3, 4, 5)], None)
    assert not is_linearizable([lost, read(1, 2, 5), read(3, 4, None)], None), "it was seen, and is gone"


def test_a_conditional_write_says_whether_it_has_written() -> None:
    first = write(0, 1, 5)
    done = Call(2, 3, "write if", 6, expected=5, has_changed=True)
    undone = Call(2, 3, "write if", 6, expected=5, has_changed=False)
    assert is_linearizable([first, done, read(4, 5, 6)], None)
    assert not is_linearizable([first, undone], None), "it should have written"
    assert is_linearizable([first, Call(2, 3, "write if", 6, expected=4, has_changed=False), read(4, 5, 5)], None)
    again = Call(2, 3, "write if", 7, expected=5, has_changed=True)
    assert not is_linearizable([first, done, again], None), "two have found the same value and replaced it"


def any_order_is_possible(calls: list[Call]) -> bool:
    """The definition: some order of the calls that ended, and of some that failed, explains all answers."""
    ended = [call for call in calls if call.ended_s < math.inf]
    failed = [call for call in calls if call.ended_s == math.inf]
    for count in range(len(failed) + 1):
        for made in combinations(failed, count):
            for order in permutations([*ended, *made]):
                if _explains(order):
                    return True
    return False


def _explains(order: tuple[Call, ...]) -> bool:
    value: int | None = None
    begun_s = -math.inf
    for call in order:
        begun_s = max(begun_s, call.began_s)
        may, value = call.apply(value)
        if not may or call.ended_s < begun_s:
            return False
    return True


def any_call(rng: random.Random) -> Call:
    kind = rng.choice(["read", "write", "write", "write if"])
    began_s = rng.uniform(0, 10)
    fails = kind != "read" and rng.random() < 0.3
    return Call(
        began_s,
        math.inf if fails else began_s + rng.uniform(0, 5),
        kind,  # type: ignore[arg-type]
        rng.choice([None, 1, 2, 3]),
        rng.choice([None, 1, 2]),
        rng.random() < 0.7,
    )


@pytest.mark.parametrize("seed", range(4))
def test_law_it_is_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    answers = []
    for _ in range(400):
        calls = [any_call(rng) for _ in range(rng.randint(1, 5))]
        answers.append(is_linearizable(calls, None))
        assert answers[-1] == any_order_is_possible(calls), calls
    assert 0.1 < sum(answers) / len(answers) < 0.9


def test_many_failed_calls_at_once_are_decided_soon() -> None:
    """A client that is cut off for long: seed 413 had some thirty of them, and took minutes."""
    failed = [write(number / 100, math.inf, 100 + number) for number in range(40)]
    answered = [call for at in range(20) for call in (write(at, at + 0.4, at), read(at + 0.5, at + 0.9, at))]
    assert is_linearizable([*failed, *answered, read(30, 31, 117)], None)
    assert not is_linearizable([*failed, *answered, read(30, 31, 117), read(32, 33, 99)], None)
