"""The threads in which statements are planned: clients take turns, and nobody waits for somebody else's endless
planning.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from secateur.cluster.controller import PlanningThreads
from secateur.engine.kernels.duckdb import check_cancelled, default_kernel
from secateur.errors import InterfaceError, JobCancelledError, LimitExceededError

ENDLESS = "SELECT count(*) FROM range(1000000000000)"


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 30))

    run.__name__ = test.__name__
    return run


@on_a_loop
async def test_a_planning_gives_its_result_or_its_error() -> None:
    threads = PlanningThreads()
    assert await threads.run(1, lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        await threads.run(1, lambda: 1 // 0)
    await threads.close()


@on_a_loop
async def test_others_are_planned_while_every_thread_is_held_up() -> None:
    threads, release = PlanningThreads(), threading.Event()
    held = [asyncio.create_task(threads.run(client, release.wait)) for client in range(6)]
    assert await threads.run(100, lambda: "planned") == "planned"
    release.set()
    assert await asyncio.gather(*held) == [True] * 6
    await threads.close()


@on_a_loop
async def test_a_client_has_one_planning_under_way_and_others_take_their_turns() -> None:
    threads, release = PlanningThreads(), threading.Event()
    order: list[str] = []
    first = asyncio.create_task(threads.run(1, release.wait))
    greedy = [
        asyncio.create_task(threads.run(1, lambda number=number: order.append(f"greedy {number}")))
        for number in range(20)
    ]
    await asyncio.sleep(0)
    await threads.run(2, lambda: order.append("modest"))
    assert order == ["modest"]
    release.set()
    await asyncio.gather(first, *greedy)
    assert order == ["modest", *(f"greedy {number}" for number in range(20))]
    await threads.close()


@on_a_loop
async def test_what_a_client_asked_for_ends_when_it_is_gone() -> None:
    threads, begun = PlanningThreads(), threading.Event()

    def plan() -> Any:
        begun.set()
        return default_kernel().run(ENDLESS, {})

    running = asyncio.create_task(threads.run(1, plan))
    waiting = asyncio.create_task(threads.run(1, lambda: None))
    await asyncio.to_thread(begun.wait)
    threads.gone(1)
    with pytest.raises(JobCancelledError):
        await running
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert threads.waiting == 0
    await threads.close()


@on_a_loop
async def test_closing_ends_an_endless_planning() -> None:
    threads, begun = PlanningThreads(), threading.Event()

    def plan() -> Any:
        begun.set()
        return default_kernel().run(ENDLESS, {})

    running = asyncio.create_task(threads.run(1, plan))
    await asyncio.to_thread(begun.wait)
    await threads.close()
    with pytest.raises(JobCancelledError):
        await running
    with pytest.raises(InterfaceError, match="shutting down"):
        await threads.run(1, lambda: None)


@on_a_loop
async def test_the_queue_is_bounded() -> None:
    threads, release = PlanningThreads(waiting_max=3), threading.Event()
    begun = threading.Event()

    def hold() -> bool:
        begun.set()
        return release.wait()

    tasks = [asyncio.create_task(threads.run(1, hold))]
    await asyncio.to_thread(begun.wait)
    tasks += [asyncio.create_task(threads.run(1, hold)) for _ in range(3)]
    await asyncio.sleep(0)  # each has put its planning into the queue
    assert threads.waiting == 3
    with pytest.raises(LimitExceededError, match="3 statements wait to be planned"):
        await threads.run(2, lambda: None)
    release.set()
    await asyncio.gather(*tasks)
    await threads.close()


@on_a_loop
async def test_one_that_takes_too_long_is_answered_and_ended() -> None:
    threads, ended = PlanningThreads(timeout_s=0.05), threading.Event()

    def plan_endlessly() -> None:
        """As the planner's own functions do, between which nothing is DuckDB's."""
        try:
            while True:
                check_cancelled()
        finally:
            ended.set()

    with pytest.raises(LimitExceededError, match=r"more than 0\.05 s \(planning_timeout_s\): write it shorter"):
        await threads.run(1, plan_endlessly)
    assert await asyncio.to_thread(ended.wait, 20)
    assert await threads.run(1, lambda: "the next one") == "the next one"
    await threads.close()


@on_a_loop
async def test_the_time_in_which_a_planning_waits_does_not_count() -> None:
    threads, release = PlanningThreads(timeout_s=0.2), threading.Event()
    first = asyncio.create_task(threads.run(1, release.wait))
    second = asyncio.create_task(threads.run(1, lambda: "planned"))
    with pytest.raises(LimitExceededError):  # nothing can end it
        await first
    assert await asyncio.wait([second], timeout=0.4) == (set(), {second})
    release.set()
    assert await second == "planned"
    await threads.close()
