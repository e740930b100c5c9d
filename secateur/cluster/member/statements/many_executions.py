"""Many executions of one plan that come in one frame: those over few rows are answered together, on the event loop.

Each is what it would be in a frame of its own: a statement with its own moment, its own line in the log of statements
and its own number among the executions. The first that cannot be answered without waiting ends the answer, and its
client executes it and those behind it otherwise.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, TypeAlias

from secateur.cluster.member.changes.changes import MemberChanges
from secateur.cluster.member.changes.many_writes import confirmed, made_in_turns
from secateur.cluster.member.monitoring.statement_log import StatementLog
from secateur.cluster.member.monitoring.stored_stats import WorkCounts
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import Error
from secateur.protocol.changes import ChangedRows, ChangeOnePartition
from secateur.protocol.many import ChangedMany, ChangeMany, ExecutedMany, ExecuteMany
from secateur.protocol.query import Execute, Executed
from secateur.wire import PeerInfo, Reply, Request, ShortTable

_PER_TURN: Final = 32
"""Executions in one turn of the event loop, which then reads other frames: about two milliseconds."""
_ANSWER_BYTES_MAX: Final = 1 << 20
"""An answer ends behind the execution that makes it larger: it is a header, and these are bounded."""

_Made: TypeAlias = tuple[float, float, Reply[ChangedRows] | asyncio.Future[Reply[ChangedRows]]]
"""The start of a change, in seconds since the epoch and of the performance counter, and its answer."""


class ManyExecutions:
    """Answers ``execute_many`` and ``change_many`` requests. Lives on the member's event loop.

    Args:
        counts: Counts the executions.
        log: Lists them.
        statements: Runs queries.
        changes: Changes rows.
    """

    def __init__(
        self, counts: WorkCounts, log: StatementLog, statements: StatementRunner, changes: MemberChanges
    ) -> None:
        self._counts = counts
        self._log = log
        self._statements = statements
        self._changes = changes

    async def execute(self, request: Request[ExecuteMany]) -> Reply[ExecutedMany]:
        """Answer executions of a query over few rows.

        Raises:
            TopologyChangedError: The plan is not known any more; nothing was done.
        """
        asked = request.message
        plan = await self._statements.plan(asked.plan)
        answers: list[Executed] = []
        left_bytes = _ANSWER_BYTES_MAX
        while left_bytes > 0 and len(answers) < len(asked.params):
            if answers and len(answers) % _PER_TURN == 0:
                await asyncio.sleep(0)
            answer = self._executed(plan, asked.params[len(answers)], request.peer)
            if answer is None:
                break
            answers.append(answer)
            left_bytes -= ShortTable(answer.values or [], answer.rows).nbytes
        return Reply(ExecutedMany(answers))

    def _executed(self, plan: SelectPlan, params: list[Any], peer: PeerInfo) -> Executed | None:
        """The answer of one execution; None if it fails, or needs more than this turn of the loop."""
        started_s, begun = time.time(), time.perf_counter()
        try:
            answer = self._statements.executed_now(plan, Execute(plan.plan_id, params, True), peer)
        except Error:
            return None  # to be said of an execution of its own, which may be repeated
        if answer is not None:
            self._counts.executions += 1
            self._log.note(plan.plan_id, started_s, time.perf_counter() - begun, answer)
        return answer

    async def change(self, request: Request[ChangeMany]) -> Reply[ChangedMany]:
        """Make changes of the rows with one key each, and answer when all copies have them.

        Raises:
            TopologyChangedError: The plan is not known any more; nothing was done.
        """
        asked = request.message
        plan = await self._statements.plan(asked.plan)

        def make(number: int) -> _Made | None:
            started_s, begun = time.time(), time.perf_counter()
            params, change_id = asked.params[number], asked.id_of(number)
            answer = self._changes.made_now(ChangeOnePartition(asked.plan, params, True, asked.operation, change_id))
            if answer is None:
                return None
            self._counts.executions += 1
            return started_s, begun, answer

        made = await made_in_turns(len(asked.params), make, self._changes.together)
        said = await confirmed([answer for _, _, answer in made])
        for started_s, begun, answer in made:
            elapsed_s = time.perf_counter() - begun
            error = None if isinstance(answer, Reply) else answer.exception()
            reply = answer if isinstance(answer, Reply) else None if error is not None else answer.result()
            self._log.note(plan.plan_id, started_s, elapsed_s, None if reply is None else reply.message, error)
        return Reply(said)
