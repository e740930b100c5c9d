"""The hello, the first request of every connection, and its reply."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypedDict

import msgspec

from secateur.partitioning.topology.topology import Topology
from secateur.protocol.message import Message


class Pruning(StrEnum):
    """Whether statements run only where their partitions are. False in a condition when off."""

    ON = "on"
    """Run where the required partitions are."""
    OFF = "off"
    """Run everything everywhere."""
    VERIFY = "verify"
    """Run both ways and raise when the rows differ."""

    def __bool__(self) -> bool:
        return self is not Pruning.OFF

    def __repr__(self) -> str:
        return repr(self.value)


PROTOCOL_VERSION: Final = 4
"""The version is in the head of every frame, so a peer of another version is recognised by its first bytes.

It grows with a release in which frames, messages or the values in them change: others are refused, and never misread.
"""


class Versions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The versions that the controller has; clients compare them with their own. 0 says nothing.

    Attributes:
        catalog_version: The version of the tables and views.
        topology_version: The version of the members and owners.
        statistics_version: The version of the statistics of the tables.
        pruning: The pruning setting of sessions that have not set their own; None says nothing.
    """

    catalog_version: int = 0
    topology_version: int = 0
    statistics_version: int = 0
    pruning: Pruning | None = None


class GivenVersions(TypedDict):
    """The fields of :class:`Versions`, for an answer that has them all."""

    catalog_version: int
    topology_version: int
    statistics_version: int
    pruning: Pruning


class FrameLimits(msgspec.Struct, frozen=True):
    """The largest frames that a server takes, in bytes."""

    frame_bytes_max: int
    header_bytes_max: int


class Greeting(Versions, frozen=True, kw_only=True):
    """The identity of the server.

    Attributes:
        limits: The limits of the server.
        cluster_id: The cluster, of a controller.
        member: The member's id, of a member.
        topology: The members and owners, of a controller.
        silence_s: Seconds of silence after which the cluster replaces a member, of a controller.
        is_limited: Whether the token of the caller is good for some tables only.
        expires_in_s: Seconds for which that token is valid still; None for one that does not end by itself.
        takes_traces: Whether the span of a request may come in a frame before it.
    """

    limits: FrameLimits | None = None
    cluster_id: str | None = None
    member: str | None = None
    topology: Topology | None = None
    silence_s: float | None = None
    is_limited: bool = False
    expires_in_s: float | None = None
    takes_traces: bool = False


class Hello(Message[Greeting], frozen=True, kw_only=True):
    """The identity of the caller, with its proof.

    Attributes:
        client: A name for logs and lists.
        token: The users' secret; None where there is none.
        role: The claimed role of a process of the cluster; None for a client.
        secret: The secret of the cluster, which proves the role.
        session: What the connections of one client session have in common, so that its statements share their turns;
            empty where every connection is a session of its own.
    """

    client: str = ""
    token: str | None = None
    role: str | None = None
    secret: str | None = None
    session: str = ""

    def __repr__(self) -> str:
        return f"Hello(client={self.client!r}, role={self.role!r})"  # without the secrets
