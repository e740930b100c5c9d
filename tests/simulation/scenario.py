"""One run of the simulation: a cluster, its clients, its faults, then quiet, and the judgement."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from checks import PrimaryWatch, unrest
from clients import PAUSE_S, Workload
from faults import Faults
from machine import Process, StuckError
from owner import Owner
from world import World

__all__ = ["Focus", "Outcome", "run"]

_FAULTS_S: Final = 8.0
_FOCUSED_S: Final = 5.0
_REST_S_MAX: Final = 20.0
_LOOK_S: Final = 0.25
_DURABLE_SHARE: Final = 0.35
_SPLIT_SHARE: Final = 0.1
"""Of seeds in which all clients are about one key, and members are cut off with a client again and again: only there it
is likely that a client asks a member that was replaced for a row that others have changed."""
_SCALE_SHARE: Final = 0.4
"""Of the other seeds, those in which the owner scales the cluster."""
_SCALE_PAUSE_S: Final = 4.0
_LIMIT_S: Final = 200.0


@dataclass(frozen=True)
class Focus:
    """What a run is about, so that few seeds are enough to find one kind of fault of the product.

    Attributes:
        faults: The faults that happen, by name.
        calls: What clients do, by name, beside reading a row.
        is_durable: Whether members have disks.
        is_split: Whether all clients are about one key, and members are cut off with one of them.
        pause_s: How long a client rests between two calls, on average.
        scales_without_backups: Whether tables have no backups, and the owner scales the cluster all the time.
    """

    faults: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    is_durable: bool = False
    is_split: bool = False
    pause_s: float = PAUSE_S
    scales_without_backups: bool = False


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


def run(seed: int, *, without_backups: bool = False, focus: Focus | None = None) -> Outcome:
    """Run one seed; in a process of its own.

    Args:
        seed: The seed.
        focus: What it is about; None for everything.
        without_backups: Whether members have the only copies of their partitions, and no process dies: statements may
            say that partitions are out of reach, but in the end every row is there.
    """
    is_durable = not without_backups and random.Random(f"{seed} disk").random() < _DURABLE_SHARE
    if focus is not None:
        is_durable = focus.is_durable
    world = World(seed, is_durable=is_durable)
    draw = world.random
    outcome = Outcome(seed)
    backups = 0 if without_backups else draw.choice((1, 1, 2))
    is_careless = without_backups or draw.random() < 0.15
    is_split = not without_backups and random.Random(f"{seed} split").random() < _SPLIT_SHARE
    if focus is not None:
        is_careless, is_split = False, focus.is_split
        backups = 0 if focus.scales_without_backups else backups
    scales = not is_split and random.Random(f"{seed} scale").random() < _SCALE_SHARE
    if focus is not None:
        scales = focus.scales_without_backups
    calls, kinds = ((), ()) if focus is None else (focus.calls, focus.faults)
    faults_s = _FAULTS_S if focus is None or is_split else _FOCUSED_S
    pause_s = PAUSE_S if focus is None else focus.pause_s
    workload = Workload(world, backups, one_key=is_split, calls=calls, pause_s=pause_s)
    workload.may_lose = is_careless
    owner = Owner(world, max(2, backups + 1), _SCALE_PAUSE_S if focus is None else 0.5) if scales else None
    losses = backups + 2 if is_careless else backups
    faults = Faults(world, losses, kills=not without_backups, only_splits=is_split, kinds=kinds)
    try:
        world.start()
        PrimaryWatch(world)
        ready: list[bool] = []

        def prepare(_: Process) -> None:
            with world.connect() as conn:
                workload.create(conn)
            ready.append(True)

        world.client(prepare, "creator")
        _wait(world, lambda: bool(ready))
        begun_s = world.now_s
        for number in range(draw.choice((2, 3, 4))):
            world.client(workload.run, f"client {number}")
        world.client(lambda _: faults.run(faults_s), "faults")
        if owner is not None:
            world.client(owner.run, "owner")
        _wait(world, lambda: world.now_s > begun_s + faults_s and faults.is_mended)
        workload.is_over = True
        _wait(world, lambda: workload.running == 0)
        if owner is not None:
            owner.is_over = True
            _wait(world, lambda: not owner.is_running)
        if workload.may_lose and world.real_controller is not None and world.real_controller._takeover._failure:
            return _told(outcome, world, workload, faults, owner)  # it says so, and there is nothing left to ask
        workload.may_lose &= not without_backups
        _come_to_rest(world, workload)
        back: list[bool] = []

        def read_back(process: Process) -> None:
            workload.read_back(process)
            back.append(True)

        world.client(read_back, "reader")
        _wait(world, lambda: bool(back))
        workload.check()
        _come_to_rest(world, workload)  # reads complete changes without an answer
    except StuckError as stuck:
        world.violated(f"{stuck}{world.machine.stacks_of_clients()}")
    return _told(outcome, world, workload, faults, owner)


def _told(outcome: Outcome, world: World, workload: Workload, faults: Faults, owner: Owner | None) -> Outcome:
    outcome.wrong = [*world.wrong, *world.machine.failures]
    outcome.trace, outcome.calls, outcome.errors = world.machine.trace, workload.calls, dict(workload.errors)
    done = [*faults.done, *(() if owner is None else owner.done)]
    outcome.faults = sorted(done, key=lambda sentence: float(sentence.partition(" ")[0]))
    outcome.longest_s, outcome.steps = workload.longest_s, world.machine.steps
    return outcome


def _come_to_rest(world: World, workload: Workload) -> None:
    """Wait until everything is in order by itself."""
    rest_by_s = world.now_s + _REST_S_MAX
    while left := unrest(world, may_lose=workload.may_lose):
        if world.now_s > rest_by_s:
            for sentence in left:
                world.violated(f"{_REST_S_MAX:g} s after the last fault: {sentence}")
            return
        next_s = world.now_s + _LOOK_S
        world.machine.call_at(next_s, lambda: None)
        _wait(world, lambda next_s=next_s: world.now_s >= next_s)


def _wait(world: World, until: Any) -> None:
    world.machine.run(lambda: until() or bool(world.machine.failures), _LIMIT_S)
    if world.machine.failures:
        raise StuckError("a thread has failed")
