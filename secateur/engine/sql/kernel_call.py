"""A kernel call in a thread, which is cancelled when its caller is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Final, TypeVar

from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.tracing import in_this_trace

T = TypeVar("T")

KERNEL_TIMES: Final[ContextVar[list[float] | None]] = ContextVar("secateur_kernel_times", default=None)
"""The list to which the seconds of a statement's kernel calls are added; None unless slow statements are logged."""

_INTERRUPT_DELAY_S: Final = 0.05
_SHORT_ROWS_MAX: Final = 100_000
"""Rows that a kernel reads within some milliseconds, unless it multiplies them."""


def is_long_over(rows: int) -> bool:
    """Whether a kernel call over so many rows is expected to take long; it then waits for other long ones."""
    return rows > _SHORT_ROWS_MAX


async def in_thread(
    executor: Executor, call: Callable[[Cancellation], T], cancellation: Cancellation | None = None
) -> T:
    """Run a call in a thread and wait for it. If the waiting is cancelled, so is the call.

    Args:
        executor: The threads.
        call: Gets the handle by which kernels are stopped.
        cancellation: The handle, where it serves several calls; None for one of its own.

    Raises:
        Error: The call fails.
    """
    cancellation = cancellation or Cancellation()
    times = KERNEL_TIMES.get()
    running = executor.submit(in_this_trace(call if times is None else _timed(call, times)), cancellation)
    try:
        return await asyncio.wrap_future(running)
    except asyncio.CancelledError:
        _interrupt(running, cancellation, asyncio.get_running_loop(), _INTERRUPT_DELAY_S)
        raise


def _timed(call: Callable[[Cancellation], T], times: list[float]) -> Callable[[Cancellation], T]:
    def timed(cancellation: Cancellation) -> T:
        begun = perf_counter()
        try:
            return call(cancellation)
        finally:
            times.append(perf_counter() - begun)

    return timed


def _interrupt(
    running: Future[Any], cancellation: Cancellation, loop: asyncio.AbstractEventLoop, delay_s: float
) -> None:
    """Again and again, since DuckDB forgets an interrupt that comes at a bad moment."""
    cancellation.cancel()
    if not running.done():
        loop.call_later(delay_s, _interrupt, running, cancellation, loop, 2 * delay_s)
