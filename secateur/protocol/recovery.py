"""What members keep for the controller, and report to one that starts anew.

The controller sends its record to every member before it acknowledges a change. A controller that starts anew collects
the reports of the members, and goes on from the newest record in the next epoch
(:mod:`secateur.cluster.controller.recovery`).
"""

from __future__ import annotations

import msgspec

from secateur.partitioning.tables.external_table import ExternalTable
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.message import Acknowledged, Message
from secateur.protocol.pruning import Pruning

__all__ = ["ClusterRecord", "ControllerState", "GetReport", "HeldTable", "MemberReport", "ReportToController"]


class ControllerState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the controller must not forget, but members and owners.

    Attributes:
        catalog_version: The version of the tables and views.
        last_table_id: The newest id of a table or a view.
        book: Begins the references of large schemes; never reused.
        tables: Each an encoded :class:`~secateur.partitioning.tables.table.TableDefinition`, so that those that have
            not changed need not be encoded again.
        changing: The table whose ranges are being changed, as it is to be; encoded in the same way. None for none.
        changing_for: The id of the request that changes it; None where it has none.
        views: Each an encoded view.
        external_tables: The external tables.
        pruning: The setting of sessions that have not set their own.
        last_member: The newest number of a member.
        done: The ids of the last requests that have changed the tables or views.
    """

    catalog_version: int
    last_table_id: int
    book: str
    tables: tuple[bytes, ...] = ()
    changing: bytes | None = None
    changing_for: str | None = None
    views: tuple[bytes, ...] = ()
    external_tables: tuple[ExternalTable, ...] = ()
    pruning: Pruning = Pruning.ON
    last_member: int = 0
    done: tuple[str, ...] = ()


class ClusterRecord(msgspec.Struct, frozen=True):
    """The state of the cluster that a member keeps. Of two records, the one with the higher (epoch, version) is newer.

    Attributes:
        epoch: Grows with every start of a controller; members refuse what a controller of an earlier epoch sends.
        version: Grows with every change of the record within an epoch.
        topology: Members and owners.
        state: An encoded :class:`ControllerState`. Members do not look into it.
    """

    epoch: int
    version: int
    topology: Topology
    state: bytes


class HeldTable(msgspec.Struct, frozen=True):
    """A table that a member knows, and the version of its ranges there."""

    table_id: int
    version: int


class MemberReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a member tells a controller that starts anew.

    Attributes:
        address: The member.
        record: The newest record that it has; of version 0 for a member that has none.
        holds_lease: Whether its lease is valid: then no member has acted on a topology without it.
        tables: The tables that it knows.
        views_version: The newest version of the catalog of which it has heard.
        range_changes_in_doubt: How many changes of ranges it has prepared whose outcome members are to decide.
        damage: Why it cannot use its data directory; empty for a member that can, or has none.
    """

    address: MemberAddress
    record: ClusterRecord
    holds_lease: bool
    tables: tuple[HeldTable, ...] = ()
    views_version: int = 0
    range_changes_in_doubt: int = 0
    damage: str = ""


class GetReport(Message[MemberReport], frozen=True):
    """Ask a member for its report once more."""


class ReportToController(Message[Acknowledged], frozen=True):
    """A member reports to a controller that starts anew."""

    cluster: str
    report: MemberReport
