"""Who may ask for which operation: the one place that says so, for the controller and for members.

A client knows at most the users' token; members and the controller prove in their hello that they are part of the
cluster (:class:`~secateur.wire.ClusterIdentity`). What only they need (closing a table's writes, publishing on one
member, copies of writes, the topology) is refused to clients: a client that is broken or hostile can spoil its own
statements, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from secateur.engine.exchange.messages import OPS
from secateur.errors import AuthenticationError
from secateur.wire import Request, Role

__all__ = ["CONTROLLER_CALLERS", "MEMBER_CALLERS", "NOTICE_CALLERS", "check_caller"]

Callers: TypeAlias = frozenset[Role]

_ANYBODY: Final[Callers] = frozenset(Role)
_CLUSTER: Final[Callers] = frozenset({Role.MEMBER, Role.CONTROLLER})
_MEMBERS: Final[Callers] = frozenset({Role.MEMBER})
_CONTROLLER: Final[Callers] = frozenset({Role.CONTROLLER})

CONTROLLER_CALLERS: Final[Mapping[str, Callers]] = {
    "hello": _ANYBODY,
    "topology": _ANYBODY,
    "catalog": _ANYBODY,
    "table_versions": _ANYBODY,
    "table_statistics": _ANYBODY,
    "prepare": _ANYBODY,
    "explain": _ANYBODY,
    "make_ranges": _ANYBODY,
    "load_publish": _ANYBODY,
    "load_abort": _ANYBODY,
    "change": _ANYBODY,
    "change_whole": _ANYBODY,
    "job_new": _ANYBODY,
    "job_wait": _ANYBODY,
    "job_cancel": _ANYBODY,
    "job_plan": _ANYBODY,
    "jobs": _ANYBODY,
    "plan": _CLUSTER,
    "system_table": _CLUSTER,
    "job_ended": _CLUSTER,
    "join": _CLUSTER,
    "new_member": _MEMBERS,
    "lease": _MEMBERS,
    "members": _CONTROLLER,
    "member_lost": _CONTROLLER,
    "copy_lost": _CLUSTER,
}
"""Who may ask the controller. Whoever started the cluster asks as the controller does."""

MEMBER_CALLERS: Final[Mapping[str, Callers]] = {
    "hello": _ANYBODY,
    "execute": _ANYBODY,
    "profile": _ANYBODY,
    "result_next": _ANYBODY,
    "result_close": _ANYBODY,
    "job_submit": _ANYBODY,
    "job_resolve": _ANYBODY,
    "job_stop": _ANYBODY,
    "job_metrics": _ANYBODY,
    "job_result": _ANYBODY,
    "change": _ANYBODY,
    "change_returned": _ANYBODY,
    "write": _ANYBODY,
    "stage": _ANYBODY,
    "owners": _ANYBODY,
    "write_copy": _MEMBERS,
    "stage_copy": _MEMBERS,
    "copies_tails": _MEMBERS,
    "copies_settled": _MEMBERS,
    "job_counters": _MEMBERS,
    "promise": _MEMBERS,
    "plan": _MEMBERS,
    "copy_table": _MEMBERS,
    "catch_up": _CONTROLLER,
    "job_run": _CONTROLLER,
    "job_halt": _CONTROLLER,
    "change_stage": _CONTROLLER,
    "change_close": _CONTROLLER,
    "change_work_out": _CONTROLLER,
    "load_prepare": _CONTROLLER,
    "load_publish": _CONTROLLER,
    "load_abort": _CONTROLLER,
    "load_hold": _CONTROLLER,
    "load_standing": _MEMBERS,
    "load_decide": _MEMBERS,
    "load_settle": _MEMBERS,
    "create_table": _CONTROLLER,
    "drop_table": _CONTROLLER,
    "views": _CONTROLLER,
    "alter_prepare": _CONTROLLER,
    "alter_commit": _CONTROLLER,
    "alter_abort": _CONTROLLER,
    "alter_hold": _CONTROLLER,
    "alter_standing": _MEMBERS,
    "alter_decide": _MEMBERS,
    "alter_settle": _MEMBERS,
    "topology": _CONTROLLER,
    "statements": _CONTROLLER,
    "stats": _CONTROLLER,
    "statistics": _CONTROLLER,
}
"""Who may ask a member."""

NOTICE_CALLERS: Final[Mapping[str, Callers]] = dict.fromkeys(OPS, _MEMBERS)
"""Who may send a member a one-way message."""


def check_caller(request: Request, callers: Mapping[str, Callers]) -> None:
    """Refuse what the other end of the connection may not ask. Costs a tenth of a microsecond.

    Raises:
        AuthenticationError: It may not.
    """
    allowed = callers.get(request.op, _CLUSTER)
    if request.peer.role not in allowed:
        raise AuthenticationError(
            f"{request.op!r} may be asked by {' or '.join(sorted(allowed))} of this cluster only, and"
            f" {request.peer.address} has said hello as {request.peer.role.value}; nothing was done"
        )
