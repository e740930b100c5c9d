"""Fetches the plans that a member lacks: from the controller, or from other members while that does not answer.

A client keeps the plans of its statements, and sends their ids to the member that owns the rows. A member that has not
run a statement yet asks the controller for its plan. Without a controller, members that have run it still have it: the
id of a plan is a digest of it, so any sender can be trusted.

The SELECTs by which sources of jobs say what they read are planned by the controller as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from secateur.client.dbapi.parameters import plain_values, values_of
from secateur.cluster.member.statements.plans import MemberPlans, bound_partitions, check_versions
from secateur.cluster.peers import ControllerRequests, Peers
from secateur.dag.supplier import SourceQuery
from secateur.engine.runtime.services import PlannedQuery
from secateur.engine.sql.key_search import KeySearch
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import (
    DagError,
    DeadlineError,
    Error,
    MemberLostError,
    TopologyChangedError,
    UnknownTableError,
    UnreachableError,
)
from secateur.protocol.kept_plans import KeptPlans
from secateur.protocol.query import GetPlan, Prepare
from secateur.protocol.statements import SelectStatement
from secateur.storage.member_store import MemberStore
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


_KEPT_MAX: Final = 256


class SourceQueries:
    """Plans SELECTs for the jobs that this member coordinates. Lives on the member's event loop.

    What the controller has planned is kept for the next job, until a table that it reads has changed.
    """

    def __init__(self, store: MemberStore, plans: MemberPlans, controller: ControllerRequests) -> None:
        self._store = store
        self._plans = plans
        self._controller = controller
        self._kept: KeptPlans[str, SelectStatement] = KeptPlans(_KEPT_MAX)

    async def planned(self, query: SourceQuery) -> PlannedQuery:
        """Plan a query for a run that starts now. One round trip if it is not known, else none.

        Raises:
            ProgrammingError: The SELECT is wrong.
            DagError: It is no SELECT.
            ParameterError: The parameters are not those of the statement.
        """
        params = plain_values(query.params)
        statement = self._kept.get(query.sql, params)
        if statement is not None:
            try:
                return await self._bound(statement, params, pruning=query.pruning)
            except (TopologyChangedError, UnknownTableError):
                self._kept.forget(query.sql, params)
        prepared = (await self._controller.request(Prepare(query.sql, params))).message.statement
        if not isinstance(prepared, SelectStatement):
            raise DagError(f"a source reads the rows of a SELECT, not of {query.sql!r}")
        self._kept.put(query.sql, params, prepared, prepared.typed, prepared.parameter_names)
        return await self._bound(prepared, params, pruning=query.pruning)

    async def _bound(
        self, statement: SelectStatement, params: list[Any] | dict[str, Any], *, pruning: bool
    ) -> PlannedQuery:
        plan = await self._plans.plan(statement.plan_id)
        check_versions(self._store, plan)
        values = await self._plans.with_values(plan, values_of(statement, params, time.time()))
        partitions = bound_partitions(plan, values, pruning=pruning)
        if not pruning:
            plan = replace(plan, scans=tuple(replace(scan, keys=KeySearch()) for scan in plan.scans))
        return PlannedQuery(plan, values, partitions)
