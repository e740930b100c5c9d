"""What happens to a simulated cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final

from machine import Process
from world import CONTROLLER_HOST, Host, World

__all__ = ["HOSTS_MAX", "Faults"]

HOSTS_MAX: Final = 5
_SHORT_S: Final = (0.05, 0.7)
_LONG_S: Final = (2.0, 6.0)


class Faults:
    """Hurts processes, links and clocks, one after the other or several at a time, and mends all in the end.

    Args:
        world: The cluster.
        losses: How many members may be hurt for so long that the cluster goes on without them.
        kills: Whether processes die.
        only_splits: Whether nothing else happens than that a member is cut off with one client.
        kinds: The faults that happen, by name; none names all.
        share: How many of all kinds happen.
        is_careless: Whether more members may be lost than the cluster can do without.

    Attributes:
        done: What has been done, and when.
    """

    def __init__(
        self,
        world: World,
        losses: int,
        *,
        kills: bool = True,
        only_splits: bool = False,
        kinds: Collection[str] = (),
        share: float = 0.5,
        is_careless: bool = False,
    ) -> None:
        self._world = world
        self._losses = losses
        self._kills = kills
        self._only_splits = only_splits
        self._kinds = kinds
        self._share = share
        self._is_careless = is_careless
        self.done: list[str] = []
        self._mending = 0
        self._has_power_failures = False

    @property
    def is_mended(self) -> bool:
        return not self._mending

    def run(self, seconds: float) -> None:
        """Do faults for some time; in a thread of a process of its own."""
        draw = self._world.random
        end_s = self._world.now_s + seconds
        kinds: list[tuple[Callable[[], None], float]] = [
            (self._reset, 4),
            (self._lose_answers, 2),
            (self._kill_member, 3),
            (self._pause_member, 3),
            (self._pause_controller, 2),
            (self._isolate_and_lose, 2),
            (self._kill_controller, 2),
            (self._suspend, 1),
            (self._cut, 4),
            (self._split, 4),
            (self._slow, 2),
            (self._jump, 1),
            (self._add_member, 1),
        ]
        if self._world.disks:  # what a disk has refused may be seen, and lost with the power
            self._has_power_failures = draw.random() < 0.6
            kinds += [(self._disk, 4), (self._lose_power, 4 if self._has_power_failures else 0)]
        deadly = (self._kill_member, self._isolate_and_lose, self._kill_controller, self._lose_power)
        kinds = [(kind, weight if self._kills or kind not in deadly else 0) for kind, weight in kinds]
        weights = [weight if draw.random() < self._share else 0 for _, weight in kinds]
        weights[0] += 0.1  # resets are never left out
        if self._only_splits:
            weights = [float(kind == self._split) for kind, _ in kinds]
            self._has_power_failures = False
        elif self._kinds:
            weights = [float(kind.__name__.lstrip("_") in self._kinds) for kind, _ in kinds]
            self._has_power_failures = "lose_power" in self._kinds
        while True:
            time.sleep(draw.uniform(0.1, 1.6))
            if self._world.now_s >= end_s:
                if self._has_power_failures:
                    self._lose_power()
                return
            draw.choices([kind for kind, _ in kinds], weights)[0]()

    def _kill_member(self) -> None:
        host = self._member_to_lose()
        if host is None:
            return
        is_silent = self._world.random.random() < 0.3
        self._note(f"{'power failure at' if is_silent else 'kill'} {self._name(host)}")
        links = self._links([host.address]) if is_silent else set()
        self._world.network.cut |= links
        process = host.process
        assert process is not None
        process.kill(is_silent=is_silent)
        if is_silent and host.host is not None:
            self._lose_cache(host.host.member_id)

        def restart() -> None:
            self._world.network.mend(links)
            if not self._world.is_off and not host.is_up:
                self._note(f"a new process at {host.address}")
                self._world.start_member(host)

        self._later(self._world.random.uniform(0.3, 4.0), restart)

    def _isolate_and_lose(self) -> None:
        """A member does not reach the others for a moment, and its machine fails: what it has not sent is lost."""
        host = self._member_to_lose()
        if host is None or host.process is None:
            return
        process, name = host.process, self._name(host)
        links = {(host.address, other.address) for other in self._world.hosts if other is not host}
        self._note(f"cut {sorted(links)}")
        self._world.network.cut |= links

        def fail() -> None:
            if process.is_dead:
                self._world.network.mend(links)
                return
            self._note(f"power failure at {name}")
            process.kill(is_silent=True)
            self._lose_cache(name.partition(" ")[0])
            self._later(self._world.random.uniform(0.3, 4.0), restart)

        def restart() -> None:
            self._world.network.mend(links)
            if not self._world.is_off and not host.is_up:
                self._note(f"a new process at {host.address}")
                self._world.start_member(host)

        self._later(self._world.random.uniform(0.05, 0.8), fail)

    def _kill_controller(self) -> None:
        process = self._world.controller
        if process.is_dead or process.is_paused or not self._is_majority(0):
            return
        self._note("kill the controller")
        process.kill()

        def restart() -> None:
            if not self._world.is_off and self._world.controller.is_dead:
                self._note("a new controller")
                self._world.start_controller(is_recovering=True)

        self._later(self._world.random.uniform(0.05, 2.0), restart)

    def _pause_member(self) -> None:
        host = self._member_for(is_long := self._is_long())
        if host is not None:
            assert host.process is not None
            self._pause(host.process, self._name(host), is_long)

    def _pause_controller(self) -> None:
        self._pause(self._world.controller, "the controller", self._is_long())

    def _pause(self, process: Process, name: str, is_long: bool) -> None:
        if process.is_paused or process.is_dead:
            return
        self._note(f"SIGSTOP {name}")
        process.pause()

        def resume() -> None:
            self._note(f"SIGCONT {name}")
            process.resume()

        self._later(self._length(is_long), resume)

    def _suspend(self) -> None:
        """A machine sleeps: its monotonic clock stands still, too."""
        host = self._member_for(is_long := self._is_long())
        process = self._world.controller if host is None else host.process
        if process is None or process.is_paused or process.is_dead:
            return
        seconds, name = self._length(is_long), process.name
        self._note(f"suspend {name}")
        process.pause()

        def resume() -> None:
            self._note(f"resume {name}")
            process.slept_s += seconds * process.pace
            process.resume()

        self._later(seconds, resume)

    def _reset(self) -> None:
        network, draw = self._world.network, self._world.random
        endpoints = list(network.endpoints)
        if not endpoints:
            return
        about = draw.choice(endpoints).process.host
        share = draw.choice((0.3, 1.0))
        broken = [end for end in endpoints if end.process.host == about and draw.random() < share]
        self._note(f"reset {len(broken)} connections of {about}")
        for endpoint in broken:
            endpoint.break_now()

    def _lose_answers(self) -> None:
        """What a process answers next to some others is lost with its connections to them: they ask it again."""
        draw, network = self._world.random, self._world.network
        ends = [end for end in network.endpoints if end.address in network.listeners and draw.random() < 0.5]
        self._note(f"the next answers over {len(ends)} connections are lost")
        for end in ends:
            end.loses_next = True

    def _cut(self) -> None:
        draw = self._world.random
        hosts = [CONTROLLER_HOST, *(host.address for host in self._world.hosts if host.is_up)]
        clients = sorted({end.process.host for end in self._world.network.endpoints} - set(hosts))
        is_long = self._is_long()
        one = draw.choice(hosts[1:] or hosts)
        others = draw.choice(([draw.choice(hosts + clients)], [host for host in hosts if host != one]))
        others = [other for other in others if other != one]
        concerns_members = any(other in hosts for other in others)
        if not others or (is_long and concerns_members and not self._may_lose()):
            return
        links = {(one, other) for other in others} | {(other, one) for other in others}
        match draw.randrange(3):
            case 0:
                links = {link for link in links if link[0] == one}
            case 1:
                links = {link for link in links if link[1] == one}
        self._note(f"cut {sorted(links)}")
        self._cut_for(links, self._length(is_long))

    def _split(self) -> None:
        """A member and some clients on one side, everybody else on the other; one or both directions are lost."""
        host = self._member_for(is_long := self._only_splits or self._world.random.random() < 0.7)
        if host is None:
            return
        if self._only_splits:
            host = self._owner_of_the_key() or host
        draw = self._world.random
        hosts = [CONTROLLER_HOST, *(other.address for other in self._world.hosts)]
        clients = sorted({end.process.host for end in self._world.network.endpoints} - set(hosts))
        count = min(1, len(clients)) if self._only_splits else draw.randint(min(1, len(clients)), len(clients))
        near = {host.address, *draw.sample(clients, count)}
        far = {*hosts, *clients} - near
        if not self._only_splits and draw.random() < 0.4:  # all clients reach both sides
            near, far = {host.address}, far - set(clients)
        there, back = {(one, other) for one in near for other in far}, {(other, one) for one in near for other in far}
        links = draw.choice((there | back, there | back, there, back))
        directions = "both ways" if len(links) > len(there) else "from it" if links == there else "to it"
        self._note(f"split {sorted(near)} off, {directions}")
        self._cut_for(links, self._length(is_long))

    def _owner_of_the_key(self) -> Host | None:
        """The member that all clients ask, of those that have not left, when they are about one key."""
        for host in self._world.hosts:
            if host.is_up and host.host is not None:
                member = host.host.member
                for table in member._storage.store.tables():
                    if table.name == "register":
                        owners = member._membership.topology.ownership(table.scheme.affinity_group())
                        hosted = set(owners.partitions_of(member.member_id)) & set(
                            member._storage.store.hosted(table.table_id)
                        )
                        if any(
                            member._storage.store.partition(table.table_id, number).snapshot().rows for number in hosted
                        ):
                            return host
        return None

    def _cut_for(self, links: set[tuple[str, str]], seconds: float) -> None:
        self._world.network.cut |= links

        def mend() -> None:
            self._note(f"mend {len(links)} links of {sorted({source for source, _ in links})}")
            self._world.network.mend(links)

        self._later(seconds, mend)

    def _slow(self) -> None:
        draw, network = self._world.random, self._world.network
        hosts = [CONTROLLER_HOST, *(host.address for host in self._world.hosts)]
        one = draw.choice(hosts)
        times = draw.choice((20.0, 200.0, 1000.0))
        if times == 1000.0 and not self._may_lose():
            times = 100.0  # the lease of a member that is farther away, or whose controller is, may end meanwhile
        links = {(one, other) for other in hosts if other != one} | {(other, one) for other in hosts if other != one}
        self._note(f"{one} is {times:g} times as far away")
        network.slow.update(dict.fromkeys(links, times))

        def mend() -> None:
            for link in links:
                network.slow.pop(link, None)

        self._later(self._length(False) * 2, mend)

    def _disk(self) -> None:
        """A disk is slow, full or fails for a while, or says that it has written what it has not."""
        host = self._member()
        disk = None if host is None or host.host is None else self._world.disks.get(host.host.member_id)
        if disk is None:
            return
        draw = self._world.random
        match draw.choice(("slow", "lies") if self._has_power_failures else ("slow", "full", "fails", "lies")):
            case "slow":
                disk.slowness = draw.choice((20.0, 300.0))
                self._note(f"{disk.path} is {disk.slowness:g} times as slow")
            case "full":
                if self._may_lose():  # copies that it cannot record leave the ownership
                    disk.fill()
                    self._note(f"{disk.path} is full")
            case "fails":
                if self._may_lose():
                    disk.fails = draw.choice((1, 3))
                    self._note(f"{disk.path} fails {disk.fails} times")
            case "lies":
                if self._may_lose():  # what it has does not survive a loss of power
                    disk.lies = True
                    self._note(f"{disk.path} lies")

        def mend() -> None:
            disk.slowness, disk.capacity_bytes, disk.fails = 1.0, 1 << 40, 0

        self._later(self._length(False) * 2, mend)

    def _lose_cache(self, member_id: str) -> None:
        if disk := self._world.disks.get(member_id):
            disk.crash()

    def _lose_power(self) -> None:
        """Everything ends at once, and is started cold, or each process by itself as it was."""
        if self._world.is_off or self._world.real_controller is None or self._world.controller.is_dead:
            return
        self._note("power failure everywhere")
        self._world.lose_power()

        is_cold = self._world.random.random() < 0.5

        def restart() -> None:
            self._note("a cold start" if is_cold else "each process is started anew")
            if is_cold:
                self._world.start_cold()
            else:
                self._world.start_anew()

        self._later(self._world.random.uniform(0.2, 1.0), restart)

    def _add_member(self) -> None:
        """The cluster grows by a member."""
        hosts = self._world.hosts
        if len(hosts) < HOSTS_MAX and not self._world.is_off:
            host = self._world.add_host()
            self._note(f"a further member at {host.address}")
            self._world.start_member(host)

    def _jump(self) -> None:
        process = self._world.random.choice(
            [self._world.controller, *(host.process for host in self._world.hosts if host.process is not None)]
        )
        jump_s = self._world.random.choice((-86_400.0, -5.0, 5.0, 86_400.0))
        self._note(f"the wall clock of {process.name} jumps by {jump_s:g} s")
        process.wall_s += jump_s

    # -- what they share

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._mending += 1

        def mend() -> None:
            self._mending -= 1
            call()

        self._world.machine.call_at(self._world.now_s + seconds, mend)

    def _is_long(self) -> bool:
        return self._world.random.random() < 0.4

    def _length(self, is_long: bool) -> float:
        return self._world.random.uniform(*(_LONG_S if is_long else _SHORT_S))

    def _may_lose(self) -> bool:
        real = self._world.real_controller
        has_controller = not self._world.controller.is_dead and real is not None and bool(real._state.topology.members)
        if self._losses <= 0 or not (has_controller or self._is_majority(1)):
            return False
        self._losses -= 1
        return True

    def _is_majority(self, further: int) -> bool:
        """Whether most members are there, without some further ones.

        A controller that starts anew needs most of them, unless the leases of the others have not ended meanwhile; it
        knows no member before it has decided. A process that was removed for its silence is none of them.
        """
        hosts, real = self._world.hosts, self._world.real_controller
        there = {host.host.member_id for host in hosts if host.is_up and host.host is not None}
        members = set() if real is None else set(real._state.topology.member_ids)
        is_most = 2 * (len(there) - further) > len(hosts)
        is_most &= not members or 2 * (len(members & there) - further) > len(members)
        return self._is_careless or is_most

    def _member_for(self, is_long: bool) -> Host | None:
        return self._member_to_lose() if is_long else self._member()

    def _member_to_lose(self) -> Host | None:
        host = self._member()
        return host if host is not None and self._may_lose() else None

    def _member(self) -> Host | None:
        up = [host for host in self._world.hosts if host.is_up and host.host is not None]
        return self._world.random.choice(up) if up else None

    def _name(self, host: Host) -> str:
        return "?" if host.host is None else f"{host.host.member_id} at {host.address}"

    def _links(self, hosts: list[str]) -> set[tuple[str, str]]:
        everywhere = {CONTROLLER_HOST, *(host.address for host in self._world.hosts)}
        everywhere |= {end.process.host for end in self._world.network.endpoints}
        return {link for host in hosts for other in everywhere - {host} for link in ((host, other), (other, host))}

    def _note(self, sentence: str) -> None:
        self.done.append(f"{self._world.now_s:.4f} {sentence}")
