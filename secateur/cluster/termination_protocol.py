"""The outcome of a load whose controller is gone: a state machine without I/O, one for all loads of a member.

A change of ranges that cuts a catch-all is prepared and committed like a load, so everything said of loads here applies
to it: it is *published* once a member uses the new ranges.

A load closes the write latch of its table, under a lease that the controller renews. When the lease ends, or the
connection over which the latch was closed, and the controller does not come back at once, the load is *in doubt*, and
the members decide it themselves, all in the same way:

- A member that has not prepared the load aborts it: no member can have published without its consent.
- A member that has prepared it turns to the first living member in the order of their ids, the only one that decides.
  That member asks all others. A member that is asked and has prepared the load accepts no order of the controller about
  it any more; a member that has not prepared it aborts it. If one has published, all do: its rows have been seen.
  Otherwise all abort.

The deciding member waits for a member that does not answer, unless its process is known to have ended: it may have
published.

**Invariant**: of one load, no two living members have different outcomes. When the member that decides dies, the next
one in order does, and finds every decision that its predecessor has sent to any member.

Source: two-phase commit with presumed abort and cooperative termination (Bernstein, Hadzilacos and Goodman, 1987,
section 7.4).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Final, Protocol

from secateur.errors import LoadFailedError
from secateur.protocol import changes
from secateur.storage.load_registry import LoadOutcome

_log = logging.getLogger(__name__)

LEASE_RENEWED_S: Final = 2.0
"""Seconds between two renewals by the controller. A load that takes less costs no renewal."""


class LoadProgress(StrEnum):
    """The progress of a load on a member. The value is its name on the wire."""

    UNKNOWN = "unknown"
    """The load was not prepared, and it will not be, because a member has asked for its outcome."""
    PREPARED = "prepared"
    PUBLISHED = "published"
    ABORTED = "aborted"


class Silence(Enum):
    """Why a member gives no answer."""

    ENDED = auto()
    """Its process is not there any more."""
    OUT_OF_REACH = auto()


class TwoPhases(Protocol):
    """The operations that a member prepares and then publishes or aborts, by id."""

    def outcome(self, load_id: str) -> LoadOutcome | None:
        """The outcome of an operation here; None when it has not ended."""

    def is_prepared(self, load_id: str) -> bool:
        """Whether an operation is prepared here and has not ended."""

    def publish(self, load_id: str, number: int, rows: int) -> object:
        """Publish a prepared operation. Cannot fail."""

    def abort(self, load_id: str) -> object:
        """Forget an operation, and refuse it from now on; nothing happens to one that has ended."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to a member, whose reply is passed on by :meth:`TerminationProtocol.answered`."""

    member: str
    message: changes.DecideLoad | changes.StandingOfLoad | changes.SettleLoad


@dataclass(slots=True)
class _Hold:
    """A closed latch."""

    table_id: int
    connection_id: int
    ends_s: float
    in_doubt: bool = False


@dataclass(slots=True)
class _Decision:
    """A load that is being decided.

    Attributes:
        again_s: When the members are asked again; None while they are being asked.
        asked: The requests of this round that are not answered, by member.
        ended: The members of this round whose processes have ended.
        standings: The progress on the members that have answered, and here.
        is_blocked: Whether a member did not answer that may have published.
    """

    again_s: float | None = None
    asked: dict[str, Ask] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    standings: list[changes.StandingAnswer] = field(default_factory=list)
    is_blocked: bool = False


def decision(standings: Iterable[changes.StandingAnswer]) -> changes.LoadVerdict:
    """The decision about a load in doubt, from its progress on every living member."""
    published = [(told.number, told.rows) for told in standings if told.standing == LoadProgress.PUBLISHED]
    return changes.LoadVerdict(True, True, *max(published)) if published else changes.LoadVerdict(True)


