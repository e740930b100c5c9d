"""Waits for threads to end, with a time limit and without blocking the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Final

STOP_S: Final = 3.0
"""Seconds that a shutdown waits for cancelled work to end.

Work that cannot be interrupted, such as a user's endless function, is then left to the process.
"""


async def threads_end(executor: Executor, timeout_s: float = STOP_S) -> bool:
    """Accept no more work, and wait for the running work.

    The loop continues meanwhile: it interrupts kernel calls repeatedly until they end.

    Returns:
        Whether all threads have ended in time.
    """
    return await ends(lambda: executor.shutdown(wait=True, cancel_futures=True), timeout_s)


async def ends(stop: Callable[[], None], timeout_s: float = STOP_S) -> bool:
    """Wait in a thread of its own for a call that ends something.

    The event loop's own threads start nothing any more while the interpreter exits.

    Returns:
        Whether it has returned in time.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        stop()
        with suppress(RuntimeError):  # the loop was closed by now
            loop.call_soon_threadsafe(ended.set)

    try:
        threading.Thread(target=wait, name="secateur-stop", daemon=True).start()
    except RuntimeError:
        # From Python 3.12 on, a process that exits starts no thread. Those of its executors have ended by then.
        stop()
        return True
    try:
        async with asyncio.timeout(timeout_s):
            await ended.wait()
    except TimeoutError:
        return False
    return True
