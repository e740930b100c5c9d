"""A thread for one processor that is not cooperative: calls run in it one after another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class CallOutcome:
    """The outcome of a call: a value, or the exception it raised."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: Any, error: BaseException | None) -> None:
        self._value = value
        self._error = error

    @classmethod
    def of(cls, call: Callable[..., Any], *args: Any) -> CallOutcome:
        """Make the call here and now."""
        try:
            return cls(call(*args), None)
        except BaseException as error:  # carried to the event loop, which raises it again
            return cls(None, error)

    def get(self) -> Any:
        """The value, or the exception raised."""
        if self._error is not None:
            raise self._error
        return self._value


class ProcessorThread:
    """A daemon thread: a processor that never returns must not keep the process from ending."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...], Callable[[CallOutcome], None]] | None] = (
            SimpleQueue()
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, on_outcome: Callable[[CallOutcome], None], call: Callable[..., Any], *args: Any) -> None:
        """Queue a call; ``on_outcome`` gets its outcome, in the thread."""
        self._calls.put((call, args, on_outcome))

    def stop(self) -> None:
        """End the thread after the calls that are queued. Does not wait."""
        self._calls.put(None)

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            call, args, on_outcome = item
            on_outcome(CallOutcome.of(call, *args))
            del item, call, args, on_outcome  # a waiting thread must not keep the last batch alive
