"""Leases: prevent two members from answering for one partition. State machines without I/O.

A member answers for its partitions while it holds a lease. The member counts the lease from *before* it asked, and the
granter counts it from *after* it was asked, so the granter's end is never the earlier one, however long the message
took or a process was suspended in between.

The controller is asked first. It grants the lease by promising to publish no topology without the member before the
lease has ended. When it is silent, the other members are asked: a partition can only get a new primary that holds a
copy and acts on a newer topology, so the promise of all other members not to act on a topology without the asker before
the lease has ended is as good. A process that is gone (its address refuses connections) acts on nothing any more; but
its *earlier* actions are only excluded while the lease is still valid, so only then does it count as a promise.

The controller also decides when it removes a silent member (:class:`MemberWatch`). Each member has its own clock of
silence. It runs only while the controller itself does: the time between two checks counts for at most twice their
interval, so a controller that was suspended or starved does not take its own silence for that of all members. A member
whose process is known to be gone is removed at once. One that is silent for too long, or has to be removed for another
reason, gets no further lease and is removed when the last one has certainly ended.

A known gap: a controller that is cut off from *all* members can drop a table for which they still answer.

**Invariant**: while the lease of a member is valid, no member acts on a topology from which it is missing.
`tests/unit/cluster/test_lease.py` runs these machines under random faults on a virtual clock and network.

Source: C. Gray, D. Cheriton, "Leases: an efficient fault-tolerant mechanism for distributed file cache consistency",
1989.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, assert_never

from secateur.errors import ProgrammingError

_SUSPECT_SHARE: Final = 0.4
"""The share of the silence limit after which a member is called suspect."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of leases, all derived from one setting.

    Attributes:
        silence_s: Seconds after which a silent member is removed.
    """

    silence_s: float

    def __post_init__(self) -> None:
        if not 0 < self.silence_s < math.inf:
            raise ProgrammingError(f"member_silence_s={self.silence_s!r}: a number of seconds, more than 0")

    @property
    def lease_s(self) -> float:
        """Seconds that a lease lasts for its holder: less than the silence after which the member is removed."""
        return 0.6 * self.silence_s

    @property
    def promise_s(self) -> float:
        """Seconds that a lease lasts for its granter: more, by the possible difference in pace of two clocks."""
        return 1.01 * self.lease_s

    @property
    def interval_s(self) -> float:
        """Seconds between two renewals."""
        return 0.1 * self.silence_s

    @property
    def patience_s(self) -> float:
        """Seconds that the controller may take to answer before the other members are asked as well."""
        return 0.1 * self.silence_s


class LeaseOutcome(Enum):
    """The outcome of a request for a lease. The values of the first three are their names on the wire."""

    GRANTED = "granted"
    """Promised."""
    GIVEN_UP = "given up"
    """The member is not in the cluster any more."""
    REFUSED = "refused"
    """Neither; the other side cannot promise it now."""
    SILENT = "silent"
    """No answer; the process may live."""
    GONE = "gone"
    """The process does not exist any more."""


@dataclass(frozen=True, slots=True)
class AskPeers:
    """Effect: ask each of these members for a promise that counts from ``asked_s``."""

    asked_s: float
    peers: frozenset[str]


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """Effect: the cluster continues without this member, which has to drop its data."""


Effect: TypeAlias = AskPeers | MemberRemoved


class LeaseHolder:
    """The side that holds a lease. All times are of one clock, the member's own.

    Attributes:
        until_s: The end of the lease: from then on nothing may be answered.
    """

    def __init__(self, times: LeaseTimes) -> None:
        self.until_s = -math.inf
        self._times = times
        self._peers: frozenset[str] = frozenset()
        self._addresses: dict[str, Hashable] = {}
        self._gone: set[str] = set()
        self._asked: AskPeers | None = None  # the other members, together
        self._missing: set[str] = set()  # those of them that have promised nothing yet

    def topology_changed(self, peers: Mapping[str, Hashable]) -> None:
        """This member acts on a newer topology, with these other members and their addresses.

        One that was gone may have come back, as another process at another address: that has promised nothing.
        """
        self._gone = {peer for peer in self._gone if peers.get(peer) == self._addresses.get(peer)}
        self._peers, self._addresses = frozenset(peers), dict(peers)

    def controller_answered(self, asked_s: float, answer: LeaseOutcome, now_s: float) -> list[Effect]:
        """The controller answered the request for a lease of ``asked_s``, or turned out to be silent or gone.

        A controller that was alive until now has published nothing without this member, if the lease is still valid;
        one that is gone never will.
        """
        match answer:
            case LeaseOutcome.GRANTED:
                self._extend(asked_s)
                return []
            case LeaseOutcome.GONE if now_s < self.until_s:
                self._extend(asked_s)
                return []
            case LeaseOutcome.GIVEN_UP:
                return [MemberRemoved()]
            case LeaseOutcome.GONE | LeaseOutcome.SILENT | LeaseOutcome.REFUSED:
                asked = self._asked = AskPeers(now_s, self._peers - self._gone)
                self._missing = set(asked.peers)
                if asked.peers:
                    return [asked]
                self._all_promised(asked)
                return []
            case _:
                assert_never(answer)

    def peer_answered(self, asked: AskPeers, peer: str, answer: LeaseOutcome, now_s: float) -> list[Effect]:
        """Another member answered, or turned out to be silent or gone.

        A member that was gone before the lease ended had not acted on a topology without this member, and never will.
        One that is found to be gone later may have.
        """
        match answer:
            case LeaseOutcome.GIVEN_UP:
                return [MemberRemoved()]
            case LeaseOutcome.GONE if now_s < self.until_s:
                self._gone.add(peer)
            case LeaseOutcome.GRANTED:
                pass
            case LeaseOutcome.GONE | LeaseOutcome.SILENT | LeaseOutcome.REFUSED:
                return []
            case _:
                assert_never(answer)
        if self._asked == asked:
            self._missing.discard(peer)
            if not self._missing:
                self._all_promised(asked)
        return []

    def _all_promised(self, asked: AskPeers) -> None:
        """All other members have promised, or are gone."""
        self._extend(asked.asked_s)
        self._asked = None

    def _extend(self, asked_s: float) -> None:
        self.until_s = max(self.until_s, asked_s + self._times.lease_s)


class Promises:
    """The side of a member that other members ask. All times are of one clock, the member's own."""

    def __init__(self, times: LeaseTimes) -> None:
        self._times = times
        self._until_s: dict[str, float] = {}
        self._version = 0
        self._members: frozenset[str] = frozenset()

    def asked(self, member: str, topology_version: int, now_s: float) -> LeaseOutcome:
        """Another member asks for a promise.

        Args:
            member: The member that asks.
            topology_version: The topology that it acts on.
            now_s: Now.
        """
        if member in self._members:
            self._until_s[member] = now_s + self._times.promise_s
            return LeaseOutcome.GRANTED
        return LeaseOutcome.GIVEN_UP if self._version >= topology_version else LeaseOutcome.REFUSED

    def heard(self, version: int, members: Collection[str], now_s: float, *, gains_copies: bool) -> float:
        """A newer topology has arrived; nothing is promised to those that it leaves out from now on.

        Another member may hold a lease that rests on the promises of all members but this one, which it did not know
        when it asked. This member has no copies then: it gets its first ones once all others have acted on a topology
        with it. So whenever it gains copies, it promises to all.

        Args:
            version: The version of the topology.
            members: Its members.
            now_s: Now.
            gains_copies: Whether this member has copies in it that it had not before.

        Returns:
            When this member may act on it.
        """
        if version > self._version:
            if gains_copies:
                self._until_s |= dict.fromkeys(self._members.union(members), now_s + self._times.promise_s)
            self._version, self._members = version, frozenset(members)
        left_out = [until_s for member, until_s in self._until_s.items() if member not in self._members]
        self._until_s = {member: until_s for member, until_s in self._until_s.items() if until_s > now_s}
        return max([now_s, *left_out])


