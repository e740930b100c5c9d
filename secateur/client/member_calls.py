"""The requests that a connection makes of members, over sockets of each member."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any, Final, TypeVar

from secateur.client.channel_pool import ChannelOptions, ChannelPool
from secateur.client.dbapi.rows import ResultStream
from secateur.client.known_topology import KnownTopology
from secateur.errors import Error, MemberLostError, OperationalError, UnreachableError
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.message import Message
from secateur.protocol.operations import OperationBase
from secateur.protocol.query import Execute, Executed
from secateur.wire import SILENCE_S, Answer, CallControl, Channel, Payload, SilenceRule, hello

R = TypeVar("R")

MEMBERS_AT_ONCE: Final = 32
"""Members that one thread asks at the same time: the call for each is inside the call for the one before."""
_OWNERS_WAIT_S: Final = 1.0
"""Seconds that a member may take to name the owners, when the controller is out of reach."""


class MemberCalls(KnownTopology):
    """Asks the members of the topology. Thread-safe: requests of several threads have sockets of their own."""

    def __init__(self, controller: Channel, options: ChannelOptions) -> None:
        super().__init__(controller, options)
        self._id = uuid.uuid4().hex
        self._silence_s = min(SILENCE_S, controller.hello.silence_s or SILENCE_S)
        self._members: dict[tuple[str, int], ChannelPool] = {}
        self._places: tuple[Topology, dict[str, ChannelPool]] = (self._topology, {})  # by the ids of one topology
        self._turns = itertools.count()

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
        pool = self.channels(member_id)
        channel = pool.borrow()
        try:
            return channel.request(message, payload, control=self.control, meanwhile=meanwhile)
        except Error as error:
            name_member(error, channel, member_id)
            raise
        finally:
            pool.give_back(channel)

    def exchange(
        self, member_id: str, pool: ChannelPool, operation: OperationBase, header: bytes, control: CallControl
    ) -> Answer[Any]:
        """As :meth:`ask_member`, for a message that is encoded already, over the :meth:`channels` of the member."""
        channel = pool.borrow()
        try:
            return channel.exchange(operation, header, control=control)
        except Error as error:
            name_member(error, channel, member_id)
            raise
        finally:
            pool.give_back(channel)

    def ask_members(self, messages: Sequence[tuple[str, Message[R]]]) -> list[Answer[R]]:
        """Send a request to each of some members, and wait for all answers.

        All requests of :data:`MEMBERS_AT_ONCE` members are sent before the first answer is read, so they work at the
        same time; that costs no thread.

        Args:
            messages: Members by their ids, and what each is asked.

        Returns:
            The answers, in the same order.

        Raises:
            Error: The first error, in the order of the members. All answers have been read by then.
        """
        found = []
        for answer in self.answers_of(messages):
            if isinstance(answer, Error):
                raise answer
            found.append(answer)
        return found

    def answers_of(self, messages: Sequence[tuple[str, Message[R]]]) -> list[Answer[R] | Error]:
        """Ask as :meth:`ask_members` does; for a member that did not answer, return the error in its place."""
        answers: list[Answer[R] | Error] = []
        for start in range(0, len(messages), MEMBERS_AT_ONCE):
            answers += self._answers_at_once(messages[start : start + MEMBERS_AT_ONCE])
        return answers

    def _answers_at_once(self, messages: Sequence[tuple[str, Message[R]]]) -> list[Answer[R] | Error]:
        answers: list[Answer[R] | Error] = []

        def ask_from(position: int) -> None:
            others = len(messages) - position - 1
            ask_others = partial(ask_from, position + 1) if others else None
            try:
                answer: Answer[R] | Error = self.ask_member(*messages[position], meanwhile=ask_others)
            except Error as error:
                if ask_others is not None and len(answers) < others:  # nothing was sent
                    ask_others()
                answer = error
            answers.append(answer)

        ask_from(0)
        answers.reverse()  # the last one that was asked is the first whose answer is read
        return answers

    def ask_member_for_rows(self, member_id: str, message: Execute) -> tuple[Answer[Executed], ResultStream | None]:
        """Like :meth:`ask_member`, for a request whose answer may be the first of several parts.

        The member may send up to :data:`GRANT_BYTES` at a time.

        Raises:
            Error: It answers with an error, or cannot be reached.
        """
        pool = self.channels(member_id)
        channel = pool.borrow()
        try:
            answer = channel.request(message, control=self.control)
        except BaseException as error:
            name_member(error, channel, member_id)
            pool.give_back(channel)
            raise
        if answer.message.has_more:
            return answer, self.rest_of_rows(pool, channel, self.control)
        pool.give_back(channel)
        return answer, None

    def rest_of_rows(self, pool: ChannelPool, channel: Channel, control: CallControl | None) -> ResultStream:
        """The further parts of an answer, which :meth:`interrupt` ends as well."""
        if control is not None:
            with self._lock:
                self._results_read.add(control)
        return ResultStream(pool, channel, control)

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

    def _ask_members(self, message: Message[R]) -> Iterator[R]:
        """Ask one member after the other, leaving out those that cannot be reached or do not know."""
        for member in self._topology.members:
            pool = self.channels(member.id)
            channel = pool.borrow()
            try:
                answer = channel.request(message, timeout_s=_OWNERS_WAIT_S, control=self.control)
            except OperationalError:
                continue
            finally:
                pool.give_back(channel)
            yield answer.message

    def sign_of(self, member_id: str) -> Sign:
        """Look at a member over a connection of its own. Takes at most half a second for one that is silent."""
        known = next((member for member in self._topology.members if member.id == member_id), None)
        return Sign.GONE if known is None else sign_at(known, self._channel_options)

    def turn(self) -> int:
        """A number that grows with every call, to take turns by."""
        return next(self._turns)

    def close(self) -> None:
        """Close all sockets. Requests of other threads end with an InterfaceError."""
        with self._lock:
            self.closed = True
            channels: list[Channel | ChannelPool] = [self._controller, *self._members.values(), *self._alone]
            self._members.clear()
        for channel in channels:
            channel.close()

    def channels(self, member_id: str) -> ChannelPool:
        """The channels to a member; they stay the same as long as the session."""
        topology = self._topology
        known_in, pools = self._places
        if known_in is not topology:
            known_in, pools = self._places = topology, {}
        pool = pools.get(member_id)
        if pool is None:
            member = topology.member(member_id)
            place = member.host, member.port
            with self._lock:
                self.check_open()
                pool = self._members.setdefault(
                    place, ChannelPool(lambda: self._member_channel(*place), self._waits.idle_max)
                )
            pools[member_id] = pool
        return pool

    def _member_channel(self, host: str, port: int) -> Channel:
        options = self._channel_options
        return Channel(
            host,
            port,
            hello(options.token, session=self._id),
            timeout_s=options.timeout_s,
            silence=SilenceRule(self._silence_s, lambda control: self._has_member_at(host, port, control)),
            tls=options.tls,
            waits=options.waits,
        )

    def _has_member_at(self, host: str, port: int, control: CallControl | None) -> bool:
        """Ask whether a member that is silent is still in the cluster, for a request that ``control`` may end."""
        before = self.work_for(control)
        try:
            topology = self.refresh_topology()
        except Error:
            return True
        finally:
            self.work_for(before)
        return any((member.host, member.port) == (host, port) for member in topology.members)


def name_member(error: BaseException, channel: Channel, member_id: str) -> None:
    """Note which member did not answer, if that is the error: another process may soon have its address."""
    if isinstance(error, (MemberLostError, UnreachableError)) and error.details.get("address") == channel.address:
        error.details.setdefault("member", member_id)


_PROBE_S: Final = 0.5
"""Seconds that a member which did not answer may take to say hello over another connection."""
_PROBES_MAX: Final = 3


class Sign(Enum):
    """The state of a member as a separate connection to it shows."""

    ANSWERS = auto()
    SILENT = auto()
    """The connection is accepted or not, and nothing comes: the process is stopped, or the network to it is cut.

    It may come back.
    """
    GONE = auto()
    """No process listens at its address any more, or it has left the cluster."""


def sign_at(member: MemberAddress, options: ChannelOptions) -> Sign:
    """Look at a member over a connection of its own. Takes at most half a second for one that is silent."""
    for _ in range(_PROBES_MAX):
        channel = options.channel(member.host, member.port, timeout_s=_PROBE_S)
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
