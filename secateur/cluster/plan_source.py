"""Fetches the plans that a member lacks: from the controller, or from other members while that does not answer.

A client keeps the plans of its statements, and sends their ids to the member that owns the rows. A member that has not
run a statement yet asks the controller for its plan. Without a controller, members that have run it still have it: the
id of a plan is a digest of it, so any sender can be trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from secateur.cluster.peers import Peers
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import DeadlineError, Error, MemberLostError, UnreachableError
from secateur.protocol.query import GetPlan
from secateur.wire.peer import Peer

_CONTROLLER_FIRST_S: Final = 0.5
"""Seconds for which only the controller is asked. It looks the plan up, which takes a millisecond."""
_MEMBERS_AT_ONCE: Final = 8
_MEMBERS_WAIT_S: Final = 1.0
"""Seconds that these members may take before others are asked."""
_OUT_OF_REACH: Final = (UnreachableError, MemberLostError, DeadlineError)


class PlanSource:
    """Fetches plans for one member. Lives on its event loop.

    Args:
        member_id: The member, which is not asked itself.
        controller: Asked first.
        peers: The other members.
        member_ids: Gives the members of the newest topology.
        silence_s: Seconds after which a controller that says nothing is taken for out of reach.
    """

    def __init__(
        self, member_id: str, controller: Peer, peers: Peers, member_ids: Callable[[], Sequence[str]], silence_s: float
    ) -> None:
        self._member_id = member_id
        self._controller = controller
        self._peers = peers
        self._member_ids = member_ids
        self._silence_s = silence_s

    async def fetch(self, asked: GetPlan) -> SelectPlan:
        """Get a plan by its id. One round trip while the controller answers.

        Raises:
            Error: A plan that is made now is refused.
            TopologyChangedError: The controller does not keep it any more; the client has to prepare its statement
                again.
            UnreachableError: The controller does not answer, and no member that does has the plan.
        """
        asking = asyncio.get_running_loop().create_task(self._ask_controller(asked))
        try:
            await asyncio.wait([asking], timeout=_CONTROLLER_FIRST_S)
            if asking.done() and not isinstance(asking.exception(), _OUT_OF_REACH):
                return asking.result()
            found = None if asked.is_whole else await self._ask_members(asked)
            return await asking if found is None else found
        except _OUT_OF_REACH as error:
            raise UnreachableError(
                "the controller does not answer, and no other member that does has run this statement, so its plan is"
                f" not to be had: {error.message}",
            ) from error
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError, Error):
                await asking

    async def _ask_controller(self, asked: GetPlan) -> SelectPlan:
        try:
            async with asyncio.timeout(self._silence_s):
                answer = await self._controller.request(asked)
        except TimeoutError as error:
            raise UnreachableError(
                f"the controller at {self._controller.address} has been silent for {self._silence_s:g} s"
            ) from error
        return SelectPlan.decoded(None if asked.is_whole else asked.plan_id, answer.message.plan)

    async def _ask_members(self, asked: GetPlan) -> SelectPlan | None:
        """Fetch the plan from any other member; None when no member that answers has it."""
        others = [member for member in self._member_ids() if member != self._member_id]
        for start in range(0, len(others), _MEMBERS_AT_ONCE):
            found = await self._ask_some(others[start : start + _MEMBERS_AT_ONCE], asked)
            if found is not None:
                return found
        return None

    async def _ask_some(self, members: Sequence[str], asked: GetPlan) -> SelectPlan | None:
        tasks = [asyncio.get_running_loop().create_task(self._ask_member(member, asked)) for member in members]
        try:
            for task in asyncio.as_completed(tasks, timeout=_MEMBERS_WAIT_S):
                with suppress(Error):  # it has not run the statement, or is out of reach as well
                    return await task
        except TimeoutError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return None

    async def _ask_member(self, member: str, asked: GetPlan) -> SelectPlan:
        try:
            answer = await self._peers.ask(member, asked)
        except MemberLostError:  # the connection broke, and the next one may not
            answer = await self._peers.ask(member, asked)
        return SelectPlan.decoded(asked.plan_id, answer.message.plan)
