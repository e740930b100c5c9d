"""The write latch: writes and publications of one table exclude each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from secateur.cluster.write_latch import WriteLatch
from secateur.errors import LoadFailedError


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


@on_a_loop
async def test_a_load_waits_for_running_writes() -> None:
    latch = WriteLatch("t", 20.0)
    latch.begin()
    latch.begin()
    closing = asyncio.create_task(latch.close("load"))
    for _ in range(2):
        await settle()
        assert not closing.done()
        latch.end()
    await closing


@on_a_loop
async def test_a_write_waits_for_every_load() -> None:
    latch, order = WriteLatch("t", 20.0), []
    await latch.close("a")
    await latch.close("b")
    assert latch.is_closed

    async def write() -> None:
        await latch.wait_open()
        order.append("write")

    writing = asyncio.create_task(write())
    for load in ("a", "b"):
        await settle()
        order.append(load)
        latch.open(load)
    await writing
    assert order == ["a", "b", "write"]
    assert not latch.is_closed


@on_a_loop
async def test_opening_what_was_not_closed_does_nothing() -> None:
    latch = WriteLatch("t", 20.0)
    latch.open("unknown")
    await latch.wait_open()
    assert not latch.is_closed


def test_a_load_without_end_is_an_error_that_may_be_repeated_and_not_a_hang() -> None:
    async def run() -> None:
        latch = WriteLatch("t", 0.01)
        await latch.close("l1")
        with pytest.raises(
            LoadFailedError,
            match=r"t: load or change l1 has held back writes for more than 0.01 s; nothing was written",
        ) as raised:
            await latch.wait_open()
        assert raised.value.retry_safe

    asyncio.run(run())
