"""Requests and replies of writes: UPDATE, DELETE and MERGE, replication, and loads."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from secateur.protocol.hello import Versions
from secateur.protocol.message import Acknowledged, Message
from secateur.protocol.metrics import StageWork
from secateur.protocol.tokens import GrantedToken

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
ROW_CHANGES: Final = "effects"
"""The operation of a change whose query says what becomes of each row."""


class DuplicateMatchPolicy(StrEnum):
    """The treatment of one existing row for which a statement has several changes."""

    FIRST = "first"
    """The first counts, as for UPDATE ... FROM."""
    REFUSED = "refused"
    """An error, as for MERGE."""


class RowCount(msgspec.Struct, frozen=True):
    """The number of rows that a request has written, staged, copied or returned."""

    rows: int


# -- one partition, at its primary


class WriteRows(Message[RowCount], frozen=True):
    """Write the rows of the payload, all of one partition, visible at once, or delete those with its keys.

    Attributes:
        table_id: The table.
        partition: The partition.
        mode: The treatment of keys that exist already; ``delete`` if the rows are keys of rows to delete.
        change_id: A write under an id that was used before is not repeated; None for a write without one.
    """

    table_id: int
    partition: int
    mode: str
    change_id: str | None = None


class ChangedRows(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a change of one partition.

    Attributes:
        rows: Rows changed.
        members_touched: Members that have a copy of them.
        work: The work of each, where that was wanted.
        is_declined: Whether nothing was done, and the change has to be made by the controller: see ``returning``.
    """

    rows: int
    members_touched: int
    work: tuple[StageWork, ...] = ()
    is_declined: bool = False


class ChangeOnePartition(Message[ChangedRows], frozen=True):
    """Carry out a change that concerns a single partition, visible at once.

    Attributes:
        plan: The id of the plan of its query.
        params: The values of its parameters, in order.
        pruning: Whether only the required partition is read.
        operation: The operation on the rows that the query finds: ``"upsert"``, ``"delete"``, or ``"effects"`` where
            the query says it.
        change_id: Under an id that was used before nothing is changed again.
        is_profiled: Whether to say what it took.
        returning: The id of the plan of what is returned of the row with one key, over the same parameters; None for
            nothing. The payload of the answer has its rows, and nothing where the change was made before under its id.
            What is not such a change, or needs a kernel, is declined.
    """

    plan: str
    params: list[Any]
    pruning: bool
    operation: str
    change_id: str
    is_profiled: bool = False
    returning: str | None = None


# -- copies of one partition


class CopyState(msgspec.Struct, frozen=True, array_like=True):
    """The state of a copy: the number of its last change, and the term of the primary that it follows."""

    last: int
    term: int


class WriteCopy(Message[CopyState], frozen=True, array_like=True):
    """Make a change that the primary has made; its rows are the payload.

    Attributes:
        table_id: The table.
        partition: The partition.
        mode: The operation of the primary.
        change_id: The id of the change.
        sequence: Its number.
        term: The term of the primary.
        settled: The number up to which all copies have all changes.
        published: The number of the last load that the primary had published before it.
    """

    table_id: int
    partition: int
    mode: str
    change_id: str
    sequence: int
    term: int
    settled: int
    published: int = 0


class CopyStates(msgspec.Struct, frozen=True, array_like=True):
    """The states of the copies of the first changes, each behind its change, in their order.

    The changes behind these are not made: they are to be sent alone, which says why, or waits.
    """

    states: list[CopyState]


class WriteCopies(Message[CopyStates], frozen=True, array_like=True):
    """Make changes that the primary has made in one turn of its event loop, one after the other; each with its rows."""

    changes: list[tuple[WriteCopy, bytes]]


class CopyTail(msgspec.Struct, frozen=True, array_like=True):
    """The tail of a copy: the number of its last change, and later changes as number, id, operation and rows.

    ``published`` is the number of the last load that was published before the last of them, ``published_first`` before
    the first; -1 where that is not known.
    """

    partition: int
    last: int
    changes: list[tuple[int, str, str, bytes]]
    published: int = 0
    published_first: int = -1


