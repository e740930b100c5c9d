from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from secateur.engine import in_thread
from secateur.engine.kernels.duckdb import Cancellation
from secateur.errors import DataError, JobCancelledError
from secateur.testing.local_cluster import until


def test_the_answer_or_the_error_of_the_call() -> None:
    def fail(_: Cancellation) -> int:
        raise DataError("no number")

    async def scenario(executor: ThreadPoolExecutor) -> None:
        assert await in_thread(executor, lambda _: 7) == 7
        with pytest.raises(DataError, match="no number"):
            await in_thread(executor, fail)

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scenario(executor))


def test_a_call_that_nobody_waits_for_is_interrupted_until_it_ends() -> None:
    begun, interrupts = threading.Event(), []

    class Forgetful:
        """Forgets the first interrupt, as DuckDB may."""

        def interrupt(self) -> None:
            interrupts.append("interrupt")

    def work(cancellation: Cancellation) -> None:
        cancellation.attach(Forgetful())
        begun.set()
        while len(interrupts) < 2:
            threading.Event().wait(0.001)
        raise JobCancelledError("interrupted")

    async def scenario(executor: ThreadPoolExecutor) -> None:
        waiting = asyncio.create_task(in_thread(executor, work))
        await until(begun.is_set)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await until(lambda: len(interrupts) >= 2)

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scenario(executor))
