"""Runs seeds of the simulation, a few one after the other in each process.

``python tests/simulation/run.py --seeds 2000`` ends with ``N passed, N failed``; for each seed that fails it says why
and how to run it again. ``--seed 17`` alone runs one seed and says what happened.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import importlib
import json
import os
import select
import signal
import sys
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn

_SEED_S_MAX: Final = 120.0
_PROCESS_SEEDS: Final = 16
"""So many seeds of one process share the plans, codecs and statistics that it makes once. No world is freed, and each
leaves some 20 MB."""
_HASH_SEED: Final = "0"


def main() -> int:
    parser = argparse.ArgumentParser(description="Deterministic simulation of a cluster.")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--also", type=int, nargs="*", default=[], help="more seeds, which come first")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="seeds that run at the same time")
    parser.add_argument(
        "--plant", default="", help="a fault of the product that is to be found; see plants.py; all: each in its turn"
    )
    parser.add_argument("--focus", action="store_true", help="only seeds that are about the plant's kind of trouble")
    parser.add_argument("--leaning", default="", help="only seeds that are about this kind of trouble; see mix.py")
    parser.add_argument("--without-backups", action="store_true", help="tables without backups; no process dies")
    parser.add_argument("--until-failure", action="store_true", help="end at the first seed that fails")
    parser.add_argument("--log", default="", help="a file for every event, to compare two runs of one seed")
    parser.add_argument("--json", action="store_true", help="print each outcome as a line of JSON")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:  # the order of sets is part of a seed
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": _HASH_SEED})
    _load(arguments.log)
    if arguments.plant == "all":
        return _find_all(arguments.seed, arguments.seeds, arguments.workers, is_focused=arguments.focus)
    leaning = _leaning_of(arguments.plant) if arguments.focus and arguments.plant else arguments.leaning or None
    seeds = [*arguments.also, *range(arguments.seed, arguments.seed + arguments.seeds)]
    begun_s = monotonic()
    passed, failed, calls = 0, 0, 0
    errors: Counter[str] = Counter()
    options = {"without_backups": arguments.without_backups, "leaning": leaning}
    for outcome in _outcomes(seeds, arguments.workers, options, plant=arguments.plant):
        calls += outcome["calls"]
        errors.update(outcome["errors"])
        if arguments.json:
            print(json.dumps(outcome), flush=True)
        elif outcome["wrong"] or arguments.seeds == 1:
            _tell(outcome)
        passed, failed = passed + (not outcome["wrong"]), failed + bool(outcome["wrong"])
        if failed and arguments.until_failure:
            break
    seconds = monotonic() - begun_s
    print(f"{calls} calls, {sum(errors.values())} of them failed; {(passed + failed) / seconds:.1f} seeds a second")
    for error, count in sorted(errors.items()):
        print(f"  {count:6} {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _find_all(first: int, seeds: int, workers: int, *, is_focused: bool) -> int:
    """Find each plant; prints for each the seed that does, and what it says.

    The seeds that lean towards the plant's kind of trouble come first: they find most plants soon.
    """
    from mix import LEANINGS, Mix
    from plants import PLANTS

    missed = 0
    for plant in PLANTS:
        leaning = _leaning_of(plant)
        found, about, options = None, LEANINGS[leaning], {"leaning": leaning if is_focused else None}
        ordered = sorted(range(first, first + seeds), key=lambda seed: Mix.of(seed).leaning is not about)
        for outcome in _outcomes(ordered, workers, options, plant=plant):
            if outcome["wrong"] and outcome["steps"]:  # one that was given up has found nothing
                found = outcome
                break
        missed += found is None
        print(json.dumps({"plant": plant, "seed": found and found["seed"], "wrong": found and found["wrong"][0]}))
    print(f"{len(PLANTS) - missed} found, {missed} missed", flush=True)
    return 1 if missed else 0


def _leaning_of(plant: str) -> str:
    from plants import FOUND_BY

    return FOUND_BY[plant]


def _load(log: str) -> None:
    """Put the virtual machine under this process, and load everything that seeds need."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import operating_system

    operating_system.install()
    import logging

    import pyarrow as pa

    pa.set_cpu_count(1)
    logging.disable(logging.CRITICAL)
    from machine import Machine

    Machine("loading")
    import world

    world.install()
    for name in _lazily_loaded():
        importlib.import_module(name)
    import plants  # noqa: F401
    import scenario  # noqa: F401
    from texts import remember_plans, remember_summaries, remember_texts
    from warm_up import warm_up

    remember_texts()
    remember_plans()
    remember_summaries()
    warm_up()
    gc.collect()
    gc.freeze()
    gc.disable()  # no world is freed: its threads must not be unwound
    if log:
        Machine.log = Path(log).open("w")  # noqa: SIM115 -- it is written to until the process ends


def _lazily_loaded() -> list[str]:
    import secateur

    root = Path(secateur.__file__).parent
    names = []
    for folder in ("client", "engine", "planner", "storage", "cluster", "partitioning", "protocol", "wire"):
        for path in sorted((root / folder).rglob("*.py")):
            name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
            if not name.startswith("secateur.cluster.runtimes."):  # of real processes
                names.append(name.removesuffix(".__init__"))
    return names


