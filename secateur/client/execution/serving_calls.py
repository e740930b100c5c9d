"""Serving calls: a query whose rows one member has, compiled into one function from parameters to the result.

Most calls repeat a text with other values. What the general way finds out for each of them is found out once here, for
a plan, a topology and the settings of a session: how the parameters route it, and what is asked. A serving call makes
one attempt; the general way repeats it where that may help.

When one runs, its client has waited for a user or another answer, and little of its code is in the caches of the
processor: each further function of Python costs half a microsecond, more than what most of them do. So
:meth:`~secateur.client.dbapi.cursor.Cursor.execute`, a serving call and :meth:`~secateur.wire.channel.Channel.exchange`
are three functions that call few others. Written as thirty, they took twice the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from secateur.client.channel_pool import ChannelPool
from secateur.client.dbapi.rows import GRANT_BYTES, Rows
from secateur.client.dbapi.stats import UnreadStats
from secateur.client.execution.execute import StatementCall
from secateur.client.execution.member_reads import rows_of
from secateur.client.execution.reads import Served
from secateur.client.execution.scatter import ask_owners
from secateur.client.member_calls import name_member
from secateur.client.session import Session
from secateur.errors import Error
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.hello import Pruning
from secateur.protocol.kept_plans import NESTED, classes_of, types_at
from secateur.protocol.operations import Operation
from secateur.protocol.query import Execute
from secateur.protocol.statements import SelectStatement
from secateur.protocol.values import PACK_ERRORS, pack, pack_around, packers
from secateur.wire import CallControl, ShortTable, decode_tables

ServingCall: TypeAlias = Callable[[Session, CallControl, Sequence[Any], float], Served | None]
"""A function from a session, what ends its requests, plain parameters, and ``time.perf_counter()`` when the user
called; it returns None if no member has rows of it, or several have, which the client does not merge. It raises the
error of the one attempt that it makes.
"""

_Route: TypeAlias = tuple[Callable[[Sequence[Any]], Sequence[int] | None], str]
"""From parameters to the partitions of a scan, and their group."""
_CALLS_MAX: Final = 512
_PARTITIONS_MAX: Final = 64
"""The owners of more partitions are found faster all together, as the general way does."""


def serve(call: StatementCall[SelectStatement]) -> Served | None:
    """Run a plan that is known by its serving call, which is compiled at its first use; None if it has none.

    It is kept by the text and the classes of its parameters, where executions find it without the plan, unless that
    depends on more.

    Raises:
        Error: As :attr:`Session.topology`, or that of the attempt.
    """
    session, sql, params, statement = call.session, call.sql, call.params, call.statement
    calls, control = session.serving_calls, session.control  # the calls first, see Session.forget_calls
    if control is None or not isinstance(params, list):
        return None
    places = tuple(place for place in statement.typed if place < len(params))
    classes: tuple[object, ...] = tuple(map(type, params))
    if places or not NESTED.isdisjoint(classes):
        classes = classes_of(params), types_at(places, params)
    serving: ServingCall | None = calls.get((sql, *classes))
    if serving is None:
        if not _is_served(session, statement, len(params)) or session.known(sql, params) is not statement:
            return None
        serving = _compiled(sql, statement, session.topology)
        if len(calls) >= _CALLS_MAX:
            session.forget_calls()
        calls[sql, *classes] = serving
    try:
        return serving(session, control, params, call.started_s)
    except Error:
        calls.pop((sql, *classes), None)  # its plan may be stale
        raise


def _is_served(session: Session, statement: SelectStatement, count: int) -> bool:
    """Whether a plan has a serving call for so many parameters, and reads a partitioned table."""
    hidden, routed = statement.hidden, [scan for scan in statement.scans if not scan.replicated]
    return (
        statement.steps is None
        and not statement.reads_clock
        and not any(isinstance(value, list) for value in hidden)
        and not statement.parameter_names
        and session.pruning is Pruning.ON
        and count + len(hidden) == statement.parameter_count
        and bool(routed)
        and not any(scan.tree.expressions for scan in routed)
    )


def _compiled(sql: str, statement: SelectStatement, topology: Topology) -> ServingCall:
    hidden = statement.hidden
    routes = [(scan.tree.bind_ids, scan.group) for scan in statement.scans if not scan.replicated]
    bind, _ = routes[0]
    columns, version, members_total = statement.columns, topology.version, len(topology.members)
    before, after = pack_around(Execute(statement.plan_id, [], True, GRANT_BYTES), "params")
    owners: dict[tuple[str, int], str] = {}  # of this topology
    places: dict[int, tuple[str, ChannelPool]] = {}  # the owners of partitions of which one is all that is read

    def call(session: Session, control: CallControl, params: Sequence[Any], started_s: float) -> Served | None:
        if hidden:
            params = [*params, *hidden]
        partitions = bind(params)
        place = places.get(partitions[0]) if partitions is not None and len(partitions) == 1 else None
        if place is None:
            worked_for = session.work_for(control)  # of whoever has to ask for something
            try:
                by_owner = _by_owner(session, routes, owners, params, partitions)
                if by_owner is None or len(by_owner) != 1:
                    if not by_owner or len(statement.scans) != 1:
                        return None
                    scattered = StatementCall(session, sql, [], statement, True, started_s, 0.0)
                    merged = ask_owners(scattered, params, by_owner)
                    return None if merged is None else merged[:2]
                (member,) = by_owner
                place = member, session.channels(member)
            finally:
                session.work_for(worked_for)
            if partitions is not None and len(partitions) == len(routes) == 1:
                places[partitions[0]] = place
        member, pool = place
        try:
            header = before + packers.packer.pack(params) + after
        except PACK_ERRORS:
            header = before + pack(params) + after  # says what is wrong
        try:
            channel = pool.idle.pop()  # one step, of which two threads get different channels
        except IndexError:
            channel = pool.borrow()
        try:
            answer = channel.exchange(Operation.EXECUTE, header, control=control)
        except BaseException as error:
            name_member(error, channel, member)
            pool.give_back(channel)
            raise
        said = answer.message
        if said.topology_version > version:
            session.note_topology(said.topology_version)
        if said.statistics_version:
            session.note_statistics(said.statistics_version)
        stats = UnreadStats(said, members_total, Pruning.ON, True, started_s, time.perf_counter())
        if said.has_more:
            rest = session.rest_of_rows(pool, channel, control)
            return Rows(rows_of(said, answer.parts), columns, rest), stats
        if len(pool.idle) < pool.idle_max:
            pool.idle.append(channel)
        else:
            pool.give_back(channel)
        result = ShortTable(said.values, said.rows) if said.values is not None else decode_tables(answer.parts)
        return Rows(result, columns), stats

    return call


def _by_owner(
    session: Session,
    routes: Sequence[_Route],
    owners: dict[tuple[str, int], str],
    params: Sequence[Any],
    partitions: Sequence[int] | None,
) -> dict[str, list[int]] | None:
    """The partitions that are read, by who owns them; None if they are many.

    Args:
        session: Knows the owners.
        routes: The scans.
        owners: Those of one topology, as far as they were looked for.
        params: The parameters.
        partitions: Those of the first scan.
    """
    by_owner: dict[str, list[int]] = {}
    for position, (bind, group) in enumerate(routes):
        if position:
            partitions = bind(params)
        if partitions is None or len(partitions) > _PARTITIONS_MAX:
            return None
        for partition in partitions:
            owner = owners.get((group, partition))
            if owner is None:
                owner = owners[group, partition] = session.owner(group, partition)
            if owner in by_owner:
                by_owner[owner].append(partition)
            else:
                by_owner[owner] = [partition]
    return by_owner
