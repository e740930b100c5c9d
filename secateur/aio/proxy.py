"""Methods that are awaited, over those of an object that blocks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from secateur.aio.event_loop import LoopWaits

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Proxy(Generic[T]):
    """An object whose methods are awaited.

    Args:
        waits: The waits of its connection.
        blocking: The object that does the work.
    """

    def __init__(self, waits: LoopWaits, blocking: T) -> None:
        self._waits = waits
        self._blocking = blocking

    def __repr__(self) -> str:
        return f"<aio {repr(self._blocking).removeprefix('<')}"


def awaited(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[Proxy[T], P], Coroutine[Any, Any, R]]:
    """The method of a :class:`Proxy` that runs one of its object for a task, with its arguments and documentation."""

    @functools.wraps(method)
    async def run(self: Proxy[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._waits.run(method, self._blocking, *args, **kwargs)

    return run
