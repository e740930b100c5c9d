"""One query for many sets of parameters: those that one member answers go to it in one frame.

All members are asked at the same time. An execution over several members, with many rows or with an error runs as it
does alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from secateur.client.dbapi.parameters import values_of
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.routing import ExecutionMode, MemberBatch, only_member
from secateur.client.execution.select import SelectResult, run_select
from secateur.errors import Error
from secateur.protocol.hello import Pruning
from secateur.protocol.many import ExecutedMany, ExecuteMany
from secateur.protocol.query import Executed
from secateur.protocol.statements import SelectStatement
from secateur.wire import Answer, ShortTable

_SETS_AT_ONCE: Final = 4096
"""Executions that are under way at the same time."""


def run_selects(calls: Sequence[StatementCall[SelectStatement]]) -> list[SelectResult]:
    """Run a planned SELECT for many sets of parameters; returns the results in their order.

    Each execution is a statement of its own, with rows of its own moment.

    Raises:
        Error: As :func:`~secateur.client.execution.select.run_select`.
    """
    return [
        result for start in range(0, len(calls), _SETS_AT_ONCE) for result in _run(calls[start : start + _SETS_AT_ONCE])
    ]


def _run(calls: Sequence[StatementCall[SelectStatement]]) -> Iterator[SelectResult]:
    found: dict[int, SelectResult] = {}
    batches = _batches(calls)
    while batches:
        left = []
        asked = [(batch.member, _asked(calls, batch)) for batch in batches]
        for batch, answer in zip(batches, calls[0].session.answers_of(asked), strict=True):
            if isinstance(answer, Error):
                continue  # each says for itself what is wrong, or follows partitions that have moved
            found.update(_found(calls, batch, answer))
            answered = len(answer.message.answers)
            rest = batch.behind(answered, answered + batch.alone)
            if len(rest.positions) > 1:
                left.append(rest)
        batches = left
    for position, call in enumerate(calls):
        yield found.get(position) or run_select(call)


def _batches(calls: Sequence[StatementCall[SelectStatement]]) -> list[MemberBatch[int]]:
    """The executions that are worth a frame for several, by member and plan."""
    begun: dict[tuple[str, str], MemberBatch[int]] = {}
    batches: list[MemberBatch[int]] = []
    for position, call in enumerate(calls):
        member, params = _placed(call)
        if member is None:
            continue
        key = member, call.statement.plan_id
        batch = begun.get(key)
        if batch is None or batch.is_full:
            batch = begun[key] = MemberBatch(member, [], [])
            batches.append(batch)
        batch.add(position, params)
    return [batch for batch in batches if len(batch.positions) > 1]


def _placed(call: StatementCall[SelectStatement]) -> tuple[str | None, Sequence[Any]]:
    """The member that can be asked for an execution together with others, or None, and the parameters of the plan."""
    session, statement = call.session, call.statement
    if session.pruning is not Pruning.ON or statement.steps is not None:
        return None, ()
    try:
        params = values_of(statement, call.params, call.started)
        return session.when_known(lambda: only_member(session, statement, params)), params
    except Error:
        return None, ()  # said, or solved, when it runs alone


def _asked(calls: Sequence[StatementCall[SelectStatement]], batch: MemberBatch[int]) -> ExecuteMany:
    return ExecuteMany(calls[batch.positions[0]].statement.plan_id, batch.params)


def _found(
    calls: Sequence[StatementCall[SelectStatement]], batch: MemberBatch[int], answer: Answer[ExecutedMany]
) -> Iterator[tuple[int, SelectResult]]:
    session, answers = calls[0].session, answer.message.answers
    members_total = len(session.known_topology.members)
    for position, said in zip(batch.positions, answers, strict=False):
        yield position, _result(calls[position], said, members_total)
    if answers:
        session.note_topology(answers[-1].topology_version)
        session.note_statistics(answers[-1].statistics_version)


def _result(call: StatementCall[SelectStatement], said: Executed, members_total: int) -> SelectResult:
    stats = call.stats(
        execution=ExecutionMode.LOCAL,
        members_touched=1,
        partitions_read=said.partitions_read,
        partitions_total=said.partitions_total,
        topology_version=said.topology_version,
        members_total=members_total,
    )
    return SelectResult(ShortTable(said.values or [], said.rows), call.statement.columns, stats)
