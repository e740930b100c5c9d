"""Readers of a replicated table wait until all members have what they have seen: the controller says so, or the members
do, when they are asked."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from secateur.cluster.member import UnconfirmedPublications
from secateur.errors import Error, MemberLostError, TopologyChangedError, UnknownTableError
from secateur.protocol import Operation, PublicationNumber, PublishedEverywhere
from secateur.wire import PeerInfo, Request

TABLE = 7


class Members:
    """The other members: the last publication of each, or why it does not answer."""

    def __init__(self, **last: int | Error) -> None:
        self.last = last
        self.asked = asyncio.Event()
        self.asking: list[asyncio.Task[None]] = []

    def start(self, asking: Coroutine[Any, Any, None]) -> None:
        self.asking.append(asyncio.ensure_future(asking))

    async def call(self, member_id: str, message: Any) -> Any:
        self.asked.set()
        answer = self.last[member_id]
        if isinstance(answer, Error):
            raise answer
        return PublicationNumber(answer)

    def waited_for(self, wait_max_s: float = 20.0) -> UnconfirmedPublications:
        """Those of this member, which has published 5."""
        publications = UnconfirmedPublications(self, lambda: list(self.last), self.start, wait_max_s)
        publications.made(TABLE, 5)
        return publications


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own."""

    @functools.wraps(test)
    def body(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 20))

    return body


def told(number: int) -> Request[PublishedEverywhere]:
    message = PublishedEverywhere(TABLE, number)
    return Request(Operation.PUBLISHED_EVERYWHERE, message, b"", PeerInfo(1, "controller", "controller", False))


def refusal() -> MemberLostError:
    lost = MemberLostError("m3 cannot be reached", member="m3")
    lost.__cause__ = ConnectionRefusedError()
    return lost


@run
async def test_the_word_of_the_controller_is_enough() -> None:
    publications = Members(m2=4, m3=MemberLostError("no answer")).waited_for()
    reading = asyncio.ensure_future(publications.wait(TABLE))
    publications.told(told(4))
    await asyncio.sleep(0)
    assert publications
    assert not reading.done(), "that was the load before"
    publications.told(told(5))
    await reading
    assert not publications


@run
async def test_nobody_waits_for_a_table_that_has_no_new_rows() -> None:
    await Members(m2=4).waited_for().wait(TABLE + 1)


@run
async def test_a_member_that_is_alone_waits_for_nobody() -> None:
    assert not Members().waited_for()


@run
async def test_members_are_asked_when_nobody_tells() -> None:
    members = Members(m2=4, m3=6)
    publications = members.waited_for()
    readings = [asyncio.ensure_future(publications.wait(TABLE)) for _ in range(3)]
    await members.asked.wait()
    assert not any(reading.done() for reading in readings)
    members.last["m2"] = 5
    await asyncio.gather(*readings)
    assert not publications


@pytest.mark.parametrize("answer", [refusal(), UnknownTableError("dropped")], ids=["it has ended", "no such table"])
@run
async def test_who_cannot_answer_with_the_rows_of_before_is_not_waited_for(answer: Error) -> None:
    await Members(m2=5, m3=answer).waited_for().wait(TABLE)


@run
async def test_the_next_load_is_published_behind_the_one_that_a_reader_waits_for() -> None:
    publications = Members(m2=4).waited_for()
    reading = asyncio.ensure_future(publications.wait(TABLE))
    await asyncio.sleep(0)
    publications.made(TABLE, 6)
    await reading
    assert publications


@run
async def test_a_reader_does_not_wait_for_ever() -> None:
    publications = Members(m2=MemberLostError("no answer")).waited_for(wait_max_s=0.01)
    with pytest.raises(TopologyChangedError, match=r"not all members have published for 0\.01 s; try again") as raised:
        await publications.wait(TABLE)
    assert raised.value.retry_safe
    assert publications
