"""An asyncio event loop in a thread of its own, for code that is called from ordinary threads.

Controllers and members live on such a loop: in the embedded runtime all on one, in the Ray runtime one in each actor
process, so that Ray's own loop never stands between a socket and its answer. uvloop is used where it is installed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import Any, Final, TypeVar

from secateur.errors import DeadlineError, InterfaceError

T = TypeVar("T")


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class LoopThread:
    """A running event loop in a daemon thread.

    Args:
        name: Name of the thread, for debuggers and stack dumps.
    """

    def __init__(self, name: str) -> None:
        self._loop = _new_event_loop()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its result.

        Raises:
            DeadlineError: It took longer than ``timeout_s``; the coroutine is cancelled.
            InterfaceError: The loop was stopped already.
        """
        if not self._thread.is_alive():
            work.close()
            raise InterfaceError(f"event loop {self._thread.name} was stopped already")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except FutureTimeoutError:
            if future.done():
                raise
            future.cancel()
            raise DeadlineError(f"{self._thread.name}: no answer within {timeout_s} s") from None

    def call(self, work: Callable[[], T]) -> T:
        """Call a function on the loop and wait for its result; for what has to be made on the loop that it lives on.

        Raises:
            InterfaceError: The loop was stopped already.
        """

        async def called() -> T:
            return work()

        return self.run(called())

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; the future has its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Cancel running tasks, stop the loop, end the thread.

        May be called twice. A task that cannot be cancelled is abandoned.
        """
        if not self._thread.is_alive():
            return
        ending = asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop)
        with suppress(FutureTimeoutError):
            ending.result(STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)
        if not self._thread.is_alive():
            with suppress(OSError):  # uvloop closes no loop in which a connection is just being made
                self._loop.close()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    # It waits in a thread; from Python 3.12 on a process that exits starts none, and those of executors have ended.
    with suppress(RuntimeError):
        await asyncio.get_running_loop().shutdown_default_executor()


STOP_S: Final = 3.0
"""Seconds that a shutdown waits for cancelled work to end.

Work that cannot be interrupted, such as a user's endless function, is then left to the process.
"""


async def threads_end(executor: Executor) -> None:
    """Accept no more work, and wait for the running work, for some seconds at most.

    The loop continues meanwhile: it interrupts kernel calls repeatedly until they end.
    """
    await ends(lambda: executor.shutdown(wait=True, cancel_futures=True))


async def ends(stop: Callable[[], None]) -> None:
    """Wait in a thread of its own for a call that ends something, for some seconds at most.

    The event loop's own threads start nothing any more while the interpreter exits.
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
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_S):
            await ended.wait()


_log = logging.getLogger(__name__)


class BackgroundTasks:
    """The background tasks of one part of a process. Lives on one event loop.

    Nobody awaits them: they are held until they end, and the error of one that fails is logged.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """The number of tasks that have not ended."""
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Begin to do something. The event loop itself would not keep the task alive."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel all tasks, and return when they have ended."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background task %s failed", task.get_name(), exc_info=error)
