from __future__ import annotations

import asyncio

import pytest

from secateur.cluster.member import ChangeKey, ChangeRegistry, RecordedChange
from secateur.errors import DataError


class Changes:
    """Counts how often a change is made."""

    def __init__(self) -> None:
        self.made = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def make(self) -> RecordedChange:
        await self.go_on.wait()
        self.made += 1
        return RecordedChange(self.made, self.made)

    async def fail(self) -> RecordedChange:
        self.made += 1
        raise DataError("not a number")


def key(change_id: str) -> ChangeKey:
    return 1, 0, change_id


def test_a_known_change_is_not_made_again() -> None:
    async def run() -> None:
        book, changes = ChangeRegistry(), Changes()
        assert [(await book.once(key("a"), changes.make)).rows for _ in range(3)] == [1, 1, 1]
        assert (await book.once(key("b"), changes.make)).rows == 2
        assert (await book.once((2, 0, "a"), changes.make)).rows == 3, "the same id for another table is another change"

    asyncio.run(run())


def test_who_asks_while_it_is_being_made_waits_for_it() -> None:
    async def run() -> None:
        book, changes = ChangeRegistry(), Changes()
        changes.go_on.clear()
        first, second = (asyncio.create_task(book.once(key("a"), changes.make)) for _ in range(2))
        await asyncio.sleep(0)
        second.cancel()  # who gives up waiting does not end it for the others
        third = asyncio.create_task(book.once(key("a"), changes.make))
        await asyncio.sleep(0)
        changes.go_on.set()
        assert await asyncio.gather(first, third) == [RecordedChange(1, 1)] * 2
        assert changes.made == 1

    asyncio.run(run())


def test_a_change_that_was_not_made_may_be_tried_again() -> None:
    async def run() -> None:
        book, changes = ChangeRegistry(), Changes()
        for attempt in (1, 2):
            with pytest.raises(DataError):
                await book.once(key("a"), changes.fail)
            assert changes.made == attempt
        assert (await book.once(key("a"), changes.make)).rows == 3

    asyncio.run(run())


def test_a_backup_knows_what_it_has_copied() -> None:
    async def run() -> None:
        book, changes = ChangeRegistry(), Changes()
        assert book.made(key("a")) is None
        book.note(key("a"), RecordedChange(7, 1))
        assert book.made(key("a")) == RecordedChange(7, 1)
        assert await book.once(key("a"), changes.make) == RecordedChange(7, 1)
        assert changes.made == 0

    asyncio.run(run())


def test_the_oldest_is_forgotten_first() -> None:
    async def run() -> None:
        book, changes = ChangeRegistry(kept_max=2), Changes()
        for change_id in ("a", "b", "c"):
            await book.once(key(change_id), changes.make)
        assert (await book.once(key("c"), changes.make)).rows == 3
        assert (await book.once(key("a"), changes.make)).rows == 4

    asyncio.run(run())
