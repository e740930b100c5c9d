"""Serving calls: a query of few partitions, compiled into one function from parameters to the result.

Most calls repeat a text with other values. What the general way finds out for each of them is found out once here: the
plan, its partition tree, and who owns the partitions. A serving call makes one attempt; the general way repeats it
where that may help.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from secateur.client.dbapi.stats import QueryStats
from secateur.client.execution.result_stream import GRANT_BYTES
from secateur.client.execution.select import EXECUTIONS, SelectResult, answered_by_owners
from secateur.client.execution.statement_call import Params, StatementCall
from secateur.client.session import ServingCall, Session
from secateur.protocol.pruning import Pruning
from secateur.protocol.query import Execute
from secateur.protocol.statements import SelectStatement
from secateur.wire import ShortTable, decode_tables

_PARTITIONS_MAX: Final = 64
"""The owners of more partitions are found faster all together, as the general way does."""


def compile_call(session: Session, sql: str, statement: SelectStatement, params: Params) -> ServingCall | None:
    """The serving call of a planned query, for parameters of the types of these; None if it has none."""
    if statement.steps is not None or statement.lists or statement.typed or statement.reads_clock:
        return None
    if isinstance(params, dict) or len(params) != statement.parameter_count:
        return None
    scans = [scan for scan in statement.scans if not scan.replicated]
    if not scans or any(scan.tree.expressions for scan in scans):
        return None
    routes = [(scan.tree.bind, _owners(session, scan.group)) for scan in scans]
    plan_id, columns = statement.plan_id, statement.columns

    def call(params: list[Any], started_s: float) -> SelectResult | None:
        members: set[str] = set()
        for bind, owner in routes:
            ids = bind(params).ids
            if len(ids) > _PARTITIONS_MAX:
                return None
            members.update(map(owner, ids))
        if len(members) != 1:
            if statement.merge is None or not members:
                return None
            several = StatementCall(session, sql, params, statement, True, started_s, 0.0)
            return answered_by_owners(several, params, ids, session.topology)
        (member,) = members
        answer, rest = session.ask_member_for_rows(member, Execute(plan_id, params, True, GRANT_BYTES))
        said = answer.message
        session.note_topology(said.topology_version)
        if said.statistics_version:
            session.note_statistics(said.statistics_version)
        stats = QueryStats(
            1 if said.members is None else len(said.members),
            len(session.topology.members),
            said.partitions_read,
            said.partitions_total,
            EXECUTIONS[said.execution],
            Pruning.ON,
            said.topology_version,
            True,
            (time.perf_counter() - started_s) * 1000,
            said.steps,
        )
        values = said.values
        rows = decode_tables(answer.parts) if values is None else ShortTable(values, said.rows)
        return SelectResult(rows, columns, stats, rest)

    return call


def _owners(session: Session, group: str) -> Callable[[int], str]:
    """A function from a partition of an affinity group to its owner, for as long as the topology is the same."""
    owners: dict[int, str] = {}

    def owner(partition: int) -> str:
        member = owners.get(partition)
        if member is None:
            member = owners[partition] = session.owner(group, partition)
        return member

    return owner
