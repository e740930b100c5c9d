"""One run of the simulation: a cluster, its clients, its faults, then quiet, and the judgement."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from clients import Workload
from faults import Faults
from machine import Process, StuckError
from world import World

__all__ = ["Outcome", "run"]

_FAULTS_S: Final = 8.0
_QUIET_S: Final = 6.0
_LIMIT_S: Final = 200.0


@dataclass
class Outcome:
    """What a run showed.

    Attributes:
        seed: Its seed.
        wrong: A sentence for each promise that was broken.
        trace: A digest of everything that has happened, in its order.
        calls: How many calls the clients have made.
        errors: Those that failed, by kind and class.
        faults: What has been done to the cluster.
        longest_s: The longest call.
        steps: Steps of threads.
    """

    seed: int
    wrong: list[str] = field(default_factory=list)
    trace: str = ""
    calls: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    longest_s: float = 0.0
    steps: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run(seed: int) -> Outcome:
    """Run one seed; in a process of its own."""
    world = World(seed)
    draw = world.random
    outcome = Outcome(seed)
    backups = draw.choice((1, 1, 2))
    is_careless = draw.random() < 0.15
    workload = Workload(world, backups)
    workload.may_lose = is_careless
    faults = Faults(world, backups + 2 if is_careless else backups)
    try:
        world.start()
        ready: list[bool] = []

        def prepare(_: Process) -> None:
            with world.connect() as conn:
                workload.create(conn)
            ready.append(True)

        world.client(prepare, "creator")
        _wait(world, lambda: bool(ready))
        begun_s = world.now_s
        for number in range(draw.choice((2, 3))):
            world.client(workload.run, f"client {number}")
        world.client(lambda _: faults.run(_FAULTS_S), "faults")
        _wait(world, lambda: world.now_s > begun_s + _FAULTS_S and faults.is_mended)
        workload.is_over = True
        _wait(world, lambda: workload.running == 0)
        quiet_until_s = world.now_s + _QUIET_S
        world.client(lambda _: time.sleep(_QUIET_S), "quiet")
        _wait(world, lambda: world.now_s > quiet_until_s)
        back: list[bool] = []

        def read_back(process: Process) -> None:
            workload.read_back(process)
            back.append(True)

        world.client(read_back, "reader")
        _wait(world, lambda: bool(back))
        workload.check()
    except StuckError as stuck:
        world.violated(f"{stuck}{world.machine.stacks_of_clients()}")
    outcome.wrong = [*world.wrong, *world.machine.failures]
    outcome.trace, outcome.calls, outcome.errors = world.machine.trace, workload.calls, dict(workload.errors)
    outcome.faults, outcome.longest_s, outcome.steps = faults.done, workload.longest_s, world.machine.steps
    return outcome


def _wait(world: World, until: Any) -> None:
    world.machine.run(lambda: until() or bool(world.machine.failures), _LIMIT_S)
    if world.machine.failures:
        raise StuckError("a thread has failed")
