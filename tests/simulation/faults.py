"""What happens to a simulated cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from machine import Process
from world import CONTROLLER_HOST, Host, World

__all__ = ["Faults"]

_SHORT_S: Final = (0.05, 0.7)
_LONG_S: Final = (2.0, 6.0)


class Faults:
    """Hurts processes, links and clocks, one after the other or several at a time, and mends all in the end.

    Args:
        world: The cluster.
        losses: How many members may be hurt for so long that the cluster goes on without them.

    Attributes:
        done: What has been done, and when.
    """

    def __init__(self, world: World, losses: int) -> None:
        self._world = world
        self._losses = losses
        self.done: list[str] = []
        self._mending = 0

    @property
    def is_mended(self) -> bool:
        return not self._mending

    def run(self, seconds: float) -> None:
        """Do faults for some time; in a thread of a process of its own."""
        draw = self._world.random
        end_s = self._world.now_s + seconds
        kinds: list[tuple[Callable[[], None], float]] = [
            (self._kill_member, 3),
            (self._pause_member, 3),
            (self._pause_controller, 2),
            (self._isolate_and_lose, 2),
            (self._kill_controller, 2),
            (self._suspend, 1),
            (self._reset, 4),
            (self._cut, 4),
            (self._slow, 2),
            (self._jump, 1),
        ]
        weights = [weight if draw.random() < 0.5 else 0 for _, weight in kinds]
        weights[-4] += 0.1  # resets are never left out
        while True:
            time.sleep(draw.uniform(0.1, 1.6))
            if self._world.now_s >= end_s:
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

        def restart() -> None:
            self._note(f"a new process at {host.address}")
            self._world.network.mend(links)
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
                return
            self._note(f"power failure at {name}")
            process.kill(is_silent=True)
            self._later(self._world.random.uniform(0.3, 4.0), restart)

        def restart() -> None:
            self._note(f"a new process at {host.address}")
            self._world.network.mend(links)
            self._world.start_member(host)

        self._later(self._world.random.uniform(0.05, 0.8), fail)

    def _kill_controller(self) -> None:
        process = self._world.controller
        if process.is_dead or process.is_paused:
            return
        self._note("kill the controller")
        process.kill()

        def restart() -> None:
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
        self._world.network.cut |= links

        def mend() -> None:
            self._note(f"mend {sorted(links)}")
            self._world.network.mend(links)

        self._later(self._length(is_long), mend)

    def _slow(self) -> None:
        draw, network = self._world.random, self._world.network
        hosts = [CONTROLLER_HOST, *(host.address for host in self._world.hosts)]
        one = draw.choice(hosts)
        times = draw.choice((20.0, 200.0, 1000.0))
        links = {(one, other) for other in hosts if other != one} | {(other, one) for other in hosts if other != one}
        self._note(f"{one} is {times:g} times as far away")
        network.slow.update(dict.fromkeys(links, times))

        def mend() -> None:
            for link in links:
                network.slow.pop(link, None)

        self._later(self._length(False) * 2, mend)

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
        if self._losses <= 0:
            return False
        self._losses -= 1
        return True

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
