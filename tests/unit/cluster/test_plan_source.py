"""Where a member gets plans: from the controller, and while that does not answer from members that have them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from secateur.cluster import ClusterSettings
from secateur.cluster.peers import Peers
from secateur.cluster.plan_source import PlanSource
from secateur.engine.kernels import Fragment
from secateur.engine.sql import QueryStage, SelectPlan, Strategy
from secateur.errors import ProtocolError, TopologyChangedError, UnreachableError
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.protocol import MEMBER_OPERATIONS, GetPlan, Greeting, Hello, PlanAnswer, Role
from secateur.wire import FrameServer, FrameService, Handled, Peer, Reply, Request, hello

FRAGMENT = Fragment("SELECT 1 AS k", (), (("k", "INTEGER"),))
STAGE = QueryStage("final", FRAGMENT, at_coordinator=True)
PLAN = SelectPlan("", (), FRAGMENT, (STAGE,), Strategy.GATHER, None, (("k", "INTEGER"),), 0, (), None, True, 1).named()
OTHER = replace(PLAN, deterministic=False)
"""A plan that is sent as ``PLAN``, and is not."""
SILENCE_S = 3.0

Answer = Callable[[str], Reply[PlanAnswer] | Awaitable[Reply[PlanAnswer]]]


def has(plan: SelectPlan) -> Answer:
    return lambda _: Reply(PlanAnswer(plan.encoded()))


def has_none(plan_id: str) -> Reply[PlanAnswer]:
    raise TopologyChangedError(f"no plan {plan_id}")


async def is_silent(_: str) -> Reply[PlanAnswer]:
    await asyncio.Event().wait()
    raise AssertionError


class Party:
    """A process that answers for plans in one way, and writes down that it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked = 0

    def handle(self, request: Request[Any]) -> Handled:
        if isinstance(request.message, Hello):
            return Reply(Greeting())
        self.asked += 1
        return self.answer(request.message.plan_id)

    def notify(self, request: Request[Any]) -> None:
        raise AssertionError(request)


async def fetched(
    controller: Answer | None, *members: Answer | None, is_whole: bool = False
) -> tuple[SelectPlan, list[int]]:
    """The plan that a member gets, and how often each party was asked: the controller, then the other members.

    None is a process that has ended.
    """
    settings = ClusterSettings()
    parties = [Party(answer or has_none) for answer in (controller, *members)]
    servers = [FrameServer(FrameService(party, MEMBER_OPERATIONS, secret=settings.secret)) for party in parties]
    for server in servers:
        await server.start()
    peers = Peers("m0", Role.MEMBER, settings)
    addresses = [MemberAddress(f"m{number}", server.host, server.port) for number, server in enumerate(servers)]
    peers.update(Topology(1, tuple(addresses[1:]), {}))
    asked = Peer(servers[0].host, servers[0].port, hello(client="m0", identity=settings.identity(Role.MEMBER)))
    for server, answer in zip(servers, (controller, *members), strict=True):
        if answer is None:
            await server.stop()
    try:
        source = PlanSource("m0", asked, peers, lambda: [address.id for address in addresses], SILENCE_S)
        return await source.fetch(GetPlan(PLAN.plan_id, is_whole)), [party.asked for party in parties]
    finally:
        await asked.close()
        await peers.close()
        for server in servers:
            await server.stop()


def test_a_controller_that_answers_is_the_only_one_asked() -> None:
    assert asyncio.run(fetched(has(PLAN), has(PLAN), has(PLAN))) == (PLAN, [1, 0, 0])


def test_what_the_controller_does_not_keep_any_more_is_to_be_prepared_again() -> None:
    with pytest.raises(TopologyChangedError, match="no plan"):
        asyncio.run(fetched(has_none, has(PLAN)))


def test_the_plan_in_place_of_another_has_an_id_of_its_own_and_only_the_controller_is_asked() -> None:
    other, asked = asyncio.run(fetched(has(OTHER), has(OTHER), is_whole=True))
    assert (other, asked) == (OTHER.named(), [1, 0])
    with pytest.raises(UnreachableError):
        asyncio.run(fetched(None, has(OTHER), is_whole=True))


@pytest.mark.parametrize("controller", [pytest.param(None, id="gone"), pytest.param(is_silent, id="silent")])
@pytest.mark.parametrize(
    "members",
    [
        pytest.param([has(PLAN)], id="the only other member"),
        pytest.param([has_none, None, is_silent, has(PLAN)], id="one of four"),
        pytest.param([has_none] * 19 + [has(PLAN)], id="one of twenty"),
        pytest.param([has(OTHER), has(PLAN)], id="beside one that sends another plan"),
    ],
)
def test_without_a_controller_a_member_that_has_the_plan_gives_it(controller: Any, members: list[Any]) -> None:
    began_s = time.monotonic()
    plan, _ = asyncio.run(fetched(controller, *members))
    assert plan == PLAN
    assert time.monotonic() - began_s < SILENCE_S


@pytest.mark.parametrize("controller", [pytest.param(None, id="gone"), pytest.param(is_silent, id="silent")])
def test_a_plan_that_nobody_has_needs_the_controller_which_may_come_back(controller: Any) -> None:
    with pytest.raises(
        UnreachableError, match="the controller does not answer, and no other member that does has run this statement"
    ) as caught:
        asyncio.run(fetched(controller, has_none, has(OTHER)))
    assert caught.value.retry_safe


def test_the_id_of_a_plan_is_that_of_its_content() -> None:
    assert PLAN.named() == PLAN
    assert replace(PLAN, origin="another text").named().plan_id != PLAN.plan_id
    with pytest.raises(ProtocolError, match=f"what was received as plan {PLAN.plan_id} is not that plan"):
        SelectPlan.decoded(PLAN.plan_id, OTHER.encoded())
