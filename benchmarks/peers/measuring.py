"""The run: answers are compared first, then one client of each candidate in turn, then many clients of each.

Reads come before writes everywhere, so that all candidates read what was loaded.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import mean
from typing import Final

from benchmarks.peers.data import Answers, WrongAnswerError, values_of
from benchmarks.peers.environments import NotAvailableError
from benchmarks.peers.peer_list import CONTROLS, Client, Peer
from benchmarks.peers.processes import PeerFailedError
from benchmarks.peers.running import Clients, Running, Setting, running
from benchmarks.peers.statements import STATEMENTS, Statement
from benchmarks.peers.summary import Cell, Round, quantile, summarised

__all__ = ["Findings", "Plan", "measure", "saturation_per_s"]

_ECHO_S: Final = 0.15
_COMPARED_AT_ONCE: Final = 5
_COMPARED_S: Final = 5.0
"""Peers that take seconds for a statement are compared for fewer values: for so long, and at least once."""
_TOUCHED_CALLS: Final = 4
_TOUCHED_BYTES: Final = 40
"""A member that has received this much during one statement was asked something; background messages are rarer."""
_OPEN_LOOP: Final = (
    "row by key",
    "count and sum of a customer",
    "IN of 5 customers",
    "join with a replicated table",
    "get without SQL",
    "upsert by INSERT OR REPLACE",
)
"""What is called at fixed rates too."""
_LOAD_SHARE: Final = 0.7
_OVERLOAD: Final = 1.3
"""Rates of more than this times what a closed loop has reached are not tried: the queue would only grow."""

Column = tuple[Running, Client, Clients]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        peers: Which.
        values: How many values each statement is bound to.
        compared: How many of them are compared with DuckDB.
        rounds: Alternating rounds of one client.
        seconds: Of a closed or an open loop.
        warm_up_s: Of each statement and candidate.
        clients: Numbers of clients beside one; empty for one client only.
        rates_per_s: Of the open loops, over :attr:`open_clients` clients.
        open_clients: Clients of the open loops.
        only: Names of statements; empty for all.
    """

    peers: Sequence[Peer]
    values: int = 300
    compared: int = 50
    rounds: int = 3
    seconds: float = 1.0
    warm_up_s: float = 3.0
    clients: Sequence[int] = (8, 32)
    rates_per_s: Sequence[float] = (250.0, 1000.0)
    open_clients: int = 8
    only: Sequence[str] = ()


@dataclass(slots=True)
class Findings:
    """What a run has found.

    Attributes:
        cells: In the order in which they were measured.
        ready_s: Peer -> seconds until it had started and loaded.
        not_available: Peer or client -> why it was left out.
        cannot: Candidate -> statement -> why it has no such statement, or why its times do not count.
        touched: Candidate -> statement -> members that received something, on average over some calls.
    """

    cells: list[Cell] = field(default_factory=list)
    ready_s: dict[str, float] = field(default_factory=dict)
    not_available: dict[str, str] = field(default_factory=dict)
    cannot: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    touched: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))


def measure(plan: Plan, setting: Setting, answers: Answers, found: Findings) -> None:
    """Start everything, compare, measure, and stop everything, after a failure as well.

    Args:
        plan: What is measured.
        setting: What all peers share.
        answers: What DuckDB says.
        found: Where everything is added as soon as it is known, so that a run that is interrupted has a report.
    """
    _Run(plan, setting, answers, found).run()