class TerminationProtocol:
    """The loads of one member that hold latches. Methods are events; some return requests to be sent to members.

    The latch of a load is to be closed while :meth:`holds` it. All times are of one clock, the member's own.

    Args:
        loads: Its loads, or its changes of ranges.
        kind: The kind of operation that is prepared and published.
        lease_s: Seconds that a latch stays closed without a word of the controller.
        reconnect_s: Seconds that it stays closed when its connection is gone; longer than :data:`LEASE_RENEWED_S`,
            since a controller that lives connects anew at the next renewal.
        pause_s: Seconds between two tries to decide a load.
    """

    def __init__(
        self,
        member_id: str,
        loads: TwoPhases,
        member_ids: Callable[[], Sequence[str]],
        kind: changes.TwoPhaseKind = changes.TwoPhaseKind.LOAD,
        *,
        lease_s: float = 10.0,
        reconnect_s: float = 3.0,
        pause_s: float = 0.2,
    ) -> None:
        self._member_id = member_id
        self._loads = loads
        self._member_ids = member_ids
        self._kind = kind
        self._lease_s = lease_s
        self._reconnect_s = reconnect_s
        self._pause_s = pause_s
        self._holds: dict[str, _Hold] = {}
        self._deciding: dict[str, _Decision] = {}

    @property
    def due_s(self) -> float | None:
        """The time at which :meth:`look` has something to do; None for never."""
        leases = [hold.ends_s for load_id, hold in self._holds.items() if load_id not in self._deciding]
        pauses = [deciding.again_s for deciding in self._deciding.values() if deciding.again_s is not None]
        return min(leases + pauses, default=None)

    def holds(self, load_id: str) -> bool:
        """Whether the latch of a load stays closed."""
        return load_id in self._holds

    def is_in_doubt(self, load_id: str) -> bool:
        """Whether the members decide a load that is prepared here, so that the controller has no say in it."""
        hold = self._holds.get(load_id)
        return hold is not None and hold.in_doubt

    # -- events of the controller's requests

    def closed(self, load_id: str, table_id: int, connection_id: int, now_s: float) -> None:
        """The latch of a table is closed for a load.

        Raises:
            LoadFailedError: The load has closed the latch of another table.
        """
        hold = self._holds.setdefault(load_id, _Hold(table_id, connection_id, now_s))
        if hold.table_id != table_id:
            raise LoadFailedError(
                f"load {load_id} holds table {hold.table_id}, not {table_id}; use a load id of its own for every load",
                load_id=load_id,
            )
        hold.connection_id, hold.ends_s = connection_id, now_s + self._lease_s

    def released(self, load_id: str) -> None:
        """A load has ended, or has not begun."""
        self._holds.pop(load_id, None)

    def renewed(self, load_id: str, connection_id: int, now_s: float) -> None:
        """The controller still works on a load."""
        hold = self._holds.get(load_id)
        if hold is not None and not hold.in_doubt:
            hold.connection_id, hold.ends_s = connection_id, now_s + self._lease_s

    def connection_gone(self, connection_id: int, now_s: float) -> None:
        """The process that closed latches over this connection may be gone."""
        for hold in self._holds.values():
            if hold.connection_id == connection_id:
                hold.ends_s = min(hold.ends_s, now_s + self._reconnect_s)

    def controller_replaced(self, now_s: float) -> None:
        """Another controller has taken over: the one that closed the latches does not come back."""
        for hold in self._holds.values():
            hold.ends_s = min(hold.ends_s, now_s)

    # -- events of the members' requests

    def standing(self, load_id: str) -> changes.StandingAnswer:
        """A member that decides asks for the progress of a load here."""
        outcome = self._loads.outcome(load_id)
        if outcome is not None:
            progress = LoadProgress.PUBLISHED if outcome.published else LoadProgress.ABORTED
            return changes.StandingAnswer(progress, outcome.number, outcome.rows)
        if self._loads.is_prepared(load_id):
            if load_id in self._holds:
                self._holds[load_id].in_doubt = True
            return changes.StandingAnswer(LoadProgress.PREPARED, 0)
        self._loads.abort(load_id)
        self.released(load_id)
        return changes.StandingAnswer(LoadProgress.UNKNOWN, 0)

    def decide(self, load_id: str) -> tuple[changes.LoadVerdict, list[Ask]]:
        """A member has a load in doubt, and this one is the first that lives; the decision once it is known."""
        told = self.standing(load_id)
        if told.standing == LoadProgress.PREPARED:
            return changes.LoadVerdict(False), self._begin(load_id)
        return decision([told]), []

    def settled(self, load_id: str, decided: changes.LoadVerdict) -> None:
        """A load in doubt was decided: give it the outcome that it has on all members."""
        self._deciding.pop(load_id, None)
        if decided.published and self._loads.is_prepared(load_id):
            self._loads.publish(load_id, decided.number, decided.rows)
        else:
            self._loads.abort(load_id)
        self.released(load_id)

    # -- events of the clock, and of the replies of members

    def look(self, now_s: float) -> list[Ask]:
        """Act on leases that have ended, and on pauses that are over."""
        asks: list[Ask] = []
        for load_id, hold in list(self._holds.items()):
            if load_id not in self._deciding and hold.ends_s <= now_s:
                _log.warning("%s %s of table %d has lost its controller", self._kind.value, load_id, hold.table_id)
                if self.standing(load_id).standing == LoadProgress.PREPARED:
                    asks += self._begin(load_id)
                else:
                    self.released(load_id)
        for load_id, deciding in list(self._deciding.items()):
            if deciding.again_s is not None and deciding.again_s <= now_s:
                deciding.ended.clear()
                asks += self._ask(load_id, deciding)
        return asks

    def answered(self, ask: Ask, answer: Any, now_s: float) -> list[Ask]:
        """A member has answered; with a :class:`Silence` if it has not."""
        load_id = ask.message.load_id
        deciding = self._deciding.get(load_id)
        if deciding is None or deciding.asked.get(ask.member) is not ask:
            return []
        del deciding.asked[ask.member]
        match answer:
            case changes.LoadVerdict(is_decided=True):
                self.settled(load_id, answer)
                return []
            case changes.StandingAnswer():
                deciding.standings.append(answer)
            case Silence.ENDED if isinstance(ask.message, changes.DecideLoad):
                deciding.ended.add(ask.member)
                return self._ask(load_id, deciding)  # the next one decides
            case Silence.ENDED:
                pass
            case _:
                deciding.is_blocked = True
        if deciding.is_blocked and not deciding.asked:
            deciding.again_s = now_s + self._pause_s
        return self._decide_if_known(load_id, deciding)

    # --

    def _begin(self, load_id: str) -> list[Ask]:
        if load_id in self._deciding:
            return []
        deciding = self._deciding[load_id] = _Decision()
        return self._ask(load_id, deciding)

    def _ask(self, load_id: str, deciding: _Decision) -> list[Ask]:
        """Ask the first living member to decide; when that is this one, ask all others for their progress."""
        mine = self.standing(load_id)
        if mine.standing != LoadProgress.PREPARED:
            del self._deciding[load_id]
            return []
        deciding.again_s, deciding.is_blocked = None, False
        others = [member for member in self._member_ids() if member != self._member_id]
        first = min((member for member in others if member not in deciding.ended), default=self._member_id)
        if first < self._member_id:
            asks = [Ask(first, changes.DecideLoad(load_id, self._kind))]
        else:
            asks = [Ask(member, changes.StandingOfLoad(load_id, self._kind)) for member in others]
        deciding.asked, deciding.standings = {ask.member: ask for ask in asks}, [mine]
        return asks + self._decide_if_known(load_id, deciding)

    def _decide_if_known(self, load_id: str, deciding: _Decision) -> list[Ask]:
        if deciding.asked or deciding.is_blocked:
            return []
        decided = decision(deciding.standings)
        outcome = "published" if decided.published else "aborted"
        _log.warning("%s %s was %s: its controller is gone", self._kind.value, load_id, outcome)
        settle = changes.SettleLoad(load_id, decided.published, decided.number, self._kind, decided.rows)
        others = [member for member in self._member_ids() if member != self._member_id]
        self.settled(load_id, decided)
        return [Ask(member, settle) for member in others]
