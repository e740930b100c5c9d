"""A cluster of the real controller, members and clients on a virtual machine."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, Final

import secateur
from event_loop import VirtualLoop
from machine import Machine, Process, machine
from network import Network
from secateur.cluster import ClusterSettings
from secateur.cluster.controller import Controller
from secateur.cluster.loop_thread import LoopThread
from secateur.cluster.member.host import MemberHost
from secateur.cluster.process_address import ProcessAddress
from secateur.cluster.sockets import peer_at
from secateur.protocol import NameMember, Role
from secateur.wire import Channel
from secateur.wire.connection import ServerConnection

__all__ = ["CONTROLLER_HOST", "Host", "World", "install"]

CONTROLLER_HOST: Final = "10.0.0.1"
_CONTROLLER_PORT: Final = 7000
_TOKEN: Final = "simulated"


def install() -> None:
    """Have the product make virtual event loops, and give the order of sets to the seed."""
    sys.modules["uvloop"] = None  # type: ignore[assignment]
    asyncio.new_event_loop = VirtualLoop
    ServerConnection.__hash__ = _number  # type: ignore[assignment]
    Channel.__hash__ = _number  # type: ignore[assignment]


def _number(thing: Any) -> int:
    return int(thing.__dict__.setdefault("_simulated_number", machine().next_ident()))


@dataclass
class Host:
    """A machine with one member on it.

    Attributes:
        address: Its address in the network.
        process: The process that runs there; None after a crash.
        host: The real host of the member; None while it starts.
    """

    address: str
    process: Process | None = None
    host: MemberHost | None = field(default=None, repr=False)

    @property
    def is_up(self) -> bool:
        return self.process is not None and not self.process.is_dead


class World:
    """One run.

    Attributes:
        random: Chooses what the clients and faults do.
        wrong: A sentence for each promise that was broken.
    """

    def __init__(self, seed: int | str) -> None:
        self.machine = Machine(seed)
        self.network = Network(self.machine)
        self.random = random.Random(f"{seed} world")
        self.settings = ClusterSettings(
            members=self.random.choice((3, 3, 4)),
            token=_TOKEN,
            member_silence_s=1.5,
            cluster_id="simulated",
            secret="simulated",
            port=_CONTROLLER_PORT,
        )
        self.controller: Process
        self.real_controller: Controller | None = None
        self.hosts: list[Host] = []
        self.wrong: list[str] = []
        self._clients = 0

    @property
    def now_s(self) -> float:
        return self.machine.now_s

    def violated(self, sentence: str) -> None:
        self.wrong.append(f"{self.now_s:.4f} {sentence}")

    def start(self) -> None:
        """Start the cluster; only outside of all processes."""
        self.start_controller(is_recovering=False)
        self.machine.run(lambda: self.real_controller is not None or bool(self.machine.failures), 60)
        for number in range(self.settings.members):
            host = Host(f"10.0.1.{number + 1}")
            self.hosts.append(host)
            self.start_member(host, f"m{number + 1}")
        self.machine.run(lambda: all(host.host is not None for host in self.hosts) or bool(self.machine.failures), 60)

    def start_member(self, host: Host, member_id: str | None = None) -> None:
        """Start a process with a member; one without an id asks the controller for one."""
        host.host = None
        host.process = Process(self.machine, f"host {host.address}", host.address)
        host.process.run(lambda: self._run_member(host, member_id), "main")

    def start_controller(self, *, is_recovering: bool) -> None:
        """Start a process with the controller; one that recovers goes on from what members have kept."""
        self.real_controller = None
        self.controller = Process(self.machine, "controller", CONTROLLER_HOST)
        self.controller.run(lambda: self._run_controller(is_recovering=is_recovering), "main")

    def _run_controller(self, *, is_recovering: bool) -> None:
        loop, process = LoopThread("controller"), self.controller
        real = loop.call(lambda: Controller(self.settings, _at(CONTROLLER_HOST), is_recovering=is_recovering))
        loop.run(real.start())
        if self.controller is process:
            self.real_controller = real

    def _run_member(self, host: Host, member_id: str | None) -> None:
        process, real = host.process, None
        while real is None:
            real = self._started_member(host, member_id)
        if host.process is process:
            host.host = real

    def _started_member(self, host: Host, member_id: str | None) -> MemberHost | None:
        """A member that has joined; None if the controller could not let it in."""
        loop, address = LoopThread("member"), f"{CONTROLLER_HOST}:{_CONTROLLER_PORT}"
        try:
            name = loop.run(self._new_id()) if member_id is None else member_id
            real = loop.call(lambda: MemberHost(name, self.settings, address, _at(host.address)))
            loop.run(real.start())
        except (secateur.Error, CancelledError):  # it was let in, and given up before it was up
            loop.stop()
            return None
        return real

    async def _new_id(self) -> str:
        controller = peer_at(CONTROLLER_HOST, _CONTROLLER_PORT, self.settings, name="a new member", role=Role.MEMBER)
        try:
            return (await controller.request(NameMember(self.settings.cluster_id))).message.member
        finally:
            await controller.close()

    def client(self, work: Callable[[Process], Any], name: str) -> Process:
        """Begin a process of a client."""
        self._clients += 1
        process = Process(self.machine, name, f"10.0.2.{self._clients}")
        process.run(lambda: work(process), "main")
        return process

    def connect(self) -> secateur.Connection:
        """Connect the client whose process this is."""
        return secateur.connect(f"secateur://{CONTROLLER_HOST}:{_CONTROLLER_PORT}", token=_TOKEN)

    def members(self) -> dict[str, MemberHost]:
        """The members that live, by id."""
        return {host.host.member_id: host.host for host in self.hosts if host.is_up and host.host is not None}


def _at(address: str) -> ProcessAddress:
    return ProcessAddress(address, address, address)
