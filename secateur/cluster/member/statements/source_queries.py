"""Plans the SELECTs by which sources of jobs say what they read."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from secateur.client.dbapi.parameters import parameter_types, plain_values, values_of
from secateur.cluster.controller_requests import ControllerRequests
from secateur.cluster.member.statements.local_execution import bound_partitions, check_versions
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.dag.source_query import SourceQuery
from secateur.engine.sql.key_search import KeySearch
from secateur.engine.sql.planned_query import PlannedQuery
from secateur.errors import DagError, TopologyChangedError, UnknownTableError
from secateur.protocol.query import Prepare
from secateur.protocol.statements import SelectStatement
from secateur.storage.member_store import MemberStore

__all__ = ["SourceQueries"]

_KEPT_MAX: Final = 256

_Key: TypeAlias = tuple[str, tuple[Any, ...]]


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
        self._kept: OrderedDict[_Key, SelectStatement] = OrderedDict()

    async def planned(self, query: SourceQuery) -> PlannedQuery:
        """Plan a query for a run that starts now. One round trip if it is not known, else none.

        Raises:
            ProgrammingError: The SELECT is wrong.
            DagError: It is no SELECT.
            ParameterError: The parameters are not those of the statement.
        """
        params = plain_values(query.params)
        key = query.sql, parameter_types(params)
        statement = self._kept.get(key)
        if statement is not None:
            try:
                return await self._bound(statement, params, pruning=query.pruning)
            except (TopologyChangedError, UnknownTableError):
                del self._kept[key]
        prepared = (await self._controller.request(Prepare(query.sql, params))).message.statement
        if not isinstance(prepared, SelectStatement):
            raise DagError(f"a source reads the rows of a SELECT, not of {query.sql!r}")
        self._kept[key] = prepared
        while len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
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
