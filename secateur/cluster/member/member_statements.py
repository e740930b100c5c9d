"""The ways in which a member reads rows for clients; its answers to their statements are counted and logged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, TypeAlias

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.admission.tenants import TenantAccount, TenantAccounts
from secateur.cluster.member.changes.change_feeds import MemberChangeFeeds
from secateur.cluster.member.changes.changes import MemberChanges
from secateur.cluster.member.changes.coordinated_changes import MemberCoordinatedChanges
from secateur.cluster.member.changes.writes import confirmed, made_in_turns
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.monitoring.statement_log import StatementLog
from secateur.cluster.member.monitoring.stored_stats import WorkCounts
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.statements.key_reads import KeyReads
from secateur.cluster.member.statements.query_steps import SteppedQueries
from secateur.cluster.member.statements.snapshots import MemberSnapshots
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.peers import Peers
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import WORK
from secateur.protocol import query
from secateur.protocol.changes import ChangedRows, ChangeOnePartition
from secateur.protocol.many import ChangedMany, ChangeMany, ExecutedMany, ExecuteMany
from secateur.protocol.message import Acknowledged
from secateur.protocol.operations import Operation, OperationBase
from secateur.protocol.query import Execute, Executed, GetRows
from secateur.wire import Handled, PeerInfo, Reply, Request, ShortTable
from secateur.wire.connection import Answered

_ANSWER_BYTES_MAX: Final = 1 << 20
"""An answer ends behind the execution that makes it larger: it is a header, and these are bounded."""

_Made: TypeAlias = tuple[float, float, Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]]]
"""The start of a change, in seconds since the epoch and of the performance counter, and its answer."""


class ManyExecutions:
    """Answers ``execute_many`` and ``change_many`` requests. Lives on the member's event loop.

    Each is what it would be in a frame of its own: a statement with its own moment, its own line in the log of
    statements and its own number among the executions. The first that cannot be answered without waiting ends the
    answer, and its client executes it and those behind it otherwise.
    """

    def __init__(
        self, counts: WorkCounts, log: StatementLog, statements: StatementRunner, changes: MemberChanges
    ) -> None:
        self._counts = counts
        self._log = log
        self._statements = statements
        self._plans = statements.prepared.plans
        self._changes = changes

    async def execute(self, request: Request[ExecuteMany]) -> Reply[ExecutedMany]:
        """Answer executions of a query over few rows.

        Raises:
            TopologyChangedError: The plan is not known any more; nothing was done.
        """
        asked = request.message
        plan = await self._plans.plan(asked.plan)
        left_bytes = _ANSWER_BYTES_MAX

        def run(number: int) -> Executed | None:
            nonlocal left_bytes
            answer = self._executed(plan, asked.params[number], request.peer) if left_bytes > 0 else None
            if answer is not None:
                left_bytes -= ShortTable(answer.values or [], answer.rows).nbytes
            return answer

        return Reply(ExecutedMany(await made_in_turns(len(asked.params), run, nullcontext)))

    def _executed(self, plan: SelectPlan, params: list[Any], peer: PeerInfo) -> Executed | None:
        """The answer of one execution; None if it needs more than this turn of the loop."""
        started_s, begun = time.time(), time.perf_counter()
        answer = self._statements.executed_now(plan, Execute(plan.plan_id, params, True), peer)
        if answer is not None:
            self._counts.executions += 1
            elapsed_s = time.perf_counter() - begun
            self._log.note(plan.plan_id, started_s, elapsed_s, answer, tenant=peer.tenant)
            work = WORK.get()
            if work is not None:
                work.loop_s += elapsed_s
        return answer

    async def change(self, request: Request[ChangeMany]) -> Reply[ChangedMany]:
        """Make changes of the rows with one key each, and answer when all copies have them.

        Raises:
            TopologyChangedError: The plan is not known any more; nothing was done.
        """
        asked = request.message
        plan = await self._plans.plan(asked.plan)

        def make(number: int) -> _Made | None:
            started_s, begun = time.time(), time.perf_counter()
            params, change_id = asked.params[number], asked.id_of(number)
            one = ChangeOnePartition(asked.plan, params, True, asked.operation, change_id)
            answer = self._changes.made_now(one, request.peer.rights)
            if answer is None:
                return None
            self._counts.executions += 1
            return started_s, begun, answer

        made = await made_in_turns(len(asked.params), make, self._changes.together)
        changed = await confirmed([answer for _, _, answer in made])
        for started_s, begun, answer in made:
            elapsed_s = time.perf_counter() - begun
            error = None if isinstance(answer, Reply) else answer.exception()
            reply = answer if isinstance(answer, Reply) else None if error is not None else answer.result()
            said = None if reply is None else reply.message
            self._log.note(plan.plan_id, started_s, elapsed_s, said, error, request.peer.tenant)
        return Reply(changed)


class StatementHandlers:
    """Passes each request on to the part that answers it. Lives on the member's event loop."""

    def __init__(
        self,
        counts: WorkCounts,
        log: StatementLog,
        storage: MemberStorage,
        peers: Peers,
        copies: Replication,
        admissions: Admissions,
        threads: MemberThreads,
        statements: StatementRunner,
        changes: MemberChanges,
        coordinated: MemberCoordinatedChanges,
    ) -> None:
        self._counts = counts
        self._log = log
        self._results = storage.results
        self._statements = statements
        self._stepped = SteppedQueries(storage.member_id, statements, peers, admissions.long)
        self._snapshots = MemberSnapshots(storage, statements.prepared, copies, admissions, threads)
        self._key_reads = KeyReads(storage, copies.acknowledgements.acknowledged)
        self._change_feeds = MemberChangeFeeds(storage, copies)
        self._changes = changes
        self._coordinated = coordinated
        self._many = ManyExecutions(counts, log, statements, changes)

    def handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        """The handler of each operation."""
        log, runner, external = self._log, self._statements, self._statements.prepared.external_reads
        executions: dict[OperationBase, Callable[[Request[Any]], Handled]] = {
            Operation.EXECUTE_PART: runner.execute,
            Operation.EXECUTE_FIRST_STAGE: partial(log.scattered, run=runner.first_stages.run),
            Operation.PROFILE: self._profile,
            Operation.GET_ROWS: self._get_rows,
            Operation.OPEN_SNAPSHOT: self._snapshots.open,
            Operation.CHANGE_ONE_PARTITION: partial(log.execute, run=self._changes.change),
            Operation.STAGE_CHANGE: partial(log.execute, run=self._changes.stage),
            Operation.WORK_OUT_CHANGE: partial(log.execute, run=self._coordinated.work_out),
        }
        return {
            **{operation: self._counted(handler) for operation, handler in executions.items()},
            Operation.EXECUTE: self._execute,
            Operation.NEXT_ROWS: partial(log.next, read=self._results.next),
            Operation.CLOSE_RESULT: self._close_result,
            Operation.EXECUTE_MANY: self._many.execute,
            Operation.CHANGE_MANY: self._many.change,
            Operation.FIND_NEW_ROWS: self._coordinated.find_new,
            Operation.GET_RETURNED_ROWS: self._coordinated.returned,
            Operation.GET_STATEMENTS: log.send,
            Operation.GET_TENANT_HOURS: log.send_tenants,
            Operation.KILL_STATEMENT: self._kill_statement,
            # No statements, so that they are not in the log of these.
            Operation.READ_SNAPSHOT: self._snapshots.read,
            Operation.CLOSE_SNAPSHOT: self._snapshots.close,
            Operation.READ_CHANGES: self._change_feeds.read,
            Operation.BOUND_CHANGES: self._change_feeds.bound,
            Operation.DESCRIBE_CONNECTOR: external.describe,
            Operation.LIST_EXTERNAL_PARTITIONS: external.list_partitions,
        }

    @property
    def answered(self) -> Answered | None:
        """The function that answers short requests before they become requests; None without a native executor."""
        native = self._statements.native
        return None if native is None else native.executor.answer

    def meter(self, accounts: TenantAccounts, may_answer: Callable[[TenantAccount], bool]) -> None:
        """From now on, have short requests answered within the share of their tenant, and add up what they take.

        Args:
            accounts: The accounts of the tenants.
            may_answer: Whether the next short statement of one that is not free may be answered at once.
        """
        native = self._statements.native
        if native is not None:
            native.executor.tenants = accounts.by_tenant, may_answer

    def _counted(self, handler: Callable[[Request[Any]], Handled]) -> Callable[[Request[Any]], Handled]:
        counts = self._counts

        def counted(request: Request[Any]) -> Handled:
            counts.executions += 1
            return handler(request)

        return counted

    def _execute(self, request: Request[query.Execute]) -> Handled:
        self._counts.executions += 1  # here, as a call for that would be felt
        is_stepped = request.message.steps is not None
        return self._log.execute(request, self._stepped.execute if is_stepped else self._statements.execute)

    def _profile(self, request: Request[query.Profile]) -> Handled:
        is_stepped = request.message.run.steps is not None
        return self._stepped.profile(request) if is_stepped else self._statements.profile(request)

    def _close_result(self, request: Request[query.CloseResult]) -> Reply[Acknowledged]:
        self._results.close(request.peer)
        self._log.close(request.peer)
        return Reply(Acknowledged())

    def _get_rows(self, request: Request[GetRows]) -> Handled:
        if self._statements.native is not None:
            self._statements.native.learn_table(request.message.table_id)
        return self._key_reads.get(request)

    def _kill_statement(self, request: Request[query.KillRunningStatement]) -> Reply[Acknowledged]:
        reader = self._log.kill(request.message.number)
        if reader is not None:
            self._results.close(reader)
        return Reply(Acknowledged())