class _Child:
    """A forked process, and the seeds that it has not told of yet."""

    def __init__(self, seeds: list[int], options: dict[str, Any], plant: str) -> None:
        self.seeds = deque(seeds)
        self.before: list[int] = []
        self.begun_s = monotonic()
        self._received = b""
        self.reading, writing = os.pipe()
        self._id = os.fork()
        if self._id == 0:
            os.close(self.reading)
            _run_seeds(seeds, writing, options, plant)
        os.close(writing)

    def told(self) -> list[dict[str, Any]] | None:
        """The outcomes that have arrived; None when nothing more will come. Later processes know its plans."""
        from texts import learn_plans

        data = os.read(self.reading, 1 << 16)
        if not data:
            return None
        *lines, self._received = (self._received + data).split(b"\n")
        told = [json.loads(line) for line in lines]
        for outcome in told:
            learn_plans(base64.b64decode(outcome.pop("learned")))
            self.before.append(self.seeds.popleft())
            self.begun_s = monotonic()
        return told

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._id, signal.SIGKILL)
        os.waitpid(self._id, 0)
        os.close(self.reading)


def _outcomes(
    seeds: Iterable[int], workers: int, options: dict[str, Any], *, plant: str = ""
) -> Iterator[dict[str, Any]]:
    """Run seeds in forked processes, some in each; one that fails there is run again alone, as its reader will."""
    waiting = _in_portions(list(seeds), 1 if plant else _PROCESS_SEEDS, workers)  # a plant keeps what it has seen
    running: dict[int, _Child] = {}
    in_company: dict[int, dict[str, Any]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                child = _Child(waiting.popleft(), options, plant)
                running[child.reading] = child
            readable, _, _ = select.select(list(running), [], [], 1.0)
            for reading, child in list(running.items()):
                told = child.told() if reading in readable else []
                for outcome in told or ():
                    seed, first = outcome["seed"], in_company.pop(outcome["seed"], None)
                    if outcome["wrong"] and len(child.before) > 1:
                        in_company[seed] = outcome
                        waiting.appendleft([seed])
                    elif first is not None and not (outcome["wrong"] and outcome["trace"] == first["trace"]):
                        yield {**first, "wrong": [*first["wrong"], "and it is another run alone"]}
                    else:
                        yield outcome
                is_late = monotonic() - child.begun_s > _SEED_S_MAX
                if told is None or is_late:
                    child.end()
                    del running[reading]
                    if child.seeds:
                        late = f"the seed has not ended within {_SEED_S_MAX:g} s"
                        yield _lost(child.seeds.popleft(), late if is_late else "the process has ended without a word")
                    if child.seeds:
                        waiting.append(list(child.seeds))
    finally:
        for child in running.values():
            child.end()


def _in_portions(seeds: list[int], most: int, workers: int) -> deque[list[int]]:
    """The seeds of each process: few enough that every worker has some, in an order that has low seeds first."""
    size = max(1, min(most, len(seeds) // (2 * workers)))
    return deque(seeds[begin : begin + size] for begin in range(0, len(seeds), size))


def _run_seeds(seeds: list[int], writing: int, options: dict[str, Any], plant: str) -> NoReturn:
    """What a forked process does: it tells of each seed when it has ended."""
    try:
        from machine import Machine
        from plants import PLANTS
        from scenario import run
        from texts import learned_plans

        if plant:
            PLANTS[plant]()
        for seed in seeds:
            _forget()
            try:
                outcome = run(seed, **options).to_dict()
                if Machine.log is not None:
                    Machine.log.flush()
            except BaseException:
                outcome = _lost(seed, traceback.format_exc())
            learned = base64.b64encode(learned_plans()).decode()
            data = json.dumps({**outcome, "learned": learned}).encode() + b"\n"
            while data:
                data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _forget() -> None:
    """Drop what an earlier world has left in the process and a later one could see."""
    from secateur.partitioning.schemes import scheme

    asyncio.tasks._all_tasks.clear()
    scheme._books.clear()
    scheme._by_reference.clear()


def _lost(seed: int, why: str) -> dict[str, Any]:
    return {
        "seed": seed,
        "wrong": [why],
        "trace": "",
        "calls": 0,
        "errors": {},
        "faults": [],
        "longest_s": 0.0,
        "steps": 0,
    }


def _tell(outcome: dict[str, Any]) -> None:
    print(f"seed {outcome['seed']}, trace {outcome['trace']}, {outcome['steps']} steps, {outcome['calls']} calls")
    for line in (*outcome["faults"], *(f"WRONG {sentence}" for sentence in outcome["wrong"])):
        print(f"  {line}")
    if outcome["wrong"]:
        print(f"  again: make simulate SEED={outcome['seed']} SEEDS=1", flush=True)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what Python does at its end waits for threads, which are virtual here
