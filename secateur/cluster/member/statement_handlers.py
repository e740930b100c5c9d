"""The requests that statements of clients make of a member: counted, and entered in the log of statements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from secateur.cluster.member.changes.changes import MemberChanges
from secateur.cluster.member.changes.coordinated_changes import MemberCoordinatedChanges
from secateur.cluster.member.monitoring.statement_log import StatementLog
from secateur.cluster.member.monitoring.stored_stats import WorkCounts
from secateur.cluster.member.statements.key_reads import KeyReads
from secateur.cluster.member.statements.many_executions import ManyExecutions
from secateur.cluster.member.statements.open_results import OpenResults
from secateur.cluster.member.statements.query_steps import SteppedQueries
from secateur.cluster.member.statements.snapshots import MemberSnapshots
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.protocol import query
from secateur.protocol.changes import ChangeOnePartition, StageChange, WorkOutChange
from secateur.protocol.key_value import GetRows
from secateur.protocol.message import Acknowledged
from secateur.protocol.operation import OperationBase
from secateur.protocol.operations import Operation
from secateur.protocol.snapshots import OpenSnapshot
from secateur.wire import Handled, Reply, Request


class StatementHandlers:
    """Passes each request on to the part that answers it. Lives on the member's event loop.

    Args:
        counts: Counts them.
        log: Lists the statements that run, and those that have run.
        results: The results that clients read.
        statements: Runs queries.
        stepped: Runs queries in steps.
        snapshots: Runs queries over a state that stays.
        key_reads: Reads rows by key.
        changes: Changes rows of one partition.
        coordinated: Changes rows of several.
    """

    def __init__(
        self,
        counts: WorkCounts,
        log: StatementLog,
        results: OpenResults,
        statements: StatementRunner,
        stepped: SteppedQueries,
        snapshots: MemberSnapshots,
        key_reads: KeyReads,
        changes: MemberChanges,
        coordinated: MemberCoordinatedChanges,
    ) -> None:
        self._counts = counts
        self._log = log
        self._results = results
        self._statements = statements
        self._first_stages = statements.first_stages
        self._stepped = stepped
        self._snapshots = snapshots
        self._key_reads = key_reads
        self._changes = changes
        self._coordinated = coordinated
        self._many = ManyExecutions(counts, log, statements, changes)

    def handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        """The handler of each operation."""
        return {
            Operation.EXECUTE: self._execute,
            Operation.EXECUTE_PART: self._execute_part,
            Operation.EXECUTE_FIRST_STAGE: self._execute_first_stage,
            Operation.PROFILE: self._profile,
            Operation.NEXT_ROWS: self._next_rows,
            Operation.CLOSE_RESULT: self._close_result,
            Operation.GET_ROWS: self._get_rows,
            Operation.OPEN_SNAPSHOT: self._open_snapshot,
            Operation.CHANGE_ONE_PARTITION: self._change,
            Operation.EXECUTE_MANY: self._many.execute,
            Operation.CHANGE_MANY: self._many.change,
            Operation.STAGE_CHANGE: self._stage_change,
            Operation.WORK_OUT_CHANGE: self._work_out_change,
            Operation.KILL_STATEMENT: self._kill_statement,
        }

    def answered(self, frame: bytes) -> bytes | None:
        """The frame that answers a short request; None where it is to be handled as any other."""
        begun = time.perf_counter()
        answer = self._statements.answered(frame)
        if answer is None:
            return None
        self._counts.frames_received += 1
        self._counts.executions += 1
        elapsed_s = time.perf_counter() - begun
        if answer.plan_id is not None and answer.said is not None:
            self._log.note(answer.plan_id, time.time() - elapsed_s, elapsed_s, answer.said)
        return answer.frame

    def _execute(self, request: Request[query.Execute]) -> Handled:
        self._counts.executions += 1
        is_stepped = request.message.steps is not None
        return self._log.execute(request, self._stepped.execute if is_stepped else self._statements.execute)

    def _execute_part(self, request: Request[query.ExecutePart]) -> Handled:
        self._counts.executions += 1
        return self._statements.execute(request)

    def _execute_first_stage(self, request: Request[query.ExecuteFirstStage]) -> Handled:
        self._counts.executions += 1
        return self._log.scattered(request, self._first_stages.run)

    def _profile(self, request: Request[query.Profile]) -> Handled:
        self._counts.executions += 1
        is_stepped = request.message.run.steps is not None
        return self._stepped.profile(request) if is_stepped else self._statements.profile(request)

    def _next_rows(self, request: Request[query.NextRows]) -> Handled:
        return self._log.next(request, self._results.next)

    def _close_result(self, request: Request[query.CloseResult]) -> Reply[Acknowledged]:
        self._results.close(request.peer)
        self._log.close(request.peer)
        return Reply(Acknowledged())

    def _get_rows(self, request: Request[GetRows]) -> Handled:
        self._counts.executions += 1
        self._statements.learn_table(request.message.table_id)
        return self._key_reads.get(request)

    def _open_snapshot(self, request: Request[OpenSnapshot]) -> Handled:
        self._counts.executions += 1
        return self._snapshots.open(request)

    def _change(self, request: Request[ChangeOnePartition]) -> Handled:
        self._counts.executions += 1
        return self._log.execute(request, self._changes.change)

    def _stage_change(self, request: Request[StageChange]) -> Handled:
        self._counts.executions += 1
        return self._log.execute(request, self._changes.stage)

    def _work_out_change(self, request: Request[WorkOutChange]) -> Handled:
        self._counts.executions += 1
        return self._log.execute(request, self._coordinated.work_out)

    def _kill_statement(self, request: Request[query.KillRunningStatement]) -> Reply[Acknowledged]:
        reader = self._log.kill(request.message.number)
        if reader is not None:
            self._results.close(reader)
        return Reply(Acknowledged())
