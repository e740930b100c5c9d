"""The checker of histories, on histories whose answer is known."""

from __future__ import annotations

import math

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
