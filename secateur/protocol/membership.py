"""Requests and replies of membership: members that join, renew leases and are lost."""

from __future__ import annotations

from typing import Annotated

import msgspec

from secateur.protocol.access import AccessRecord
from secateur.protocol.hello import Versions
from secateur.protocol.message import Message
from secateur.protocol.metric_fields import Counter, Gauge, with_metrics
from secateur.protocol.query import ExecutionTotals


class Joined(Versions, frozen=True, kw_only=True):
    """The member is in; ``views`` are the views that there are, by id, and ``access`` says who may do what."""

    views: list[int]
    access: AccessRecord = AccessRecord()


class JoinRequest(Message[Joined], frozen=True):
    """Let a member in that listens there."""

    member: str
    host: str
    port: int
    node: str


class MemberName(msgspec.Struct, frozen=True):
    """An id that no member has had.

    Attributes:
        member: The id; "" if a report is wanted.
        absent: The members that have left and may have the last copies of partitions, or of replicated rows. If one has
            left its data on disk, it can ask to come back with these (:class:`secateur.protocol.recovery.AskToReturn`).
        wants_report: Whether the controller has started anew and does not know the cluster yet: a process that has the
            data of a member has to report them (:class:`secateur.protocol.recovery.ReportToController`).
    """

    member: str
    absent: tuple[str, ...] = ()
    wants_report: bool = False


class NameMember(Message[MemberName], frozen=True):
    """An id for a member of this cluster that comes back.

    Attributes:
        cluster: The cluster.
        may_report: Whether the process has the data of a member on disk.
    """

    cluster: str
    may_report: bool = False


class LeaseAnswer(msgspec.Struct, frozen=True):
    """Whether a lease was granted; see :class:`secateur.cluster.lease.LeaseOutcome`.

    Attributes:
        answer: The outcome.
        statistics_version: The version of the statistics at the controller; 0 from another member.
        wants_report: Whether the controller has started anew and does not know the cluster yet: the member has to
            report to it (:class:`secateur.protocol.recovery.ReportToController`).
    """

    answer: str
    statistics_version: int = 0
    wants_report: bool = False


class RenewLease(Message[LeaseAnswer], frozen=True):
    """A member asks the controller for a lease.

    Attributes:
        cluster: The cluster that it belongs to.
        member: Its id.
        stalled_s: Seconds since its event loop turned last.
        written: Rows written to it one by one since it is there, by table id.
        misses: How many estimates have turned out to be badly wrong since it is there, by the id of the table whose
            statistics they were made of.
        address: ``host:port`` of its process: another one may have been that member before.
    """

    cluster: str
    member: str
    stalled_s: float
    written: dict[int, int]
    misses: dict[int, int]
    address: str


class AskForPromise(Message[LeaseAnswer], frozen=True):
    """A member that cannot reach the controller asks another one for a lease."""

    member: str
    topology_version: int


class ReportMemberLost(Message[Versions], frozen=True):
    """Report that a member is gone. It is not listed as lost if it was drained."""

    member: str


class ReportCopyLost(Message[Versions], frozen=True):
    """A copy of a partition cannot be caught up.

    It names a table: the affinity group of one changes with its ranges, also while the report is on its way.
    """

    table_id: int
    partition: int
    member: str


class MemberCounters(msgspec.Struct, frozen=True, kw_only=True):
    """What a member says of itself for its line in the list of members; see :class:`MemberInfo`."""

    executions: Annotated[
        int, Counter("statements, changes and jobs that a member was asked to run, or to run a part of")
    ] = 0
    frames_received: Annotated[
        int, Counter("frames of statements, jobs, loads and data that reached a member; housekeeping does not count")
    ] = 0
    memory_limit: Annotated[int, Gauge("bytes that a member may take, its kernel included", "memory_limit_bytes")] = 0
    memory_used: Annotated[
        int,
        Gauge(
            "bytes of tables, of older rows that snapshots keep, of staged rows and of results that are being read",
            "memory_used_bytes",
        ),
    ] = 0
    running_statements: Annotated[
        int, Gauge("statements of clients that a member runs or coordinates, without those that it answers at once")
    ] = 0
    waiting_statements: Annotated[int, Gauge("statements of clients that wait for their turn at a member")] = 0
    refused_statements: Annotated[
        int, Counter("statements of clients that a member has refused because too many waited")
    ] = 0
    serving: str = "closures"


