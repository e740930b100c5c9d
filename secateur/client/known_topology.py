"""The topology as a connection knows it, and how it finds out the owners and ranges that a statement needs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from secateur import errors
from secateur.client.channel_pool import ChannelOptions
from secateur.client.controller_calls import ControllerCalls
from secateur.partitioning.schemes.scheme import learn_ranges
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import GetOwnerPages, GetOwners, GetRanges, GetTopology
from secateur.protocol.message import Message
from secateur.wire import Channel

R = TypeVar("R")

_TOPOLOGY_WAIT_S: Final = 2.0
"""Seconds that the controller may take to name the owners before the members are asked."""


class KnownTopology(ControllerCalls):
    """Keeps the newest topology that a process of the cluster has told of. Thread-safe.

    Attributes:
        serving_calls: Known statements as functions, by text and classes of parameters
            (:mod:`~secateur.client.execution.serving_calls`): as long as topology, plans and settings stay the same.

    Raises:
        ProtocolError: Something answers that is not the controller of a cluster of ours.
    """

    def __init__(self, controller: Channel, options: ChannelOptions) -> None:
        super().__init__(controller, options)
        topology = controller.hello.topology
        if topology is None:
            controller.close()
            raise errors.ProtocolError(
                "the process at this address is no controller of a cluster: connect to the controller"
            )
        self._topology = topology
        self._newest_topology = topology.version
        self.serving_calls: dict[tuple[object, ...], Callable[..., Any]] = {}
        self._owners: tuple[Topology, dict[tuple[str, int], str]] = (topology, {})  # as far as they were asked for

    @abstractmethod
    def _ask_members(self, message: Message[R]) -> Iterator[R]:
        """Ask one member after the other, leaving out those that cannot be reached or do not know."""

    @property
    def topology(self) -> Topology:
        """The newest topology that this session knows; it asks the controller if a member has reported a newer one.

        Of large groups, it has the owners that statements have needed so far; see :meth:`when_known`.
        """
        if self._topology.version < self._newest_topology:
            return self.refresh_topology()
        return self._topology

    @property
    def known_topology(self) -> Topology:
        """The topology that this session has already: nobody is asked, so nothing can fail.

        A statement that was carried out takes its figures from here. An error would say of it that nothing was done.
        """
        return self._topology

    def owner(self, group: str, partition: int) -> str:
        """The member that answers for a partition of an affinity group now. Costs half a microsecond.

        Raises:
            TopologyChangedError: The topology does not know the group.
            PartitionLostError: Every copy of it is lost.
            UnknownOwnersError: Its owners have to be fetched first.
            Error: As :attr:`topology`.
        """
        topology = self.topology
        known_in, owners = self._owners
        if known_in is not topology:
            known_in, owners = self._owners = topology, {}
        member = owners.get((group, partition))
        if member is None:
            member = topology.ownership(group).primary(partition)
            topology.check_live((member,))
            owners[group, partition] = member
        return member

    def refresh_topology(self) -> Topology:
        """Ask the controller for the owners, or, if it is out of reach, the members. One round trip.

        Raises:
            Error: No process can be reached, or the controller answers with an error.
        """
        try:
            topology = self._ask_controller(GetTopology()).topology
        except (errors.UnreachableError, errors.MemberLostError):
            heard = self._owners_of_members()
            if heard is None:
                raise
            topology = heard
        with self._lock:
            if topology.version >= self._topology.version:
                self._topology = topology.with_known_owners(self._topology)
            # A peer that named a newer version than the controller has was wrong; asking repeatedly would not help.
            self._newest_topology = self._topology.version
            self.forget_calls()
            return self._topology

    def note_topology(self, version: int) -> None:
        """Hear of a version of the topology."""
        if version > self._newest_topology:
            with self._lock:
                self._newest_topology = max(version, self._newest_topology)
                self.forget_calls()

    def forget_calls(self) -> None:
        """Drop all compiled calls, since something has changed on which they rest.

        Who compiles one looks for the dictionary first, then at what the call rests on: what changes meanwhile has
        replaced the dictionary.
        """
        self.serving_calls = {}

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
            except errors.UnknownRangesError as unknown:
                self._learn_ranges(unknown)
            except errors.UnknownOwnersError as unknown:
                self._learn_owners(unknown)

    def _learn_owners(self, unknown: errors.UnknownOwnersError) -> None:
        """Fetch owners that a statement needs. One round trip; two more if the owners have changed meanwhile."""
        digest = unknown.details["digest"]
        asked = GetOwnerPages(digest, unknown.details["pages"])
        try:
            pages = self._ask_anybody(asked).pages
        except errors.TopologyChangedError:
            before = self._topology
            if self.refresh_topology().version == before.version:
                raise
            return
        try:
            with self._lock:
                self._topology = self._topology.with_pages(digest, pages)
        except ValueError as error:
            raise errors.ProtocolError(
                f"a request for the owners of some partitions was answered with others: {error}"
            ) from error
        if not pages.keys() >= set(asked.pages):
            raise errors.ProtocolError("a request for the owners of some partitions was answered without these owners")

    def _learn_ranges(self, unknown: errors.UnknownRangesError) -> None:
        """Fetch ranges that a statement needs; perhaps not all at once. One round trip.

        Raises:
            TopologyChangedError: The table has other ranges by now.
            Error: No process can be reached.
        """
        reference = unknown.details["reference"]
        pages = self._ask_anybody(GetRanges(reference, unknown.details["wanted"])).pages
        if not learn_ranges(reference, pages):
            raise errors.ProtocolError("a request for the ranges of some keys was answered without these ranges")

    def _ask_anybody(self, asked: Message[R]) -> R:
        """Ask the controller, or, if it is out of reach, the members.

        Raises:
            Error: No process can be reached that knows, or the controller answers with an error.
        """
        try:
            return self._ask_controller(asked)
        except (errors.UnreachableError, errors.MemberLostError):
            for heard in self._ask_members(asked):
                return heard
            raise

    def _ask_controller(self, asked: Message[R]) -> R:
        """Ask the controller, which is as good as out of reach if it does not answer soon.

        Raises:
            Error: It cannot be reached, or answers with an error; or the statement was ended meanwhile.
        """
        try:
            return self.ask(asked, timeout_s=_TOPOLOGY_WAIT_S, waits=False).message
        except errors.DeadlineError as error:
            self.check_control()  # a deadline of the user's own
            silent = errors.UnreachableError(f"it has not answered for {_TOPOLOGY_WAIT_S:g} s")
            raise self._controller_gone(silent) from error

    def _owners_of_members(self) -> Topology | None:
        """The newest owners that a member knows of; None when none can be reached."""
        heard = [answer.topology for answer in self._ask_members(GetOwners())]
        return max(heard, key=lambda topology: topology.version, default=None)

    def member_named_by(self, error: errors.Error) -> str | None:
        """Return the member that an error names, by its id or its address; None when it names no known one."""
        member = error.details.get("member")
        if isinstance(member, str):
            return member
        address = error.details.get("address")
        return next((known.id for known in self._topology.members if f"{known.host}:{known.port}" == address), None)