class CopyTails(msgspec.Struct, frozen=True):
    """The tails of those requested copies whose last change differs."""

    tails: list[CopyTail]


class GetCopyTails(Message[CopyTails], frozen=True):
    """A new primary asks for the changes that it lacks: by partition the number of its own last change."""

    table_id: int
    term: int
    partitions: list[tuple[int, int]]


class TellSettled(Message[Acknowledged], frozen=True):
    """A primary reports up to which change all copies are: table, partition, term and number."""

    copies: list[tuple[int, int, int, int]]


# -- several partitions, at the controller


class ChangedTable(Versions, frozen=True, kw_only=True):
    """The result of a coordinated change.

    Attributes:
        rows: Rows changed.
        members_touched: Members that have a copy of them.
        coordinator: The member that computed it, if one did.
        work: The work of each member.
    """

    rows: int
    members_touched: int
    coordinator: str | None = None
    work: tuple[StageWork, ...] = ()


class ChangeSeveralPartitions(Message[ChangedTable], frozen=True):
    """Carry out an UPDATE or DELETE of several partitions, or of a replicated table.

    ``load_id`` names the load that it becomes, ``token`` is as in :class:`ChangeTable`, and the rest as in
    :class:`ChangeOnePartition`.
    """

    load_id: str
    plan: str
    params: list[Any]
    pruning: bool
    operation: str
    is_profiled: bool = False
    is_repeat: bool = False
    token: GrantedToken | None = None


class ChangeTable(Message[ChangedTable], frozen=True):
    """Execute a change that one member computes for all partitions.

    Attributes:
        load_id: The load that it becomes.
        table: The table that is changed.
        table_id: Its id.
        table_version: Its version.
        plan: The id of the plan of the query for the row changes.
        params: The values of its parameters, in order.
        pruning: Whether only the required partitions are read.
        duplicate_match: The treatment of a row that is found twice.
        returning: The id of the plan of what is returned; None for nothing.
        names_action: Whether that plan has the action of the row as one parameter more.
        is_profiled: Whether to say what it took.
        is_repeat: Whether it was asked for before, and the answer was lost; so it is for all changes and loads.
        token: The token of whoever asks, which the controller fills in if there is something that it may not do.
    """

    load_id: str
    table: str
    table_id: int
    table_version: int
    plan: str
    params: list[Any]
    pruning: bool
    duplicate_match: DuplicateMatchPolicy
    returning: str | None
    names_action: bool
    is_profiled: bool = False
    is_repeat: bool = False
    token: GrantedToken | None = None


# -- several partitions, at their members


class FoundParts(msgspec.Struct, frozen=True):
    """The partitions of which rows were staged."""

    parts: list[int]
    work: tuple[StageWork, ...] = ()


class StageChange(Message[FoundParts], frozen=True):
    """Find the rows of these partitions and stage their changes."""

    change: ChangeSeveralPartitions
    partitions: list[int]

    @property
    def plan(self) -> str:
        return self.change.plan

    @property
    def pruning(self) -> bool:
        return self.change.pruning


class TableUse(msgspec.Struct, frozen=True):
    """Whether a table was never written to, as far as a member knows, and no load has rows for it there."""

    is_unused: bool


class CloseForChange(Message[TableUse], frozen=True):
    """Let no other write to a table in until the load is published or aborted, and tell whether there was one."""

    load_id: str
    table_id: int


class WorkedOut(msgspec.Struct, frozen=True):
    """The result of computing a coordinated change.

    Attributes:
        rows: Rows changed.
        parts: The attempts that were staged, by partition.
        missing_cells: Ranges that have to be made before the rows can be written; nothing was staged then.
        work: The work of each member, where that was wanted.
    """

    rows: int = 0
    parts: dict[int, list[int]] = {}
    missing_cells: list[int] = []
    work: tuple[StageWork, ...] = ()


