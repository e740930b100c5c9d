"""Changes of one table, or of one partition, take turns, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from secateur.cluster.member import ChangeTurns, full_partition, full_table
from secateur.errors import LimitExceededError
from secateur.wire import PeerInfo


def peer(session: str) -> PeerInfo:
    return PeerInfo(1, "there", "test", False, session=session)


class _Changes:
    """Changes of tables, each of which takes a few turns of the event loop."""

    def __init__(self, waiting_max: int) -> None:
        self.turns = ChangeTurns(waiting_max, full_table)
        self.made: list[str] = []
        self.at_once: dict[int, int] = {}
        self.at_once_max = 0

    async def make(self, name: str, table_id: int = 1) -> None:
        async with self.turns.admitted((table_id, "t"), peer(name[0])):
            self.at_once[table_id] = self.at_once.get(table_id, 0) + 1
            self.at_once_max = max(self.at_once_max, self.at_once[table_id])
            try:
                for _ in range(3):
                    await asyncio.sleep(0)
                self.made.append(name)
            finally:
                self.at_once[table_id] -= 1


def test_one_change_of_a_table_is_made_at_a_time_and_connections_take_turns() -> None:
    async def check() -> None:
        changes = _Changes(waiting_max=10)
        await asyncio.gather(*(changes.make(name) for name in ("a1", "a2", "a3", "b1", "c1")))
        assert changes.made == ["a1", "a2", "b1", "c1", "a3"]
        assert changes.at_once_max == 1

    asyncio.run(check())


def test_changes_of_two_tables_do_not_wait_for_each_other() -> None:
    async def check() -> None:
        changes = _Changes(waiting_max=0)
        await asyncio.gather(changes.make("a1", 1), changes.make("a2", 2))
        assert sorted(changes.made) == ["a1", "a2"]

    asyncio.run(check())


def test_beyond_the_bound_a_change_is_refused_and_names_the_table() -> None:
    async def check() -> None:
        changes = _Changes(waiting_max=1)
        outcomes = await asyncio.gather(*(changes.make(name) for name in ("a1", "b1", "c1")), return_exceptions=True)
        (refused,) = [outcome for outcome in outcomes if outcome is not None]
        assert isinstance(refused, LimitExceededError)
        assert refused.retry_safe
        assert refused.details["table"] == "t"
        assert len(changes.made) == 2

    asyncio.run(check())


@pytest.mark.parametrize("after", range(12))
def test_a_change_that_is_cancelled_at_any_moment_lets_no_two_run(after: int) -> None:
    async def check() -> None:
        changes = _Changes(waiting_max=10)
        running = [asyncio.ensure_future(changes.make(name)) for name in ("a1", "b1")]
        for _ in range(after):
            await asyncio.sleep(0)
        running[1].cancel()
        running += [asyncio.ensure_future(changes.make(name)) for name in ("c1", "d1")]
        for task in running:
            with suppress(asyncio.CancelledError):
                await task
        assert changes.at_once_max == 1
        assert {"a1", "c1", "d1"} <= set(changes.made)

    asyncio.run(check())


def test_what_nobody_changes_any_more_is_forgotten() -> None:
    async def check() -> None:
        changes = _Changes(waiting_max=0)
        for _ in range(3):
            outcomes = await asyncio.gather(changes.make("a1"), changes.make("b1"), return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [type(None), LimitExceededError]
        assert changes.made == ["a1"] * 3

    asyncio.run(check())


def test_the_refusal_of_a_partition_says_where() -> None:
    error = full_partition("orders", 7, "m2")(1, 1000)
    assert error.message.startswith("1000 changes of partition 7 of orders wait at member m2, which is the most (max_")
    assert error.retry_safe
