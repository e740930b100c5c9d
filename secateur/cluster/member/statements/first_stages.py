"""The first stage of a scattered statement on one of the members that own its partitions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.local_execution import bound_partitions, check_versions
from secateur.cluster.member.statements.native_answers import NativeAnswers
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.cluster.member.statements.prepared_statements import OwnView
from secateur.cluster.member.statements.scattered_statements import (
    Acknowledgements,
    ScatteredStatements,
    SeenVersions,
    after,
    partitions_read,
)
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import ProtocolError, TopologyChangedError
from secateur.protocol.query import ExecuteFirstStage, FirstStageRows
from secateur.wire import Reply, Request

_NONE: Final[frozenset[int]] = frozenset()
_Answering: TypeAlias = Coroutine[Any, Any, Reply[FirstStageRows]]


class FirstStages:
    """Answers those who combine the rows of several owners. Lives on the member's event loop.

    Args:
        storage: What this member keeps.
        plans: The plans.
        joined: This member's view of the cluster.
        scattered: Runs the stage over rows of this member.
        acknowledged: Waits until the changes that readers of some partitions see now are acknowledged; None if they
            are.
        native: The native executor; None where there is none.
    """

    def __init__(
        self,
        storage: MemberStorage,
        plans: MemberPlans,
        joined: Callable[[], OwnView],
        scattered: ScatteredStatements,
        acknowledged: Acknowledgements,
        native: NativeAnswers | None,
    ) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._hot_keys = storage.hot_keys
        self._plans = plans.kept
        self._fetch_plan = plans.plan
        self._joined = joined
        self._scattered = scattered
        self._statistics_version = plans.statistics_version
        self._acknowledged = acknowledged
        self._native = native

    def run(self, request: Request[ExecuteFirstStage]) -> Reply[FirstStageRows] | _Answering:
        """Answer the member that coordinates a scattered statement, or the client that asks all of its owners.

        Raises:
            TopologyChangedError: A partition is not this member's, or a table has other ranges by now.
            DataChangedError: Another load was the last one published here.
            Error: The error of the statement.
        """
        plan = self._plans.get(request.message.plan)
        if plan is None:
            return self._fetch_and_run(request)
        self._plans.move_to_end(plan.plan_id)
        return self._run(plan, request)

    async def _fetch_and_run(self, request: Request[ExecuteFirstStage]) -> Reply[FirstStageRows]:
        reply = self._run(await self._fetch_plan(request.message.plan), request)
        return reply if isinstance(reply, Reply) else await reply

    def _run(self, plan: SelectPlan, request: Request[ExecuteFirstStage]) -> Reply[FirstStageRows] | _Answering:
        asked, view = request.message, self._joined()
        check_versions(self._store, plan)
        if len(asked.partitions) != len(plan.scans):
            raise ProtocolError(f"plan {plan.plan_id} has {len(plan.scans)} scans, not {len(asked.partitions)}")
        for scan, ids in zip(plan.scans, asked.partitions, strict=True):
            if not (scan.replicated or view.mine.get(scan.group, _NONE).issuperset(ids)):
                raise TopologyChangedError(
                    f"member {self._member_id} does not own all of the partitions of {scan.table} that it was asked"
                    " for: the owners have changed since the statement began",
                    table=scan.table,
                    topology_version=view.topology.version,
                )
        if asked.published is None and not (
            plan.scatter_partitions_max and _agree(bound_partitions(plan, asked.params, pruning=True), asked)
        ):
            return Reply(FirstStageRows(0, is_declined=True))
        if asked.run is not None:  # by the one that lists the statement, so that it counts once
            hot_keys = self._hot_keys
            hot_keys.left -= 1
            if not hot_keys.left:
                hot_keys.note_statement(plan, asked.params)
        if self._native is not None and asked.published is None:
            self._native.learn(plan, view)
        seen = SeenVersions(view.topology.version, self._statistics_version() if plan.is_estimated else 0)
        answering = self._scattered.answer(plan, asked, seen)
        waiting = self._acknowledged(partitions_read(plan, asked.partitions))
        return answering if waiting is None else after(waiting, answering)


def _agree(bound: Sequence[Sequence[int]], asked: ExecuteFirstStage) -> bool:
    """Whether a client that asks all owners has found the partitions that this member finds for a statement.

    Each owner looks at its own part, and the one that lists the statement at how many there are in all.
    """
    if asked.run is not None and asked.run.partitions_read != sum(map(len, bound)):
        return False
    return all(frozenset(ids).issuperset(part) for ids, part in zip(bound, asked.partitions, strict=True))