class WorkOutChange(Message[WorkedOut], frozen=True):
    """Run the query for the row changes of a statement, and stage the changed rows at their owners."""

    change: ChangeTable

    @property
    def plan(self) -> str:
        return self.change.plan

    @property
    def pruning(self) -> bool:
        return self.change.pruning


class FindNewRows(Message[RowCount], frozen=True):
    """Ask an owner which rows of the payload have keys that are not there; of those with one key, the first counts.

    Rows that policies hide are there. The last column of the payload numbers its rows, and the payload of the answer is
    that column of the rows that are new.

    Attributes:
        table_id: The table.
        parts: Partition and number of rows, in the order of the rows.
    """

    table_id: int
    parts: list[tuple[int, Count]]


class GetReturnedRows(Message[RowCount], frozen=True):
    """The rows that a change returns, which are the payload of the answer."""

    load_id: str


# -- loads


class LoadedRows(Versions, frozen=True, kw_only=True):
    """The result of a load.

    Attributes:
        rows: Rows that became visible.
        work: The work of the members, where that was wanted.
        was_published: Whether the batch of a stream had been published before, so that nothing was done now.
    """

    rows: int
    work: tuple[StageWork, ...] = ()
    was_published: bool = False


class StreamBatch(msgspec.Struct, frozen=True):
    """The batch of a stream that a load brings, which is published once however often it is tried.

    Attributes:
        stream: The name of the stream, which has one last batch for each table.
        query: The query that writes it: numbers of batches mean the same only within one.
        batch: The number of the batch, which grows.
    """

    stream: str
    query: str
    batch: int


class PublishLoad(Message[LoadedRows], frozen=True):
    """Make staged rows visible everywhere, at the controller.

    Attributes:
        load_id: The load.
        table: The table.
        mode: The treatment of keys that exist already; ``delete`` if the rows are keys.
        parts: The numbers of the attempts that count, by partition.
        table_id: The id of the table for which they were staged; None where that is not known.
        stream: The batch of a stream that it is; None for any other load.
    """

    load_id: str
    table: str
    mode: str
    parts: dict[int, list[int]]
    table_id: int | None = None
    is_repeat: bool = False
    stream: StreamBatch | None = None


class AbortLoad(Message[Acknowledged], frozen=True):
    """Drop a load everywhere, at the controller."""

    load_id: str


class StageRows(Message[RowCount], frozen=True):
    """Keep the rows of the payload aside, here and on the backups.

    Attributes:
        load_id: The load.
        table_id: Its table.
        attempt: The number of the attempt that brings them.
        parts: Partition and number of rows, in the order of the rows.
        are_keys: Whether the rows are keys, for a deletion.
    """

    load_id: str
    table_id: int
    attempt: int
    parts: list[tuple[int, Count]]
    are_keys: bool = False


class StageCopy(StageRows, frozen=True):
    """Stage a backup of rows that another member has staged."""


class PreparedRows(msgspec.Struct, frozen=True):
    """The rows that a member is about to publish: of its copies, of the partitions that it counts, and removed ones.

    Of a deletion, ``rows`` are the keys, and ``rows_counted`` the rows that there are of them.

    ``age_s`` are the seconds since the first of them arrived.
    """

    rows: int
    rows_counted: int
    rows_removed: int
    age_s: float = 0.0


class PrepareLoad(Message[PreparedRows], frozen=True):
    """First phase of publishing.

    Attributes:
        load_id: The load.
        table_id: Its table.
        mode: How its rows change the table.
        parts: Partitions with the attempts that count.
        counted: Those whose rows this member counts, for the number of rows that the load changes: each is counted by
            one of its owners.
    """

    load_id: str
    table_id: int
    mode: str
    parts: list[tuple[int, list[int]]]
    counted: list[int] = []  # noqa: RUF012 -- msgspec copies it


