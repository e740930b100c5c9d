"""What a process makes once and keeps, such as codecs and parsers: made before seeds are forked from it.

It is half of the work of a seed that has to do it by itself.
"""

from __future__ import annotations

from typing import Any

from clients import Workload
from machine import Process
from texts import learn_plans, learned_plans
from world import World

__all__ = ["warm_up"]

_LIMIT_S = 60.0
_kept: list[World] = []
"""Threads of a world must not be unwound, so it is never given back."""


def warm_up() -> None:
    """Have a cluster that nothing happens to do everything that clients ask for.

    Raises:
        AssertionError: It has gone wrong, so that seeds would, too; or no plan was remembered.
    """
    world = World("warm-up", is_durable=True)
    _kept.append(world)
    workload = Workload(world, 1)
    done: list[bool] = []

    def work(process: Process) -> Any:
        with world.connect() as conn:
            workload.create(conn)
        workload.run_each(process)
        workload.read_back(process)
        done.append(True)

    world.start()
    world.client(work, "warm-up")
    world.machine.run(lambda: bool(done or world.wrong or world.machine.failures), _LIMIT_S)
    workload.check()
    wrong = [*world.wrong, *world.machine.failures]
    assert not wrong, wrong
    assert learn_plans(learned_plans()), "the planner does not ask what texts.py remembers"
