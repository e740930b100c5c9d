"""The plans of a member, the values of their expressions, and what they need of tables and parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Final

from secateur.duckdb_expressions import complete, complete_without_evaluation
from secateur.engine.sql.select_plan import ScanPlan, SelectPlan
from secateur.engine.threads import in_thread
from secateur.errors import ParameterError, TopologyChangedError
from secateur.protocol.query import GetPlan
from secateur.storage.member_store import MemberStore

_REPLICATED_PARTITIONS: Final = (0,)


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


def check_versions(store: MemberStore, plan: SelectPlan) -> None:
    """Refuse a plan whose tables have other ranges now, or whose views do not exist any more.

    Raises:
        TopologyChangedError: The plan is outdated; nothing was done.
        UnknownTableError: A table is not here.
    """
    for view_id in plan.views:
        if view_id not in store.views:
            raise TopologyChangedError(
                "a view or external table that the statement reads was replaced or dropped since it was planned:"
                " plan it again",
                view=view_id,
            )
    for scan in plan.scans:
        if not scan.is_fetched and store.table(scan.table_id).version != scan.table_version:
            raise TopologyChangedError(
                f"the ranges of {scan.table} have changed since the statement was planned: plan it again",
                table=scan.table,
            )


def bound_partitions(plan: SelectPlan, params: Sequence[Any], *, pruning: bool) -> list[Sequence[int]]:
    """The partitions that each scan of a plan has to read, ascending.

    Args:
        plan: The plan.
        params: Its parameters, with the values of its expressions behind them.
        pruning: Whether to leave out partitions that cannot match.

    Raises:
        ParameterError: Another number of parameters than the statement has.
    """
    check_bound(plan, params)
    return [_partitions(scan, params, pruning=pruning) for scan in plan.scans]


def check_bound(plan: SelectPlan, params: Sequence[Any]) -> None:
    """Refuse parameters that are not as many as the plan has, with the values of its expressions behind them.

    Raises:
        ParameterError: There is another number.
    """
    if len(params) != plan.bound_count:
        check_count(plan, params)


def check_count(plan: SelectPlan, params: Sequence[Any]) -> None:
    """Refuse another number of parameters than a statement has.

    Raises:
        ParameterError: There is another number.
    """
    if len(params) != plan.parameter_count:
        raise ParameterError(
            f"the statement has {plan.parameter_count} parameters, {len(params)} were given",
            expected=plan.parameter_count,
            given=len(params),
        )


def _partitions(scan: ScanPlan, params: Sequence[Any], *, pruning: bool) -> Sequence[int]:
    if scan.replicated:
        return _REPLICATED_PARTITIONS
    return scan.tree.bind(params).ids if pruning else scan.tree.live_ids()
