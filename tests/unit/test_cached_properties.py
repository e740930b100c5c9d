import threading
from collections.abc import Callable

import pytest

from secateur.cached_properties import cached_property


class Lazy:
    def __init__(self, make: Callable[[], int]) -> None:
        self._make = make

    @cached_property
    def value(self) -> int:
        """What was made."""
        return self._make()


def test_it_is_computed_once() -> None:
    made = []
    lazy = Lazy(lambda: made.append(0) or len(made))
    assert (lazy.value, lazy.value, made) == (1, 1, [0])
    assert Lazy.value.__doc__ == "What was made."


def test_one_that_failed_is_computed_again() -> None:
    answers = iter([0, 2])
    lazy = Lazy(lambda: 4 // next(answers))
    with pytest.raises(ZeroDivisionError):
        _ = lazy.value
    assert lazy.value == 2


def test_an_object_does_not_wait_for_another_ones_value() -> None:
    """With the property of Python 3.11's functools, the second value would wait for the first."""
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> int:
        begun.set()
        assert go_on.wait(60)
        return 1

    slow = Lazy(slowly)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert begun.wait(60)
    others: list[int] = []
    quick = threading.Thread(target=lambda: others.append(Lazy(lambda: 2).value), daemon=True)
    quick.start()
    quick.join(20)
    is_held_up = quick.is_alive()
    go_on.set()
    thread.join(60)
    assert not is_held_up
    assert others == [2]
