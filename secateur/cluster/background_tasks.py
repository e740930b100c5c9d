"""Tasks that nobody awaits: they are held until they end, and the error of one that fails is logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

_log = logging.getLogger(__name__)


class BackgroundTasks:
    """The background tasks of one part of a process. Lives on one event loop."""

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
