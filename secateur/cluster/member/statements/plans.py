"""The plans of a member, and the values of their expressions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any

from secateur.cluster.member.statements.local_execution import check_count
from secateur.duckdb_expressions import complete, complete_without_evaluation
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import in_thread
from secateur.protocol.query import GetPlan


class MemberPlans:
    """Keeps plans, and fetches those that are missing. Lives on the member's event loop.

    Args:
        fetch: Gets a plan that is not kept here.
        kept_max: Plans kept.
        executor: Threads for expressions that DuckDB evaluates.
        statistics_version: The newest version of the statistics that this member has heard of: some plans depend on it.

    Attributes:
        kept: The plans by their ids, the one used last at the end.
        kept_max, statistics_version: As given.
    """

    def __init__(
        self,
        fetch: Callable[[GetPlan], Awaitable[SelectPlan]],
        kept_max: int,
        executor: Executor,
        statistics_version: Callable[[], int],
    ) -> None:
        self._fetch = fetch
        self._executor = executor
        self.kept: OrderedDict[str, SelectPlan] = OrderedDict()
        self._whole: OrderedDict[str, SelectPlan] = OrderedDict()  # by the ids of those that only find the key
        self.kept_max = kept_max
        self.statistics_version = statistics_version

    async def plan(self, plan_id: str) -> SelectPlan:
        """A plan, fetched unless it is kept here.

        Raises:
            TopologyChangedError: The controller does not keep it any more; the client has to prepare its statement
                again.
            UnreachableError: The controller does not answer, and no other member has it.
        """
        return await self._kept_or_fetched(self.kept, GetPlan(plan_id))

    async def whole(self, plan: SelectPlan) -> SelectPlan:
        """The plan of the query for the row changes, in place of one with ``is_upsert_only``.

        Raises:
            Error: As :meth:`plan`; or the controller makes it now, and it is refused.
        """
        return await self._kept_or_fetched(self._whole, GetPlan(plan.plan_id, is_whole=True))

    async def _kept_or_fetched(self, kept: OrderedDict[str, SelectPlan], asked: GetPlan) -> SelectPlan:
        plan = kept.get(asked.plan_id)
        if plan is None:
            plan = kept[asked.plan_id] = await self._fetch(asked)
            while len(kept) > self.kept_max:
                kept.popitem(last=False)
        return plan

    def used(self, plan_id: str) -> SelectPlan | None:
        """A plan, if it is kept here: it then is the one that was used last."""
        plan = self.kept.get(plan_id)
        if plan is not None:
            self.kept.move_to_end(plan_id)
        return plan

    def statistics_of(self, plan: SelectPlan) -> int:
        """The newest version of the statistics, for a plan that depends on them; else 0."""
        return self.statistics_version() if plan.is_estimated else 0

    def is_system(self, plan_id: str) -> bool:
        """Whether a plan that is kept here reads system tables only."""
        plan = self.kept.get(plan_id)
        return plan is not None and plan.reads_system_tables_only

    async def with_values(self, plan: SelectPlan, params: list[Any]) -> list[Any]:
        """The parameters of a plan with the values of its expressions behind them, for one execution.

        Raises:
            ParameterError: Another number of parameters than the statement has.
        """
        if not plan.expressions:
            return params
        check_count(plan, params)
        completed = complete_without_evaluation(params, plan.expressions)
        if completed is not None:
            return completed
        return await in_thread(self._executor, lambda _: complete(params, plan.expressions))
