"""Running a planned SELECT on a member: the rungs *local* and *distributed*.

The member binds the plan's partition trees itself, whatever the client computed: a client with an old topology may ask the wrong member, but never
gets a wrong answer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.local_call import LocalCall, bound_partitions, check_versions, local_call
from secateur.engine.kernels.fragment import answer, run
from secateur.engine.plan import SelectPlan
from secateur.engine.runtime import JobRuntime
from secateur.engine.select_job import select_dag
from secateur.errors import DataChangedError, DataError, TopologyChangedError
from secateur.partitioning.topology import Topology
from secateur.partitioning.types import parse_type
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, ShortTable, decode_table, decode_tables, encode_table

__all__ = ["StatementRunner"]

_LOAD_WAIT_S: Final = 10.0
_LOAD_PAUSE_S: Final = 0.002
_NONE: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True)
class _View:
    """What this member knows of the cluster at one topology version.

    Attributes:
        topology: Members and owners.
        mine: The partitions that this member serves, by affinity group.
    """

    topology: Topology
    mine: dict[str, frozenset[int]]


class StatementRunner:
    """Answers ``execute`` requests. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        jobs: Its engine, for statements that need other members.
        executor: Threads for kernel calls.
        fetch_plan: Gets a plan from the controller by its id.
        fetch_system_table: Gets the rows of a system table from the controller by its name.
        plans_max: Plans kept.
    """

    def __init__(
        self,
        member_id: str,
        store: MemberStore,
        jobs: JobRuntime,
        executor: Executor,
        fetch_plan: Callable[[str], Awaitable[SelectPlan]],
        fetch_system_table: Callable[[str], Awaitable[pa.Table]],
        plans_max: int,
    ) -> None:
        self._member_id = member_id
        self._store = store
        self._jobs = jobs
        self._executor = executor
        self._fetch_plan = fetch_plan
        self._fetch_system_table = fetch_system_table
        self._plans: OrderedDict[str, SelectPlan] = OrderedDict()
        self._plans_max = plans_max
        self._view: _View | None = None

    def update(self, topology: Topology) -> None:
        """Take over a newer topology."""
        mine = {group: frozenset(ownership.partitions_of(self._member_id)) for group, ownership in topology.owners.items()}
        self._view = _View(topology, mine)

    def execute(self, args: dict[str, Any]) -> Reply | Awaitable[Reply]:
        """Answer one execution of a plan.

        Args:
            args: ``plan`` (id), ``params`` (values in order), ``pruning`` (bool).

        Raises:
            TopologyChangedError: A required partition has no owner here or elsewhere as far as this member knows, or a table has other ranges by now; nothing
                was done.
        """
        plan = self._plans.get(args["plan"])
        if plan is None or plan.system_tables:
            return self._fetch_and_run(args)
        self._plans.move_to_end(plan.plan_id)
        return self._run(plan, args["params"], pruning=args["pruning"])

    async def plan(self, plan_id: str) -> SelectPlan:
        """A plan, fetched from the controller unless it is kept here.

        Raises:
            TopologyChangedError: The controller does not keep it any more; the client has to prepare its statement again.
        """
        plan = self._plans.get(plan_id)
        if plan is None:
            plan = self._plans[plan_id] = await self._fetch_plan(plan_id)
            while len(self._plans) > self._plans_max:
                self._plans.popitem(last=False)
        return plan

    async def rows(self, plan: SelectPlan, params: Sequence[Any], *, pruning: bool) -> pa.Table:
        """The rows of a query, for whoever needs them on this member.

        Raises:
            Error: As :meth:`execute`.
        """
        reply = self._run(plan, params, pruning=pruning)
        reply = reply if isinstance(reply, Reply) else await reply
        values = reply.header.get("values")
        if values is None:
            payload = reply.payload
            return decode_tables([payload] if isinstance(payload, (bytes, memoryview)) else payload)
        return ShortTable(values, reply.header["rows"]).to_table([(name, parse_type(text)) for name, text in plan.columns])

    async def _fetch_and_run(self, args: dict[str, Any]) -> Reply:
        plan = await self.plan(args["plan"])
        if plan.system_tables:
            tables = await asyncio.gather(*map(self._fetch_system_table, plan.system_tables))
            plan = plan.pinned(dict(zip(plan.system_tables, tables, strict=True)))
        reply = self._run(plan, args["params"], pruning=args["pruning"])
        return reply if isinstance(reply, Reply) else await reply

    def _run(self, plan: SelectPlan, params: Sequence[Any], *, pruning: bool) -> Reply | Awaitable[Reply]:
        view = self._view
        if view is None:
            raise TopologyChangedError(f"member {self._member_id} has not joined yet; try again")
        check_versions(self._store, plan)
        partitions = bound_partitions(plan, params, pruning=pruning)
        if all(scan.replicated or view.mine.get(scan.group, _NONE).issuperset(ids) for scan, ids in zip(plan.scans, partitions, strict=True)):
            return self._run_local(plan, params, partitions, view.topology, pruning=pruning)
        for scan, ids in zip(plan.scans, partitions, strict=True):
            if not scan.replicated:
                if scan.group not in view.topology.owners:
                    raise TopologyChangedError(f"member {self._member_id} has not heard of the owners of {scan.group} yet; try again")
                view.topology.check_live(view.topology.primaries(scan.group, ids))
        return self._run_distributed(plan, params, partitions, view.topology, pruning=pruning)

    def _run_local(
        self, plan: SelectPlan, params: Sequence[Any], partitions: list[Sequence[int]], topology: Topology, *, pruning: bool
    ) -> Reply | Awaitable[Reply]:
        call = local_call(self._store, plan, params, partitions, pruning=pruning)
        if call.is_quick:
            return _reply(answer(call.fragment, call.relations, params), plan, partitions, topology, "local")
        if plan.empty is not None and call.is_empty:
            return _reply(decode_table(plan.empty), plan, partitions, topology, "local")
        return self._run_in_thread(plan, call, params, partitions, topology)

    async def _run_in_thread(self, plan: SelectPlan, call: LocalCall, params: Sequence[Any], partitions: list[Sequence[int]], topology: Topology) -> Reply:
        table = await asyncio.get_running_loop().run_in_executor(self._executor, run, call.fragment, call.relations, params)
        return _reply(table, plan, partitions, topology, "local")

    async def _run_distributed(self, plan: SelectPlan, params: Sequence[Any], partitions: list[Sequence[int]], topology: Topology, *, pruning: bool) -> Reply:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _LOAD_WAIT_S
        while True:
            published = {scan.table_id: self._store.data_version(scan.table_id).published for scan in plan.scans if scan.system is None}
            dag, config = select_dag(plan, partitions, published=published, search_keys=pruning)
            try:
                result = await self._jobs.run_light_job(dag, config, params, topology)
            except DataChangedError:
                # A load is being published: this member has it and another has not yet, or the other way round. That lasts for about a round trip.
                if loop.time() > deadline_s:
                    raise
                await asyncio.sleep(_LOAD_PAUSE_S)
            except DataError:
                if not plan.gathered:
                    raise
                plan = replace(plan, stages=plan.gathered, gathered=())
            else:
                members = sorted({self._member_id, *result.members_touched})
                return _reply(result.table(), plan, partitions, topology, "distributed", members)


def _reply(
    result: pa.Table | ShortTable, plan: SelectPlan, partitions: list[Sequence[int]], topology: Topology, execution: str, members: list[str] | None = None
) -> Reply:
    """An answer; without ``members``, this member alone worked for it."""
    header: dict[str, Any] = {
        "execution": execution,
        "partitions_read": sum(len(ids) for ids in partitions),
        "partitions_total": sum(scan.tree.total for scan in plan.scans),
        "topology_version": topology.version,
        "rows": result.num_rows,
    }
    if members is not None:
        header["members"] = members
    if isinstance(result, ShortTable):
        header["values"] = result.columns
        return Reply(header)
    return Reply(header, encode_table(result))
