"""Peers that run: their members' process, and processes of clients of theirs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.peers.environments import HERE
from benchmarks.peers.peer_list import Client, Peer
from benchmarks.peers.processes import JsonProcess, json_process
from benchmarks.peers.statements import Statement
from benchmarks.peers.summary import Round
from benchmarks.peers.usage import processor_s, tcp_bytes

__all__ = ["Clients", "Running", "Setting", "running"]

_START_S: Final = 600.0
_ANSWER_S: Final = 120.0
_LEAD_S: Final = 0.15
"""How long before the common start clients are told of it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all peers share.

    Attributes:
        below: Where their environments and logs are.
        data: The folder with the tables.
        rows: Rows of ``orders``.
        members: Members of each peer.
    """

    below: Path
    data: Path
    rows: int
    members: int


class Running:
    """A peer whose members answer.

    Args:
        peer: Which.
        setting: What it was started with.
        service: The process that holds its members, if there is one.
        described: What clients need to connect.
    """

    def __init__(self, peer: Peer, setting: Setting, service: JsonProcess | None, described: dict[str, Any]) -> None:
        self.peer = peer
        self.described = described
        self._setting = setting
        self._service = service

    @contextmanager
    def clients(self, client: Client, count: int) -> Iterator[Clients]:
        """So many connected clients: processes, or threads of one process for Java.

        Raises:
            NotAvailableError: The client's libraries cannot be installed.
            PeerFailedError: One of them could not connect.
        """
        argv = client.argv(self._setting.below)
        log = self._setting.below / self.peer.name / "clients.log"
        with ExitStack() as stack:
            processes = [
                stack.enter_context(json_process(argv, log, folder=HERE))
                for _ in range(1 if client.jars is not None else count)
            ]
            connect = {"do": "connect", "data": str(self._setting.data), "threads": count, **self.described}
            # One after the other: 32 interpreters that start at once on two cores make the members wait for seconds.
            for process in processes:
                process.ask(connect, _START_S)
            yield Clients(processes, count, self._service)


class Clients:
    """Clients that are told what to call.

    Args:
        processes: One for each client, or one for all.
        count: How many clients.
        service: The process that has started the peer's members; None if the clients have.
    """

    def __init__(self, processes: Sequence[JsonProcess], count: int, service: JsonProcess | None) -> None:
        self._processes = processes
        self._threads = count // len(processes)
        self._service = service

    def answer(self, statement: Statement, values: Sequence[Any]) -> dict[str, Any]:
        """What the first client answers: ``rows`` of each of the values, or ``cannot``."""
        return self._processes[0].ask({"do": "answer", "statement": statement.name, "values": values}, _ANSWER_S)

    def closed(
        self, statement: Statement, values: Sequence[Any], seconds: float, clients: int, echo_us: float | None = None
    ) -> Round:
        """A closed loop of that many of them, which begin together."""
        return self._timed({"do": "closed"}, statement, values, seconds, clients, echo_us)

    def open(
        self, statement: Statement, values: Sequence[Any], seconds: float, clients: int, rate_per_s: float
    ) -> Round:
        """An open loop in which each of them has its share of the rate, with a schedule of its own."""
        return self._timed(
            {"do": "open", "rate_per_s": rate_per_s / clients}, statement, values, seconds, clients, None
        )

    def _timed(
        self,
        request: dict[str, Any],
        statement: Statement,
        values: Sequence[Any],
        seconds: float,
        clients: int,
        echo_us: float | None,
    ) -> Round:
        asked = self._processes if self._threads > 1 else self._processes[:clients]
        members, moved = self._members(), self._bytes()
        before_s = processor_s(members)
        begin_s = time.time() + _LEAD_S + 0.02 * len(asked)
        for number, process in enumerate(asked):
            # Each client begins at another value, so that they do not ask for the same rows at the same time.
            first = number * len(values) // len(asked)
            process.send(
                {
                    **request,
                    "statement": statement.name,
                    "values": [*values[first:], *values[:first]],
                    "seconds": seconds,
                    "begin_s": begin_s,
                    "threads": clients if self._threads > 1 else 1,
                    "seed": number,
                }
            )
        replies = [process.receive(_ANSWER_S + 3 * seconds) for process in asked]
        members_s, after = max(0.0, processor_s(members) - before_s), self._bytes()
        return Round(
            latencies_us=[latency for reply in replies for latency in reply["latencies_us"]],
            elapsed_s=max(reply["elapsed_s"] for reply in replies),
            client_s=sum(reply["processor_s"] for reply in replies),
            members_s=members_s,
            bytes_moved=None if moved is None or after is None else after - moved,
            echo_us=echo_us,
        )

    def received_by_members(self) -> dict[int, int] | None:
        """Bytes that each of the members' processes has received so far; None where it is not known."""
        told = tcp_bytes() if self._service is not None else None
        if told is None:
            return None
        return {process.pid: told[process.pid][1] for process in self._members() if process.pid in told}

    def _members(self) -> list[psutil.Process]:
        """The processes of the members; of a peer without a service, those that its clients have started."""
        if self._service is not None:
            return self._service.tree()
        return [child for process in self._processes for child in process.tree()[1:]]

    def _bytes(self) -> int | None:
        """What clients and members have sent; None where it is not known, or where there is no service."""
        told = tcp_bytes() if self._service is not None else None
        if told is None:
            return None
        processes = [*self._members(), *(process for one in self._processes for process in one.tree()[:1])]
        return sum(told.get(process.pid, (0, 0))[0] for process in processes)


@contextmanager
def running(peer: Peer, setting: Setting) -> Iterator[Running]:
    """Start a peer's members, load the tables, and stop it at the end.

    Raises:
        NotAvailableError: Its libraries cannot be installed.
        PeerFailedError: It did not start.
    """
    for log in ("members.log", "clients.log"):  # of the run before
        (setting.below / peer.name / log).unlink(missing_ok=True)
    if peer.service is None:
        yield Running(peer, setting, None, {})
        return
    members_log = setting.below / peer.name / "members.log"
    extra = {} if peer.jars is None else {"PEER_CLASSPATH": peer.jars.classpath(setting.below)}
    with json_process(peer.service_argv(setting.below), members_log, folder=HERE, extra=extra) as service:
        work = setting.below / peer.name / "work"
        work.mkdir(parents=True, exist_ok=True)
        given = {"data": str(setting.data), "rows": setting.rows, "members": setting.members, "work": str(work)}
        described = service.ask(given, _START_S)
        yield Running(peer, setting, service, described)
