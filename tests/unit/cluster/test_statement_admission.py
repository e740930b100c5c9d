from __future__ import annotations

import asyncio
from typing import Any

import pytest

from secateur.cluster.member import StatementAdmission, full_member
from secateur.errors import LimitExceededError
from secateur.wire import PeerInfo


def peer(session: str) -> PeerInfo:
    return PeerInfo(1, "there", "test", False, session=session)


class _Statements:
    """Statements at one admission, each of which runs until it is told to end."""

    def __init__(self, running_max: int, waiting_max: int) -> None:
        self.admission = StatementAdmission(running_max, waiting_max, full_member("m1", running_max))
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    async def begin(self, name: str) -> asyncio.Task[bool]:
        self.ends[name] = asyncio.Event()
        task = asyncio.ensure_future(self._run(name))
        await _turns()
        return task

    async def _run(self, name: str) -> bool:
        async with self.admission.admitted(peer(name[0])) as has_waited:
            self.begun.append(name)
            await self.ends[name].wait()
            return has_waited

    async def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()
            await _turns()

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.admission.running, self.admission.waiting, self.admission.refused


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_statement_waits_for_its_turn_and_knows_that_it_has() -> None:
    async def check() -> None:
        statements = _Statements(1, 10)
        first, second = await statements.begin("a1"), await statements.begin("b1")
        assert statements.begun == ["a1"]
        assert statements.admission.is_waiting(second)
        assert not statements.admission.is_waiting(first)
        await statements.end("a1", "b1")
        assert (await first, await second) == (False, True)
        assert statements.counts == (0, 0, 0)

    asyncio.run(check())


def test_a_refusal_says_limit_and_numbers_and_may_be_repeated() -> None:
    async def check() -> None:
        statements = _Statements(1, 1)
        await statements.begin("a1")
        last = await statements.begin("b1")
        refused = await statements.begin("b2")
        with pytest.raises(LimitExceededError, match=r"1 statements wait at member m1.*while 1 run") as raised:
            await refused
        assert raised.value.retry_safe
        assert raised.value.details == {
            "limit": "max_waiting_statements",
            "running": 1,
            "waiting": 1,
            "member": "m1",
            "retry_safe": True,
        }
        await statements.end("a1", "b1")
        await last
        assert statements.counts == (0, 0, 1)

    asyncio.run(check())


def test_a_waiting_statement_is_refused_in_favour_of_another_session() -> None:
    async def check() -> None:
        statements = _Statements(1, 2)
        await statements.begin("a1")
        kept, refused = await statements.begin("a2"), await statements.begin("a3")
        other = await statements.begin("b1")
        with pytest.raises(LimitExceededError):
            await refused
        await statements.end("a1", "a2", "b1")
        assert await asyncio.gather(kept, other) == [True, True]
        assert statements.begun == ["a1", "a2", "b1"]
        assert statements.counts == (0, 0, 1)

    asyncio.run(check())


@pytest.mark.parametrize("ends_first", [True, False])
def test_a_statement_that_is_cancelled_while_it_waits_holds_up_nobody(ends_first: bool) -> None:
    """Also where its turn comes in the same turn of the event loop."""

    async def check() -> None:
        statements = _Statements(1, 10)
        first = await statements.begin("a1")
        waiting, following = await statements.begin("b1"), await statements.begin("c1")
        steps: list[Any] = [statements.ends["a1"].set, waiting.cancel]
        for step in steps if ends_first else reversed(steps):
            step()
        await _turns()
        assert statements.begun == ["a1", "c1"]
        assert statements.counts == (1, 0, 0)
        await statements.end("c1")
        await asyncio.gather(first, following)
        assert waiting.cancelled()
        assert statements.counts == (0, 0, 0)

    asyncio.run(check())


def test_a_statement_that_fails_gives_its_place_up() -> None:
    async def check() -> None:
        admission = StatementAdmission(1, 0, full_member("m1", 1))
        with pytest.raises(ZeroDivisionError):
            async with admission.admitted(peer("a")):
                raise ZeroDivisionError
        assert admission.running == 0

    asyncio.run(check())
