"""One copy of one partition, and its knowledge of the other copies: a state machine without I/O.

The changes of a partition carry a *sequence number*, given by its primary, and every copy makes them in that order
without a gap. The state of a copy is therefore one number, and of two copies one has everything that the other has.
Each copy keeps its latest changes until the primary reports that all in-sync copies have them (*settled*).

When a primary is lost, its successor takes over in a new *term*, the version of the topology that made it the primary.
It asks every other copy for the changes that it lacks, makes them, and sends each copy the changes that that one lacks;
only then it accepts writes. A change that only some copies have is thus completed everywhere, since it may have been
acknowledged, or will be requested again, and the copies are equal even if it is not. A copy that knows of a term
accepts nothing from primaries of earlier ones.

**Invariant**: a change is settled only if every copy that the cluster counts on has it. **Invariant**: changes that are
not settled are kept by every copy that has them. So a copy that is behind can always be caught up: a *repair* sends it
the changes that it lacks, one after the other. A copy that cannot be caught up is out of sync, and is removed from the
ownership.

A further copy is built while the partition is written to. Its member is a *learner* first: the primary sends it each
change behind the snapshot that it copies, and acknowledges writes without it. Once the learner has all changes, the
primary *counts* it: from then on writes wait for it as for any copy, and only then the controller makes it an owner. So
an owner has every acknowledged write from its first moment on.

Raft would elect the primary as well; here the controller appoints it, and a term is a version of the topology.

Source: the recovery of Viewstamped Replication (Liskov and Cowling, 2012), with the controller in the place of the view
change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import msgspec

_PAUSE_MIN_S: Final = 0.02
_PAUSE_MAX_S: Final = 0.5
_LEARNER_BEHIND_MAX: Final = 50_000
"""Changes that are kept for a learner; one that falls further behind has to begin again."""


class ReplicatedChange(msgspec.Struct, frozen=True):
    """A change as it is sent to the other copies.

    Attributes:
        sequence: Its number, from 1.
        change_id: The id of the request.
        operation: The change to make, by its name on the wire.
        rows: The rows, or keys, as bytes.
        published: The number of the last load that was published before it: a copy publishes that load first, and
            none behind it. -1 where that is not known.
    """

    sequence: int
    change_id: str
    operation: str
    rows: bytes | memoryview
    published: int = -1


class SendChange(msgspec.Struct, frozen=True):
    """Effect: after a pause, send a change to a copy; then comes ``confirmed``, ``unanswered`` or ``refused``.

    Attributes:
        member: The member of the copy.
        change: The change.
        term: The term in which it is sent: a copy that knows of a newer one does not make it.
        is_repair: Whether it is part of a repair, rather than sent when it was made.
        pause_s: Seconds before it is sent.
    """

    member: str
    change: ReplicatedChange
    term: int
    is_repair: bool = False
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CountOut:
    """Effect: have the cluster count a copy out, because it cannot be caught up."""

    member: str
    reason: str


Effect: TypeAlias = SendChange | CountOut


class ReplicaPhase(Enum):
    """The role of a copy."""

    BACKUP = "backup"
    TAKING_OVER = "taking over"
    """It is to be the primary, and does not yet know the state of all other copies."""
    PRIMARY = "primary"


class Replica:
    """The state of one copy. Every method is an event, and returns what has to be done.

    Attributes:
        phase: Its role.
        term: The newest term it knows of.
        last: The sequence number of its last change; 0 before the first.
        settled: All copies have the changes up to this one, as far as this copy knows.
        is_superseded: Another copy knows of a newer term: this one is no longer a primary, though the controller's
            notice may not have arrived yet.
    """

    __slots__ = (
        "_asked",
        "_have",
        "_kept",
        "_learners",
        "_out_of_sync",
        "_repairs",
        "is_superseded",
        "last",
        "phase",
        "settled",
        "term",
    )

    def __init__(self) -> None:
        self.phase = ReplicaPhase.BACKUP
        self.term = 0
        self.last = 0
        self.settled = 0
        self.is_superseded = False
        self._kept: deque[ReplicatedChange] = deque()
        self._have: dict[str, int] = {}
        self._asked: set[str] = set()
        self._repairs: dict[str, SendChange] = {}  # what was sent last, by member
        self._learners: dict[str, int] = {}
        self._out_of_sync: set[str] = set()

    @classmethod
    def built(cls, term: int, settled: int, last: int, kept: Iterable[ReplicatedChange]) -> Replica:
        """Return a copy of the state of a primary.

        Args:
            term: The primary's.
            settled: Likewise.
            last: The number of the last change that the copied rows contain.
            kept: The changes that it keeps, up to that one.
        """
        replica = cls()
        replica.term, replica.settled, replica.last = term, settled, last
        replica._kept.extend(kept)
        return replica

    @classmethod
    def first_primary(cls, others: Iterable[str]) -> Replica:
        """Return the primary of a new partition, and the members of its other copies: all are empty."""
        replica = cls()
        replica.phase = ReplicaPhase.PRIMARY
        replica._have = dict.fromkeys(others, 0)
        return replica

    @property
    def is_open(self) -> bool:
        """Whether it is the primary, and knows the state of all other copies."""
        return self.phase is ReplicaPhase.PRIMARY

    @property
    def takes_writes(self) -> bool:
        """Whether it accepts writes: it is open, and no copy knows of a newer primary."""
        return self.phase is ReplicaPhase.PRIMARY and not self.is_superseded

    @property
    def others(self) -> tuple[str, ...]:
        """The members of the other copies, as far as they are known to the primary; those asked while it takes over."""
        return (*self._have, *self._asked)

    @property
    def receivers(self) -> tuple[str, ...]:
        """The members that changes are sent to: those of the other copies, and learners."""
        return (*self._have, *self._asked, *self._learners)

    @property
    def kept(self) -> tuple[ReplicatedChange, ...]:
        """The changes that are kept, because some copy may lack them."""
        return tuple(self._kept)

    @property
    def unsettled(self) -> int:
        """Changes here that some other copy may not have."""
        return self.last - self.settled

    @property
    def is_repairing(self) -> bool:
        """Whether some copy is being sent changes that it lacks."""
        return bool(self._repairs)

    def repairs(self, send: SendChange) -> bool:
        """Whether a change of a repair is still to be sent."""
        return self._repairs.get(send.member) == send

    def has_confirmed(self, member: str, sequence: int) -> bool:
        """Whether a copy need not be waited for: it has the change, or is not a copy of this partition."""
        known = self._learners if member in self._learners else self._have
        return known.get(member, sequence) >= sequence and member not in self._asked

    def is_learner(self, member: str) -> bool:
        """Whether changes are sent to a member that no write waits for."""
        return member in self._learners

    def is_level(self, member: str) -> bool:
        """Whether a learner has all changes."""
        return self._learners.get(member) == self.last

    def waits_for(self, member: str) -> bool:
        """Whether a copy that takes over still needs the state of another one."""
        return member in self._asked

    def is_out_of_sync(self, member: str) -> bool:
        """Whether a copy is to be counted out, rather than one that its member has begun to build since."""
        return member in self._out_of_sync

    # -- events at the primary

    def take_over(self, term: int, others: Iterable[str]) -> tuple[str, ...]:
        """This copy is the primary from now on; returns the members that are to be asked for their :meth:`tail`."""
        self.term = max(self.term, term)
        self.is_superseded = False
        self._have = {}
        self._asked = set(others)
        self._repairs = {}
        self._learners = {}
        self._out_of_sync = set()
        self.phase = ReplicaPhase.TAKING_OVER
        self._open()
        return tuple(sorted(self._asked))

    def told(self, member: str, last: int, changes: Sequence[ReplicatedChange]) -> tuple[ReplicatedChange, ...]:
        """A copy has sent its state; returns the changes to be made here, in order. They count as made.

        Raises:
            LookupError: The copy is ahead, and does not have every change from there to here any more: this copy is out
                of sync.
        """
        if member not in self._asked:
            return ()
        new = self._next(changes)
        if last > self.last + len(new):
            raise LookupError(f"a copy has {last} changes and gave those up to {self.last + len(new)}")
        self._kept.extend(new)
        self.last += len(new)
        self._asked.discard(member)
        self._have[member] = last
        self._open()
        return new

    def append(self, change_id: str, operation: str, rows: bytes | memoryview, published: int = 0) -> list[SendChange]:
        """The primary has made a change, number :attr:`last` from now on; returns it for all other copies."""
        self.last += 1
        change = ReplicatedChange(self.last, change_id, operation, rows, published)
        self._kept.append(change)
        if not self._have:  # otherwise it is settled once the others have it
            self._settle()
        return [SendChange(member, change, self.term) for member in (*self._have, *self._asked, *self._learners)]

    def missing(self, member: str) -> tuple[ReplicatedChange, ...]:
        """Return the changes that a copy lacks.

        Raises:
            LookupError: Not all of them are kept: it is out of sync.
        """
        have = (self._learners if member in self._learners else self._have).get(member, self.last)
        if have < self.last and (not self._kept or self._kept[0].sequence > have + 1):
            raise LookupError(
                f"a copy has {have} changes, those up to {self.last - len(self._kept)} are not kept any more"
            )
        return tuple(change for change in self._kept if change.sequence > have)

    def confirmed(self, send: SendChange, last: int, term: int) -> list[Effect]:
        """A copy has answered with its last change and the newest term that it knows of."""
        if term > self.term:
            self.is_superseded = True
        else:
            known = self._learners if send.member in self._learners else self._have
            if last > known.get(send.member, last):
                known[send.member] = last
                self._settle()
        return self._after(send, 0.0)

    def unanswered(self, send: SendChange) -> list[Effect]:
        """It is not known whether a copy has made a change."""
        return self._after(send, min(max(2 * send.pause_s, _PAUSE_MIN_S), _PAUSE_MAX_S) if send.is_repair else 0.0)

    def refused(self, send: SendChange, reason: str) -> list[Effect]:
        """A copy cannot make a change."""
        if self.has_confirmed(send.member, send.change.sequence):
            return []
        return self._count_out(send.member, reason)

    def learn(self, member: str) -> None:
        """A member copies the rows as they are now: it is sent every later change."""
        self._repairs.pop(member, None)
        self._out_of_sync.discard(member)
        self._learners[member] = self.last

    def count(self, member: str) -> None:
        """A learner has all changes: writes wait for it from now on."""
        self._have[member] = self._learners.pop(member)
        self._settle()

    def repair(self) -> list[Effect]:
        """Send each of the other copies the changes that it lacks, since this one has just opened."""
        return [effect for member in self._have for effect in self._repair(member, 0.0)]

    def left(self, member: str) -> None:
        """A copy does not count any more."""
        self._asked.discard(member)
        self._have.pop(member, None)
        self._learners.pop(member, None)
        self._repairs.pop(member, None)
        self._open()
        self._settle()

    def step_down(self) -> None:
        """Another copy is the primary now."""
        self.phase = ReplicaPhase.BACKUP
        self._have = {}
        self._asked = set()
        self._repairs = {}
        self._learners = {}

    # -- events at a backup

    def take(self, term: int, settled: int, changes: Sequence[ReplicatedChange]) -> tuple[ReplicatedChange, ...]:
        """The primary has sent changes; returns those to be made here, in order.

        Known changes, changes after a gap and changes of a past term are left out.

        They count as made. The answer to the primary is :attr:`last` and :attr:`term`.
        """
        if not self._accepts(term):
            return ()
        new = self._next(changes)
        self._kept.extend(new)
        self.last += len(new)
        self._drop(settled)
        return new

    def tail(self, term: int, after: int) -> tuple[ReplicatedChange, ...] | None:
        """A new primary asks for the changes behind one; None when its term is past.

        From now on no primary of an earlier term is listened to.
        """
        return tuple(change for change in self._kept if change.sequence > after) if self._accepts(term) else None

    def could_not_make(self, change: ReplicatedChange) -> None:
        """A change that was to be made could not be made, nor those behind it: they are not here."""
        while self._kept and self._kept[-1].sequence >= change.sequence:
            self._kept.pop()
        self.last = min(self.last, change.sequence - 1)

    def is_settled(self, term: int, settled: int) -> None:
        """The primary has reported up to which change all copies are."""
        if self._accepts(term):
            self._drop(settled)

    # --

    def _after(self, send: SendChange, pause_s: float) -> list[Effect]:
        """Return the effects of a sent change: a repair if the copy lacks the change, or the next one of a repair."""
        if send.is_repair:
            if not self.repairs(send):
                return []
            del self._repairs[send.member]
        elif self.has_confirmed(send.member, send.change.sequence):
            return []
        return self._repair(send.member, pause_s)

    def _repair(self, member: str, pause_s: float) -> list[Effect]:
        if member in self._repairs or not self.takes_writes:
            return []
        try:
            missing = self.missing(member)
        except LookupError as error:
            return self._count_out(member, str(error))
        if not missing:
            return []
        send = self._repairs[member] = SendChange(member, missing[0], self.term, True, pause_s)
        return [send]

    def _count_out(self, member: str, reason: str) -> list[Effect]:
        self._repairs.pop(member, None)
        if member in self._learners:  # nobody counts on it: who has it built finds out, and begins again
            del self._learners[member]
            return []
        self._out_of_sync.add(member)
        return [CountOut(member, reason)]

    def _accepts(self, term: int) -> bool:
        if term < self.term or (term == self.term and self.phase is not ReplicaPhase.BACKUP):
            return False
        if term > self.term:
            self.term = term
            self.step_down()
        return True

    def _next(self, changes: Sequence[ReplicatedChange]) -> tuple[ReplicatedChange, ...]:
        """Return the changes that continue this copy."""
        new: list[ReplicatedChange] = []
        for change in changes:
            if change.sequence == self.last + len(new) + 1:
                new.append(change)
        return tuple(new)

    def _open(self) -> None:
        if self.phase is ReplicaPhase.TAKING_OVER and not self._asked:
            self.phase = ReplicaPhase.PRIMARY
            self._settle()

    def _settle(self) -> None:
        if self.phase is ReplicaPhase.PRIMARY:
            self._drop(min(self._have.values(), default=self.last))

    def _drop(self, settled: int) -> None:
        if settled > self.settled:
            self.settled = max(self.settled, min(settled, self.last))
        needed = self.settled
        if self._learners:
            self._learners = {
                member: have for member, have in self._learners.items() if self.last - have <= _LEARNER_BEHIND_MAX
            }
            needed = min([needed, *self._learners.values()])
        while self._kept and self._kept[0].sequence <= needed:
            self._kept.popleft()
