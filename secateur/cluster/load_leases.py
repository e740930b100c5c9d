"""Leases of the latches that loads and changes close, and the outcome of a load whose controller is gone.

A change of ranges that cuts a catch-all is prepared and committed like a load, so everything said of loads here applies
to it: it is *published* once a member uses the new ranges.

The controller renews the lease of every latch that was closed on its request. When a lease ends, or the connection over
which the latch was closed, and the controller does not come back at once, the load is *in doubt*, and the members
decide it themselves, all in the same way:

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

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, TypeVar

from secateur.cluster.peers import Peers
from secateur.cluster.write_latch import WriteLatch
from secateur.errors import Error, InterfaceError, LoadFailedError, OperationalError, UnreachableError
from secateur.protocol.changes import (
    DecideLoad,
    HoldLoad,
    LoadVerdict,
    SettleLoad,
    StandingAnswer,
    StandingOfLoad,
    TwoPhaseKind,
)
from secateur.protocol.message import Acknowledged, Message
from secateur.storage.load_registry import LoadOutcome
from secateur.wire import Reply, Request

__all__ = ["LEASE_RENEWED_S", "LoadDecision", "LoadLeases", "LoadProgress", "TwoPhases"]

R = TypeVar("R")

_log = logging.getLogger(__name__)

LEASE_RENEWED_S: Final = 2.0
"""How often the controller renews. A load that takes less costs no renewal."""
_VERDICTS_MAX: Final = 1000


class LoadProgress(Enum):
    """How far a load has come on a member. The value is its name on the wire."""

    UNKNOWN = "unknown"
    """The load was not prepared, and it will not be, because a member has asked for its outcome."""
    PREPARED = "prepared"
    PUBLISHED = "published"
    ABORTED = "aborted"


class _Silence(Enum):
    """Why a member says nothing."""

    ENDED = auto()
    """Its process is not there any more."""
    OUT_OF_REACH = auto()


class LoadDecision(NamedTuple):
    """The decision about a load in doubt.

    Attributes:
        published: Whether it is published.
        number: The number of its publication; 0 for none.
    """

    published: bool
    number: int

    @classmethod
    def of(cls, told: Iterable[tuple[LoadProgress, int]]) -> LoadDecision:
        """From how far the load has come on every living member, and the number under which it is published there."""
        published = [number for standing, number in told if standing is LoadProgress.PUBLISHED]
        return cls(bool(published), max(published, default=0))


class TwoPhases(Protocol):
    """The operation that a member prepares and then publishes or aborts, by id."""

    def outcome(self, load_id: str) -> LoadOutcome | None:
        """How it has ended here; None when it has not."""

    def is_prepared(self, load_id: str) -> bool:
        """Whether it is prepared here and has not ended."""

    def publish(self, load_id: str, number: int) -> object:
        """Publish what is prepared."""

    def abort(self, load_id: str) -> object:
        """Forget it, and refuse it from now on; nothing happens to what has ended."""


@dataclass(slots=True)
class _Hold:
    """A closed latch."""

    latch: WriteLatch
    table_id: int
    connection_id: int
    ends_s: float
    in_doubt: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class LoadLeases:
    """The latches that are closed on one member. Lives on its event loop.

    Args:
        member_id: This member.
        loads: Its loads, or its changes of ranges.
        peers: The other members.
        member_ids: Gives the members of the newest topology.
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
        peers: Peers,
        member_ids: Callable[[], Sequence[str]],
        *,
        kind: TwoPhaseKind = TwoPhaseKind.LOAD,
        lease_s: float = 10.0,
        reconnect_s: float = 3.0,
        pause_s: float = 0.2,
    ) -> None:
        self._member_id = member_id
        self._loads = loads
        self._peers = peers
        self._member_ids = member_ids
        self._kind = kind
        self._lease_s = lease_s
        self._reconnect_s = reconnect_s
        self._pause_s = pause_s
        self._holds: dict[str, _Hold] = {}
        self._watching: asyncio.Task[None] | None = None
        self._deciding: dict[str, asyncio.Task[None]] = {}
        self._verdicts: OrderedDict[str, LoadDecision] = OrderedDict()

    # -- for the requests of the controller

    async def close(self, load_id: str, table_id: int, latch: WriteLatch, connection_id: int) -> None:
        """Close the latch of a table for a load, from now until :meth:`release`; returns when no write is on its way.

        Raises:
            LoadFailedError: The load has closed the latch of another table.
        """
        hold = self._holds.get(load_id)
        if hold is not None and hold.table_id != table_id:
            raise LoadFailedError(
                f"load {load_id} holds table {hold.table_id}, not {table_id}; use a load id of its own for every load",
                load_id=load_id,
            )
        if hold is None:
            hold = self._holds[load_id] = _Hold(latch, table_id, connection_id, 0.0)
        self._renewed(hold, connection_id)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        await latch.close(load_id)

    def release(self, load_id: str) -> None:
        """The load has ended, or has not begun: open its latch."""
        hold = self._holds.pop(load_id, None)
        if hold is not None:
            hold.latch.open(load_id)
            hold.ended.set()

    def renew(self, request: Request[HoldLoad]) -> Reply[Acknowledged]:
        """The controller still works on a load."""
        hold = self._holds.get(request.message.load_id)
        if hold is not None and not hold.in_doubt:
            self._renewed(hold, request.peer.connection_id)
        return Reply(Acknowledged())

    def connection_gone(self, connection_id: int) -> None:
        """The process that closed latches over this connection may be gone."""
        for hold in self._holds.values():
            if hold.connection_id == connection_id:
                hold.ends_s = min(hold.ends_s, asyncio.get_running_loop().time() + self._reconnect_s)
                self._look_again()

    async def decided(self, load_id: str) -> None:
        """Return at once for a load that is not in doubt; else when the members have decided it."""
        hold = self._holds.get(load_id)
        if hold is not None and hold.in_doubt:
            await hold.ended.wait()

    # -- for the requests of other members

    def standing(self, request: Request[StandingOfLoad]) -> Reply[StandingAnswer]:
        """Return how far a load is here, for the member that decides.

        The controller's later requests for the load are refused.
        """
        load_id = request.message.load_id
        return Reply(StandingAnswer(self._standing(load_id).value, self._number(load_id)))

    def decide(self, request: Request[DecideLoad]) -> Reply[LoadVerdict]:
        """Decide a load that a member has in doubt; called on the first living member.

        Returns the decision once it is known.
        """
        load_id = request.message.load_id
        verdict = self._verdicts.get(load_id)
        if verdict is None:
            self._start_deciding(load_id)
            return Reply(LoadVerdict(False))
        return Reply(LoadVerdict(True, verdict.published, verdict.number))

    def settle(self, request: Request[SettleLoad]) -> Reply[Acknowledged]:
        """A load in doubt was decided."""
        self._end(request.message.load_id, LoadDecision(request.message.published, request.message.number))
        return Reply(Acknowledged())

    async def stop(self) -> None:
        """End what is under way."""
        tasks = [task for task in (self._watching, *self._deciding.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --

    def _renewed(self, hold: _Hold, connection_id: int) -> None:
        hold.connection_id = connection_id
        hold.ends_s = asyncio.get_running_loop().time() + self._lease_s

    def _look_again(self) -> None:
        """A lease ends earlier than the watch expects."""
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        """Wait for leases to end, while there are any."""
        loop = asyncio.get_running_loop()
        while waiting := {load_id: hold for load_id, hold in self._holds.items() if load_id not in self._deciding}:
            await asyncio.sleep(max(min(hold.ends_s for hold in waiting.values()) - loop.time(), 0.0))
            for load_id, hold in waiting.items():
                if self._holds.get(load_id) is hold and hold.ends_s <= loop.time():
                    _log.warning("%s %s of table %d has lost its controller", self._kind, load_id, hold.table_id)
                    if self._standing(load_id) is LoadProgress.PREPARED:
                        self._start_deciding(load_id)
                    else:
                        self.release(load_id)

    def _outcome(self, load_id: str) -> LoadProgress | None:
        """How a load has ended here; None when it has not."""
        outcome = self._loads.outcome(load_id)
        return None if outcome is None else LoadProgress.PUBLISHED if outcome.published else LoadProgress.ABORTED

    def _standing(self, load_id: str) -> LoadProgress:
        found = self._outcome(load_id)
        if found is not None:
            return found
        if not self._loads.is_prepared(load_id):
            self._loads.abort(load_id)
            self.release(load_id)
            return LoadProgress.UNKNOWN
        hold = self._holds.get(load_id)
        if hold is not None:
            hold.in_doubt = True
        return LoadProgress.PREPARED

    def _number(self, load_id: str) -> int:
        outcome = self._loads.outcome(load_id)
        return 0 if outcome is None else outcome.number

    def _end(self, load_id: str, verdict: LoadDecision) -> None:
        """Give a load the outcome that it has on all members."""
        self._verdicts[load_id] = verdict
        if len(self._verdicts) > _VERDICTS_MAX:
            self._verdicts.popitem(last=False)
        if verdict.published and self._loads.is_prepared(load_id):
            self._loads.publish(load_id, verdict.number)
        else:
            self._loads.abort(load_id)
        self.release(load_id)

    def _start_deciding(self, load_id: str) -> None:
        if load_id not in self._deciding:
            task = self._deciding[load_id] = asyncio.get_running_loop().create_task(self._decide(load_id))
            task.add_done_callback(lambda _: self._deciding.pop(load_id, None))

    async def _decide(self, load_id: str) -> None:
        """Decide a load, or have the first living member decide it, until it is decided."""
        was_prepared = self._loads.is_prepared(load_id)
        while load_id not in self._verdicts and not (was_prepared and self._outcome(load_id) is not None):
            for member in sorted({self._member_id, *self._member_ids()}):
                if member == self._member_id:
                    await self._ask_all(load_id)
                    break
                told = await self._ask(member, DecideLoad(load_id, self._kind))
                if told is _Silence.ENDED:
                    continue  # the next one decides
                if isinstance(told, LoadVerdict) and told.is_decided:
                    self._end(load_id, LoadDecision(told.published, told.number))
                break
            if load_id not in self._verdicts:
                await asyncio.sleep(self._pause_s)

    async def _ask_all(self, load_id: str) -> None:
        """Decide a load, if everybody who lives answers."""
        others = [member for member in self._member_ids() if member != self._member_id]
        standings = [(self._standing(load_id), self._number(load_id))]
        for told in await asyncio.gather(
            *(self._ask(member, StandingOfLoad(load_id, self._kind)) for member in others)
        ):
            if told is _Silence.ENDED:
                continue
            if not isinstance(told, StandingAnswer):
                return  # it did not answer, and may have published
            standings.append((LoadProgress(told.standing), told.number))
        verdict = LoadDecision.of(standings)
        self._end(load_id, verdict)
        _log.warning(
            "%s %s was %s: its controller is gone",
            self._kind.value,
            load_id,
            "published" if verdict.published else "aborted",
        )
        await asyncio.gather(
            *(
                self._ask(member, SettleLoad(load_id, verdict.published, verdict.number, self._kind))
                for member in others
            )
        )

    async def _ask(self, member: str, message: Message[R]) -> R | _Silence:
        """Return a member's answer, or the error that it failed with."""
        if member not in self._member_ids():
            return _Silence.ENDED
        try:
            return await self._peers.call(member, message)
        except UnreachableError as error:
            return _Silence.ENDED if isinstance(error.__cause__, ConnectionRefusedError) else _Silence.OUT_OF_REACH
        except (OperationalError, InterfaceError):
            return _Silence.OUT_OF_REACH
        except Error:
            _log.exception("%s did not answer %s", member, message)
            return _Silence.OUT_OF_REACH
