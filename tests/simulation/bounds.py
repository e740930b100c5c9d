"""What controller and members keep when nothing happens: it is bounded by the tables and members of now."""

from __future__ import annotations

from collections.abc import Iterator

from secateur.cluster.controller import Controller
from secateur.cluster.member import Member
from secateur.partitioning.topology import Topology

__all__ = ["kept_by_controller", "kept_by_member"]


def kept_by_member(member: Member, topology: Topology, table_ids: set[int]) -> Iterator[str]:
    """What a member has of tables that are gone, or of members that are.

    Args:
        member: The member.
        topology: The members and owners of now.
        table_ids: The tables of now.
    """
    replication, built = member._replication, member._built_copies
    for what, tables in (
        ("copies", {table for table, _ in replication._replicas}),
        ("unacknowledged changes", {table for table, _ in replication.acknowledgements._unacknowledged}),
        ("held loads", {table for table, _ in replication._sent._held}),
        ("attempts to send copies", {table for _, table in built._opened}),
        ("attempts to build copies", {table for table, _ in built._building}),
        ("latches", set(member._places._latches)),
    ):
        if gone := tables - table_ids:
            yield f"{member.member_id} keeps {what} of tables that were dropped: {sorted(gone)}"
    if left := {other for other, _ in built._opened} - set(topology.member_ids):
        yield f"{member.member_id} keeps attempts of members that have left: {sorted(left)}"


def kept_by_controller(controller: Controller) -> Iterator[str]:
    """What the controller has that is over."""
    if controller._state.draining:
        yield f"members are to leave still: {sorted(controller._state.draining)}"
    if controller._state.joining:
        yield f"members are about to join still: {controller._state.joining}"
