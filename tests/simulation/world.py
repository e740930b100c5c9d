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
from disks import SimulatedDisk
from event_loop import VirtualLoop
from machine import Machine, Process, machine
from network import Network
from secateur.cluster import ClusterSettings
from secateur.cluster.controller import Controller
from secateur.cluster.data_directory import read_record
from secateur.cluster.loop_thread import LoopThread
from secateur.cluster.member.host import MemberHost
from secateur.cluster.settings import Fsync
from secateur.cluster.sockets import ProcessAddress
from secateur.wire import Channel
from secateur.wire.connection import ServerConnection

__all__ = ["CONTROLLER_ADDRESS", "CONTROLLER_HOST", "Host", "World", "install"]

CONTROLLER_HOST: Final = "10.0.0.1"
_CONTROLLER_PORT: Final = 7000
CONTROLLER_ADDRESS: Final = f"{CONTROLLER_HOST}:{_CONTROLLER_PORT}"
_TOKEN: Final = "simulated"
_DATA_DIRECTORY: Final = "/virtual"


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
        disks: Those of the members that have lived there; None in a cluster without a data directory.
        is_removed: Whether its member has left for good; nothing starts there any more.
    """

    address: str
    process: Process | None = None
    host: MemberHost | None = field(default=None, repr=False)
    disks: HostDisks | None = field(default=None, repr=False)
    is_removed: bool = False

    @property
    def is_up(self) -> bool:
        return self.process is not None and not self.process.is_dead


class HostDisks:
    """The disks of the members of one machine."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._here: set[str] = set()

    def has(self, member_id: str) -> bool:
        return member_id in self._here

    def recorded(self) -> list[str]:
        records = {member_id: read_record(self._world.disks[member_id]) for member_id in sorted(self._here)}
        known = [record for record in records.values() if record is not None]
        newest = max(known, key=lambda record: (record.epoch, record.version), default=None)
        members = () if newest is None else newest.topology.member_ids
        return [member_id for member_id in members if records.get(member_id) is not None]

    def open(self, member_id: str) -> SimulatedDisk:
        for host in self._world.hosts:  # a cold start may have put it into another machine
            if host.disks is not None:
                host.disks._here.discard(member_id)
        self._here.add(member_id)
        disk = self._world.disks.get(member_id)
        if disk is None:
            rng = random.Random(f"{self._world.seed} {member_id}")
            disk = self._world.disks[member_id] = SimulatedDisk(rng, member_id)
        return disk


