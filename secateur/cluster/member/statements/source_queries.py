"""Plans the SELECTs by which sources of jobs say what they read."""

from __future__ import annotations

import time
from typing import Any, Final

from msgspec.structs import replace

from secateur.client.dbapi.parameters import plain_values, values_of
from secateur.cluster.controller_requests import ControllerRequests
from secateur.cluster.member.statements.local_execution import bound_partitions, check_versions
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.dag.source_query import SourceQuery
from secateur.engine.runtime.services import PlannedQuery
from secateur.engine.sql.key_search import KeySearch
from secateur.errors import DagError, TopologyChangedError, UnknownTableError
from secateur.protocol.kept_plans import KeptPlans
from secateur.protocol.query import Prepare
from secateur.protocol.statements import SelectStatement
from secateur.storage.member_store import MemberStore

_KEPT_MAX: Final = 256


class SourceQueries:
    """Plans SELECTs for the jobs that this member coordinates. Lives on the member's event loop.

    What the controller has planned is kept for the next job, until a table that it reads has changed.

    Args:
        store: The tables, as they are now.
        statements: Has the plans.
        controller: Plans what is not known here.
    """

    def __init__(self, store: MemberStore, statements: StatementRunner, controller: ControllerRequests) -> None:
        self._store = store
        self._statements = statements
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
        plan = await self._statements.plan(statement.plan_id)
        check_versions(self._store, plan)
        values = await self._statements.with_values(plan, values_of(statement, params, time.time()))
        partitions = bound_partitions(plan, values, pruning=pruning)
        if not pruning:
            plan = replace(plan, scans=tuple(replace(scan, keys=KeySearch()) for scan in plan.scans))
        return PlannedQuery(plan, values, partitions)