class _Run:
    def __init__(self, plan: Plan, setting: Setting, answers: Answers, found: Findings) -> None:
        self._plan = plan
        self._setting = setting
        self._answers = answers
        self._found = found
        self._statements = [one for one in STATEMENTS if not plan.only or one.name in plan.only]
        self._values = {
            one.name: values_of(one, setting.rows, plan.values, seed=number) for number, one in enumerate(STATEMENTS)
        }

    def run(self) -> None:
        with ExitStack() as stack:
            controls = [found for peer in CONTROLS if (found := self._started(peer, stack)) is not None]
            peers = [found for peer in self._plan.peers if (found := self._started(peer, stack)) is not None]
            with ExitStack() as columns:
                self._echo = next(iter(self._connected(controls[:1], columns)))[2]
                alone = [*self._connected(controls[1:], columns), *self._connected(peers, columns)]
                for writes in (False, True):
                    self._one_client(alone, writes=writes)
            self._many_clients(controls[:1], peers)

    def _started(self, peer: Peer, stack: ExitStack) -> Running | None:
        _say(f"Starting {peer.name}")
        try:
            found = stack.enter_context(running(peer, self._setting))
        except (NotAvailableError, PeerFailedError) as why:
            self._left_out(peer.name, why)
            return None
        if "ready_s" in found.described:
            self._found.ready_s[peer.name] = found.described["ready_s"]
        return found

    def _connected(self, peers: Sequence[Running], stack: ExitStack) -> Iterator[Column]:
        for peer in peers:
            for client in peer.peer.clients:
                _say(f"Connecting {client.name}")
                try:
                    yield peer, client, stack.enter_context(peer.clients(client, 1))
                except (NotAvailableError, PeerFailedError) as why:
                    self._left_out(client.name, why)

    def _left_out(self, name: str, why: Exception) -> None:
        self._found.not_available[name] = str(why)
        _say(f"{name} is not available: {why}")

    def _one_client(self, columns: Sequence[Column], *, writes: bool) -> None:
        """Every candidate in each round of each statement, right after the control."""
        for statement in self._statements:
            if statement.writes is not writes:
                continue
            able = [column for column in columns if self._compared(column, statement)]
            if not able:
                continue
            _say(f"One client: {statement.name}")
            values = self._values[statement.name]
            for _, client, clients in able:
                with self._giving_up(client.name, statement):
                    self._touched(client, clients, statement)
                    clients.closed(statement, values, self._plan.warm_up_s, 1)
            rounds: dict[str, list[Round]] = defaultdict(list)
            for _ in range(self._plan.rounds):
                for _, client, clients in able:
                    with self._giving_up(client.name, statement):
                        echo = self._echo.closed(statement, values[:1], _ECHO_S, 1)
                        rounds["echo"].append(echo)
                        echo_us = quantile(sorted(echo.latencies_us), 0.5)
                        rounds[client.name].append(
                            clients.closed(statement, values, self._plan.seconds, 1, echo_us=echo_us)
                        )
            self._found.cells += [
                summarised(name, statement.name, 1, None, measured)
                for name, measured in rounds.items()
                if statement.name not in self._found.cannot[name]
            ]

    def _compared(self, column: Column, statement: Statement) -> bool:
        """Whether the candidate has the statement, and answers it as DuckDB does."""
        peer, client, clients = column
        if peer.peer in CONTROLS:
            return True
        if statement.name in self._found.cannot[client.name]:
            return False
        values = _last_of_each_key(self._values[statement.name][: self._plan.compared], statement)
        end_s = time.monotonic() + _COMPARED_S
        with self._giving_up(client.name, statement):
            for first in range(0, len(values), _COMPARED_AT_ONCE):
                some = values[first : first + _COMPARED_AT_ONCE]
                reply = clients.answer(statement, some)
                if "cannot" in reply:
                    self._found.cannot[client.name][statement.name] = reply["cannot"]
                    return False
                found = reply["rows"]
                if statement.writes:
                    reads = clients.answer(_BY_KEY, [value[:2] for value in some])["rows"]
                    found = [[[*value[:2], *row] for row in rows] for value, rows in zip(some, reads, strict=True)]
                self._answers.compare(client.name, statement, some, found)
                if time.monotonic() > end_s:
                    break
            return True
        return False

    def _touched(self, client: Client, clients: Clients, statement: Statement) -> None:
        """Ask for one value at a time, and see which members have received something meanwhile."""
        if clients.received_by_members() is None:
            return
        counts = []
        for value in self._values[statement.name][:_TOUCHED_CALLS]:
            before = clients.received_by_members() or {}
            clients.answer(statement, [value])
            after = clients.received_by_members() or {}
            counts.append(sum(after[one] - before.get(one, 0) >= _TOUCHED_BYTES for one in after))
        self._found.touched[client.name][statement.name] = mean(counts)

    def _many_clients(self, controls: Sequence[Running], peers: Sequence[Running]) -> None:
        """More clients of one candidate after the other: closed loops, then open ones."""
        if not self._plan.clients:
            return
        most = max(*self._plan.clients, self._plan.open_clients)
        for peer in [*controls, *peers]:
            for client in peer.peer.clients:
                if client.alone or client.name in self._found.not_available:
                    continue
                _say(f"{most} clients: {client.name}")
                try:
                    with peer.clients(client, most) as clients:
                        for statement in sorted(self._statements, key=lambda one: one.writes):
                            if statement.name not in self._found.cannot[client.name]:
                                with self._giving_up(client.name, statement):
                                    self._loads(client, clients, statement)
                except PeerFailedError as why:
                    self._left_out(f"{client.name}, {most} clients", why)

    def _loads(self, client: Client, clients: Clients, statement: Statement) -> None:
        values, seconds = self._values[statement.name], self._plan.seconds
        clients.closed(statement, values, self._plan.warm_up_s / 3, max(self._plan.clients))
        reached = [
            cell.per_s
            for cell in self._found.cells
            if (cell.candidate, cell.statement) == (client.name, statement.name)
        ]
        for count in self._plan.clients:
            loop = clients.closed(statement, values, seconds, count)
            cell = summarised(client.name, statement.name, count, None, [loop])
            self._found.cells.append(cell)
            reached.append(cell.per_s)
        if statement.name not in _OPEN_LOOP:
            return
        for rate in (*self._plan.rates_per_s, _LOAD_SHARE * max(reached)):
            if rate <= _OVERLOAD * max(reached):
                loop = clients.open(statement, values, 2 * seconds, self._plan.open_clients, rate)
                if loop.latencies_us:
                    self._found.cells.append(
                        summarised(client.name, statement.name, self._plan.open_clients, rate, [loop])
                    )

    @contextmanager
    def _giving_up(self, candidate: str, statement: Statement) -> Iterator[None]:
        """A candidate that fails, or answers wrongly, is left out of this statement from now on."""
        try:
            yield
        except (PeerFailedError, WrongAnswerError) as why:
            self._found.cannot[candidate][statement.name] = str(why)
            _say(f"{candidate} is left out of {statement.name}: {why}")


_BY_KEY: Final = STATEMENTS[0]


def _last_of_each_key(values: Sequence[list[object]], statement: Statement) -> list[list[object]]:
    """Of values that write the same row, the last: that is what the row is afterwards."""
    if not statement.writes:
        return list(values)
    return list({tuple(value[:2]): value for value in values}.values())


def saturation_per_s(cells: Sequence[Cell], candidate: str, statement: str) -> float | None:
    """The most answers a second that closed loops of any number of clients have reached."""
    found = [
        cell.per_s
        for cell in cells
        if cell.candidate == candidate and cell.statement == statement and cell.offered_per_s is None
    ]
    return max(found, default=None)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text} ...", file=sys.stderr, flush=True)