class World:
    """One run.

    Attributes:
        random: Chooses what the clients and faults do.
        wrong: A sentence for each promise that was broken.
        disks: The disks of all members that there were, if the cluster has a data directory.
        may_lack_writes: Whether the last copy of a partition is on a disk that has lost what it had said was written.
            Then changes of single partitions may be missing.
        may_lack_loads: Whether all members of the cluster have such disks: then loads may be, too.
        is_off: Whether there is no power.
    """

    def __init__(self, seed: int | str, *, is_durable: bool = False) -> None:
        self.seed = seed
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
            data_directory=_DATA_DIRECTORY if is_durable else None,
            fsync=Fsync.ALWAYS,
        )
        self.disks: dict[str, SimulatedDisk] = {}
        self.is_off = False
        self.controller: Process
        self.real_controller: Controller | None = None
        self.hosts: list[Host] = []
        self.wrong: list[str] = []
        self.may_lack_writes = self.may_lack_loads = False
        self._clients = 0
        self._hosts = 0

    @property
    def now_s(self) -> float:
        return self.machine.now_s

    def violated(self, sentence: str) -> None:
        self.wrong.append(f"{self.now_s:.4f} {sentence}")

    def differs(self, sentence: str, *, is_loaded: bool) -> None:
        """Rows are not as was acknowledged.

        Args:
            sentence: What is wrong.
            is_loaded: Whether they come by loads and changes of several partitions.
        """
        if not (self.may_lack_loads if is_loaded else self.may_lack_writes):
            self.violated(sentence)

    def start(self) -> None:
        """Start the cluster; only outside of all processes."""
        self.start_controller(is_recovering=False)
        self.machine.run(lambda: self.real_controller is not None or bool(self.machine.failures), 60)
        for number in range(self.settings.members):
            self.start_member(self.add_host(), f"m{number + 1}")
        self.machine.run(lambda: all(host.host is not None for host in self.hosts) or bool(self.machine.failures), 60)

    def add_host(self) -> Host:
        """A further machine, on which nothing runs."""
        disks = None if self.settings.data_directory is None else HostDisks(self)
        self._hosts += 1
        self.hosts.append(Host(f"10.0.1.{self._hosts}", disks=disks))
        return self.hosts[-1]

    def remove_host(self, host: Host) -> None:
        """End what runs on a machine, for good."""
        host.is_removed = True
        self.hosts.remove(host)
        if host.process is not None:
            host.process.kill()

    def start_member(self, host: Host, member_id: str | None = None) -> None:
        """Start a process with a member; one without an id is a replacement, or one more."""
        if host.is_removed:
            return
        host.host = None
        host.process = Process(self.machine, f"host {host.address}", host.address)
        host.process.run(lambda: self._run_member(host, member_id), "main")

    def start_controller(self, *, is_recovering: bool, is_cold_start: bool = False) -> None:
        """Start a process with the controller; one that recovers goes on from what members have kept."""
        self.real_controller = None
        self.controller = Process(self.machine, "controller", CONTROLLER_HOST)
        self.controller.run(
            lambda: self._run_controller(is_recovering=is_recovering, is_cold_start=is_cold_start), "main"
        )

    def lose_power(self) -> None:
        """Every process of the cluster ends, and disks lose what was not synced."""
        self.is_off = True
        self.controller.kill(is_silent=True)
        for host in self.hosts:
            if host.process is not None:
                host.process.kill(is_silent=True)
        for disk in self.disks.values():
            disk.crash()

    def start_cold(self) -> None:
        """Start all members of the newest record on their disks, as :func:`secateur.start` does."""
        self.is_off = False
        records = [record for disk in self.disks.values() if (record := read_record(disk)) is not None]
        newest = max(records, key=lambda record: (record.epoch, record.version))
        self.start_controller(is_recovering=False, is_cold_start=True)
        members = newest.topology.member_ids
        for number, member_id in enumerate(members):
            host = self.hosts[number] if number < len(self.hosts) else self.add_host()
            self.start_member(host, member_id)
        for host in self.hosts[len(members) :]:
            self.start_member(host)

    def start_anew(self) -> None:
        """Start every process by itself on the machine where it was, as Ray does when all of them have ended."""
        self.is_off = False
        self.start_controller(is_recovering=True)
        for host in self.hosts:
            self.start_member(host)

    def _run_controller(self, *, is_recovering: bool, is_cold_start: bool) -> None:
        loop, process = LoopThread("controller"), self.controller
        real = loop.call(
            lambda: Controller(
                self.settings, _at(CONTROLLER_HOST), is_recovering=is_recovering, is_cold_start=is_cold_start
            )
        )
        loop.run(real.start())
        if self.controller is process:
            self.real_controller = real

    def _run_member(self, host: Host, member_id: str | None) -> None:
        process, at, address = host.process, _at(host.address), CONTROLLER_ADDRESS
        if member_id is None:
            real = LoopThread("member").run(MemberHost.replacement(self.settings, address, at, host.disks))
        else:
            loop = LoopThread("member")
            real = loop.call(lambda: MemberHost(member_id, self.settings, address, at, host.disks))
            try:
                loop.run(real.start())
            except (secateur.Error, CancelledError):  # it was let in, and given up before it was up
                loop.stop()
                self._run_member(host, None)
                return
        if host.process is process:
            host.host = real

    def client(self, work: Callable[[Process], Any], name: str) -> Process:
        """Begin a process of a client."""
        self._clients += 1
        process = Process(self.machine, name, f"10.0.2.{self._clients}")
        process.run(lambda: work(process), "main")
        return process

    def connect(self) -> secateur.Connection:
        """Connect the client whose process this is."""
        # Left out, it depends on what this process has reached before, and a seed would run differently alone.
        return secateur.connect(f"secateur://{CONTROLLER_ADDRESS}", token=_TOKEN, connect_timeout_s=10.0)

    def members(self) -> dict[str, MemberHost]:
        """The members that live, by id."""
        return {host.host.member_id: host.host for host in self.hosts if host.is_up and host.host is not None}


def _at(address: str) -> ProcessAddress:
    return ProcessAddress(address, address, address)
