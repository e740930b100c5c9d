"""Serving calls: a query whose rows one member has, compiled into one function from parameters to the result.

Most calls repeat a text with other values. What the general way finds out for each of them is found out once here, for
a plan and a topology: how the parameters route it, and what is asked. A serving call makes one attempt; the general way
repeats it where that may help.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec.structs import force_setattr

from secateur.client.dbapi.rows import GRANT_BYTES
from secateur.client.execution.select import SelectResult, rows_of, scattered, stats_of
from secateur.client.session import Session
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.hello import Pruning
from secateur.protocol.query import Execute
from secateur.protocol.statements import SelectStatement

ServingCall: TypeAlias = Callable[[Session, list[Any], float], SelectResult | None]
"""A function from a session, plain parameters, and ``time.perf_counter()`` when the user called, to the result; None if
no member has rows of it, or several have, which the client does not merge. It raises the error of the one attempt that
it makes.
"""

_PARTITIONS_MAX: Final = 64
"""The owners of more partitions are found faster all together, as the general way does."""


def serving_call(session: Session, statement: SelectStatement) -> ServingCall | None:
    """The serving call of a plan that is kept, made once for each topology; None if it has none.

    Raises:
        Error: As :attr:`Session.topology`.
    """
    topology = session.topology
    known_in, call = statement.serving or (None, None)
    if known_in is not topology:
        call = _compiled(statement, topology)
        force_setattr(statement, "serving", (topology, call))
    found: ServingCall | None = call
    return found


def _compiled(statement: SelectStatement, topology: Topology) -> ServingCall | None:
    hidden = statement.hidden
    if statement.steps is not None or statement.reads_clock or any(isinstance(value, list) for value in hidden):
        return None
    scans = [scan for scan in statement.scans if not scan.replicated]
    if not scans or statement.parameter_names or any(scan.tree.expressions for scan in scans):
        return None
    routes = [(scan.tree.bind_ids, scan.group) for scan in scans]
    plan_id, columns, count = statement.plan_id, statement.columns, statement.parameter_count
    owners: dict[tuple[str, int], str] = {}  # of this topology

    def call(session: Session, params: list[Any], started_s: float) -> SelectResult | None:
        if hidden:
            params = [*params, *hidden]
        if len(params) != count or session.pruning is not Pruning.ON:
            return None
        by_owner: dict[str, list[int]] = {}
        for bind, group in routes:
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
        if len(by_owner) != 1:
            is_one_scan = by_owner and len(statement.scans) == 1
            return scattered(session, topology, statement, params, by_owner, started_s, True) if is_one_scan else None
        (member,) = by_owner
        answer, rest = session.ask_member_for_rows(member, Execute(plan_id, params, True, GRANT_BYTES))
        said = answer.message
        stats = stats_of(session, topology, said, started_s, is_cached=True)
        return SelectResult(rows_of(said, answer.parts), columns, stats, rest)

    return call
