"""What controller and members keep when nothing happens: it is bounded by the tables and members of now.

Of statements nothing is kept, however they have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from secateur.cluster.controller import Controller
from secateur.cluster.member import Member
from secateur.partitioning.topology import Topology

__all__ = ["kept_by_controller", "kept_by_member", "statements_at_controller", "statements_at_member"]


def kept_by_member(member: Member, topology: Topology, table_ids: set[int]) -> Iterator[str]:
    """What a member has of tables that are gone, or of members that are.

    Args:
        member: The member.
        topology: The members and owners of now.
        table_ids: The tables of now.
    """
    replication, built = member._replication.copies, member._replication.built_copies
    for what, tables in (
        ("copies", {table for table, _ in replication._replicas}),
        ("unacknowledged changes", {table for table, _ in replication.acknowledgements._unacknowledged}),
        ("held loads", {table for table, _ in replication._sent._held}),
        ("attempts to send copies", {table for _, table in built._opened}),
        ("attempts to build copies", {table for table, _ in built._building}),
        ("latches", set(member._storage.places._latches)),
    ):
        if gone := tables - table_ids:
            yield f"{member.member_id} keeps {what} of tables that were dropped: {sorted(gone)}"
    if left := {other for other, _ in built._opened} - set(topology.member_ids):
        yield f"{member.member_id} keeps attempts of members that have left: {sorted(left)}"


def kept_by_controller(controller: Controller) -> Iterator[str]:
    """What the controller has that is over."""
    if controller._state.leaving.draining:
        yield f"members are to leave still: {sorted(controller._state.leaving.draining)}"
    if controller._state.joining:
        yield f"members are about to join still: {controller._state.joining}"


def statements_at_member(member: Member) -> Iterator[str]:
    """What a member still does for statements, or keeps of those that have ended; clients ask for nothing."""
    results, log, changes, admissions = (
        member._storage.results,
        member._statement_log,
        member._statement_handlers._changes,
        member._admissions,
    )
    for what, held in (
        ("statements in its log that run", [one.begun.plan_id for one in log._running.values()]),
        ("statements in its log that are read", [one.begun.plan_id for one in log._reading.values()]),
        ("killed statements whose reader is not told", list(log._killed_readers)),
        ("results that are read", list(results._streams)),
        ("tasks of readers", [task for tasks in results._running.values() for task in tasks]),
        ("turns of changes", list(changes._turns._turns)),
        (
            "changes that are made",
            [key for key, made in member._storage.change_registry._known.items() if _is_pending(made)],
        ),
        ("admitted statements", [each for each in (admissions.long, admissions.quick) if each.running or each.waiting]),
        ("tasks of connections", [task for task in member._server._accepted.tasks if not task.done()]),
    ):
        if held:
            yield f"{member.member_id} has {what}: {held}"


def statements_at_controller(controller: Controller) -> Iterator[str]:
    """What the controller still does for statements; clients ask for nothing."""
    statements, publications = controller._statements, controller._publications
    planning = statements._planning
    for what, held in (
        ("requests", [request.statement for request in statements._requests.rows()]),
        ("plannings", [*planning._queues, *planning._running]),
        ("turns of changes", list(publications._turns._turns)),
        ("commands", [request for request, command in controller._commands._running.items() if not command.done()]),
        ("loads that are published", list(controller._loads._publishing)),
    ):
        if held:
            yield f"the controller has {what}: {held}"


def _is_pending(made: object) -> bool:
    return isinstance(made, asyncio.Future) and not made.done()
