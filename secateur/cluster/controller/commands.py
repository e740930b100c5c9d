"""The commands of SQL, which the controller carries out itself: DDL, KILL, and what is set for everybody."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from secateur.cluster.controller.access_commands import AccessCommands
from secateur.cluster.controller.catalog_changes import ExternalTableCommands, change_catalog
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.jobs import ControllerJobs
from secateur.cluster.controller.membership import SettingChanged
from secateur.cluster.controller.running_requests import CONTROLLER, RunningRequests
from secateur.cluster.controller.table_commands import TableCommands
from secateur.errors import ProgrammingError
from secateur.planner import statement as planned
from secateur.protocol import query

_UNDOING_S: Final = 0.1


class ControllerCommands:
    """Carries out commands, each once if its request comes again. Lives on the controller's event loop."""

    def __init__(
        self,
        state: ClusterState,
        tables: TableCommands,
        external_tables: ExternalTableCommands,
        jobs: ControllerJobs,
        requests: RunningRequests,
    ) -> None:
        self._state = state
        self._tables = tables
        self._access = AccessCommands(state)
        self._external_tables = external_tables
        self._change = partial(change_catalog, state)
        self._jobs = jobs
        self._requests = requests
        self._running: dict[str, asyncio.Task[str]] = {}

    async def close(self) -> None:
        """End the commands that are being carried out."""
        while running := [command for command in self._running.values() if not command.done()]:
            for command in running:  # again for one that undoes its work, which may wait for members that have ended
                command.cancel()
            await asyncio.wait(running, timeout=_UNDOING_S)

    async def is_done(self, request_id: str) -> bool:
        """Whether the command of a request was carried out before; if it is under way, once it has ended."""
        running = self._running.get(request_id)
        if running is not None:
            await asyncio.wait([running])
        if not self._state.is_done(request_id):
            return False
        await self._state.all_reached()
        return True

    async def carry_out(self, command: planned.Command, request_id: str | None) -> str:
        """Carry out a command; returns what has been done, once all members have it on record.

        One with the id of a request goes on when whoever waits for it has gone.
        """

        async def now() -> str:
            with self._state.on_behalf_of(request_id):
                done = await self._carried_out(command)
            await self._state.all_reached()
            return done

        if request_id is None:
            return await now()
        task = self._running[request_id] = asyncio.ensure_future(now())
        task.add_done_callback(lambda _: self._running.pop(request_id, None))
        return await asyncio.shield(task)

    async def _carried_out(self, command: planned.Command) -> str:
        if isinstance(command, planned.AccessCommand):
            return await self._access.carry_out(command)
        match command:
            case planned.CreateTable(table, if_not_exists, or_replace):
                await self._tables.create(table, if_not_exists=if_not_exists, or_replace=or_replace)
                return "table created"
            case planned.CreateIndex(table, index, if_not_exists):
                await self._change(lambda catalog: catalog.with_index(table, index, if_not_exists=if_not_exists))
                return "index created"
            case planned.DropIndex(name, if_exists):
                await self._change(lambda catalog: catalog.without_index(name, if_exists=if_exists))
                return "index dropped"
            case planned.CommentOn(table, column, comment):
                await self._change(lambda catalog: catalog.with_comment(table.name, column, comment))
                return "comment changed"
            case planned.DropTable(name) if self._state.catalog.external_table(name) is not None:
                await self._change(lambda catalog: catalog.without_external_table(name))
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
                await self._tables.drop(name, if_exists=if_exists)
                return "table dropped"
            case planned.AlterTable(table, changes):
                await self._tables.alter(table.name, changes)
                return "table altered"
            case planned.AlterColumns(table, changes):
                await self._tables.alter_columns(table.name, changes)
                return "table altered"
            case planned.CreateView(view, or_replace, if_not_exists):
                await self._change(
                    lambda catalog: catalog.with_view(view, or_replace=or_replace, if_not_exists=if_not_exists)
                )
                return "view created"
            case planned.DropView(name, if_exists):
                await self._change(lambda catalog: catalog.without_view(name, if_exists=if_exists))
                return "view dropped"
            case planned.CreateType(named, or_replace, if_not_exists):
                await self._change(
                    lambda catalog: catalog.with_type(named, or_replace=or_replace, if_not_exists=if_not_exists)
                )
                return "type created"
            case planned.DropType(name, if_exists):
                await self._change(lambda catalog: catalog.without_type(name, if_exists=if_exists))
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
