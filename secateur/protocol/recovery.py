"""The data that members keep for the controller, and report to one that starts anew.

The controller sends its record to every member before it acknowledges a change. A controller that starts anew collects
the reports of the members, and goes on from the newest record in the next epoch
(:mod:`secateur.cluster.controller.recovery`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from secateur.partitioning.tables.table import ExternalTable, NamedType
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.access import AccessRecord
from secateur.protocol.changes import SettleLoad, StreamBatch
from secateur.protocol.hello import Pruning
from secateur.protocol.message import Acknowledged, Message


class PublishedBatch(msgspec.Struct, frozen=True):
    """The last batch of a stream for one table; see :mod:`secateur.cluster.controller.stream_batches`.

    Attributes:
        origin: The table, by the id with which it was created.
        batch: The batch.
        load_id: The load that brought it, or was to bring it.
        is_published: Whether that load is known to be published. If not, the members know.
    """

    origin: int
    batch: StreamBatch
    load_id: str
    is_published: bool = False


class LastLoad(msgspec.Struct, frozen=True, array_like=True):
    """The last load of a table that a member was told to publish.

    Attributes:
        number: The number of the publication.
        load_id: The load; empty where a controller that was started anew knows only the number.
    """

    number: int
    load_id: str = ""


class ControllerState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the controller must not forget, but members and owners.

    Attributes:
        catalog_version: The version of the tables and views.
        last_table_id: The newest id of a table or a view.
        book: Begins the references of large schemes; never reused.
        tables: Each an encoded :class:`~secateur.partitioning.tables.table.TableDefinition`, so that those that have
            not changed need not be encoded again.
        changing: The table that is being altered, as it is to be; encoded in the same way. None for none.
        changing_for: The id of the request that changes it; None where it has none.
        views: Each an encoded view.
        external_tables: The external tables.
        types: The named types.
        pruning: The setting of sessions that have not set their own.
        last_member: The newest number of a member.
        done: The ids of the last requests that have changed the tables or views.
        streams: The last batch of each stream for each table.
        access: Who may do what: tokens as digests, roles and policies.
        draining: The members that are to own nothing, so that they can leave.
        drained: The members that own nothing and never will: their processes are to be ended.
        last_loads: Of each member that has left as the last owner of partitions, by the origin of the table.
    """

    catalog_version: int
    last_table_id: int
    book: str
    tables: tuple[bytes, ...] = ()
    changing: bytes | None = None
    changing_for: str | None = None
    views: tuple[bytes, ...] = ()
    external_tables: tuple[ExternalTable, ...] = ()
    types: tuple[NamedType, ...] = ()
    pruning: Pruning = Pruning.ON
    last_member: int = 0
    done: tuple[str, ...] = ()
    streams: tuple[PublishedBatch, ...] = ()
    access: AccessRecord = AccessRecord()
    draining: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()
    last_loads: Mapping[str, Mapping[int, LastLoad]] = {}


class ClusterRecord(msgspec.Struct, frozen=True):
    """The state of the cluster that a member keeps. Of two records, the one with the higher (epoch, version) is newer.

    Attributes:
        epoch: Grows with every start of a controller; members refuse what a controller of an earlier epoch sends.
        version: Grows with every change of the record within an epoch.
        topology: Members and owners.
        state: An encoded :class:`ControllerState`. Members read nothing but ``access`` out of it.
    """

    epoch: int
    version: int
    topology: Topology
    state: bytes


class HeldTable(msgspec.Struct, frozen=True):
    """A table that a member knows.

    Attributes:
        table_id: The table.
        version: Its version there.
        published: The number of the last load that was published there.
        has_load_in_doubt: Whether a load of it is prepared there, and its outcome is not known.
        partitions: The partitions that were complete on the disk of a member that was started anew; None of others.
        last_load: The load in doubt, or else the last one that was published; empty if the member does not know it.
        created_as: The id with which it was created; 0 if that is its own.
    """

    table_id: int
    version: int
    published: int = 0
    has_load_in_doubt: bool = False
    partitions: tuple[int, ...] | None = None
    last_load: str = ""
    created_as: int = 0

    @property
    def origin(self) -> int:
        """As :attr:`~secateur.partitioning.tables.table.TableDef.origin`: the same at members that have altered it."""
        return self.created_as or self.table_id


class MemberReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a member to a controller that starts anew.

    Attributes:
        address: The member.
        record: The newest record that it has; of version 0 for a member that has none.
        is_restored: Whether it has the record from its disk, and no controller has told it of the cluster since it was
            started.
        holds_lease: Whether its lease is valid: then no member has acted on a topology without it.
        tables: The tables that it knows.
        views_version: The newest version of the catalog of which it has heard.
        alterations_in_doubt: How many changes of tables it has prepared whose outcome members are to decide.
        damage: Why it cannot use its data directory; empty for a member that can, or has none.
        cut_bytes: The bytes at the end of its log that were not completely written when its process ended.
    """

    address: MemberAddress
    record: ClusterRecord
    holds_lease: bool
    tables: tuple[HeldTable, ...] = ()
    views_version: int = 0
    alterations_in_doubt: int = 0
    damage: str = ""
    cut_bytes: int = 0
    is_restored: bool = False


class GetReport(Message[MemberReport], frozen=True):
    """Ask a member for its report once more."""


class ReturnAnswer(msgspec.Struct, frozen=True):
    """Whether a member that was given up is in the cluster again, with the copies that nobody else has."""

    is_member: bool


class AskToReturn(Message[ReturnAnswer], frozen=True):
    """A member that was given up although it lives, or has its data on disk, asks to be let in again with them."""

    cluster: str
    address: MemberAddress


class BeginReturn(Message[MemberReport], frozen=True):
    """A member that was given up is about to be let in again.

    It takes over the owners of now, and settles the loads and changes of ranges that it has prepared; its report says
    what it has then.

    Attributes:
        topology: Members and owners.
        settled: Loads of which the controller knows the outcome, whoever has lived on.
    """

    topology: Topology
    settled: tuple[SettleLoad, ...] = ()


class ReportToController(Message[Acknowledged], frozen=True):
    """A member reports to a controller that starts anew."""

    cluster: str
    report: MemberReport