@dataclass(slots=True)
class _Watched:
    """The state of one member.

    Attributes:
        promised_until_s: Until when it may hold a lease.
        silent_s: How long it has been silent.
        stalled_s: How long its event loop had not run when it reported last.
        is_condemned: Whether it gets no further lease.
    """

    promised_until_s: float
    silent_s: float = 0.0
    stalled_s: float = 0.0
    is_condemned: bool = False


class MemberWatch:
    """Watches all members of a cluster. All times are of one clock, the controller's own.

    Args:
        stall_s: Seconds for which the event loop of a member may stand still, while its process goes on, before it is
            given up.
    """

    def __init__(self, times: LeaseTimes, stall_s: float) -> None:
        self._times = times
        self._stall_s = stall_s
        self._watched: dict[str, _Watched] = {}
        self._looked_s: float | None = None

    def joined(self, member: str, now_s: float) -> None:
        """A member is new in the cluster."""
        self._watched[member] = _Watched(now_s + self._times.promise_s)

    def left(self, member: str) -> None:
        """A member was given up."""
        self._watched.pop(member, None)

    def heard(self, member: str, now_s: float, *, stalled_s: float) -> LeaseOutcome:
        """A member asks for a lease.

        Args:
            member: Its id.
            now_s: Now.
            stalled_s: For how long its event loop has not turned.
        """
        watched = self._watched.get(member)
        if watched is None:
            return LeaseOutcome.GIVEN_UP
        watched.silent_s, watched.stalled_s = 0.0, stalled_s
        if stalled_s >= self._stall_s:
            watched.is_condemned = True
        if watched.is_condemned:
            return LeaseOutcome.REFUSED
        watched.promised_until_s = now_s + self._times.promise_s
        return LeaseOutcome.GRANTED

    def condemn(self, member: str) -> None:
        """The member has to be removed: it gets no further lease."""
        if member in self._watched:
            self._watched[member].is_condemned = True

    def is_condemned(self, member: str) -> bool:
        """Whether a member gets no further lease, or was removed."""
        watched = self._watched.get(member)
        return watched is None or watched.is_condemned

    def look(self, now_s: float) -> list[str]:
        """The members that may be given up now."""
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, 2 * self._times.interval_s)
        self._looked_s = now_s
        for watched in self._watched.values():
            watched.silent_s += passed_s
            watched.is_condemned |= watched.silent_s >= self._times.silence_s
        return [
            member
            for member, watched in self._watched.items()
            if watched.is_condemned and now_s >= watched.promised_until_s
        ]

    def suspects(self) -> Collection[str]:
        """The members that have been silent or stalled for long enough to wonder."""
        limit_s = _SUSPECT_SHARE * self._times.silence_s
        return {
            member
            for member, watched in self._watched.items()
            if watched.is_condemned or max(watched.silent_s, watched.stalled_s) >= limit_s
        }

    def why(self, member: str) -> str:
        """Why a member is given up, once :meth:`look` has named it."""
        watched = self._watched[member]
        if watched.silent_s >= self._times.silence_s:
            return f"silent for {watched.silent_s:.1f} s, and its lease has ended"
        if watched.stalled_s >= self._stall_s:
            return f"its event loop has stood still for {watched.stalled_s:.1f} s"
        return "it had to be removed, and its lease has ended"
