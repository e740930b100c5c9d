"""The shared state of one connection: sockets, topology, plans and settings.

A session sends requests about the catalog to the controller, and requests for rows to members, which it chooses by the
topology. When a member reports that the topology has changed, the session asks the controller for the new one.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import Any, Final, NoReturn, TypeVar
from weakref import WeakSet

from msgspec.structs import replace

from secateur.client.channel_pool import ChannelPool
from secateur.client.dbapi.parameters import parameter_types
from secateur.client.execution.plan_backoff import PlanBackoff
from secateur.client.execution.result_stream import ResultStream
from secateur.client.execution.retry_policy import CONNECT_TIMEOUT_S, CONTROLLER_WAIT_S, RETRY_S
from secateur.client.execution.statement_cache import (
    Prepared,
    StatementCache,
    StatementKey,
    cacheable,
    catalog_version,
    is_estimated,
)
from secateur.client.execution.statement_timeout import NO_TIMEOUT, call_timeout, sets_timeout
from secateur.errors import (
    DeadlineError,
    Error,
    InterfaceError,
    JobCancelledError,
    MemberLostError,
    OperationalError,
    ProtocolError,
    SerializationError,
    TopologyChangedError,
    UnknownOwnersError,
    UnknownRangesError,
    UnreachableError,
)
from secateur.partitioning.schemes.scheme import PartitionScheme, learn_ranges
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import (
    GetOwnerPages,
    GetOwners,
    GetRanges,
    GetTables,
    GetTopology,
)
from secateur.protocol.hello import Greeting, Versions
from secateur.protocol.message import Message, as_repeated
from secateur.protocol.operation import operation_of
from secateur.protocol.pruning import Pruning
from secateur.protocol.query import Execute, Executed, Prepare
from secateur.protocol.statements import EvaluatedInsert, InsertRows
from secateur.tracing import is_configured
from secateur.wire import SILENCE_S, Answer, CallControl, Channel, Payload, Tls, decode_tables

__all__ = ["MEMBERS_AT_ONCE", "Session", "Sign"]

R = TypeVar("R")

MEMBERS_AT_ONCE: Final = 32
"""Members that one thread asks at the same time: the call for each is inside the call for the one before."""
_STATEMENTS_MAX: Final = 512
_TOPOLOGY_WAIT_S: Final = 2.0
"""How long the controller may take to name the owners, before the members are asked."""
_OWNERS_WAIT_S: Final = 1.0
"""How long a member may take for that."""
_PROBE_S: Final = 0.5
"""How long a member that did not answer may take to say hello over another connection."""
_PROBES_MAX: Final = 3
_CONTROLLER_PAUSE_S: Final = 0.05
"""Between two tries to reach a controller that is being started anew."""


class Sign(Enum):
    """The state of a member as a separate connection to it shows."""

    ANSWERS = auto()
    SILENT = auto()
    """The connection is accepted or not, and nothing comes: the process is stopped, or the network to it is cut.

    It may come back.
    """
    GONE = auto()
    """No process listens at its address any more, or it has left the cluster."""


class Session:
    """The shared state of one connection. Thread-safe.

    Args:
        host: Host of the controller.
        port: Port of the controller.
        token: The secret of the cluster, if it has one.
        timeout_s: Seconds to wait for more of an answer; None waits as long as the process that works on it shows signs
            of life.
        connect_timeout_s: How long to wait for a controller that cannot be reached.
        tls: How connections are encrypted; None for a cluster without TLS.

    Raises:
        UnreachableError: No process answers at this address.
        AuthenticationError: The token is missing or wrong.
        ProtocolError: Something answers that is not a cluster of ours.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        token: str | None,
        timeout_s: float | None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        tls: Tls | None = None,
    ) -> None:
        self._own_pruning: Pruning | None = None
        self._plan_options: tuple[tuple[str, str], ...] = ()
        self.statements = StatementCache(_STATEMENTS_MAX)
        self.scatter_backoff = PlanBackoff()
        self.local_effects = True
        self.closed = False
        self.is_traced = is_configured()  # looked at once: a look-up of one key pays for every call
        self.retry_s = RETRY_S
        self.controller_wait_s = CONTROLLER_WAIT_S
        self._id = uuid.uuid4().hex
        self._token = token
        self._tls = tls
        self._timeout_s = timeout_s
        self._controller = Channel(host, port, token=token, timeout_s=timeout_s, tls=tls)
        self._members: dict[tuple[str, int], ChannelPool] = {}
        self._alone: set[Channel] = set()
        self._lock = threading.Lock()
        self.statement_timeout = NO_TIMEOUT
        self._local = threading.local()  # the control of the statement that a thread works on
        self._statements_running: set[CallControl] = set()
        self._results_read: WeakSet[CallControl] = WeakSet()  # of statements whose rows come in parts
        self._turns = itertools.count()
        self._known: dict[str, TableDef] = {}
        self._large: dict[str, TableDef] = {}  # the tables with large schemes, which statements name by reference
        self._outlined: dict[str, PartitionScheme] = {}  # the schemes of which this session learns ranges, by table
        try:
            hello = _greeted(self._controller, connect_timeout_s)
        except BaseException:
            self._controller.close()
            raise
        self._cluster_id = hello.cluster_id
        self._catalog_version = hello.catalog_version
        self._statistics_version = hello.statistics_version
        self.pruning = self.cluster_pruning = hello.pruning or Pruning.ON
        if hello.topology is None:
            self._controller.close()
            raise ProtocolError("the process at this address is no controller of a cluster: connect to the controller")
        self._topology = hello.topology
        self._newest_topology = self._topology.version
        self._silence_s = min(SILENCE_S, hello.silence_s or SILENCE_S)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, for everything that has a session in it.

        Raises:
            SerializationError: Always.
        """
        raise SerializationError(
            "an open connection, with its cursors, tables and jobs, cannot be pickled or copied: send the address,"
            f" {self.address!r}, and call secateur.connect(address) where it is needed"
        )

    @property
    def address(self) -> str:
        return f"secateur://{self._controller.address}"

    @property
    def topology(self) -> Topology:
        """The newest topology that this session knows; it asks the controller if a member has reported a newer one.

        Of large groups, it has the owners that statements have needed so far; see :meth:`when_known`.
        """
        if self._topology.version < self._newest_topology:
            return self.refresh_topology()
        return self._topology

    def refresh_topology(self) -> Topology:
        """Ask the controller for the owners, or, if it is out of reach, the members. One round trip.

        Raises:
            Error: No process can be reached, or the controller answers with an error.
        """
        try:
            topology = self.ask(GetTopology(), timeout_s=_TOPOLOGY_WAIT_S, waits=False).message.topology
        except (UnreachableError, MemberLostError, DeadlineError):
            heard = self._owners_of_members()
            if heard is None:
                raise
            topology = heard
        with self._lock:
            if topology.version >= self._topology.version:
                self._topology = topology.with_known_owners(self._topology)
            # A peer that named a newer version than the controller has was wrong; asking repeatedly would not help.
            self._newest_topology = self._topology.version
            return self._topology

    def topology_of(self, table: TableDef) -> Topology:
        """The topology, with the owners of all partitions of a table.

        Raises:
            TopologyChangedError: The topology is older than the table.
            Error: No process can be reached that knows the owners.
        """

        def complete() -> Topology:
            topology = self.topology
            if not table.replicated:
                _ = topology.ownership(table.scheme.affinity_group()).all_primaries
            return topology

        return self.when_known(complete)

    def when_known(self, work: Callable[[], R]) -> R:
        """Do something once the ranges and owners are known that it needs; finding that out must have no effect.

        Args:
            work: It reads :attr:`topology` each time that it is called.

        Raises:
            Error: An error of the work, or no process can be reached that knows what is missing.
        """
        while True:
            try:
                return work()
            except UnknownRangesError as unknown:
                self._learn_ranges(unknown)
            except UnknownOwnersError as unknown:
                self._learn_owners(unknown)

    def _learn_owners(self, unknown: UnknownOwnersError) -> None:
        """Fetch owners that a statement needs. One round trip; two more if the owners have changed meanwhile."""
        digest = unknown.details["digest"]
        asked = GetOwnerPages(digest, unknown.details["pages"])
        try:
            pages = self._ask_anybody(asked).pages
        except TopologyChangedError:
            before = self._topology
            if self.refresh_topology().version == before.version:
                raise
            return
        try:
            with self._lock:
                self._topology = self._topology.with_pages(digest, pages)
        except ValueError as error:
            raise ProtocolError(
                f"a request for the owners of some partitions was answered with others: {error}"
            ) from error
        if not pages.keys() >= set(asked.pages):
            raise ProtocolError("a request for the owners of some partitions was answered without these owners")

    def _ask_anybody(self, asked: Message[R]) -> R:
        """Ask the controller, or, if it is out of reach, the members.

        Raises:
            Error: No process can be reached that knows, or the controller answers with an error.
        """
        try:
            return self.ask(asked, timeout_s=_TOPOLOGY_WAIT_S, waits=False).message
        except (UnreachableError, MemberLostError, DeadlineError):
            for heard in self._ask_members(asked):
                return heard
            raise

    def _owners_of_members(self) -> Topology | None:
        """The newest owners that a member knows of; None when none can be reached."""
        heard = [answer.topology for answer in self._ask_members(GetOwners())]
        return max(heard, key=lambda topology: topology.version, default=None)

    def _ask_members(self, message: Message[R]) -> Iterator[R]:
        """Ask one member after the other, leaving out those that cannot be reached or do not know."""
        for member in self._topology.members:
            pool = self._member(member.id)
            channel = pool.borrow()
            try:
                answer = channel.request(message, timeout_s=_OWNERS_WAIT_S)
            except OperationalError:
                continue
            finally:
                pool.give_back(channel)
            yield answer.message

    @property
    def control(self) -> CallControl | None:
        """The object that ends the calls of the statement on which this thread works; None between statements."""
        return getattr(self._local, "control", None)

    def check_control(self) -> None:
        """Raise when the statement that this thread works on has been ended, or has run out of time."""
        control = self.control
        if control is not None:
            control.check()

    def begin_statement(self, timeout_s: float | None = None) -> CallControl:
        """This thread begins a statement, whose calls end with :attr:`statement_timeout`, or with :meth:`interrupt`.

        A ``timeout_s`` takes the place of :attr:`statement_timeout`.

        End it with :meth:`end_statement`.
        """
        timeout = self.statement_timeout
        if timeout_s is not None:
            control = call_timeout(timeout_s)
        else:
            control = timeout.control() if timeout.milliseconds else CallControl()
        with self._lock:
            self._statements_running.add(control)
        self._local.control = control
        return control

    def end_statement(self, control: CallControl) -> None:
        """This thread has ended its statement; its result, if it comes in parts, may still be read."""
        self._local.control = None
        with self._lock:
            self._statements_running.discard(control)
        control.deadline_s = None  # the rest of a result comes as fast as it is read

    def work_for(self, control: CallControl | None) -> CallControl | None:
        """From now on this thread works for another statement, or for none; returns the one before."""
        before, self._local.control = self.control, control
        return before

    def interrupt(self) -> None:
        """End every statement of this session that is under way or whose result is being read."""
        with self._lock:
            controls = [*self._statements_running, *self._results_read]
        for control in controls:
            control.end(JobCancelledError("the statement was cancelled: connection.interrupt() was called"))

    def ask(
        self, message: Message[R], payload: Payload = b"", *, timeout_s: float | None = None, waits: bool = True
    ) -> Answer[R]:
        """Send a request to the controller; wait for it if it is being started anew.

        A request is sent again after its connection broke if repeating it does no harm: the controller recognises loads
        and DDL by their ids.

        Args:
            message: The request.
            payload: Bytes to go with it.
            timeout_s: Seconds that the answer may take.
            waits: Whether to wait for a controller that cannot be reached, for :attr:`controller_wait_s`.

        Raises:
            Error: It answers with an error, or cannot be reached.
        """
        self.check_open()
        wait_s = self.controller_wait_s if waits else 0.0
        end_s: float | None = None  # counted from the first failure: the request may have waited long for its answer
        repeatable = operation_of(message).is_idempotent
        while True:
            try:
                answer = self._controller.request(message, payload, timeout_s=timeout_s, control=self.control)
                break
            except UnreachableError as error:
                end_s = end_s or time.monotonic() + wait_s
                if time.monotonic() >= end_s:
                    raise self._controller_gone(error) from error
            except MemberLostError:
                end_s = end_s or time.monotonic() + wait_s
                if not repeatable or time.monotonic() >= end_s:
                    raise
                message = as_repeated(message)
            self.check_control()
            self.check_open()
            time.sleep(_CONTROLLER_PAUSE_S)
        if self._controller.hello.cluster_id != self._cluster_id:
            raise UnreachableError(
                f"{self.address} belongs to another cluster now: the one this connection was made for has gone; connect"
                " again",
                retry_safe=False,
            )
        self.note(answer.message)
        return answer

    def _controller_gone(self, error: UnreachableError) -> UnreachableError:
        """The error for a controller that was there when this connection was made."""
        is_gone = isinstance(error.__cause__, ConnectionRefusedError)
        return UnreachableError(
            f"the controller of this cluster {'is gone' if is_gone else 'cannot be reached'}: {error.message}."
            " Statements that this connection has already planned still run on the members; new statements, DDL"
            " and loads need the controller"
            + ("; if it does not come back, start the cluster anew" if is_gone else ""),
            address=self._controller.address,
            is_controller=True,
        )

    def ask_member(
        self,
        member_id: str,
        message: Message[R],
        payload: Payload = b"",
        *,
        meanwhile: Callable[[], None] | None = None,
    ) -> Answer[R]:
        """Send a request to a member, over that member's own socket.

        ``meanwhile`` is as for :meth:`~secateur.wire.Channel.request`.

        Raises:
            Error: It answers with an error, or cannot be reached.
        """
        pool = self._member(member_id)
        channel = pool.borrow()
        try:
            return channel.request(message, payload, control=self.control, meanwhile=meanwhile)
        except (MemberLostError, UnreachableError) as error:
            _name_member(error, channel, member_id)
            raise
        finally:
            pool.give_back(channel)

    def ask_members(self, messages: Sequence[tuple[str, Message[R]]]) -> list[Answer[R]]:
        """Send a request to each of some members, and wait for all answers.

        All requests are sent before the first answer is read, so the members work at the same time; that costs no
        thread.

        Args:
            messages: Members by their ids, at most :data:`MEMBERS_AT_ONCE`, and what each is asked.

        Returns:
            The answers, in the same order.

        Raises:
            Error: The first error, in the order of the members. All answers have been read by then.
        """
        answers: list[Answer[R] | Error] = []

        def ask_from(position: int) -> None:
            if position == len(messages):
                return
            member_id, message = messages[position]
            is_sent = False

            def ask_others() -> None:
                nonlocal is_sent
                is_sent = True
                ask_from(position + 1)

            try:
                answer: Answer[R] | Error = self.ask_member(member_id, message, meanwhile=ask_others)
            except Error as error:
                if not is_sent:
                    ask_others()
                answer = error
            answers.append(answer)

        ask_from(0)
        answers.reverse()  # the last one that was asked is the first whose answer is read
        found = []
        for answer in answers:
            if isinstance(answer, Error):
                raise answer
            found.append(answer)
        return found

    def ask_member_for_rows(self, member_id: str, message: Execute) -> tuple[Answer[Executed], ResultStream | None]:
        """Like :meth:`ask_member`, for a request whose answer may be the first of several parts.

        The member may send up to :data:`GRANT_BYTES` at a time.

        Raises:
            Error: It answers with an error, or cannot be reached.
        """
        pool = self._member(member_id)
        channel = pool.borrow()
        try:
            answer = channel.request(message, control=self.control)
        except BaseException as error:
            if isinstance(error, (MemberLostError, UnreachableError)):
                _name_member(error, channel, member_id)
            pool.give_back(channel)
            raise
        if answer.message.has_more:
            control = self.control
            if control is not None:
                with self._lock:
                    self._results_read.add(control)
            return answer, ResultStream(pool, channel, control)
        pool.give_back(channel)
        return answer, None

    def ask_member_on_own_channel(self, member_id: str, message: Message[R], payload: Payload = b"") -> Answer[R]:
        """Like :meth:`ask_member`, over a separate connection without a time-out, for requests that may take long.

        Raises:
            Error: It answers with an error, or cannot be reached.
        """
        topology = self.topology
        if not topology.has_member(member_id):
            topology = self.refresh_topology()  # it has joined since
        member = topology.member(member_id)
        with self._channel_alone(member.host, member.port) as channel:
            return channel.request(message, payload)

    def poll_on_own_channel(self, messages: Iterable[Message[R]]) -> Iterator[Answer[R]]:
        """Send requests to the controller, each when the next answer is asked for.

        Over a connection of its own: a request that waits there would hold up all others.

        Raises:
            Error: It answers with an error, or cannot be reached.
        """
        with self._channel_alone(self._controller.host, self._controller.port) as channel:
            for message in messages:
                answer = channel.request(message)
                self.note(answer.message)
                yield answer

    def member_named_by(self, error: Error) -> str | None:
        """Return the member that an error names, by its id or its address; None when it names no known one."""
        member = error.details.get("member")
        if isinstance(member, str):
            return member
        address = error.details.get("address")
        return next((known.id for known in self._topology.members if f"{known.host}:{known.port}" == address), None)

    def is_gone(self, member_id: str) -> bool:
        """Whether a member has ended: no process listens at its address any more.

        A silent member may come back, and does not count as gone.
        """
        return self.sign_of(member_id) is Sign.GONE

    def sign_of(self, member_id: str) -> Sign:
        """Look at a member over a connection of its own. Takes at most half a second for one that is silent."""
        known = next((member for member in self._topology.members if member.id == member_id), None)
        if known is None:
            return Sign.GONE
        for _ in range(_PROBES_MAX):
            channel = Channel(known.host, known.port, token=self._token, timeout_s=_PROBE_S, tls=self._tls)
            try:
                channel.connect()
            except UnreachableError as error:
                if error.details.get("refused"):
                    return Sign.GONE
                if error.details.get("silent"):
                    return Sign.SILENT
            except Error:
                return Sign.ANSWERS
            else:
                return Sign.ANSWERS
            finally:
                channel.close()
        return Sign.GONE  # it hangs up again and again: the process is about to end

    def note(self, said: object) -> None:
        """Hear of newer versions of the catalog, the statistics or the topology from an answer of the controller."""
        if not isinstance(said, Versions):
            return
        # Looked at without the lock first: nearly every answer tells nothing new.
        if said.catalog_version > self._catalog_version:
            with self._lock:
                if said.catalog_version > self._catalog_version:
                    self._catalog_version = said.catalog_version
                    self.statements.clear()
                    self.forget_tables()
        if said.pruning is not None and said.pruning is not self.cluster_pruning:
            with self._lock:
                self.cluster_pruning = said.pruning
                self.pruning = said.pruning if self._own_pruning is None else self._own_pruning
        self.note_statistics(said.statistics_version)
        self.note_topology(said.topology_version)

    def note_statistics(self, version: int) -> None:
        """Hear of a version of the statistics: plans that depend on an older one are made again at their next use."""
        if version > self._statistics_version:
            with self._lock:
                if version > self._statistics_version:
                    self._statistics_version = version
                    self.statements.forget_estimated()

    def note_topology(self, version: int) -> None:
        """Hear of a version of the topology."""
        if version > self._newest_topology:
            with self._lock:
                self._newest_topology = max(version, self._newest_topology)

    def turn(self) -> int:
        """A number that grows with every call, to take turns by."""
        return next(self._turns)

    def prepare(self, sql: str, params: list[Any] | dict[str, Any]) -> tuple[Prepared, bool]:
        """The plan of a statement, and whether it was known already.

        SELECT, UPDATE, DELETE, and an INSERT of mere parameters and literals are remembered. Everything else is
        prepared anew each time: the controller carries out DDL, and evaluates the rows of an INSERT when it is asked.

        Raises:
            Error: The planner refuses the statement.
        """
        if self._topology.version < self._newest_topology:
            with suppress(Error):  # whoever needs the owners asks again
                self.refresh_topology()  # which tells of the settings of the cluster as well
        known = self.statements.get(self._key(sql, params))
        if known is not None:
            return known, True
        return self.prepare_anew(sql, params), False

    def prepare_anew(self, sql: str, params: list[Any] | dict[str, Any], *, waits: bool = True) -> Prepared:
        """Prepare a statement as :meth:`prepare` does, but always at the controller.

        A plan that was known is replaced once there is an answer: without a controller it stays.

        Args:
            sql: The text.
            params: Its parameters.
            waits: As for :meth:`ask`.

        Raises:
            Error: The planner refuses the statement.
        """
        control = self.control
        if control is not None and self.statement_timeout.milliseconds and sets_timeout(sql):
            control.deadline_s = None
        key = _, pruning, options, _ = self._key(sql, params)  # the settings of the plan, if others change them now
        asked = Prepare(sql, params, {"pruning": pruning.value, **dict(options)}, uuid.uuid4().hex)
        prepared, statistics_version = self._prepare(asked, waits=waits)
        kept = cacheable(prepared)
        # A plan of the catalog or statistics before must not be kept once another thread has heard of newer ones.
        with self._lock:
            if (
                kept is not None
                and catalog_version(kept) >= self._catalog_version
                and (statistics_version >= self._statistics_version or not is_estimated(kept))
            ):
                self.statements.put(key, kept)
            else:
                self.statements.forget(key)
        return prepared

    def settings(self) -> dict[str, str]:
        """The settings as the controller wants them."""
        return {"pruning": self.pruning.value, **dict(self._plan_options)}

    def set_pruning(self, value: Pruning | None) -> None:
        """Set pruning for this session, whatever the cluster has; None for what the cluster has."""
        with self._lock:
            self._own_pruning = value
            self.pruning = self.cluster_pruning if value is None else value

    def set_plan_option(self, name: str, value: str) -> None:
        """Change a setting that plans depend on; an empty value is the default."""
        with self._lock:
            options = {**dict(self._plan_options), name: value}
            self._plan_options = tuple((key, text) for key, text in sorted(options.items()) if text)

    def table(self, name: str, *, waits: bool = True) -> TableDef:
        """Fetch the definition of a table. One round trip.

        Args:
            name: Its name.
            waits: As for :meth:`ask`.

        Raises:
            UnknownTableError: There is no such table.
        """
        known = self._large.get(name.casefold())
        asked = GetTables(name, None if known is None else known.scheme.reference)
        (definition,) = self.ask(asked, waits=waits).message.tables
        table = definition.table
        if table.scheme.reference is not None:
            self._large[name.casefold()] = table
        return table

    def outlined_table(self, name: str, *, waits: bool = True) -> TableDef:
        """Fetch the definition of a table; of a large scheme without its ranges. One round trip.

        Args:
            name: Its name.
            waits: As for :meth:`ask`.

        Raises:
            UnknownTableError: There is no such table.
        """
        (definition,) = self.ask(GetTables(name, outlines=True), waits=waits).message.tables
        if definition.outline is not None:
            self._keep(definition.outline)
        return definition.table

    def _learn_ranges(self, unknown: UnknownRangesError) -> None:
        """Fetch ranges that a statement needs; perhaps not all at once. One round trip.

        Raises:
            TopologyChangedError: The table has other ranges by now.
            Error: No process can be reached.
        """
        reference = unknown.details["reference"]
        pages = self._ask_anybody(GetRanges(reference, unknown.details["wanted"])).pages
        if not learn_ranges(reference, pages):
            raise ProtocolError("a request for the ranges of some keys was answered without these ranges")

    def _keep(self, scheme: PartitionScheme) -> None:
        """Keep what is known of the newest ranges of a table, also while no statement is prepared that uses it."""
        assert scheme.reference is not None
        table, _, _ = scheme.reference.rpartition(".")
        self._outlined[table] = scheme

    def known_table(self, name: str) -> TableDef:
        """The definition of a table that this session has; it may be old.

        Of a large scheme it has the ranges that this process knows; whoever needs more gets an
        :class:`~secateur.errors.UnknownRangesError`, see :meth:`when_known`. Costs a round trip only for a table whose
        definition the session does not have.

        Raises:
            UnknownTableError: There is no such table.
        """
        key = name.casefold()
        table = self._known.get(key)
        if table is None:
            table = self._known[key] = self.outlined_table(name)
        if table.scheme.partial is not None:
            table = self._known[key] = replace(table)  # reads its reference again
        return table

    def forget_tables(self) -> None:
        """Drop the definitions of :meth:`known_table`."""
        self._known = {}

    def _prepare(self, asked: Prepare, *, waits: bool) -> tuple[Prepared, int]:
        """Have a statement prepared; returns it and the version of the statistics with which it was planned.

        Where the answer names the large scheme of a table that is not known here, the table is fetched, and the
        statement prepared again.
        """
        fetched: set[str] = set()
        while True:
            try:
                answer = self.ask(asked, waits=waits)
            except TopologyChangedError as unknown:
                table = unknown.details.get("table")
                reference = self.outlined_table(table).scheme.reference if isinstance(table, str) else None
                if reference is None or reference in fetched:
                    raise
                fetched.add(reference)
                continue
            prepared = answer.message.statement
            for outline in answer.message.outlines:
                self._keep(outline)
            return (
                EvaluatedInsert(prepared, decode_tables(answer.parts)) if isinstance(prepared, InsertRows) else prepared
            ), answer.message.statistics_version

    def check_open(self) -> None:
        """Raise unless the connection is open.

        Raises:
            InterfaceError: It is closed.
        """
        if self.closed:
            raise InterfaceError("the connection is closed; open another with secateur.connect()")

    def close(self) -> None:
        """Close all sockets. Requests of other threads end with an InterfaceError."""
        with self._lock:
            self.closed = True
            channels: list[Channel | ChannelPool] = [self._controller, *self._members.values(), *self._alone]
            self._members.clear()
        for channel in channels:
            channel.close()

    def _key(self, sql: str, params: list[Any] | dict[str, Any]) -> StatementKey:
        return sql, self.pruning, self._plan_options, parameter_types(params)

    @contextmanager
    def _channel_alone(self, host: str, port: int) -> Iterator[Channel]:
        """A connection for one caller, which has no time-out and ends with the session."""
        channel = Channel(host, port, token=self._token, timeout_s=None, tls=self._tls)
        with self._lock:
            self.check_open()
            self._alone.add(channel)
        try:
            yield channel
        finally:
            with self._lock:
                self._alone.discard(channel)
            channel.close()

    def _member(self, member_id: str) -> ChannelPool:
        member = self._topology.member(member_id)
        place = member.host, member.port
        pool = self._members.get(place)
        if pool is None:
            with self._lock:
                self.check_open()
                pool = self._members.setdefault(place, ChannelPool(lambda: self._member_channel(*place)))
        return pool

    def _member_channel(self, host: str, port: int) -> Channel:
        return Channel(
            host,
            port,
            token=self._token,
            timeout_s=self._timeout_s,
            silence_s=self._silence_s,
            is_awaited=lambda: self._has_member_at(host, port),
            session=self._id,
            tls=self._tls,
        )

    def _has_member_at(self, host: str, port: int) -> bool:
        """Ask whether a member that is silent is still in the cluster."""
        try:
            topology = self.refresh_topology()
        except Error:
            return True
        return any((member.host, member.port) == (host, port) for member in topology.members)


def _name_member(error: Error, channel: Channel, member_id: str) -> None:
    """Note which member did not answer, if a member was asked: another process may soon have its address."""
    if error.details.get("address") == channel.address:
        error.details.setdefault("member", member_id)


def _greeted(controller: Channel, wait_s: float) -> Greeting:
    """Connect; the address of a controller that is being started anew refuses connections for a while."""
    end_s = time.monotonic() + wait_s
    while True:
        try:
            return controller.connect()
        except UnreachableError as error:
            if isinstance(error.__cause__, socket.gaierror) or time.monotonic() >= end_s:
                raise
        time.sleep(_CONTROLLER_PAUSE_S)
