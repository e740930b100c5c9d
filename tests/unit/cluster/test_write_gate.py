"""The write gate: writes and publications of one table exclude each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from secateur.cluster import write_gate
from secateur.cluster.write_gate import WriteGate
from secateur.errors import DeadlineError


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
    gate, release = WriteGate("t"), asyncio.Event()

    async def write() -> None:
        async with gate.writing():
            await release.wait()

    writing = asyncio.create_task(write())
    await settle()
    closing = asyncio.create_task(gate.close("load"))
    await settle()
    assert not closing.done()
    release.set()
    await closing
    await writing


@on_a_loop
async def test_a_write_waits_for_every_load() -> None:
    gate, order = WriteGate("t"), []
    await gate.close("a")
    await gate.close("b")

    async def write() -> None:
        async with gate.writing():
            order.append("write")

    writing = asyncio.create_task(write())
    for load in ("a", "b"):
        await settle()
        order.append(load)
        await gate.open(load)
    await writing
    assert order == ["a", "b", "write"]


@on_a_loop
async def test_opening_what_was_not_closed_does_nothing() -> None:
    gate = WriteGate("t")
    await gate.open("unknown")
    async with gate.writing():
        pass


@on_a_loop
async def test_a_write_that_fails_is_no_longer_running() -> None:
    gate = WriteGate("t")
    with pytest.raises(ValueError, match="full"):
        async with gate.writing():
            raise ValueError("full")
    await asyncio.wait_for(gate.close("load"), 1)


def test_a_load_without_end_is_an_error_and_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_gate, "_WAIT_MAX_S", 0.01)

    async def run() -> None:
        gate = WriteGate("t")
        await gate.close("load")
        with pytest.raises(DeadlineError, match="nothing was written"):
            async with gate.writing():
                pass

    asyncio.run(run())
