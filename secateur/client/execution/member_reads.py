"""The execution modes *local* and *distributed*: a member has all that is read, or coordinates those that have it.

The client asks one of them for the rows, or for a profile, and for all steps of a query at once; the member has a
ladder of its own (:mod:`secateur.cluster.member.statements.statements`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from secateur.client.dbapi.rows import GRANT_BYTES, Rows
from secateur.client.dbapi.stats import UnreadStats
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.reads import PlacedRead, RunOptions, SelectResult
from secateur.protocol.hello import Pruning
from secateur.protocol.query import Execute, Executed, Profile
from secateur.protocol.statements import SelectStatement
from secateur.wire import ShortTable, decode_tables


def ask_member(read: PlacedRead) -> SelectResult:
    """The answer of one of the members of the route.

    Raises:
        Error: It cannot be reached, or refuses.
    """
    call, session, wanted, statement = read.call, read.call.session, read.wanted, read.call.statement
    member, columns = read.member(), statement.columns
    grant = GRANT_BYTES if wanted is RunOptions.ROWS_IN_PARTS else None
    as_written = session.pruning is Pruning.VERIFY and not read.pruning
    steps = statement.steps if read.pruning else None
    asked = Execute(statement.plan_id, list(read.params), read.pruning, grant, as_written, steps=steps)
    if wanted.is_profiled:
        has_rows = wanted is RunOptions.ROWS_AND_PROFILE
        profiled = session.ask_member(member, Profile(asked, has_rows))
        found, said = profiled.message, profiled.message.result
        result = rows_of(said, profiled.parts) if has_rows else ShortTable([], 0)
        return SelectResult(Rows(result, columns), heard(call, said), found.profile, found.narrowed)
    answer, rest = session.ask_member_for_rows(member, asked)
    result, cost = rows_of(answer.message, answer.parts), heard(call, answer.message)
    return SelectResult(Rows(result, columns, rest), cost)


def rows_of(said: Executed, parts: Sequence[bytes | memoryview]) -> pa.Table | ShortTable:
    """The rows of a member's answer."""
    return decode_tables(parts) if said.values is None else ShortTable(said.values, said.rows)


def heard(call: StatementCall[SelectStatement], said: Executed) -> UnreadStats:
    """Hear of the versions that a member's answer is from, and return the cost of the call until now."""
    session = call.session
    session.note_topology(said.topology_version)
    session.note_statistics(said.statistics_version)
    members_total = len(session.known_topology.members)
    return UnreadStats(said, members_total, session.pruning, call.cached, call.started_s, time.perf_counter())
