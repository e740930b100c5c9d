"""The gate of tenants: who takes more than its share of a busy event loop is paced, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from secateur.cluster.member import OpenResults, StatementAdmission, TenantAccounts, TenantGate, full_member
from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.errors import LimitExceededError
from secateur.protocol import Execute, Executed, GrantedToken, Operation, ResourceGroup, TokenRole
from secateur.wire import PeerInfo, Reply, Request

ANSWER = Reply(Executed("local", 1, 8, 3, 1))


class _Loop:
    """An event loop of a member, on clocks of its own: each statement takes the time that it is said to take."""

    def __init__(self) -> None:
        self.now_s = self.busy_s = 0.0
        self.accounts = TenantAccounts(clock=lambda: self.now_s)
        admission = StatementAdmission(4, 4, full_member("m1", 4), slots=2, tenants=self.accounts)
        self.gate = TenantGate(
            self.accounts, Admissions(admission, admission), OpenResults(1), lambda: self.now_s, lambda: self.busy_s
        )

    def ask(self, tenant: str, takes_s: float = 0.0) -> Any:
        token = GrantedToken(tenant, TokenRole.READ)
        peer = PeerInfo(1, "there", "test", True, token=token)
        request = Request(Operation.EXECUTE, Execute("p", [], True), memoryview(b""), peer)

        def answer(_: Request[Any]) -> Reply[Any]:
            self.now_s += takes_s
            self.busy_s += takes_s
            return ANSWER

        return self.gate.handle(request, answer)

    def idle(self, seconds: float) -> None:
        self.now_s += seconds


def run(check: Callable[[_Loop], Any]) -> None:
    async def started() -> None:
        await check(_Loop())

    asyncio.run(started())


def test_a_tenant_that_fills_the_event_loop_is_paced_while_others_are_there() -> None:
    async def check(loop: _Loop) -> None:
        answers = []
        for _ in range(150):
            loop.ask("calm", 0.00005)
            answers.append(loop.ask("mad", 0.001))
            if answers[-1] is not ANSWER:
                break
        paced = answers[-1]
        assert paced is not ANSWER
        assert len(answers) >= 90, "it is looked at over a tenth of a second"
        assert loop.ask("calm") is ANSWER
        task = asyncio.ensure_future(paced)
        await asyncio.sleep(0)
        assert not task.done()
        loop.idle(1.0)
        assert await asyncio.wait_for(task, 5.0) is ANSWER
        assert loop.accounts.of(PeerInfo(1, "", "", True, token=GrantedToken("mad", TokenRole.READ))).use.waited_s > 0

    run(check)


@pytest.mark.parametrize(
    ("others", "idle_s"), [pytest.param(False, 0.0, id="alone"), pytest.param(True, 0.002, id="time for everybody")]
)
def test_nobody_is_paced_who_is_alone_or_where_there_is_time(others: bool, idle_s: float) -> None:
    async def check(loop: _Loop) -> None:
        for _ in range(300):
            assert loop.ask("mad", 0.001) is ANSWER
            loop.idle(idle_s)
            if others:
                loop.ask("calm", 0.00005)

    run(check)


def test_a_rate_lets_a_second_of_statements_come_at_once() -> None:
    async def check(loop: _Loop) -> None:
        loop.accounts.take_groups((ResourceGroup("slow", rate=5.0),))
        for _ in range(5):
            loop.ask("hasty")
        with pytest.raises(LimitExceededError, match="5 statements a second") as raised:
            loop.ask("hasty")
        assert raised.value.retry_safe
        loop.idle(0.2)
        loop.ask("hasty")
        with pytest.raises(LimitExceededError):
            loop.ask("hasty")

    run(check)
