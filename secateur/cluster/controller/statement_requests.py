"""Statements as the controller answers them: plans for those who execute them, or what a command has done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.catalog_changes import ExternalTableCommands
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.commands import ControllerCommands
from secateur.cluster.controller.planning import PlanningThreads
from secateur.cluster.controller.running_requests import RequestState, RunningRequests
from secateur.cluster.controller.statement_replies import (
    Params,
    PlanningView,
    Prepared,
    StatementReplies,
    estimated_tables,
    outlines_of,
)
from secateur.cluster.controller.statistics_cache import StatisticsCache
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import AuthenticationError, ProgrammingError
from secateur.planner.binding.catalog_view import ANYBODY, Viewer
from secateur.protocol import query
from secateur.protocol.access import session_call
from secateur.protocol.statements import CreateTableAs, CreateTableFrom, Done, ForgetTenant, Statement, TenantTable
from secateur.wire import PeerInfo, Reply, Request

_WHOLE_PLANS: Final = 0
"""In place of the id of a connection, which is never 0: what is planned when it is needed waits in one queue, so that
it is planned once.
"""

T = TypeVar("T")


class StatementRequests:
    """Answers the requests to prepare or explain a statement. Lives on the controller's event loop.

    Args:
        planning_timeout_s: Seconds that planning one statement may take.

    Attributes:
        replies: As given.
    """

    def __init__(
        self,
        state: ClusterState,
        statistics: StatisticsCache,
        replies: StatementReplies,
        commands: ControllerCommands,
        external_tables: ExternalTableCommands,
        requests: RunningRequests,
        planning_timeout_s: float,
    ) -> None:
        self._state = state
        self._statistics = statistics
        self.replies = replies
        self._commands = commands
        self._external_tables = external_tables
        self._requests = requests
        self._planning = PlanningThreads(timeout_s=planning_timeout_s)  # while the loop goes on serving

    async def close(self) -> None:
        """End planning."""
        await self._planning.close()

    def gone(self, connection_id: int) -> None:
        """A connection has ended: nothing is planned for it any more."""
        self._planning.gone(connection_id)

    async def prepare(self, request: Request[query.Prepare]) -> Reply[query.PreparedAnswer]:
        """Plan a statement; DDL is carried out, once if its request comes again."""
        request_id = request.message.request_id
        if request_id is not None and await self._commands.is_done(request_id):
            versions = self._state.versions(self._statistics.version)
            return Reply(query.PreparedAnswer(outlines=(), statement=Done("carried out before"), **versions))
        planned, statistics_version = await self._plan(self.replies.prepare, request)
        _check_role(planned.statement if isinstance(planned, Prepared) else planned, request.peer)
        prepared = (
            planned
            if isinstance(planned, Prepared)
            else Prepared(Done(await self._commands.carry_out(planned, request_id)))
        )
        catalog = self._state.catalog
        if isinstance(prepared.statement, ForgetTenant):
            prepared = Prepared(self._with_tables(prepared.statement))
        elif isinstance(prepared.statement, CreateTableFrom):
            if prepared.statement.if_not_exists and catalog.find(prepared.statement.name) is not None:
                prepared = Prepared(Done("table exists"))
        elif isinstance(prepared.statement, CreateTableAs):
            create = prepared.statement
            if create.if_not_exists and catalog.find(create.table.name) is not None:
                prepared = Prepared(Done("table exists"))
            else:  # the client creates it once it has the rows
                catalog.with_table(create.table, or_replace=create.or_replace)
        statement, versions = prepared.statement, self._state.versions(statistics_version)
        answer = query.PreparedAnswer(outlines=outlines_of(statement), statement=statement, **versions)
        return Reply(answer, prepared.rows)

    def _with_tables(self, asked: ForgetTenant) -> ForgetTenant:
        """The tables with rows of tenants.

        Raises:
            ProgrammingError: No policy says which rows are whose.
        """
        found = [
            TenantTable(table.name, column, table.change_feed)
            for table in self._state.catalog.tables()
            if (column := self._state.access.tenant_column(table, asked.claim)) is not None
        ]
        if not found:
            raise ProgrammingError(
                f"no row policy compares a column with {session_call(asked.claim)}, so nobody knows which rows are"
                " those of a tenant: CREATE POLICY on the tables first, or DELETE the rows"
            )
        return replace(asked, targets=tuple(sorted(found)))

    async def explain(self, request: Request[query.ExplainRequest]) -> Reply[query.Explained]:
        """Describe the plan of a statement."""
        return Reply((await self._plan(self.replies.explain, request))[0])

    async def plan(self, request: Request[query.GetPlan]) -> Reply[query.PlanAnswer]:
        """Send a plan to a member that is to execute it."""
        asked = request.message
        plan = await self.whole(asked.plan_id) if asked.is_whole else self.replies.plan(asked.plan_id)
        return Reply(query.PlanAnswer(plan.encoded()))

    async def whole(self, plan_id: str) -> SelectPlan:
        """The plan of this id, or the one in its place if it only finds the key of the row that a change concerns.

        Raises:
            TopologyChangedError: It is not kept any more.
            Error: The query for the row changes is refused.
        """
        plan = self.replies.plan(plan_id)
        if not plan.is_upsert_only:
            return plan
        return await self._planning.run(_WHOLE_PLANS, partial(self.replies.whole, plan_id))

    async def _plan(
        self,
        work: Callable[[str, Params, Mapping[str, Any], PlanningView], T],
        request: Request[query.Prepare] | Request[query.ExplainRequest],
    ) -> tuple[T, int]:
        """Return the result of a planning, and the version of the statistics that it used."""
        planned, version = await self._plan_now(work, request)
        tables = None if isinstance(planned, query.Explained) else estimated_tables(planned)
        if tables is None or tables:
            # Statistics that are about to arrive are worth a short wait, and a second planning if they have.
            await self._statistics.arrived(tables)
            if self._statistics.version != version:
                return await self._plan_now(work, request)
        return planned, version

    async def _plan_now(
        self,
        work: Callable[[str, Params, Mapping[str, Any], PlanningView], T],
        request: Request[query.Prepare] | Request[query.ExplainRequest],
    ) -> tuple[T, int]:
        asked, statistics = request.message, self._statistics.statistics_snapshot
        listing = partial(self._external_tables.list_partitions, asyncio.get_running_loop())
        viewer = _viewer(request.peer, self._state.catalog)
        view = PlanningView(self._state.catalog, self._state.topology, statistics, listing, viewer)
        planning = partial(work, asked.sql, asked.params, asked.settings, view)
        planned = self._planning.run(request.peer.connection_id, planning)
        return await self._requests.run(RequestState.PLANNING, asked.sql, planned), statistics.version


def _viewer(peer: PeerInfo, catalog: Catalog) -> Viewer:
    """Whom a statement of a peer is planned for."""
    claims = {} if peer.token is None else peer.token.claims
    return ANYBODY if peer.rights is None and not claims else Viewer(claims, peer.rights, catalog.find_relation)


def _check_role(statement: Statement, peer: PeerInfo) -> None:
    """Refuse a statement for which the token of a client is not enough.

    Raises:
        AuthenticationError: It needs another role.
    """
    if peer.token_role < statement.role:
        raise AuthenticationError(
            f"this statement needs a token with the role {statement.role.title!r}, and the token {peer.token_id!r} of"
            f" this connection has the role {peer.token_role.title!r}; nothing was done"
        )
