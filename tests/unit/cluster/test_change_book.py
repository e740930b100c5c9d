from __future__ import annotations

import asyncio

import pytest

from secateur.cluster.change_book import Applied, ChangeBook
from secateur.errors import DataError, MemberLostError


async def confirmed() -> None:
    pass


async def refused() -> None:
    raise MemberLostError("the backup is gone", member="m2")


class Changes:
    """Counts how often a change is made."""

    def __init__(self) -> None:
        self.made = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def make(self) -> Applied:
        await self.go_on.wait()
        self.made += 1
        return Applied(self.made, confirmed())

    async def fail(self) -> Applied:
        self.made += 1
        raise DataError("not a number")

    async def make_unconfirmed(self) -> Applied:
        self.made += 1
        return Applied(self.made, refused())


def test_a_known_change_is_not_made_again() -> None:
    async def run() -> None:
        book, changes = ChangeBook(), Changes()
        assert [await book.once("a", changes.make) for _ in range(3)] == [1, 1, 1]
        assert await book.once("b", changes.make) == 2

    asyncio.run(run())


def test_who_asks_while_it_is_being_made_waits_for_it() -> None:
    async def run() -> None:
        book, changes = ChangeBook(), Changes()
        changes.go_on.clear()
        first, second = (asyncio.create_task(book.once("a", changes.make)) for _ in range(2))
        await asyncio.sleep(0)
        second.cancel()  # who gives up waiting does not end it for the others
        third = asyncio.create_task(book.once("a", changes.make))
        await asyncio.sleep(0)
        changes.go_on.set()
        assert await asyncio.gather(first, third) == [1, 1]
        assert changes.made == 1

    asyncio.run(run())


def test_a_change_that_was_not_made_may_be_tried_again() -> None:
    async def run() -> None:
        book, changes = ChangeBook(), Changes()
        for attempt in (1, 2):
            with pytest.raises(DataError):
                await book.once("a", changes.fail)
            assert changes.made == attempt
        assert await book.once("a", changes.make) == 3

    asyncio.run(run())


def test_a_change_that_a_backup_did_not_confirm_is_not_made_again() -> None:
    async def run() -> None:
        book, changes = ChangeBook(), Changes()
        for _ in range(2):
            with pytest.raises(MemberLostError, match="the backup is gone"):
                await book.once("a", changes.make_unconfirmed)
        assert changes.made == 1

    asyncio.run(run())


def test_a_backup_knows_what_it_has_copied() -> None:
    async def run() -> None:
        book, changes = ChangeBook(), Changes()
        book.note("a", 7)
        book.note("a", 8)
        assert await book.once("a", changes.make) == 7
        assert changes.made == 0

    asyncio.run(run())


def test_the_oldest_is_forgotten_first() -> None:
    async def run() -> None:
        book, changes = ChangeBook(kept_max=2), Changes()
        for change_id in ("a", "b", "c"):
            await book.once(change_id, changes.make)
        assert await book.once("c", changes.make) == 3
        assert await book.once("a", changes.make) == 4

    asyncio.run(run())
