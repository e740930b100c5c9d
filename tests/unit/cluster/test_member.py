"""A member and a controller before anybody knows of them."""

from __future__ import annotations

import asyncio
import threading

from secateur.cluster import ClusterSettings
from secateur.cluster.controller import Controller
from secateur.cluster.member import Member


def test_a_member_is_complete_when_it_is_constructed_and_leaves_nothing_when_it_is_stopped() -> None:
    async def run() -> None:
        member = Member("m1", ClusterSettings(), "127.0.0.1:9", lambda: None)
        not_yet = {"_stopping", "_tenants"}
        assert {name for name, value in vars(member).items() if value is None} == not_yet
        await member.stop()

    before = set(threading.enumerate())
    asyncio.run(run())
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(20)  # the one that has ended the others may be ending itself
    assert not [thread.name for thread in left if thread.is_alive()]


def test_a_stop_that_is_cancelled_anywhere_is_completed_by_the_next() -> None:
    """As by the end of a cluster, while a member that was removed makes room for another one."""

    async def stopped_in_two(turns: int) -> bool:
        member = Member("m1", ClusterSettings(), "127.0.0.1:9", lambda: None)
        first = asyncio.create_task(member.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        was_done = first.done()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await member.stop()
        return was_done

    assert not asyncio.run(stopped_in_two(0))
    for turns in range(30):
        if asyncio.run(stopped_in_two(turns)):
            break


def test_a_controller_is_complete_when_it_is_constructed() -> None:
    async def run() -> None:
        controller = Controller(ClusterSettings())
        assert not [name for name, value in vars(controller).items() if value is None]
        await controller.stop()

    asyncio.run(run())