@with_metrics
class MemberInfo(MemberCounters, frozen=True):
    """One member as the controller sees it.

    Attributes:
        id: ``m1``, ``m2``, ...
        address: ``host:port`` of its socket.
        node: The machine that it runs on: the address of its Ray node.
        state: ``"joining"``, ``"active"``, ``"suspect"`` (it has sent nothing for a while) or ``"lost"``.
        draining: Whether it is to leave: it gives away what it has, or has nothing any more and is about to be ended.
        serving: The executor of its short statements: ``"native"``, or ``"closures"`` of Python.
    """

    id: str
    address: str
    node: str
    state: str
    partitions_primary: Annotated[
        int, Gauge("partitions of all tables that a member serves; a replicated table counts as one")
    ] = 0
    partitions_backup: Annotated[int, Gauge("partitions of all tables of which a member keeps a backup")] = 0
    rows: Annotated[int, Gauge("rows of the partitions that a member serves")] = 0
    bytes: Annotated[int, Gauge("Arrow bytes of the tables of a member, backups included", "table_bytes")] = 0
    draining: bool = False

    @property
    def is_alive(self) -> bool:
        """Whether it is a member that serves: active, or only suspected to be lost."""
        return self.state in ("active", "suspect")


class Members(msgspec.Struct, frozen=True):
    """All members, in order."""

    members: list[MemberInfo]


class GetMembers(Message[Members], frozen=True):
    """All members, for the process that started the cluster."""


class StoredTable(msgspec.Struct, frozen=True):
    """A member's part of a table.

    Attributes:
        table_id: The table.
        rows: Rows by partition, for those that are not empty.
        partition_bytes: Arrow bytes of the same partitions.
        bytes: Arrow bytes of all partitions.
        partitions: The number of partitions.
    """

    table_id: int
    rows: dict[int, int]
    partition_bytes: dict[int, int]
    bytes: int
    partitions: int


class UsedTable(msgspec.Struct, frozen=True):
    """The uses of a member's partitions of a table since it has them.

    Attributes:
        table_id: The table.
        reads: Reads by partition, for those that were read.
        writes: Changes by partition, for those that were changed.
    """

    table_id: int
    reads: dict[int, int]
    writes: dict[int, int]


class MemberStats(MemberCounters, frozen=True):
    """The data of a member, and what it says of itself, which :class:`MemberInfo` explains.

    Attributes:
        tables: The tables that it has.
        running_jobs: Jobs that run on it now.
        open_results: Results that clients are reading.
        open_result_bytes: The bytes that these hold.
        used: How often the partitions of its tables were used, if that was asked for.
    """

    tables: list[StoredTable] = []
    running_jobs: int = 0
    open_results: int = 0
    open_result_bytes: int = 0
    used: list[UsedTable] = []


class GetMemberStats(Message[MemberStats], frozen=True):
    """Ask for a member's data and counters.

    Attributes:
        with_hits: Whether the answer says how often each partition was used.
    """

    with_hits: bool = False


class Vitals(msgspec.Struct, frozen=True):
    """The totals of the statements of a member, and the time and memory that its process takes.

    Attributes:
        totals: All statements since the member is there, by how they ran.
        process_id: The number of its process on its machine.
        cpu_s: Seconds of processor time of that process.
        resident_bytes: Its resident memory; None where the operating system does not say so.
        memory_used: As :class:`MemberInfo`.
    """

    totals: list[ExecutionTotals]
    process_id: int
    cpu_s: float
    resident_bytes: int | None
    memory_used: int


class GetVitals(Message[Vitals], frozen=True):
    """Ask for them."""


class HotKey(msgspec.Struct, frozen=True, array_like=True):
    """A value of the partitioning key that statements have named often.

    Attributes:
        key: Its columns and their values, as JSON.
        partition: Its partition; None if no range of the table has it any more.
        count: It was sampled at most so often,
        error: and at least so many times less.
    """

    key: str
    partition: int | None
    count: int
    error: int


class HotTable(msgspec.Struct, frozen=True, array_like=True):
    """The sampled keys of a table.

    Attributes:
        table_id: The table.
        sampled: All keys of it that were sampled, the newest counting most.
        keys: The hottest, in this order.
    """

    table_id: int
    sampled: int
    keys: list[HotKey]


class HotKeys(msgspec.Struct, frozen=True):
    """The tables of which keys were sampled."""

    tables: list[HotTable]


class GetHotKeys(Message[HotKeys], frozen=True):
    """Ask a member for the hottest keys that it has sampled."""
