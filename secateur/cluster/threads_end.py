"""Waiting for threads to end without holding up the event loop, and not for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

__all__ = ["STOP_S", "ends", "threads_end"]

STOP_S: Final = 3.0
"""Seconds that a shutdown waits for what was cancelled to end.

What cannot be interrupted, such as a user's endless function, is then left to the process.
"""


async def threads_end(executor: Executor, timeout_s: float = STOP_S) -> bool:
    """Take no more work, and wait for what runs.

    The loop goes on meanwhile: kernel calls are interrupted from it, again and again until they end.

    Returns:
        Whether all threads have ended in time.
    """
    return await ends(lambda: executor.shutdown(wait=True, cancel_futures=True), timeout_s)


async def ends(stop: Callable[[], None], timeout_s: float = STOP_S) -> bool:
    """Wait for a call that ends something, in a thread of its own: those of the event loop start nothing any more while
    the interpreter exits.

    Returns:
        Whether it has returned in time.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        stop()
        with suppress(RuntimeError):  # the loop was closed by now
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, name="secateur-stop", daemon=True).start()
    try:
        async with asyncio.timeout(timeout_s):
            await ended.wait()
    except TimeoutError:
        return False
    return True
