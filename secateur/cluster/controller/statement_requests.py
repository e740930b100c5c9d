"""Statements as the controller answers them: plans for those who execute them, and DDL that it carries out itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from secateur.cluster.controller.access_commands import AccessCommands
from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.jobs import ControllerJobs
from secateur.cluster.controller.membership import SettingChanged
from secateur.cluster.controller.planning import PlanningThreads
from secateur.cluster.controller.running_requests import CONTROLLER, RequestState, RunningRequests
from secateur.cluster.controller.statement_replies import (
    Params,
    PlanningView,
    Prepared,
    StatementReplies,
    estimated_tables,
    outlines_of,
)
from secateur.cluster.controller.statistics_cache import StatisticsCache
from secateur.cluster.controller.table_commands import TableCommands
from secateur.cluster.controller.view_commands import ExternalTableCommands, TypeCommands, ViewCommands
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import AuthenticationError, ProgrammingError
from secateur.planner import statement as planned
from secateur.planner.binding.catalog_view import ANYBODY, Viewer
from secateur.protocol import query
from secateur.protocol.access import session_call
from secateur.protocol.hello import GivenVersions
from secateur.protocol.statements import CreateTableAs, CreateTableFrom, Done, ForgetTenant, Statement, TenantTable
from secateur.wire import PeerInfo, Reply, Request

_UNDOING_S: Final = 0.1
_WHOLE_PLANS: Final = 0
"""In place of the id of a connection, which is never 0: what is planned when it is needed waits in one queue, so that
it is planned once.
"""

T = TypeVar("T")


class StatementRequests:
    """Answers the requests to prepare or explain a statement. Lives on the controller's event loop.

    Args:
        state: Catalog, topology and members.
        statistics: The statistics from which estimates are made.
        statements: Makes the answers, and keeps their plans.
        table_commands: Carries out DDL of tables.
        view_commands: Carries out DDL of views.
        type_commands: Carries out DDL of types.
        external_tables: Carries out DDL of external tables, and lists their partitions for the planner.
        jobs: The jobs, which KILL ends.
        requests: The requests under way, which KILL ends.
        versions: The versions that every answer carries.
        planning_timeout_s: Seconds that planning one statement may take.
    """

    def __init__(
        self,
        state: ClusterState,
        statistics: StatisticsCache,
        statements: StatementReplies,
        table_commands: TableCommands,
        view_commands: ViewCommands,
        type_commands: TypeCommands,
        external_tables: ExternalTableCommands,
        jobs: ControllerJobs,
        requests: RunningRequests,
        versions: Callable[[], GivenVersions],
        planning_timeout_s: float,
    ) -> None:
        self._state = state
        self._access_commands = AccessCommands(state)
        self._statistics = statistics
        self._statements = statements
        self._table_commands = table_commands
        self._view_commands = view_commands
        self._type_commands = type_commands
        self._external_tables = external_tables
        self._jobs = jobs
        self._requests = requests
        self._versions = versions
        self._planning = PlanningThreads(timeout_s=planning_timeout_s)  # while the loop goes on serving
        self._commands: dict[str, asyncio.Task[str]] = {}

    async def close(self) -> None:
        """End planning, and the commands that are being carried out."""
        while running := [command for command in self._commands.values() if not command.done()]:
            for command in running:  # again for one that undoes its work, which may wait for members that have ended
                command.cancel()
            await asyncio.wait(running, timeout=_UNDOING_S)
        await self._planning.close()

    def gone(self, connection_id: int) -> None:
        """A connection has ended: nothing is planned for it any more."""
        self._planning.gone(connection_id)

    async def prepare(self, request: Request[query.Prepare]) -> Reply[query.PreparedAnswer]:
        """Plan a statement; DDL is carried out, once if its request comes again."""
        request_id = request.message.request_id
        if request_id is not None and (done := self._commands.get(request_id)) is not None:
            await asyncio.wait([done])
        if request_id is not None and self._state.is_done(request_id):
            await self._state.all_reached()
            return Reply(query.PreparedAnswer(outlines=(), statement=Done("carried out before"), **self._versions()))
        planned, statistics_version = await self._plan(self._statements.prepare, request)
        _check_role(planned.statement if isinstance(planned, Prepared) else planned, request.peer)
        prepared = (
            planned if isinstance(planned, Prepared) else Prepared(Done(await self._carry_out(planned, request_id)))
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
        versions: GivenVersions = {**self._versions(), "statistics_version": statistics_version}
        statement = prepared.statement
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
        return Reply((await self._plan(self._statements.explain, request))[0])

    async def plan(self, request: Request[query.GetPlan]) -> Reply[query.PlanAnswer]:
        """Send a plan to a member that is to execute it."""
        asked = request.message
        plan = await self.whole(asked.plan_id) if asked.is_whole else self._statements.plan(asked.plan_id)
        return Reply(query.PlanAnswer(plan.encoded()))

    async def whole(self, plan_id: str) -> SelectPlan:
        """The plan of this id, or the one in its place if it only finds the key of the row that a change concerns.

        Raises:
            TopologyChangedError: It is not kept any more.
            Error: The query for the row changes is refused.
        """
        plan = self._statements.plan(plan_id)
        if not plan.is_upsert_only:
            return plan
        return await self._planning.run(_WHOLE_PLANS, partial(self._statements.whole, plan_id))

    async def _carry_out(self, command: planned.Command, request_id: str | None) -> str:
        """Carry out DDL; returns what has been done, once all members have it on record."""

        async def carry_out() -> str:
            with self._state.on_behalf_of(request_id):
                done = await self._carried_out(command)
            await self._state.all_reached()
            return done

        if request_id is None:
            return await carry_out()
        task = self._commands[request_id] = asyncio.ensure_future(carry_out())
        task.add_done_callback(lambda _: self._commands.pop(request_id, None))
        return await asyncio.shield(task)

    async def _carried_out(self, command: planned.Command) -> str:
        if isinstance(command, planned.AccessCommand):
            return await self._access_commands.carry_out(command)
        match command:
            case planned.CreateTable(table, if_not_exists, or_replace):
                await self._table_commands.create(table, if_not_exists=if_not_exists, or_replace=or_replace)
                return "table created"
            case planned.CreateIndex(table, index, if_not_exists):
                await self._table_commands.create_index(table, index, if_not_exists=if_not_exists)
                return "index created"
            case planned.DropIndex(name, if_exists):
                await self._table_commands.drop_index(name, if_exists=if_exists)
                return "index dropped"
            case planned.CommentOn(table, column, comment):
                await self._table_commands.comment_on(table, column, comment)
                return "comment changed"
            case planned.DropTable(name) if self._state.catalog.external_table(name) is not None:
                await self._external_tables.drop(name)
                return "external table dropped"
            case planned.CreateExternalTable(name, connector, if_not_exists, or_replace, sql):
                await self._external_tables.create(
                    name,
                    connector,
                    if_not_exists=if_not_exists,
                    or_replace=or_replace,
                    is_authenticated=False,  # a connector of SQL is no code
                    sql=sql,
                )
                return "external table created"
            case planned.DropTable(name, if_exists):
                await self._table_commands.drop(name, if_exists=if_exists)
                return "table dropped"
            case planned.AlterTable(table, changes):
                await self._table_commands.alter(table.name, changes)
                return "table altered"
            case planned.AlterColumns(table, changes):
                await self._table_commands.alter_columns(table.name, changes)
                return "table altered"
            case planned.CreateView(view, or_replace, if_not_exists):
                await self._view_commands.create(view, or_replace=or_replace, if_not_exists=if_not_exists)
                return "view created"
            case planned.DropView(name, if_exists):
                await self._view_commands.drop(name, if_exists=if_exists)
                return "view dropped"
            case planned.CreateType(named, or_replace, if_not_exists):
                await self._type_commands.create(named, or_replace=or_replace, if_not_exists=if_not_exists)
                return "type created"
            case planned.DropType(name, if_exists):
                await self._type_commands.drop(name, if_exists=if_exists)
                return "type dropped"
            case planned.KillStatement(member, number):
                await self._kill_statement(member, number)
                return f"statement {command.statement_id} killed"
            case planned.KillJob(job):
                self._jobs.end(job)
                return f"job {job} is being stopped"
            case planned.SetGlobalPruning(value):
                self._state.pruning = value
                await self._state.change(SettingChanged())
                return f"pruning is {value.value}"

    async def _kill_statement(self, member: str, number: int) -> None:
        if member == CONTROLLER:
            self._requests.kill(number)
            return
        if member not in self._state.topology.member_ids:
            raise ProgrammingError(
                f"there is no member {member!r} of which a statement could be killed; there are"
                f" {', '.join(self._state.topology.member_ids)}"
            )
        await self._state.call(member, query.KillRunningStatement(number))

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
            if self._statistics.statistics_snapshot.version != version:
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
