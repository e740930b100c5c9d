"""The operations: who answers each, who may request it, with which role of a token, and its special properties.

The one place that lists them. A server dispatches by it, and has a handler for each; the wire refuses a request that
its sender may not make, before a handler sees it. A client knows at most the users' token; members and the controller
prove in their hello that they are part of the cluster. Operations that only they need (closing a table's writes,
publishing on one member, copies of writes, the topology) are refused to clients: a client that is broken or hostile can
spoil its own statements, and nothing else.

To add an operation: a type for its request and one for its reply in this room, a line here, and a handler at its
server.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, Flag, auto
from typing import Any, Final, TypeAlias, get_args, get_origin

import msgspec

from secateur.protocol import (
    catalog,
    change_feed,
    changes,
    copies,
    hello,
    jobs,
    many,
    membership,
    query,
    recovery,
    snapshots,
    summaries,
    tokens,
)
from secateur.protocol.codec import Codec
from secateur.protocol.message import Message, Notice, Role
from secateur.protocol.tokens import TokenRole

Callers: TypeAlias = frozenset[Role]

_ANYBODY: Final[Callers] = frozenset(Role)
CLUSTER: Final[Callers] = frozenset({Role.MEMBER, Role.CONTROLLER})
MEMBERS: Final[Callers] = frozenset({Role.MEMBER})
CONTROLLER: Final[Callers] = frozenset({Role.CONTROLLER})


class Server(Enum):
    """The server that answers an operation."""

    CONTROLLER = "controller"
    MEMBER = "member"
    ANY = "any"


class Trait(Flag):
    """A special property of an operation."""

    NONE = 0
    HOUSEKEEPING = auto()
    """It concerns the cluster and no statement, and so does not count as a frame received."""
    ABANDONABLE = auto()
    """It is cancelled where it waits when its answer is no longer needed: it changes nothing, or only something that
    is dropped anyway."""
    IDEMPOTENT = auto()
    """Repeating it does no harm, so it is sent again if a connection broke before its answer came."""
    STREAMS = auto()
    """Its answer comes in parts."""


class OperationBase(Enum):
    """One operation.

    An enumeration of operations derives from this class; each of its members belongs to one type of request.

    Attributes:
        code: Its number in the head of a frame. It is part of the protocol: never renumber.
        at: The server that answers it.
        request: The type of its requests: a :class:`~secateur.protocol.message.Message`, or a
            :class:`~secateur.protocol.message.Notice`.
        reply: The type of its replies; None for a notice, which has none.
        callers: The peers that may request it.
        role: What the bearer of a token needs to request it; the highest role where clients may not.
        is_housekeeping: :attr:`Trait.HOUSEKEEPING`.
        is_abandonable: :attr:`Trait.ABANDONABLE`.
        is_idempotent: :attr:`Trait.IDEMPOTENT`.
        streams: :attr:`Trait.STREAMS`.
        title: Its name, for people.
        requests: Writes and reads its requests.
        replies: Writes and reads its replies.
    """

    code: int
    at: Server
    request: type[msgspec.Struct]
    reply: type[msgspec.Struct] | None
    callers: Callers
    role: TokenRole
    is_housekeeping: bool
    is_abandonable: bool
    is_idempotent: bool
    streams: bool
    title: str
    requests: Codec[Any]
    replies: Codec[Any]

    def __init__(
        self,
        code: int,
        at: Server,
        request: type[msgspec.Struct],
        callers: Callers | TokenRole,
        traits: Trait = Trait.NONE,
    ) -> None:
        if request in _by_request:
            raise TypeError(
                f"{request.__name__} is the request of {self.name} and of {_by_request[request].name}: each operation"
                " has a type of its own"
            )
        _by_request[request] = self
        self.code = code
        self.at = at
        self.request = request
        self.reply = _reply_of(request)
        self.callers = _ANYBODY if isinstance(callers, TokenRole) else callers
        self.role = callers if isinstance(callers, TokenRole) else TokenRole.CODE
        self.is_housekeeping = Trait.HOUSEKEEPING in traits
        self.is_abandonable = Trait.ABANDONABLE in traits
        self.is_idempotent = Trait.IDEMPOTENT in traits
        self.streams = Trait.STREAMS in traits
        self.title = self.name.lower()
        self.requests = Codec(request)
        self.replies = Codec(self.reply)

    __hash__ = object.__hash__
    """Servers find the handler of every request by its operation, and the hash of Enum is written in Python."""

    @classmethod
    def at_server(cls, server: Server) -> Mapping[int, OperationBase]:
        """The operations that a server answers, by code."""
        return {operation.code: operation for operation in cls if operation.at in (server, Server.ANY)}


_by_request: Final[dict[type[msgspec.Struct], OperationBase]] = {}


def operation_of(request: msgspec.Struct) -> OperationBase:
    """The operation that a message asks for."""
    return _by_request[type(request)]


def _reply_of(request: type[msgspec.Struct]) -> type[msgspec.Struct] | None:
    """The ``R`` of the ``Message[R]`` from which a request derives."""
    if issubclass(request, Notice):
        return None
    for kind in request.__mro__:
        for base in kind.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Message:
                (reply,) = get_args(base)
                if isinstance(reply, type):
                    return reply
    raise TypeError(f"{request.__name__} has to derive from Message[...] with the type of its reply, or from Notice")


_AT_CONTROLLER: Final = Server.CONTROLLER
_AT_MEMBER: Final = Server.MEMBER
_READ: Final = TokenRole.READ
_WRITE: Final = TokenRole.WRITE
_ADMIN: Final = TokenRole.ADMIN
_CODE: Final = TokenRole.CODE
_HOUSEKEEPING: Final = Trait.HOUSEKEEPING
_ABANDONABLE: Final = Trait.ABANDONABLE
_IDEMPOTENT: Final = Trait.IDEMPOTENT
_REPEATED: Final = Trait.HOUSEKEEPING | Trait.IDEMPOTENT


class Operation(OperationBase):
    """See :class:`OperationBase`.

    The numbers are part of the protocol: never renumber, never use one again. Behind each request stands who may make
    it: those peers, or clients as well where the role is named that the bearer of a token needs. A server looks at it
    before a handler sees the request. PREPARE is open to readers, because the text has to be read to know what it does:
    the controller then asks the statement for its ``role``.
    """

    HELLO = 1, Server.ANY, hello.Hello, _READ, _HOUSEKEEPING

    GET_TOPOLOGY = 10, _AT_CONTROLLER, catalog.GetTopology, _READ, _IDEMPOTENT
    GET_TABLES = 11, _AT_CONTROLLER, catalog.GetTables, _READ, _IDEMPOTENT
    GET_TABLE_VERSIONS = 12, _AT_CONTROLLER, catalog.GetTableVersions, _READ, _IDEMPOTENT
    REFRESH_STATISTICS = 13, _AT_CONTROLLER, catalog.RefreshStatistics, _READ, _ABANDONABLE | _IDEMPOTENT
    PREPARE = 14, _AT_CONTROLLER, query.Prepare, _READ, _IDEMPOTENT
    EXPLAIN = 15, _AT_CONTROLLER, query.ExplainRequest, _READ, _ABANDONABLE | _IDEMPOTENT
    MAKE_RANGES = 16, _AT_CONTROLLER, catalog.MakeRanges, _WRITE, _IDEMPOTENT
    PUBLISH_LOAD = 17, _AT_CONTROLLER, changes.PublishLoad, _WRITE, _IDEMPOTENT
    ABORT_LOAD = 18, _AT_CONTROLLER, changes.AbortLoad, _WRITE, _IDEMPOTENT
    CHANGE_SEVERAL_PARTITIONS = 19, _AT_CONTROLLER, changes.ChangeSeveralPartitions, _WRITE, _ABANDONABLE | _IDEMPOTENT
    CHANGE_TABLE = 20, _AT_CONTROLLER, changes.ChangeTable, _WRITE, _ABANDONABLE | _IDEMPOTENT
    NEW_JOB = 21, _AT_CONTROLLER, jobs.NewJob, _CODE, _IDEMPOTENT
    WAIT_FOR_JOB = 22, _AT_CONTROLLER, jobs.WaitForJob, _READ, _IDEMPOTENT
    CANCEL_JOB = 23, _AT_CONTROLLER, jobs.CancelJob, _CODE, _IDEMPOTENT
    GET_JOB_PLAN = 24, _AT_CONTROLLER, jobs.GetJobPlan, _READ, _IDEMPOTENT
    LIST_JOBS = 25, _AT_CONTROLLER, jobs.ListJobs, _READ, _IDEMPOTENT
    GET_PLAN = 26, Server.ANY, query.GetPlan, CLUSTER, _REPEATED
    READ_SYSTEM_TABLE = 27, _AT_CONTROLLER, query.ReadSystemTable, CLUSTER, _IDEMPOTENT
    REPORT_JOB_ENDED = 28, _AT_CONTROLLER, jobs.ReportJobEnded, CLUSTER, _IDEMPOTENT
    JOIN = 29, _AT_CONTROLLER, membership.JoinRequest, CLUSTER, _IDEMPOTENT
    NAME_MEMBER = 30, _AT_CONTROLLER, membership.NameMember, CLUSTER
    RENEW_LEASE = 31, _AT_CONTROLLER, membership.RenewLease, MEMBERS
    GET_MEMBERS = 32, _AT_CONTROLLER, membership.GetMembers, CONTROLLER, _IDEMPOTENT
    REPORT_MEMBER_LOST = 33, _AT_CONTROLLER, membership.ReportMemberLost, CONTROLLER, _IDEMPOTENT
    REPORT_COPY_LOST = 34, _AT_CONTROLLER, membership.ReportCopyLost, CLUSTER, _IDEMPOTENT
    REGISTER_EXTERNAL_TABLE = 35, _AT_CONTROLLER, catalog.RegisterExternalTable, _CODE
    GET_EXTERNAL_TABLE = 36, _AT_CONTROLLER, catalog.GetExternalTable, MEMBERS, _REPEATED
    GET_RANGES = 37, Server.ANY, catalog.GetRanges, _READ, _REPEATED
    REPORT_TO_CONTROLLER = 38, _AT_CONTROLLER, recovery.ReportToController, MEMBERS, _REPEATED
    DESCRIBE_STATEMENT = 46, _AT_CONTROLLER, query.DescribeStatement, MEMBERS, _REPEATED
    GET_OWNER_PAGES = 39, Server.ANY, catalog.GetOwnerPages, _READ, _REPEATED
    DROP_UNUSED_TABLE = 47, _AT_CONTROLLER, catalog.DropUnusedTable, _ADMIN, _IDEMPOTENT
    ASK_TO_RETURN = 42, _AT_CONTROLLER, recovery.AskToReturn, MEMBERS, _IDEMPOTENT

    CREATE_TOKEN = 43, _AT_CONTROLLER, tokens.CreateToken, _ADMIN
    LIST_TOKENS = 44, _AT_CONTROLLER, tokens.ListTokens, _ADMIN, _IDEMPOTENT
    REVOKE_TOKEN = 45, _AT_CONTROLLER, tokens.RevokeToken, _ADMIN

    GET_REBALANCING = 40, _AT_CONTROLLER, copies.GetRebalancing, CONTROLLER, _HOUSEKEEPING
    DRAIN_MEMBERS = 41, _AT_CONTROLLER, copies.DrainMembers, CONTROLLER, _HOUSEKEEPING

    EXECUTE = 50, _AT_MEMBER, query.Execute, _READ, _ABANDONABLE
    PROFILE = 51, _AT_MEMBER, query.Profile, _READ, _ABANDONABLE
    NEXT_ROWS = 52, _AT_MEMBER, query.NextRows, _READ, _ABANDONABLE
    CLOSE_RESULT = 53, _AT_MEMBER, query.CloseResult, _READ
    SUBMIT_JOB = 54, _AT_MEMBER, jobs.SubmitJob, _CODE, Trait.STREAMS
    RESOLVE_JOB = 55, _AT_MEMBER, jobs.ResolveJob, _CODE
    STOP_JOB = 56, _AT_MEMBER, jobs.StopJob, _CODE
    GET_JOB_METRICS = 57, _AT_MEMBER, jobs.GetJobMetrics, _READ
    GET_JOB_RESULT = 58, _AT_MEMBER, jobs.GetJobResult, _CODE, Trait.STREAMS
    CHANGE_ONE_PARTITION = 59, _AT_MEMBER, changes.ChangeOnePartition, _WRITE
    GET_RETURNED_ROWS = 60, _AT_MEMBER, changes.GetReturnedRows, _WRITE
    WRITE_ROWS = 61, _AT_MEMBER, changes.WriteRows, _WRITE
    STAGE_ROWS = 62, _AT_MEMBER, changes.StageRows, _WRITE
    OPEN_SNAPSHOT = 64, _AT_MEMBER, snapshots.OpenSnapshot, _READ, _ABANDONABLE | _IDEMPOTENT
    READ_SNAPSHOT = 65, _AT_MEMBER, snapshots.ReadSnapshot, _READ, _ABANDONABLE | _IDEMPOTENT
    CLOSE_SNAPSHOT = 66, _AT_MEMBER, snapshots.CloseSnapshot, _READ, _IDEMPOTENT
    GET_ROWS = 67, _AT_MEMBER, query.GetRows, _READ, _ABANDONABLE | _IDEMPOTENT
    READ_CHANGES = 68, _AT_MEMBER, change_feed.ReadChanges, _READ, _ABANDONABLE | _IDEMPOTENT
    BOUND_CHANGES = 69, _AT_MEMBER, change_feed.BoundChanges, _READ, _ABANDONABLE | _IDEMPOTENT
    GET_JOB_LOGS = 70, _AT_MEMBER, jobs.GetJobLogs, _CODE, _ABANDONABLE | _IDEMPOTENT
    EXECUTE_MANY = 71, _AT_MEMBER, many.ExecuteMany, _READ, _ABANDONABLE
    CHANGE_MANY = 72, _AT_MEMBER, many.ChangeMany, _WRITE
    WRITE_MANY = 73, _AT_MEMBER, many.WriteMany, _WRITE
    GET_OWNERS = 63, _AT_MEMBER, catalog.GetOwners, _READ, _HOUSEKEEPING

    WRITE_COPY = 80, _AT_MEMBER, changes.WriteCopy, MEMBERS
    STAGE_COPY = 81, _AT_MEMBER, changes.StageCopy, MEMBERS
    GET_COPY_TAILS = 82, _AT_MEMBER, changes.GetCopyTails, MEMBERS, _HOUSEKEEPING
    TELL_SETTLED = 83, _AT_MEMBER, changes.TellSettled, MEMBERS, _HOUSEKEEPING
    GET_JOB_COUNTERS = 84, _AT_MEMBER, jobs.GetJobCounters, MEMBERS
    ASK_FOR_PROMISE = 85, _AT_MEMBER, membership.AskForPromise, MEMBERS, _HOUSEKEEPING
    COPY_TABLE = 86, _AT_MEMBER, catalog.CopyTable, MEMBERS, _HOUSEKEEPING
    STANDING_OF_LOAD = 87, _AT_MEMBER, changes.StandingOfLoad, MEMBERS, _HOUSEKEEPING
    DECIDE_LOAD = 88, _AT_MEMBER, changes.DecideLoad, MEMBERS, _HOUSEKEEPING
    SETTLE_LOAD = 89, _AT_MEMBER, changes.SettleLoad, MEMBERS, _HOUSEKEEPING
    GET_PUBLICATION = 95, _AT_MEMBER, changes.GetPublication, MEMBERS, _HOUSEKEEPING
    EXECUTE_PART = 90, _AT_MEMBER, query.ExecutePart, MEMBERS, _ABANDONABLE
    EXECUTE_FIRST_STAGE = 91, _AT_MEMBER, query.ExecuteFirstStage, _READ, _ABANDONABLE

    FIND_NEW_ROWS = 96, _AT_MEMBER, changes.FindNewRows, MEMBERS, _ABANDONABLE
    OPEN_COPIES = 92, _AT_MEMBER, copies.OpenCopies, MEMBERS, _HOUSEKEEPING
    FETCH_COPY = 93, _AT_MEMBER, copies.FetchCopy, MEMBERS, _HOUSEKEEPING
    WRITE_COPIES = 94, _AT_MEMBER, changes.WriteCopies, MEMBERS

    START_RUN = 100, _AT_MEMBER, jobs.StartRun, MEMBERS
    EXCHANGE_ROWS = 101, _AT_MEMBER, jobs.ExchangeRows, MEMBERS
    CREDIT_ROWS = 102, _AT_MEMBER, jobs.CreditRows, MEMBERS
    END_RUN = 103, _AT_MEMBER, jobs.EndRun, MEMBERS
    CANCEL_RUN = 104, _AT_MEMBER, jobs.CancelRun, MEMBERS
    MESSAGES_LOST = 105, _AT_MEMBER, jobs.MessagesLost, MEMBERS

    CATCH_UP = 120, _AT_MEMBER, catalog.CatchUp, CONTROLLER, _REPEATED
    RUN_ATTEMPT = 121, _AT_MEMBER, jobs.RunAttempt, CONTROLLER
    HALT_ATTEMPT = 122, _AT_MEMBER, jobs.HaltAttempt, CONTROLLER
    STAGE_CHANGE = 123, _AT_MEMBER, changes.StageChange, CONTROLLER, _ABANDONABLE
    CLOSE_FOR_CHANGE = 124, _AT_MEMBER, changes.CloseForChange, CONTROLLER, _REPEATED
    WORK_OUT_CHANGE = 125, _AT_MEMBER, changes.WorkOutChange, CONTROLLER, _ABANDONABLE
    PREPARE_LOAD = 126, _AT_MEMBER, changes.PrepareLoad, CONTROLLER, _HOUSEKEEPING
    PUBLISH_PREPARED_LOAD = 127, _AT_MEMBER, changes.PublishPreparedLoad, CONTROLLER, _REPEATED
    PUBLISHED_EVERYWHERE = 155, _AT_MEMBER, changes.PublishedEverywhere, CONTROLLER, _HOUSEKEEPING
    ABORT_STAGED_LOAD = 128, _AT_MEMBER, changes.AbortStagedLoad, CONTROLLER, _REPEATED
    HOLD_LOAD = 129, _AT_MEMBER, changes.HoldLoad, CONTROLLER, _HOUSEKEEPING
    CREATE_STORED_TABLE = 130, _AT_MEMBER, catalog.CreateStoredTable, CONTROLLER, _REPEATED
    DROP_STORED_TABLE = 131, _AT_MEMBER, catalog.DropStoredTable, CONTROLLER, _REPEATED
    ADOPT_VIEWS = 132, _AT_MEMBER, catalog.AdoptViews, CONTROLLER, _REPEATED
    PREPARE_ALTER = 133, _AT_MEMBER, catalog.PrepareAlter, CONTROLLER, _HOUSEKEEPING
    COMMIT_ALTER = 134, _AT_MEMBER, catalog.CommitAlter, CONTROLLER, _REPEATED
    ABORT_ALTER = 135, _AT_MEMBER, catalog.AbortAlter, CONTROLLER, _REPEATED
    TAKE_TOPOLOGY = 136, _AT_MEMBER, catalog.TakeTopology, CONTROLLER, _HOUSEKEEPING
    GET_STATEMENTS = 137, _AT_MEMBER, query.GetStatements, CONTROLLER, _HOUSEKEEPING
    GET_MEMBER_STATS = 138, _AT_MEMBER, membership.GetMemberStats, CONTROLLER, _HOUSEKEEPING
    DESCRIBE_CONNECTOR = 140, _AT_MEMBER, catalog.DescribeConnector, CONTROLLER, _HOUSEKEEPING
    LIST_EXTERNAL_PARTITIONS = 141, _AT_MEMBER, catalog.ListExternalPartitions, CONTROLLER, _HOUSEKEEPING
    BUILD_COPIES = 144, _AT_MEMBER, copies.BuildCopies, CONTROLLER, _HOUSEKEEPING
    COUNT_COPIES = 145, _AT_MEMBER, copies.CountCopies, CONTROLLER, _HOUSEKEEPING
    FORGET_COPIES = 146, _AT_MEMBER, copies.ForgetCopies, CONTROLLER, _REPEATED
    DROP_COPIES = 147, _AT_MEMBER, copies.DropCopies, CONTROLLER, _REPEATED
    KILL_STATEMENT = 150, _AT_MEMBER, query.KillRunningStatement, CONTROLLER, _HOUSEKEEPING
    GET_HOT_KEYS = 160, _AT_MEMBER, membership.GetHotKeys, CONTROLLER, _HOUSEKEEPING
    GET_TENANT_HOURS = 162, _AT_MEMBER, summaries.GetTenantHours, CONTROLLER, _HOUSEKEEPING
    GET_VITALS = 161, _AT_MEMBER, membership.GetVitals, CONTROLLER, _HOUSEKEEPING
    GET_STAGED_LOADS = 159, _AT_MEMBER, changes.GetStagedLoads, CONTROLLER, _HOUSEKEEPING
    LOOK_AT_STATISTICS = 139, _AT_MEMBER, catalog.LookAtStatistics, CONTROLLER, _HOUSEKEEPING | _ABANDONABLE
    GET_LOAD_OUTCOME = 143, _AT_MEMBER, changes.GetLoadOutcome, CONTROLLER, _REPEATED
    BEGIN_RETURN = 148, _AT_MEMBER, recovery.BeginReturn, CONTROLLER, _REPEATED
    KEEP_JOB = 151, _AT_MEMBER, jobs.KeepJob, CONTROLLER, _REPEATED
    LIST_KEPT_JOBS = 152, _AT_MEMBER, jobs.ListKeptJobs, CONTROLLER, _REPEATED
    GET_KEPT_JOB = 153, _AT_MEMBER, jobs.GetKeptJob, CONTROLLER, _REPEATED
    GET_REPORT = 142, _AT_MEMBER, recovery.GetReport, CONTROLLER, _REPEATED


CONTROLLER_OPERATIONS: Final = Operation.at_server(Server.CONTROLLER)
MEMBER_OPERATIONS: Final = Operation.at_server(Server.MEMBER)
