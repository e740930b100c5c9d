"""One run of the simulation: a cluster, its clients, its faults, then quiet, and the judgement."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from checks import LossWatch, PrimaryWatch, unrest
from clients import Workload
from faults import Faults
from machine import Process, StuckError
from mix import Leaning, Mix
from owner import Owner
from world import World

__all__ = ["Outcome", "run"]

_REST_S_MAX: Final = 20.0
_LOOK_S: Final = 0.25
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


def run(seed: int, *, without_backups: bool = False, leaning: str | None = None) -> Outcome:
    """Run one seed; in a process of its own.

    Args:
        seed: The seed.
        leaning: The kind of trouble that it is about, one of :data:`mix.LEANINGS`; None for what the seed says.
        without_backups: Whether members have the only copies of their partitions, and no process dies: statements may
            say that partitions are out of reach, but in the end every row is there.
    """
    mix = Mix.of(seed, leaning=leaning, without_backups=without_backups)
    world = World(seed, is_durable=mix.is_durable)
    draw = world.random
    outcome = Outcome(seed)
    about = mix.leaning or Leaning()
    workload = Workload(
        world,
        mix.backups,
        one_key=about.is_split,
        groups=mix.groups,
        calls=about.calls,
        pause_s=about.pause_s,
        cancelled_share=mix.cancelled_share,
    )
    workload.log.may_lose = mix.is_careless
    owner = None if mix.scale_pause_s is None else Owner(world, max(2, mix.backups + 1), mix.scale_pause_s)
    losses = mix.backups + 2 if mix.is_careless else mix.backups
    faults = Faults(
        world,
        losses,
        kills=mix.kills,
        only_splits=about.is_split,
        kinds=about.faults,
        share=mix.fault_share,
        is_careless=mix.is_careless,
    )
    try:
        world.start()
        PrimaryWatch(world)
        if mix.is_careless:  # with fewer losses than that, there always is another copy
            LossWatch(world)
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
        world.client(lambda _: faults.run(mix.faults_s), "faults")
        if owner is not None:
            world.client(owner.run, "owner")
        _wait(world, lambda: world.now_s > begun_s + mix.faults_s and faults.is_mended)
        workload.is_over = True
        _wait(world, lambda: workload.running == 0)
        if owner is not None:
            owner.is_over = True
            _wait(world, lambda: not owner.is_running)
        if workload.log.may_lose and world.real_controller is not None and world.real_controller._takeover._failure:
            return _told(outcome, world, workload, faults, owner)  # it says so, and there is nothing left to ask
        workload.log.may_lose &= not without_backups
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
    outcome.trace, outcome.calls, outcome.errors = world.machine.trace, workload.log.calls, dict(workload.log.errors)
    done = [*faults.done, *(() if owner is None else owner.done)]
    outcome.faults = sorted(done, key=lambda sentence: float(sentence.partition(" ")[0]))
    outcome.longest_s, outcome.steps = workload.log.longest_s, world.machine.steps
    return outcome


def _come_to_rest(world: World, workload: Workload) -> None:
    """Wait until everything is in order by itself."""
    rest_by_s = world.now_s + _REST_S_MAX
    while left := unrest(world, may_lose=workload.log.may_lose):
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