class PublishPreparedLoad(Message[Acknowledged], frozen=True):
    """Second phase: make it visible under this number.

    Attributes:
        load_id: The load.
        number: Its number.
        rows: The rows that it changes on all members, each once, for a client that asks again.
    """

    load_id: str
    number: int
    rows: int = -1


class PublishedEverywhere(Message[Acknowledged], frozen=True):
    """All members have published a load of a replicated table, and those before it."""

    table_id: int
    number: int


class PublicationNumber(msgspec.Struct, frozen=True):
    """The number of the last load of a table that a member has published."""

    number: int


class GetPublication(Message[PublicationNumber], frozen=True):
    """Ask for it."""

    table_id: int


class StagedLoadEntry(msgspec.Struct, frozen=True):
    """A load on one member that is neither published nor dropped.

    Attributes:
        load_id: The load.
        table_id: Its table.
        is_prepared: Whether the member has prepared it.
        age_s: Seconds since its first rows arrived.
        parts: Partitions of which the member keeps a copy, and the rows staged there; those of failed attempts count
            until it is prepared.
    """

    load_id: str
    table_id: int
    is_prepared: bool
    age_s: float
    parts: list[tuple[int, int]]


class StagedLoads(msgspec.Struct, frozen=True):
    """The loads that a member has under way."""

    loads: list[StagedLoadEntry]


class GetStagedLoads(Message[StagedLoads], frozen=True):
    """Ask a member for the loads that it has under way."""


class LoadDropped(msgspec.Struct, frozen=True):
    """Whether there was a load to drop."""

    dropped: bool


class AbortStagedLoad(Message[LoadDropped], frozen=True):
    """Drop a load on one member."""

    load_id: str


class TwoPhaseKind(Enum):
    """The kinds of two-phase changes, which members prepare, and then publish or abort."""

    LOAD = "load"
    ALTER = "alter"
    """A change of the ranges of a table."""


class HoldLoad(Message[Acknowledged], frozen=True):
    """The controller still works on a load, or on another change of its kind."""

    load_id: str
    kind: TwoPhaseKind = TwoPhaseKind.LOAD


class StandingAnswer(msgspec.Struct, frozen=True):
    """The progress of a load on a member.

    Attributes:
        standing: The progress.
        number: The number under which it is published there.
        rows: The rows that it has changed on all members; -1 if this member does not know.
    """

    standing: str
    number: int
    rows: int = -1


class StandingOfLoad(Message[StandingAnswer], frozen=True):
    """Ask for the progress of a load, for the member that decides."""

    load_id: str
    kind: TwoPhaseKind = TwoPhaseKind.LOAD


class LoadOutcomeAnswer(msgspec.Struct, frozen=True):
    """The outcome of a load on a member.

    Attributes:
        is_published: Whether it is visible.
        is_in_doubt: Whether it is prepared, and members are to decide about it.
        rows: The rows that it has changed on all members; -1 if this member does not know.
    """

    is_published: bool
    is_in_doubt: bool
    rows: int = -1


class GetLoadOutcome(Message[LoadOutcomeAnswer], frozen=True):
    """Ask for the outcome of a load. A load that is not prepared by then is aborted."""

    load_id: str


class LoadVerdict(msgspec.Struct, frozen=True):
    """The decision about a load in doubt.

    Attributes:
        is_decided: Whether it was.
        published: Whether it is published.
        number: The number of its publication; 0 for none.
        rows: The rows that it changes on all members; -1 if nobody knows.
    """

    is_decided: bool
    published: bool = False
    number: int = 0
    rows: int = -1


class DecideLoad(Message[LoadVerdict], frozen=True):
    """Decide a load that a member has in doubt."""

    load_id: str
    kind: TwoPhaseKind = TwoPhaseKind.LOAD


class SettleLoad(Message[Acknowledged], frozen=True):
    """A load in doubt was decided; as in :class:`LoadVerdict`."""

    load_id: str
    published: bool
    number: int
    kind: TwoPhaseKind = TwoPhaseKind.LOAD
    rows: int = -1
