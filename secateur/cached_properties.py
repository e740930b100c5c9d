"""Properties that are computed once for each object, and hold nobody else up meanwhile.

In Python 3.11, ``functools.cached_property`` has one lock for all objects of a class: while a large statement is
planned, the plans of all others would wait for it. Python 3.12 left the lock out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property  # noqa: TID251
else:

    class cached_property:  # noqa: N801 - the name of what it stands for
        """A property whose value is kept in the ``__dict__`` of the object.

        Two threads that ask for it at once may both compute it; both get a value, and one of them is kept.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self._function = function
            self._name = function.__name__
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            if self._name not in kept:
                kept[self._name] = self._function(instance)
            return kept[self._name]
